"""Archive files that are in the store alone: how they leave the disk (`--keep-local`), or were on one that is lost, and how readers
read them all the same.

Place in the flow: the publisher calls :func:`stand_in` before each checkpoint and :func:`let_go` behind it. In the place of an
archive file stands a link then, which leads nowhere and says where the bytes are
(:class:`~gossamer.storage.recovery.InStore`); the same links stand in the cache of those who read a store. Readers of the archive
come to :func:`opened` by the declaration of this subject. They get parts of the file, each when they come to it, and each is
checked by its digest.
"""

import contextlib
import io
import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gossamer.backup.contract import ObjectMissing, Store
from gossamer.backup.head import AgentInStore, StoredPart, missing
from gossamer.backup.opening import open_store
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.recovery import InStore, in_store, is_away
from gossamer.values.errors import CrawlDirectoryError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Parts that readers hold at once: 64 MB, so that records which are read one by one cost one request for a part.
_HELD = 8


def opened(path: Path, *, whole: bool = False) -> BinaryIO:
    """Open an archive file that is in a store alone, to read; if it is to be `whole`, after a look for all its parts. Raises
    CrawlDirectoryError, here or where it is read: the store cannot be reached, or a part is missing or has other bytes than were
    shipped; names it."""
    if (far := in_store(path)) is None:
        raise CrawlDirectoryError(f"{path} is in no store")
    parts = _parts(far, path.name, path.lstat().st_mtime_ns)
    store = _place(far.store, far.agent).store
    if whole and (lost := next((part for part in parts if not _has(store, part)), None)):
        raise missing(store, lost.key)
    return io.BufferedReader(_FarFile(parts, far))


def put_link(path: Path, far: InStore) -> None:
    """Put a link in the place of an archive file, whether that is there or not. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(far.target)
    fresh.replace(path)


def links_of(directory: Path) -> list[str]:
    """The archive files of a crawl directory that are in a store alone."""
    return sorted(f"{WARC_DIRECTORY}/{path.name}" for path in (directory / WARC_DIRECTORY).glob("*") if in_store(path))


def beyond(sizes: Mapping[str, int], most: int) -> list[str]:
    """Which archive files have to go so that the rest has `most` bytes at most: those that were begun first. Their names begin
    with what they have in common, and go on with the time."""
    left = sum(sizes.values())
    found = []
    for name in sorted(sizes):
        if left <= most:
            break
        found.append(name)
        left -= sizes[name]
    return found


def let_go(
    directory: Path, place: AgentInStore, files: Mapping[str, Sequence[StoredPart]], most: int, in_use: Iterable[str]
) -> tuple[int, str]:
    """Let archive files go that a checkpoint has, until `most` bytes of them are here; those `in_use` stay. A file goes only
    after the store has told the size of each of its parts. Returns how many went, and the name of one that the store has lost a
    part of, which then stays. Raises StoreFailed, OSError."""
    sizes: dict[str, int] = {}
    for name in files:
        if name.startswith(f"{WARC_DIRECTORY}/"):
            with contextlib.suppress(FileNotFoundError):  # it has gone before
                sizes[name] = (directory / name).stat().st_size
    kept, gone = set(in_use), 0
    for name in beyond(sizes, most):
        if name in kept or sum(part.size for part in files[name]) != sizes[name]:
            continue
        if not all(_has(place.store, part) for part in files[name]):
            return gone, name
        path = directory / name
        on_other_disk = path.resolve() if path.is_symlink() else None
        put_link(path, InStore(place.agent, sizes[name], place.store.name))
        if on_other_disk is not None:
            on_other_disk.unlink(missing_ok=True)
        gone += 1
    return gone, ""


def stand_in(
    directory: Path,
    place: AgentInStore,
    files: Mapping[str, Sequence[StoredPart]],
    ends: Mapping[str, int],
    in_use: Collection[str],
) -> tuple[list[str], list[str]]:
    """Put links in the place of archive files that a checkpoint has and whose disk is not there. Files `in_use`, and those of which
    the checkpoint lacks something up to their committed `ends`, stay as they are: the disk may come back. Returns the names of
    those that got a link, and of those of which the checkpoint lacks something. Raises OSError."""
    linked, short = [], []
    for name, parts in files.items():
        path, size = directory / name, sum(part.size for part in parts)
        if name.startswith(f"{WARC_DIRECTORY}/") and is_away(path):
            if size < ends.get(name, 0):
                short.append(name)
            elif name not in in_use:
                put_link(path, InStore(place.agent, size, place.store.name))
                linked.append(name)
    return linked, short


def _has(store: Store, part: StoredPart) -> bool:
    try:
        return store.stat(part.key).size == part.size
    except ObjectMissing:
        return False


@lru_cache(maxsize=64)
def _place(store: str, agent: str) -> AgentInStore:
    return AgentInStore(open_store(store), agent)


@lru_cache(maxsize=64)
def _files(store: str, agent: str, checkpoint: str) -> dict[str, tuple[StoredPart, ...]]:
    """The files of the checkpoint that the place of an agent has read last."""
    return _place(store, agent).checkpoint().files


@lru_cache(maxsize=_HELD)
def _data(store: str, agent: str, part: StoredPart) -> bytes:
    return _place(store, agent).content([part])


@lru_cache(maxsize=1024)
def _parts(far: InStore, name: str, linked: int) -> tuple[StoredPart, ...]:
    """The parts of an archive file, by the last checkpoint when its link was first followed. `linked` is when that was made: a
    deletion leaves a file as long as it was, and another link."""
    place = _place(far.store, far.agent)
    head = place.read()
    parts = _files(far.store, far.agent, head.checkpoint if head is not None else "").get(
        f"{WARC_DIRECTORY}/{name}", ()
    )
    if sum(part.size for part in parts) < far.size:
        raise CrawlDirectoryError(
            f"the store {far.store} is damaged: its checkpoint of {far.agent} has no {far.size} bytes of "
            f"{WARC_DIRECTORY}/{name}"
        )
    return parts


class _FarFile(io.RawIOBase):
    """An archive file whose parts are fetched as they are read."""

    def __init__(self, parts: Sequence[StoredPart], far: InStore) -> None:
        self._far, self._parts = far, parts
        self._starts = [0, *accumulate(part.size for part in self._parts)]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._far.size}[whence]
        return self._at

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if self._at >= self._far.size:
            return 0
        number = bisect_right(self._starts, self._at) - 1
        data = _data(self._far.store, self._far.agent, self._parts[number])
        start = self._at - self._starts[number]
        into = memoryview(buffer).cast("B")
        piece = data[start : min(start + len(into), start + self._far.size - self._at)]
        into[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
