"""A node of Ray for tests: one head on loopback, whose processes end with it."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gossamer.testing.clock import HUNG_AFTER

#: Ports that a raylet otherwise waits for, 15 s, until its helpers have chosen them; on a busy machine it then gives up.
PORTS = (
    "port",
    "node-manager-port",
    "object-manager-port",
    "dashboard-agent-grpc-port",
    "dashboard-agent-listen-port",
    "runtime-env-agent-port",
    "metrics-export-port",
)

#: Bytes of the object store: what a task hands on has 16 MB.
STORE_BYTES = 100_000_000


def ray_python() -> str:
    """The Python of an environment that has Ray."""
    found = os.environ.get("GOSSAMER_RAY", "")
    if not found:
        pytest.skip("GOSSAMER_RAY names no Python with Ray, which has 140 MB; ./gossamer dev ray does")
    return found


@contextlib.contextmanager
def ray_node(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Begin Ray, with what its workers find in their environment; gives its address. `folder` has a short path: sockets lie in it,
    and their names end after 108 bytes."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
        ports = [one.getsockname()[1] for one in sockets]
    words = [f"--{name}={port}" for name, port in zip(PORTS, ports, strict=True)]
    words += [
        "--head",
        "--block",
        "--num-cpus=2",
        "--node-ip-address=127.0.0.1",
        "--include-dashboard=false",
        "--disable-usage-stats",
    ]
    words += [f"--object-store-memory={STORE_BYTES}", f"--temp-dir={folder}"]
    said = folder.with_suffix(".said")
    with said.open("wb") as file:
        command = [ray_python(), "-P", "-m", "ray.scripts.scripts", "start", *words]
        node = subprocess.Popen(
            command, stdout=file, stderr=file, env=dict(environment), cwd=folder.parent, start_new_session=True
        )
    try:
        until = time.monotonic() + HUNG_AFTER
        while "Ray runtime started" not in (text := said.read_text("utf-8", "replace")):
            assert node.poll() is None and time.monotonic() < until, text
            time.sleep(0.2)
        yield f"127.0.0.1:{ports[0]}"
    finally:
        node.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            node.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait()
