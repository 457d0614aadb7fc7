"""A store in a folder of another disk, or of a network file system that knows locks and links."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from gossamer.stores.contract import ABSENT, ObjectChanged, ObjectMissing, Stat, StoreFailed

#: The folder of what is not whole yet; no key begins with a dot.
_MAKING = ".making"

#: Held while an object is replaced that must not have changed.
_LOCK = ".lock"

_PRIVATE = 0o700


class FolderStore:
    """Contract: `Store`. Each object is a file; its tag says which file, so that nothing is read to compare it.

    The folder is made where the store `is_new`, and never again: its disk may be away.
    """

    def __init__(self, root: Path, *, is_new: bool = False) -> None:
        self.name = str(root)
        self._root = root
        if is_new:
            with self._told():
                root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)  # settings of a crawl may hold passwords

    def put(self, key: str, data: bytes, expect: str | None = None) -> str:
        with self._told():
            path, fresh = self._root / key, self._root / _MAKING / secrets.token_hex(8)
            fresh.parent.mkdir(exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with fresh.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                tag = _stat(fresh).tag
                if expect is None:
                    fresh.replace(path)
                elif expect == ABSENT:
                    try:
                        os.link(fresh, path)
                    except FileExistsError:
                        raise ObjectChanged(key) from None
                else:
                    with self._alone():
                        if not path.exists() or _stat(path).tag != expect:
                            raise ObjectChanged(key)
                        fresh.replace(path)
                return tag
            finally:
                fresh.unlink(missing_ok=True)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        with self._told(key), (self._root / key).open("rb") as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def stat(self, key: str) -> Stat:
        with self._told(key):
            return _stat(self._root / key)

    def list(self, prefix: str) -> Iterator[str]:
        with self._told():
            for folder, _, names in os.walk(self._root / prefix):
                inside = Path(folder).relative_to(self._root)
                yield from ((inside / name).as_posix() for name in names if not name.startswith("."))

    def delete(self, keys: Sequence[str]) -> None:
        with self._told():
            for key in keys:
                (self._root / key).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        descriptor = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _told(self, key: str = "") -> Iterator[None]:
        """Say errors of the disk in the words of the contract; with a key, a missing file is a missing object."""
        try:
            yield
        except OSError as error:
            if key and isinstance(error, FileNotFoundError):
                raise ObjectMissing(key) from None
            raise StoreFailed(f"the store {self.name}: {error.strerror or error}") from error


def _stat(path: Path) -> Stat:
    seen = path.stat()
    return Stat(seen.st_size, f"{seen.st_ino}-{seen.st_mtime_ns}-{seen.st_size}", seen.st_mtime)
