"""Several folders as one store, each with a whole copy (`--copies N`), so that the crawl goes on while one of their disks is lost.

Place in the flow: :mod:`opening` makes one of a name that joins folders. The first folder that is there is the fence, as a single
one would be; the others get what it has got, in the same order, so each of them is a store by itself, from which a crawl can be
brought back. A folder that fails is left out, and named, until the next process opens the store. That one brings it level
(:meth:`CopiedStore.level`) before it becomes the owner.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from gossamer.backup.contract import ObjectMissing, Stat, Store, StoreFailed
from gossamer.values.errors import CrawlDirectoryError

T = TypeVar("T")


class CopiedStore:
    """Contract: `Store`. A tag is that of the first folder; where another one becomes the first, it is none of its tags, so that an
    owner looks at its head again."""

    def __init__(self, name: str, folders: Sequence[Store]) -> None:
        self.name = name
        self._folders = list(folders)
        self._leaving = threading.Lock()
        self.tell: Callable[[str], object] = lambda line: None
        """Is told of folders that are left out."""

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        tag = self._first(lambda folder: folder.put(key, data, expect))
        self._others(lambda folder: folder.put(key, data))
        return tag

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        return self._found(lambda folder: folder.get(key, start, length))

    def read(self, key: str) -> tuple[bytes, Stat]:
        return self._found(lambda folder: folder.read(key))

    def stat(self, key: str) -> Stat:
        return self._found(lambda folder: folder.stat(key))

    def list(self, prefix: str) -> Iterator[str]:
        yield from self._first(lambda folder: list(folder.list(prefix)))

    def delete(self, keys: Sequence[str]) -> None:
        self._first(lambda folder: folder.delete(keys))
        self._others(lambda folder: folder.delete(keys))

    def level(self, prefix: str, newer: Callable[[Store], tuple[int, ...]]) -> None:
        """Bring all folders to the state of the one that is `newer`, by what that says of each, below a prefix. What others lack is
        copied, its head last, and what they alone have is removed. Only an owner that keeps all others away calls it. Raises
        StoreFailed: no folder is there."""
        ages = {}
        for folder in [*self._folders]:
            if not Path(folder.name).is_dir():
                self._leave(folder, "it is not there")
                continue
            try:
                ages[folder.name] = newer(folder)
            except CrawlDirectoryError as error:
                self._leave(folder, str(error))
        self._folders = sorted(self._folders, key=lambda folder: ages.get(folder.name, ()), reverse=True)
        first = self._first(lambda folder: folder)
        keys = sorted(first.list(prefix), key=lambda key: key.endswith("/head.json"))
        for other in [one for one in self._folders if ages.get(one.name) != ages.get(first.name)]:
            try:
                there = set(other.list(prefix))
                for key in keys:
                    if key not in there or key.endswith("/head.json"):
                        other.put(key, first.get(key))
                other.delete(sorted(there.difference(keys)))  # what a person has deleted meanwhile, too
            except StoreFailed as error:
                self._leave(other, str(error))

    def _first(self, do: Callable[[Store], T]) -> T:
        """Ask the first folder that is there. Raises StoreFailed: none is."""
        while True:
            folder = self._folders[0]
            try:
                return do(folder)
            except StoreFailed as error:
                if not self._leave(folder, str(error)):
                    raise

    def _others(self, do: Callable[[Store], object]) -> None:
        for folder in self._folders[1:]:
            try:
                do(folder)
            except StoreFailed as error:
                self._leave(folder, str(error))

    def _found(self, do: Callable[[Store], T]) -> T:
        """What the first folder has that has it: the disk of one may be lost, which its readers see as objects that are missing."""
        for folder in self._folders[:-1]:
            with contextlib.suppress(ObjectMissing, StoreFailed):
                return do(folder)
        return do(self._folders[-1])

    def _leave(self, folder: Store, why: str) -> bool:
        """Leave a folder out; whether another one is left. The last one stays, since its disk may come back."""
        with self._leaving:
            if folder not in self._folders:
                return True  # another thread has left it out
            if len(self._folders) == 1:
                return False
            self._folders = [one for one in self._folders if one is not folder]
            self.tell(f"the copy in {folder.name} is left out until the crawl is resumed: {why}")
            return True
