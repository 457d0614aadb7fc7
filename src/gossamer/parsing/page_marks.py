"""The mark of the page that is being read: a few bytes that outlive the process, so that no page can end two processes.

Place in the flow: the process stage sets a mark before it reads a page in place, and takes it away afterwards. The reader of a
page may end the process, or hold it up until a person ends it. The next process of the crawl finds the mark: it reads that page
in a parser process, and after the second time not at all. Anything else that ends a process while a page is read costs that
page nothing.

A mark is a digest of the URL, so a page that is deleted leaves no URL here. Each process has a file of its own, locked as long
as it lives, and takes over the files of those that are gone.
"""

import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

#: Where the files lie in the crawl directory.
MARKS = "state/reading"

#: How often a page may end a process before it is not read any more.
MOST_STRIKES = 2

_DIGEST = 15
#: A digest, and how often; the first record of a file is the page that is being read.
_RECORD = _DIGEST + 1
_NOTHING = bytes(_DIGEST)
#: Bytes of a file: pages that ended a process are few, and the oldest are forgotten.
_SIZE = 4096


class ReadingMarks:
    """The marks of one process."""

    def __init__(self) -> None:
        """Nothing is noted before it is open."""
        self._strikes: dict[bytes, int] = {}
        self._path: Path | None = None
        self._descriptor = -1
        self._memory: mmap.mmap | None = None

    def open(self, directory: str) -> None:
        """Take over what earlier processes of a crawl noted, and begin a file. Without a directory, or where the system refuses
        it, nothing is noted."""
        if not directory:
            return
        with suppress(OSError):
            folder = Path(directory) / MARKS
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in _left(folder):
                self._take(content)
                path.unlink(missing_ok=True)
            self._descriptor, name = tempfile.mkstemp(dir=folder, prefix="")
            self._path = Path(name)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(self._descriptor, self._content(), 0)
            self._memory = mmap.mmap(self._descriptor, _SIZE)

    def begin(self, url: str) -> int:
        """Set the mark: this page is being read. Returns how often a process died of it."""
        if self._memory is None:
            return 0
        digest = _digest(url)
        self._memory[:_DIGEST] = digest
        return self._strikes.get(digest, 0) if self._strikes else 0

    def end(self) -> None:
        if self._memory is not None:
            self._memory[:_DIGEST] = _NOTHING

    def close(self) -> None:
        """Leave the file to the next process, if it says anything."""
        if self._memory is None or self._path is None:
            return
        self._memory.close()
        self._memory = None
        os.close(self._descriptor)
        if not self._strikes:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()

    def _take(self, content: bytes) -> None:
        if (current := content[:_DIGEST]) != _NOTHING:
            self._strikes[current] = self._strikes.get(current, 0) + 1
        for at in range(_RECORD, len(content) - _DIGEST, _RECORD):
            digest, strikes = content[at : at + _DIGEST], content[at + _DIGEST]
            if strikes:
                self._strikes[digest] = min(MOST_STRIKES, self._strikes.get(digest, 0) + strikes)

    def _content(self) -> bytes:
        records = [digest + bytes((strikes,)) for digest, strikes in self._strikes.items()]
        return b"".join((_NOTHING, b"\0", *records[1 - _SIZE // _RECORD :])).ljust(_SIZE, b"\0")


def _digest(url: str) -> bytes:
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def _left(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """The files of processes that are gone. Each is locked until the next is asked for, so that two processes that start at once
    do not take it both."""
    for path in sorted(folder.iterdir()):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path, os.read(descriptor, _SIZE)
            finally:
                os.close(descriptor)
