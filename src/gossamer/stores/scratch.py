"""Folders for what lies between: each has a lock that dies with its process, and the next one removes what the dead have left.

Place in the flow: a crawl's sockets, the links and spills of DuckDB and the parts of an index lie in such folders, in the system's
directory for temporary files. Beside room on the disk, whoever opens a store asks here for what the system gives in memory.
"""

import contextlib
import fcntl
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: How the names of these folders begin.
PREFIX = "gossamer-"

_LOCK = "lock"

#: Bytes of address space below which the libraries that store and ask cannot start a thread, and end their process without a word:
#: a crawl with its tables ran with 0.9 GB and died with 0.7 (x86-64, 2 cores).
LEAST_SPACE = 1_000_000_000


@contextlib.contextmanager
def scratch(prefix: str = PREFIX, place: Path | None = None) -> Iterator[str]:
    """A new folder of this process' own, removed at the end; those of processes that were killed go first.

    Args:
        prefix: how its name begins: as :data:`PREFIX` or longer.
        place: where it is made; the system's own directory for temporary files unless told.

    Raises:
        OSError: it cannot be made.
    """
    sweep(place)
    while True:
        folder = tempfile.mkdtemp(prefix=prefix, dir=place)
        descriptor = _locked(Path(folder))
        if descriptor is not None:
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextlib.contextmanager
def shared_scratch(place: Path | None = None) -> Iterator[str]:
    """A new folder that other processes may hold as well (:func:`joined`); the last one that leaves removes it.

    Args:
        place: where it is made; the system's own directory for temporary files unless told.

    Raises:
        OSError: it cannot be made.
    """
    sweep(place)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        descriptor = _locked(folder)
        if descriptor is None:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if (folder / _LOCK).exists():
            break
        os.close(descriptor)  # a sweep came while the lock changed its kind
    try:
        yield str(folder)
    finally:
        _leave(folder, descriptor)


@contextlib.contextmanager
def joined(folder: Path) -> Iterator[Path | None]:
    """Hold a folder that :func:`shared_scratch` has made, so that nobody sweeps it; None where it is gone."""
    descriptor = _joined(folder)
    try:
        yield None if descriptor is None else folder
    finally:
        if descriptor is not None:
            _leave(folder, descriptor)


def _joined(folder: Path) -> int | None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if (folder / _LOCK).exists():
                return descriptor
        os.close(descriptor)
    return None


def _leave(folder: Path, descriptor: int) -> None:
    """Let go of a folder; who is the last one removes it."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


def sweep(place: Path | None = None) -> None:
    """Remove the folders in `place` (the system's own unless told) that nobody holds, and that are ours."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
                continue
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """Hold a folder that was just made; None where a sweep took it in the instant before it was held."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if (folder / _LOCK).exists():
        return descriptor
    os.close(descriptor)
    return None


def too_little_memory() -> str:
    """Why this process cannot open a store: the system gives it too little memory; empty where it does not."""
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space == resource.RLIM_INFINITY or space >= LEAST_SPACE:
        return ""
    least = LEAST_SPACE // 1024
    return f"the system lets this process have {space // 1024} kB of memory, and it needs {least}; raise it: ulimit -v {least}"
