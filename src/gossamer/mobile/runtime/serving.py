"""The runtime's process: where it listens, and when it ends.

Place in the flow: `gossamer runtime --serve` calls :func:`serve`. Off loopback it speaks TLS and nothing else, whatever it is told.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from gossamer.crawls.http_server import is_loopback, listening_socket, server
from gossamer.engine.confinement import Walls
from gossamer.mobile.confined.keeper import ProcessLimits, walls_here
from gossamer.mobile.judging import allowed_processors
from gossamer.mobile.runtime.host import RuntimeHost
from gossamer.mobile.runtime.senders import Senders, own_certificate
from gossamer.mobile.runtime.standing import Diary, HostStanding, write_standing
from gossamer.mobile.runtime.web import SenderGuard, application
from gossamer.mobile.sources.crawl import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: The address at which it listens by default.
ADDRESS = "127.0.0.1:8643"

#: Connections at once: senders, and those whom the guard turns away.
MAX_CONNECTIONS = 128
#: Bytes of the head of a request.
MAX_HEAD = 16_384

#: Seconds between two descriptions of itself on the disk.
_DESCRIBE = 1.0


class RuntimeAddress(msgspec.Struct, frozen=True):
    """Where a runtime listens."""

    name: str
    port: int
    """0: a free one."""
    has_tls: bool

    def url(self, port: int) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{'https' if self.has_tls else 'http'}://{name}:{port}"


def read_listening(text: str, *, tls: bool = False) -> RuntimeAddress:
    """Where to listen, as a person wrote it: `HOST:PORT`. Others than loopback addresses always have TLS.

    Raises:
        UsageError: it is no address.
    """
    name, _, port = text.rpartition(":")
    name = name.strip("[]")
    if not name or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(f"listen {text!r}: write HOST:PORT, as 127.0.0.1:8643 or 0.0.0.0:8643")
    return RuntimeAddress(name, int(port), tls or not is_loopback(name))


def state_folder(text: str = "") -> Path:
    """Where a runtime keeps keys, crawlers and results: a folder of the user's own.

    Raises:
        UsageError: it cannot be made, or others can write to it.
    """
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(text) if text else Path(state) / "gossamer" / "runtime"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise UsageError(f"--state {folder}: cannot be used: {error.strerror}") from None
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UsageError(f"--state {folder}: others can write there; use a folder of your own, with chmod 700")
    return folder


def checked_walls(limits: ProcessLimits) -> Walls:
    """The walls of crawlers on this machine.

    Raises:
        UsageError: they have a gap, and `--weak-isolation` was not given.
    """
    walls = walls_here(limits)
    if not (walls.is_whole or limits.is_weak):
        raise UsageError(
            f"crawlers cannot be shut in on this machine ({walls}); "
            "see docs/runtime.md, Isolation, or say --weak-isolation and admit only senders whom you trust"
        )
    return walls


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a state folder: no other runtime uses it.

    Raises:
        CrawlDirectoryError: another one does.
    """
    number = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CrawlDirectoryError(f"{folder}: another runtime uses it; stop that one, or give --state") from None
        yield
    finally:
        os.close(number)


def is_held(folder: Path) -> bool:
    """Whether a runtime uses a folder."""
    try:
        with held(folder):
            return False
    except CrawlDirectoryError:
        return True
    except OSError:
        return False


def serve(
    sheet: OwnerSheet,
    listening: RuntimeAddress,
    folder: Path,
    tell: Callable[[HostStanding], None],
    *,
    limits: ProcessLimits | None = None,
) -> None:
    """Serve until a signal says that it is enough.

    Args:
        sheet: the owner's.
        listening: where.
        folder: of the runtime's own; `state_folder` made it.
        tell: gets the description of the runtime once it listens.
        limits: which walls are put up, and whether weak ones do.

    Raises:
        UsageError: something cannot be served, or it cannot listen there, or crawlers cannot be shut in.
        CrawlDirectoryError: another runtime uses the folder.
    """
    processes = limits or ProcessLimits()
    with held(folder):
        walls = checked_walls(processes)
        certificate = own_certificate(folder) if listening.has_tls else None
        installed = allowed_processors(sheet.allow)
        diary = Diary(folder / "runtime.jsonl")
        with listening_socket(listening.name, listening.port, MAX_CONNECTIONS) as bound, Runtime(sheet) as sources:
            standing = HostStanding(
                pid=os.getpid(),
                address=listening.url(bound.getsockname()[1]),
                pin=certificate.pin if certificate else "",
                hosts=sheet.serve,
                walls=str(walls),
                is_weak=not walls.is_whole,
            )
            host = RuntimeHost(sheet, sources, folder, diary, installed=installed, limits=processes)
            diary.tell("started", address=standing.address, walls=standing.walls, hosts=list(sheet.serve))
            asyncio.run(_serve(host, bound, folder, diary, standing, certificate.path if certificate else None, tell))
            diary.tell("ended_serving")


async def _serve(
    host: RuntimeHost,
    bound: socket.socket,
    folder: Path,
    diary: Diary,
    standing: HostStanding,
    certificate: Path | None,
    tell: Callable[[HostStanding], None],
) -> None:
    file = str(certificate) if certificate else None
    guard = SenderGuard(application(host), Senders(folder), diary)
    serving = server(guard, most=MAX_CONNECTIONS, head=MAX_HEAD, certificate=file, key=file)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn sends itself the signal again when it has ended, which must not end the process before crawlers are ended.
        loop.add_signal_handler(number, lambda: setattr(serving, "should_exit", True))
    async with host:
        describing = asyncio.create_task(_describe(host, folder, standing))
        tell(standing)
        try:
            await serving.serve(sockets=[bound])
        finally:
            describing.cancel()
    write_standing(folder, standing, host)


async def _describe(host: RuntimeHost, folder: Path, standing: HostStanding) -> None:
    while True:
        await asyncio.to_thread(write_standing, folder, standing, host)
        await asyncio.sleep(_DESCRIBE)
