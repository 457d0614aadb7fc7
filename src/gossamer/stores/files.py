"""Files that only grow, a whole group of bytes at a time: under the archive and the row log.

A group is on disk whole or not at all as far as this process can see to it: when a write fails in the middle (disk
full), the file is cut back to where the group began, and the error goes up (fault 68). What a kill tears is cut back
by whoever opens the file again.
"""

import os
from pathlib import Path

#: Bytes read at first to find the end of the last whole line; doubled until it is found.
TAIL_BYTES = 1 << 16


class AppendFile:
    """One open file, unbuffered: when `append` returns, another process can read what it wrote."""

    __slots__ = ("_descriptor", "_is_named", "end", "path")

    def __init__(self, path: Path, *, fresh: bool, mode: int = 0o644) -> None:
        """Open `path`, creating it with `mode`, and its directories. `fresh` refuses a file that exists (FileExistsError)."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # No O_APPEND: a write after a cut-back must land at `end`. No symbolic link is followed (fault 69).
        flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if fresh else 0) | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), mode)
        self.path = path
        #: Its name is on the disk as well: a power cut may otherwise leave bytes that no directory knows.
        self._is_named = False
        self.end = os.lseek(self._descriptor, 0, os.SEEK_END)

    def append(self, data: bytes, *, sync: bool = False) -> int:
        """Write all of `data`; returns the offset where it begins.

        Raises:
            OSError: nothing of it was kept.
        """
        start = self.end
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            if sync:
                self.sync()
        except OSError:
            self.cut_back(start)
            raise
        self.end = start + len(data)
        return start

    def sync(self) -> None:
        """Force what was written to the disk, and the first time the file's name too."""
        os.fsync(self._descriptor)
        if not self._is_named:
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
            self._is_named = True

    def cut_back(self, end: int) -> None:
        """Drop everything from byte `end` on."""
        os.ftruncate(self._descriptor, end)
        os.lseek(self._descriptor, end, os.SEEK_SET)
        self.end = end

    def tail(self, length: int) -> bytes:
        """The last `length` bytes, fewer where the file is shorter."""
        start = max(0, self.end - length)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        data = os.read(self._descriptor, self.end - start)
        os.lseek(self._descriptor, self.end, os.SEEK_SET)
        return data

    def end_of_lines(self) -> int:
        """Where the last whole line ends: what a kill tore begins there."""
        length = TAIL_BYTES
        while True:
            tail = self.tail(length)
            whole = tail.rfind(b"\n") + 1
            if whole or length >= self.end:
                return self.end - len(tail) + whole
            length *= 2

    def close(self) -> None:
        """Close the descriptor; the object is of no use after."""
        os.close(self._descriptor)


class LastWrites:
    """Where files ended before the last group was written to them, so that it can be taken back: a commit that failed."""

    def __init__(self) -> None:
        self._before: dict[AppendFile, int] = {}

    def begin(self) -> None:
        """A new group: what the one before wrote stays."""
        self._before.clear()

    def about_to(self, file: AppendFile) -> None:
        """This file is about to be written to."""
        self._before.setdefault(file, file.end)

    def take_back(self) -> None:
        """Drop what was written since :meth:`begin`."""
        for file, end in self._before.items():
            file.cut_back(end)
        self._before.clear()
