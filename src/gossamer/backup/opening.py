"""How the name of a store becomes a store that can be trusted; the store in a folder of another disk, or of a network file system
that knows hard links; and several folders as one store.

Each of several folders has a whole copy (`--copies N`), so that the crawl goes on while one of their disks is lost. The first
folder that is there is the fence, as a single one would be; the others get what it has got, in the same order, so each of them is a
store by itself, from which a crawl can be brought back. A folder that fails is left out, and named, until the next process opens
the store. That one brings it level (:meth:`CopiedStore.level`) before it becomes the owner.
"""

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

from gossamer.backup.contract import ABSENT, ObjectChanged, ObjectMissing, Stat, Store, StoreFailed
from gossamer.backup.options import JOINED
from gossamer.engine.sheet import show_seconds
from gossamer.values.errors import CrawlDirectoryError, UsageError

T = TypeVar("T")

#: The folder of what is not whole yet; no key begins with a dot.
_MAKING = ".making"

_PRIVATE = 0o700


class FolderStore:
    """Contract: `Store`. Each object is a file; its tag says which file, so that nothing is read to compare it.

    A conditional replacement of `head.json` makes the file `.head.json/1`, the next one `.head.json/2`, and the highest number
    counts: of several processes, one can link its file under a number. Nothing is locked, as a process may be suspended while it
    holds a lock, and a network file system may know none.

    The folder is made where the store `is_new`, and never again: its disk may be away.
    """

    def __init__(self, root: Path, *, is_new: bool = False) -> None:
        self.name = str(root)
        self._root = root
        if is_new:
            try:
                if root.is_file():
                    raise UsageError(f"--store {root}: is a file; name a folder")
                root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)  # settings of a crawl may hold passwords
            except OSError as error:
                why = error.strerror or error
                raise UsageError(f"--store {root}: {why}; name a folder that this user can make") from None

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        with self._told():
            path, fresh = self._root / key, self._root / _MAKING / secrets.token_hex(8)
            fresh.parent.mkdir(exist_ok=True)
            # Never the folder of the store itself, whose disk may be away.
            for inside in reversed(Path(key).parents[:-1]):
                (self._root / inside).mkdir(exist_ok=True)
            try:
                with fresh.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                tag = _stat_of(fresh.stat()).tag
                while not _replaced(path, fresh, expect):
                    if expect is not None:
                        raise ObjectChanged(key)
                return tag
            finally:
                fresh.unlink(missing_ok=True)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        with self._told(key), self._open(key) as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def read(self, key: str) -> tuple[bytes, Stat]:
        with self._told(key), self._open(key) as file:
            return file.read(), _stat_of(os.fstat(file.fileno()))

    def stat(self, key: str) -> Stat:
        with self._told(key), self._open(key) as file:
            return _stat_of(os.fstat(file.fileno()))

    def list(self, prefix: str) -> Iterator[str]:
        with self._told():
            for folder, folders, names in os.walk(self._root / prefix):
                folders[:] = [name for name in folders if not name.startswith(".")]
                inside = Path(folder).relative_to(self._root)
                yield from ((inside / name).as_posix() for name in names if not name.startswith("."))

    def delete(self, keys: Sequence[str]) -> None:
        with self._told():
            for key in keys:
                first, *later = _versions(self._root / key)
                for path in (*later, first):
                    path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # another process may just be replacing it
                    first.with_name(f".{first.name}").rmdir()

    def _open(self, key: str) -> BinaryIO:
        path = self._root / key
        while True:
            newest = _versions(path)[-1]
            try:
                return newest.open("rb")
            except FileNotFoundError:  # it may have been replaced meanwhile
                if newest == path:
                    raise

    @contextlib.contextmanager
    def _told(self, key: str = "") -> Iterator[None]:
        """Say errors of the disk in the words of the contract; with a key, a missing file is a missing object."""
        try:
            yield
        except OSError as error:
            if key and isinstance(error, FileNotFoundError):
                raise ObjectMissing(key) from None
            hints = {FileNotFoundError: "; its disk may be away", PermissionError: "; see to your rights there"}
            why = error.strerror or error
            raise StoreFailed(f"the store {self.name}: {why}{hints.get(type(error), '')}") from error


def _versions(path: Path) -> list[Path]:
    """The files that an object may have, the newest last; the first one bears its name."""
    later = list[Path]()
    with contextlib.suppress(FileNotFoundError):
        later = [one for one in path.with_name(f".{path.name}").iterdir() if one.name.isdigit()]
    return [path, *sorted(later, key=lambda one: int(one.name))]


def _replaced(path: Path, fresh: Path, expect: str | None) -> bool:
    """Put a file in the place of an object; false where that is another one than expected."""
    newest, tag, own = _versions(path)[-1], ABSENT, path
    if expect is None and newest == path:
        fresh.replace(path)
        return True
    with contextlib.suppress(FileNotFoundError):
        tag = _stat_of(newest.stat()).tag
    if expect and tag != expect:
        return False
    if expect != ABSENT:
        own = path.with_name(f".{path.name}") / ("1" if newest == path else str(int(newest.name) + 1))
        own.parent.mkdir(exist_ok=True)
    try:
        os.link(fresh, own)
    except FileExistsError:
        return False
    if own == path:
        return True
    _, *older, newest = _versions(path)
    # A number is free again after its file was replaced: a process that was suspended until then has replaced nothing.
    for file in older if newest == own else [own]:
        file.unlink(missing_ok=True)
    return newest == own


def _stat_of(seen: os.stat_result) -> Stat:
    return Stat(seen.st_size, f"{seen.st_ino}-{seen.st_mtime_ns}-{seen.st_size}", seen.st_mtime)


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
        """Bring all folders to the state of the one that is `newer`, by what that says of each, below a prefix. Others get
        what they lack, the head last, and lose what they alone have. Only an owner that keeps all others away calls it. Raises
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
        """The object in the first folder that has it: the disk of one may be lost, which its readers see as missing objects."""
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


#: Schemes of stores in a cloud.
CLOUDS = ("s3", "gs", "az")

#: Stands before the name of a folder, where people want to say that it is one.
_FOLDER = "folder:"

#: Seconds by which the clock of a store may differ before that is told. It has no effect.
_ODD_CLOCK = 600.0


def store_name(text: str) -> str:
    """The name of a store as it is kept: a folder by its absolute path. Nothing is opened. Raises UsageError: it is none, or
    holds a secret, which would stand in files that others read."""
    scheme, colon, _ = text.partition("://")
    if not colon and (cloud := text.partition(":")[0]) in CLOUDS and ":" in text:
        raise UsageError(f"--store {cloud}:...: write it with two slashes, as {cloud}://bucket/example")
    if not colon:
        path = text.removeprefix(_FOLDER)
        if not path:
            raise UsageError(f"--store {text!r} names no folder; write folder:PATH")
        return str(Path(path).absolute())
    if scheme not in CLOUDS:
        raise UsageError(f"--store {scheme}://...: there is no store of this kind; use s3://, gs://, az:// or a folder")
    parts = urlsplit(text)
    if parts.username or parts.password or "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"--store {scheme}://...: a store's URL has a bucket and a path alone; give keys in the environment"
        )
    if not parts.netloc:
        raise UsageError(f"--store {text}: name a bucket, as {scheme}://bucket/example")
    return text.rstrip("/")


def open_store(name: str, *, is_new: bool = False, patience: float | None = None) -> Store:
    """Open a store, or with `is_new` begin one; a server is asked nothing. With `patience`, a request fails after so many seconds,
    and is not repeated. Raises UsageError: it is none, or the package that it
    takes is not installed; StoreFailed: its folder cannot be made."""
    name = store_name(name)
    if "://" in name:
        from gossamer.backup.cloud import CloudStore

        return CloudStore(name, patience)
    folders = [FolderStore(Path(one), is_new=is_new) for one in name.split(JOINED)]
    return CopiedStore(name, folders) if folders[1:] else folders[0]


def probe(store: Store) -> tuple[float, str]:
    """Prove that the store obeys conditions: servers that ignore them in silence would let two owners work. Returns the time by
    the clock of the store, and a line for people where that clock is far from ours, else nothing. Raises StoreFailed: it ignores
    them, or cannot be written."""
    key = f"probes/{secrets.token_hex(8)}"
    tag = store.put(key, b"1", ABSENT)
    try:
        _must_refuse(store, key, ABSENT, "overwrites an object that was only to be made")
        store.put(key, b"3", tag)
        _must_refuse(store, key, tag, "replaces an object that has changed")
        told = store.stat(key).modified
    except ObjectChanged:
        raise StoreFailed(f"the store {store.name} refuses to replace an object that has not changed") from None
    finally:
        with contextlib.suppress(StoreFailed):  # an owner need not be allowed to delete
            store.delete([key])
    apart = abs(told - time.time())
    odd = f"the clock of {store.name} is {show_seconds(apart)} from this machine's; that has no effect"
    return told, odd if apart > _ODD_CLOCK else ""


def _must_refuse(store: Store, key: str, expect: str, wrong: str) -> None:
    try:
        store.put(key, b"2", expect)
    except ObjectChanged:
        return
    raise StoreFailed(
        f"the store {store.name} ignores conditions: it {wrong}, so two processes could own the crawl; use another store"
    )
