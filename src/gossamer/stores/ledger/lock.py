"""One process for each ledger, by a lock that the system takes away from a process that dies (fault 107)."""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from gossamer.model.errors import CrawlDirectoryError


class ProcessLock:
    """Held from construction to `close`; the file names the holder.

    `flock`, not `lockf`: it also holds against a second opening within the process.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path) -> None:
        """Take the lock, at once or not at all.

        Raises:
            CrawlDirectoryError: another process holds it, or the directory cannot be written.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            text = f"cannot write to {path.parent}: {error.strerror}; resume where the crawl directory can be written"
            raise CrawlDirectoryError(text) from None
        if not _locked(descriptor):
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            text = f"{path.parent} is in use by process {holder or '(just starting)'}; stop that one first"
            raise CrawlDirectoryError(text) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def close(self) -> None:
        """Let the next one in. A second time does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def holder_of(path: Path) -> str:
    """The process that holds the lock in this file, `(just starting)` where it has not said so yet; empty where none does."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return lock.read(32).decode("ascii", "replace").strip() or "(just starting)"
    return ""


#: Seconds after which a lock that somebody has is asked for once more: who only looks whether it is held, holds it for an
#: instant.
_AGAIN = 0.02


def _locked(descriptor: int) -> bool:
    for attempt in range(2):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0 if attempt else _AGAIN)
        else:
            return True
    return False
