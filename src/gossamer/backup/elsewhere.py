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

from gossamer.backup.contract import ObjectChanged, Store
from gossamer.backup.head import AgentInStore, Owned, StoredCheckpoint, StoredPart, new_life, note_owned
from gossamer.backup.opening import CLOUDS, open_store, probe
from gossamer.backup.options import AGENT, StoreOptions
from gossamer.crawls.options import CrawlOptions, part_of
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.sheet import show_bytes
from gossamer.storage.recovery import AGENTS, noted
from gossamer.storage.tables.manifest import read_notes, write_notes
from gossamer.storage.tables.places import CRAWL_FILE, TABLES, flocked
from gossamer.values.agents import at_work
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
    crawl = CrawlInStore(store)
    now, odd = probe(store)
    if odd:
        tell(odd)
    if not given.take_over:
        crawl.refuse_living(now)
    life, holder = new_life()
    try:
        crawl.claim(life, holder, given.lease)
        beats = time.monotonic()

        def beat() -> None:
            nonlocal beats
            if time.monotonic() - beats > given.lease / 3:
                crawl.renew()
                beats = time.monotonic()

        making = folder.absolute().with_name(f".{folder.absolute().name}.restoring")
        shutil.rmtree(making, ignore_errors=True)
        crawl.first.bring(crawl.files(), making, beat=beat)
        crawl.agree(making)
        for place in crawl.places:
            assert place.head is not None
            told = {"count": place.head.count, "restored": place.head.restored}
            note_owned(making, place.agent, Owned(url=store.name, lives=(life,), **told))
        crash_at(Point.RESTORING)
        if folder.exists():
            folder.rmdir()
        making.rename(folder)
    except ObjectChanged:
        raise CrawlDirectoryError(f"another process has just taken the crawl in {store.name}") from None
    except OSError as error:
        raise CrawlDirectoryError(f"{folder} cannot be written: {error.strerror or error}") from None
    return msgspec.structs.replace(options, output=into, store=store.name)


class CrawlInStore:
    """All agents of a crawl in a store. One that has published nothing has left what it was owed with the others."""

    def __init__(self, store: Store) -> None:
        """Look at the heads. Raises UsageError: there is no crawl, or nothing of it; CrawlDirectoryError: the store is damaged."""
        self.first = AgentInStore(store, AGENT)
        """The agent that publishes what belongs to the whole crawl."""
        if (head := self.first.read()) is None:
            raise UsageError(f"the store {store.name} holds no crawl; name the place that --store had")
        if not head.checkpoint:
            raise UsageError(f"the store {store.name} holds no checkpoint of its crawl yet, so begin that again")
        agents = self.first.content(self.first.checkpoint().files.get(AGENTS, ()))
        members = at_work(msgspec.json.decode(agents, type=tuple[str, ...])) if agents else ()
        self.places = [self.first, *(AgentInStore(store, name) for name in members if name != AGENT)]
        for place in self.places[1:]:
            place.read()

    @property
    def keys(self) -> dict[str, str]:
        """The checkpoint of each agent."""
        return {place.agent: place.head.checkpoint for place in self.places if place.head is not None}

    def refuse_living(self, now: float) -> None:
        """Refuse a crawl that has an agent whose owner may be alive. Raises CrawlDirectoryError."""
        for place in self.places:
            place.refuse_living(now)

    def claim(self, life: str, holder: str, lease: float) -> None:
        """Become the owner of all agents. Raises ObjectChanged: another process has become that of one of them."""
        for place in self.places:
            place.claim(life, holder, lease, restores=True)

    def renew(self) -> None:
        for place in self.places:
            place.renew()

    def files(self) -> dict[str, tuple[StoredPart, ...]]:
        """The files of all agents."""
        found: dict[str, tuple[StoredPart, ...]] = {}
        for place in reversed(self.places):
            found |= place.checkpoint().files
        return found

    def agree(self, directory: Path) -> None:
        """Note tables as they are now in a directory with these files: agents publish theirs at other instants than the first one
        publishes its notes of them."""
        notes = read_notes(directory) if self.places[1:] else None
        if notes is None:
            return
        there = {f"{path.parent.name}/{path.name}": path for path in (directory / TABLES).glob("*/agent-*.parquet")}
        kept = {
            name: one for name, one in notes.tables.items() if one is None or name in there or "/agent-" not in name
        }
        fresh = {name: noted(path) for name, path in there.items() if name not in kept}
        write_notes(directory, msgspec.structs.replace(notes, tables={**kept, **fresh}))


# -- readers


class _Cached(msgspec.Struct, frozen=True):
    """The files in the cache of one crawl."""

    keys: dict[str, str]
    """The checkpoint of each agent."""
    checkpoint: StoredCheckpoint
    """Their files that are there."""
    has_archive: bool


def read_here(text: str, *, archive: bool) -> Path:
    """A crawl directory that has the last checkpoint of the crawl in a store, with the documents if `archive` says so, for
    readers alone. Raises UsageError: it is no store, holds no crawl, or the crawl is larger than the cache; CrawlDirectoryError:
    the store cannot be read, or is damaged."""
    store = open_store(text)
    home = _cache() / hashlib.blake2b(store.name.encode(), digest_size=10).hexdigest()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with flocked(home / _LOCK, fcntl.LOCK_EX):
        os.utime(home)
        for look in range(_LOOKS):
            try:
                _fill(CrawlInStore(store), home, archive=archive)
                break
            except CrawlDirectoryError:
                if look == _LOOKS - 1:
                    raise
    return home / _CRAWL


def _fill(stored: CrawlInStore, home: Path, *, archive: bool) -> None:
    """Bring what has changed since the last look."""
    note = _Cached({}, StoredCheckpoint({}), has_archive=False)
    with contextlib.suppress(OSError, ValueError):
        note = msgspec.json.decode((home / _NOTE).read_bytes(), type=_Cached)
    if note.keys == stored.keys and (note.has_archive or not archive):
        return
    files = {name: parts for name, parts in stored.files().items() if archive or not name.startswith(_ARCHIVE)}
    checkpoint = StoredCheckpoint(files)
    _make_room(home, checkpoint.bytes, stored.first.store.name)
    (home / _NOTE).unlink(missing_ok=True)
    crawl = home / _CRAWL
    have = {name: parts for name, parts in note.checkpoint.files.items() if (crawl / name).exists()}
    for name in have.keys() - checkpoint.files.keys():
        (crawl / name).unlink()
    stored.first.bring(files, crawl, have)
    stored.agree(crawl)
    replace_file(home / _NOTE, msgspec.json.encode(_Cached(stored.keys, checkpoint, archive)))


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
