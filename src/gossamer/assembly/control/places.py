"""Where a crawl's control socket lies: in the user's runtime directory, under a name made from the crawl's directory.

Not in the crawl's directory, since paths of sockets are limited to some 100 bytes, and since a directory may lie where
sockets cannot (design question 13). Who asks may live in another session than the crawl, with another environment: it looks in
every folder where the crawl could have put it, and in the one that the crawl has noted in its state.
"""

import contextlib
import hashlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gossamer.stores.members import AGENTS
from gossamer.stores.replacing import replace_file

#: Bytes of the longest path of a folder.
_MOST_NOTE = 4_096

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
    found = dict.fromkeys([*folders(), *_noted(directory)])
    return (folder / name for folder in found if is_private(folder))


def note(directory: Path, folder: Path) -> None:
    """Note in the state of a crawl, or of one agent of it, in which folder its socket lies: its own environment has led there."""
    with contextlib.suppress(OSError):  # on a full disk it is found where the environment is the same
        replace_file(_note_of(directory), os.fsencode(folder))


def forget(directory: Path) -> None:
    """The crawl listens no more."""
    with contextlib.suppress(OSError):
        _note_of(directory).unlink(missing_ok=True)


def _noted(directory: Path) -> list[Path]:
    try:
        with _note_of(directory).open("rb") as file:
            folder = Path(os.fsdecode(file.read(_MOST_NOTE)))
    except OSError:
        return []
    return [folder] if folder.is_absolute() else []


def _note_of(directory: Path) -> Path:
    """An agent's directory lies in the state of its crawl; a crawl has its state below it."""
    place, state = Path(os.path.realpath(directory)), Path(AGENTS).parent
    return (place if place.parent.name == state.name else place / state) / "control-folder"


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
