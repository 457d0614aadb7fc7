"""A process that has shut itself in can open nothing, reach nobody and start nothing, by each layer alone where the kernel has
it."""

import codecs
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.engine.confinement import LAYERS, Layer, Walls, confine, landlock_version

# The children use nothing that another thread of the parent could hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

MEMORY = 256 << 20

# A connection to a host looks this codec up, and behind the walls it could not be loaded.
codecs.lookup("idna")


def told(work: Callable[[], Any]) -> Any:
    """The answer of a function that runs in a process of its own, with a pipe and nothing else to tell it by."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            os.close(reader)
            os.write(writer, json.dumps(work()).encode())
            status = 0
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as file:
        answer = file.read()
    os.waitpid(child, 0)
    return json.loads(answer or "null")


def held(layers: tuple[Layer, ...]) -> Walls:
    """The walls that these layers make here."""
    return msgspec.convert(told(lambda: msgspec.to_builtins(confine(MEMORY, 60, layers))), Walls)


def opened(attempts: dict[str, Callable[[], object]]) -> list[str]:
    """Names of the attempts that did not fail."""
    found = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, subprocess.SubprocessError):
            continue
        found.append(name)
    return found


def attacks(victim: Path, port: int) -> dict[str, Callable[[], object]]:
    """Whatever a program could do to files, hosts and other processes."""
    here = os.getppid()
    return {
        "read": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "write": lambda: os.open(victim, os.O_WRONLY),
        "create": lambda: os.open(victim.parent / "new", os.O_WRONLY | os.O_CREAT),
        "delete": victim.unlink,
        "rename": lambda: victim.rename(victim.parent / "other"),
        "make a folder": (victim.parent / "folder").mkdir,
        "look back": lambda: os.open("../../../../../../etc/passwd", os.O_RDONLY),
        "look into a process": lambda: os.open(f"/proc/{here}/environ", os.O_RDONLY),
        "connect": lambda: socket.create_connection(("127.0.0.1", port), 2),
        "listen": lambda: socket.socket().bind(("127.0.0.1", 0)),
        "send a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
        "reach a Unix socket": lambda: socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket"),
        "start a program": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        "become it": lambda: os.execv("/bin/true", ["true"]),
    }


@pytest.fixture
def port() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    # Somewhere that everybody may write to, so that only the walls keep the process out.
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    for path in (tmp_path, folder):
        path.chmod(0o777)
    path = folder / "victim"
    path.write_text("kept")
    path.chmod(0o666)
    return path


@pytest.mark.parametrize("layers", [LAYERS, ("limits", "namespaces"), ("limits", "landlock")])
def test_a_process_behind_whole_walls_opens_nothing(layers: tuple[Layer, ...], victim: Path, port: int) -> None:
    walls = held(layers)
    if not walls.is_whole:
        pytest.skip(f"this machine lacks a layer: {walls}")

    def tried() -> list[str]:
        confine(MEMORY, 60, layers)
        return opened(attacks(victim, port))

    assert told(tried) == []
    assert victim.read_text() == "kept" and list(victim.parent.iterdir()) == [victim]


def test_without_walls_the_same_attempts_succeed(victim: Path, port: int) -> None:
    found = told(lambda: opened({name: one for name, one in attacks(victim, port).items() if name != "become it"}))
    assert {"read", "write", "create", "connect", "listen", "send a datagram", "start a program"} <= set(found)


def test_limits_alone_are_not_whole_walls() -> None:
    walls = held(("limits",))
    assert not walls.is_whole
    assert any("files are open" in one for one in walls.missing)


def test_landlock_keeps_signals_inside() -> None:
    if landlock_version() < 6:
        pytest.skip("this kernel's Landlock does not know signals")
    parent = os.getpid()

    def tried() -> list[str]:
        confine(MEMORY, 60, ("limits", "landlock"))
        return opened({"signal": lambda: os.kill(parent, signal.SIGCONT)})

    assert told(tried) == []


def test_memory_and_processor_time_end() -> None:
    def greedy() -> str:
        confine(64 << 20, 60)
        try:
            return str(len(bytearray(1 << 30)))
        except MemoryError:
            return "memory"

    assert told(greedy) == "memory"
    child = os.fork()
    if not child:
        confine(MEMORY, 1)
        while True:
            pass
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGXCPU
