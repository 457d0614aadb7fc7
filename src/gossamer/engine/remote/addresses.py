"""Addresses of remote connectors, and the sockets that listen at them. Used by :mod:`.links`.

A `unix:` socket is as private as its folder: that must be ours alone (mode 0700), and the socket itself gets mode 0600
before anyone can see it. What a killed process left behind is replaced; a living one's socket is not, and nothing that
is not a socket ever is.
"""

import asyncio
import os
import secrets
import socket
import stat
from pathlib import Path

import msgspec

from gossamer.engine.errors import WiringError

#: Bytes of a socket's path that every system takes (104 on BSD and macOS), less the ending of its first name.
_PATH_BYTES = 90

#: Connections that wait to be accepted.
BACKLOG = 128


class Address(msgspec.Struct, frozen=True):
    """The place where a connector's two sides meet."""

    scheme: str
    path: str = ""
    host: str = ""
    port: int = 0
    seal: str = ""
    """The connection is sealed by TLS where this is not empty: for the side that listens, the file with its certificate and key."""

    def __str__(self) -> str:
        if self.scheme != "tcp":
            return f"{self.scheme}:{self.path}"
        return f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}"


def parse(address: str) -> Address:
    """An address from the wiring. Raises WiringError: it is malformed; says what is right."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        if not rest or "\0" in rest:
            raise WiringError(f"address {address!r} names no socket; write unix:PATH, as unix:run/links.sock")
        if len(os.fsencode(rest)) > _PATH_BYTES:
            raise WiringError(
                f"address {address!r}: socket paths are limited to {_PATH_BYTES} bytes; choose a shorter one"
            )
        return Address("unix", path=rest)
    if scheme == "peer" and rest and "\0" not in rest:
        return Address("peer", path=rest)
    host, _, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if scheme != "tcp" or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise WiringError(
            f"address {address!r} is malformed; write tcp:HOST:PORT, as tcp:127.0.0.1:9100 or tcp:[::1]:9100"
        )
    return Address("tcp", host=host, port=int(port))


def listening_unix_socket(path: Path) -> tuple[socket.socket, int]:
    """A socket that listens at `path`, and the file's inode. Raises WiringError: the folder is open to others, another
    process listens there, or something else has that name."""
    _check_folder(path.parent)
    _check_free(path)
    hidden = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(hidden))
        hidden.chmod(0o600)
        bound.listen(BACKLOG)
        inode = hidden.lstat().st_ino
        hidden.rename(path)
    except OSError as error:
        bound.close()
        hidden.unlink(missing_ok=True)
        raise WiringError(f"cannot listen at unix:{path}: {error.strerror}") from None
    bound.setblocking(False)
    return bound, inode


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    except OSError as error:
        raise WiringError(f"folder {str(folder)!r} for a socket cannot be made: {error.strerror}") from None
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        raise WiringError(
            f"folder {str(folder)!r} must be a real folder of yours and closed to others; run: chmod 700 {folder}"
        )


def _check_free(path: Path) -> None:
    """Nothing is there, or the socket of a process that is gone; the rename replaces that."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise WiringError(f"cannot listen at unix:{path}: this name belongs to something that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
        except OSError:
            pass
    raise WiringError(f"cannot listen at unix:{path}: another process listens there")


def remove_unix_socket(path: Path, inode: int) -> None:
    """Remove our socket, unless a successor has put its own there."""
    try:
        if path.lstat().st_ino == inode:
            path.unlink()
    except FileNotFoundError:
        pass


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server after every connection that it accepted has begun.

    An `asyncio.Server` that is closed between accepting a connection and beginning it forgets the connection, and
    leaves its socket open until it is collected.
    """
    loop = server.get_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()


def keep_alive(connected: socket.socket) -> None:
    """Notice within two minutes that the machine on the other side is gone, which no packet tells."""
    if connected.family == socket.AF_UNIX:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
