"""Where a crawl's control socket lies: in the user's runtime directory, under a name made from the crawl's directory.

Not in the crawl's directory, since paths of sockets are limited to some 100 bytes, and since a directory may lie where
sockets cannot (design question 13). Who asks may live in another session than the crawl, with another environment: it looks in
every folder where the crawl could have put it.
"""

import hashlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: macOS: the option that names the user at the other end, and where the user's number stands in `struct xucred`.
_LOCAL_PEERCRED, _SOL_LOCAL, _XUCRED = 1, 0, struct.Struct("=IIh")


def socket_name(directory: Path) -> str:
    """The socket's name: 80 bits of a hash of the directory's real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:20] + ".sock"


def folders() -> list[Path]:
    """Folders for sockets, the preferred first. Each is ours alone, or is not there yet."""
    runtime = [Path(given)] if (given := os.environ.get("XDG_RUNTIME_DIR")) else []
    runtime += [Path(f"/run/user/{os.getuid()}")]
    found = [folder / "gossamer" for folder in runtime if is_private(folder)]
    # Without one, as in a service or over `su`: a folder of our own beside everybody's temporary files. Also the usual place
    # of those, since who asks may have another TMPDIR than the crawl.
    shared = (tempfile.gettempdir(), "/tmp")  # noqa: S108  # nobody else's folder is used: is_private looks at it first
    found += [Path(top) / f"gossamer-{os.getuid()}" for top in shared]
    return list(dict.fromkeys(found))


def sockets(directory: Path) -> Iterator[Path]:
    """Where the socket of this crawl may be, in folders that nobody else can write to."""
    name = socket_name(directory)
    return (folder / name for folder in folders() if is_private(folder))


def is_private(folder: Path) -> bool:
    """A real folder, ours, and closed to others."""
    try:
        seen = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not stat.S_IMODE(seen.st_mode) & 0o077


def is_ours(connected: socket.socket) -> bool:
    """Whether the process at the other end belongs to our user, by the system's word (besides the socket's mode)."""
    if hasattr(socket, "SO_PEERCRED"):
        peer = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, user, _ = struct.unpack("3i", peer)
    else:
        peer = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 128)
        _, user, _ = _XUCRED.unpack(peer[: _XUCRED.size])
    return bool(user == os.getuid())
