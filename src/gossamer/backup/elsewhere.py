"""Crawls that lie in a store: brought back into an empty folder to go on with them, or into a cache to read them.

Place in the flow: commands ask here where people name a store in the place of a crawl directory. Going on claims the crawl first,
so that its old owner, if it lives, can publish nothing more. Reading claims nothing; of what was read before, only what has
changed is fetched again.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.backup.contract import ObjectChanged
from gossamer.backup.head import AgentInStore, Owned, StoredCheckpoint, new_life, note_owned
from gossamer.backup.opening import CLOUDS, open_store, probe
from gossamer.backup.options import AGENT, StoreOptions
from gossamer.crawls.options import CrawlOptions, part_of
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.sheet import show_bytes
from gossamer.storage.tables.places import CRAWL_FILE, flocked
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Bytes that the cache of crawls that were read holds.
CACHE_BYTES = 10_000_000_000

#: A reader that finds a part gone looks for a newer checkpoint so many times: an owner publishes every few minutes.
_LOOKS = 3

#: Files that only readers of documents need.
_ARCHIVE = "warc/"

_NOTE, _LOCK, _CRAWL = "checkpoint.json", "lock", "crawl"


def is_store(text: str) -> bool:
    """Whether a text names a store, and no crawl directory."""
    scheme, colon, _ = text.partition(":")
    if colon and (scheme in (*CLOUDS, "folder") or "://" in text):
        return True
    return not Path(text, CRAWL_FILE).exists() and Path(text, "agents", AGENT, "head.json").exists()


def bring_back(text: str, into: str, options: CrawlOptions, tell: Callable[[str], None]) -> CrawlOptions:
    """Become the owner of the crawl in a store, and write its last checkpoint into an empty folder; returns the options by which
    it goes on there. A kill leaves no folder, and the same call does it again. Raises UsageError: it is no store, holds no crawl,
    or the folder is not free; CrawlDirectoryError: the store does not do or is damaged, or the owner of the crawl may be
    alive."""
    folder, given = Path(into), part_of(options, StoreOptions)
    if not into:
        raise UsageError(f"{text} is a store; name an empty folder for the crawl with -o")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name an empty folder for the crawl of {text} with -o")
    store = open_store(text)
    place = AgentInStore(store, AGENT)
    _found(place)
    now, odd = probe(store)
    if odd:
        tell(odd)
    if not given.take_over:
        place.refuse_living(now)
    life, holder = new_life()
    try:
        place.claim(life, holder, given.lease)
        beats = time.monotonic()

        def beat() -> None:
            nonlocal beats
            if time.monotonic() - beats > given.lease / 3:
                place.renew()
                beats = time.monotonic()

        making = folder.absolute().with_name(f".{folder.absolute().name}.restoring")
        shutil.rmtree(making, ignore_errors=True)
        place.bring(place.checkpoint().files, making, beat=beat)
        crash_at(Point.RESTORING)
        note_owned(making, Owned(store.name, (life,)))
        if folder.exists():
            folder.rmdir()
        making.rename(folder)
    except ObjectChanged:
        raise CrawlDirectoryError(f"another process has just taken the crawl in {store.name}") from None
    except OSError as error:
        raise CrawlDirectoryError(f"{folder} cannot be written: {error.strerror or error}") from None
    return msgspec.structs.replace(options, output=into, store=store.name)


def _found(place: AgentInStore) -> None:
    """Look at the head. Raises UsageError: there is no crawl, or nothing of it."""
    if place.read() is None:
        raise UsageError(f"the store {place.store.name} holds no crawl; name the place that --store had")
    assert place.head is not None
    if not place.head.checkpoint:
        raise UsageError(f"the store {place.store.name} holds no checkpoint of its crawl yet, so begin that again")


# -- readers


class _Cached(msgspec.Struct, frozen=True):
    """The files in the cache of one crawl."""

    key: str
    """Of the checkpoint."""
    checkpoint: StoredCheckpoint
    """Its files that are there."""
    has_archive: bool


def read_here(text: str, *, archive: bool) -> Path:
    """A crawl directory that has the last checkpoint of the crawl in a store, with the documents if `archive` says so, for
    readers alone. Raises UsageError: it is no store, holds no crawl, or the crawl is larger than the cache; CrawlDirectoryError:
    the store cannot be read, or is damaged."""
    place = AgentInStore(open_store(text), AGENT)
    cache = _cache()
    home = cache / hashlib.blake2b(place.store.name.encode(), digest_size=10).hexdigest()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with flocked(home / _LOCK, fcntl.LOCK_EX):
        os.utime(home)
        for look in range(_LOOKS):
            try:
                _fill(place, home, archive=archive)
                break
            except CrawlDirectoryError:
                if look == _LOOKS - 1:
                    raise
    return home / _CRAWL


def _fill(place: AgentInStore, home: Path, *, archive: bool) -> None:
    """Bring what has changed since the last look."""
    _found(place)
    assert place.head is not None
    note = _Cached("", StoredCheckpoint({}), has_archive=False)
    with contextlib.suppress(OSError, ValueError):
        note = msgspec.json.decode((home / _NOTE).read_bytes(), type=_Cached)
    key = place.head.checkpoint
    if note.key == key and (note.has_archive or not archive):
        return
    checkpoint = place.checkpoint()
    if not archive:
        checkpoint = StoredCheckpoint(
            {name: parts for name, parts in checkpoint.files.items() if not name.startswith(_ARCHIVE)}
        )
    _make_room(home, checkpoint.bytes, place.store.name)
    (home / _NOTE).unlink(missing_ok=True)
    crawl = home / _CRAWL
    have = {name: parts for name, parts in note.checkpoint.files.items() if (crawl / name).exists()}
    for name in have.keys() - checkpoint.files.keys():
        (crawl / name).unlink()
    place.bring(checkpoint.files, crawl, have)
    replace_file(home / _NOTE, msgspec.json.encode(_Cached(key, checkpoint, archive)))


def _make_room(home: Path, size: int, name: str) -> None:
    """Let go of the crawls that were read longest ago, until there is room for this one."""
    if size > CACHE_BYTES:
        raise UsageError(
            f"the crawl in {name} has {show_bytes(size)}, and the cache of readers {show_bytes(CACHE_BYTES)}; bring it back "
            f"whole: gossamer resume {name} -o DIR"
        )
    others = sorted((path for path in home.parent.iterdir() if path != home), key=lambda path: -path.stat().st_mtime)
    left = CACHE_BYTES - size
    for path in others:
        left -= sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        if left < 0:
            shutil.rmtree(path, ignore_errors=True)


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder, "gossamer", "stores")
