"""A node of Ray for tests: one head on loopback, whose processes end with it."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.testing.clock import HUNG_AFTER
from tools.killing.ray import RAYLET_PORTS

PORTS = ("port", *RAYLET_PORTS)

#: Bytes of the object store: what a task hands on has 16 MB.
STORE_BYTES = 100_000_000


def ray_python() -> str:
    """The Python of an environment that has Ray."""
    found = os.environ.get("GOSSAMER_RAY", "")
    if not found:
        pytest.skip("GOSSAMER_RAY names no Python with Ray, which has 140 MB; ./gossamer dev ray does")
    return found


def ray_environment() -> dict[str, str]:
    """The environment of Ray and of those who use it: Ray has a token, and looks for none in a person's home."""
    return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "1f" * 32}


@contextlib.contextmanager
def ray_node(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Begin Ray with one node of two processors, with what its workers find in their environment; gives its address. `folder` is
    made, and has a short path: sockets lie in it, and their names end after 108 bytes."""
    node, address = _begun(folder, environment)
    try:
        yield address
    finally:
        _end(node)


def _begun(folder: Path, environment: dict[str, str]) -> "tuple[subprocess.Popen[bytes], str]":
    """A node that has begun. On a busy machine Ray gives up now and then, so it is tried again."""
    until = time.monotonic() + HUNG_AFTER
    while True:
        with contextlib.ExitStack() as held:
            sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
            ports = [one.getsockname()[1] for one in sockets]
        words = [f"--{name}={port}" for name, port in zip(PORTS, ports, strict=True)]
        words += ["--head", "--block", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
        words += [
            "--labels=place=oslo",
            "--node-ip-address=127.0.0.1",
            f"--object-store-memory={STORE_BYTES}",
            f"--temp-dir={folder}",
        ]
        command = [ray_python(), "-P", "-m", "ray.scripts.scripts", "start", *words]
        said = folder.with_suffix(".said")
        with said.open("wb") as file:
            node = subprocess.Popen(
                command, stdout=file, stderr=file, env=environment, cwd=folder.parent, start_new_session=True
            )
        while "Ray runtime started" not in said.read_text("utf-8", "replace") and node.poll() is None:
            time.sleep(0.2)
        if node.poll() is None:
            return node, f"127.0.0.1:{ports[0]}"
        assert time.monotonic() < until, said.read_text("utf-8", "replace")


def _end(node: "subprocess.Popen[bytes]") -> None:
    node.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        node.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(node.pid, signal.SIGKILL)
    node.wait()
