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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.backup.contract import ObjectChanged, Store, StoreFailed
from gossamer.backup.far_archive import beyond, put_link
from gossamer.backup.head import (
    AgentInStore,
    StoredCheckpoint,
    StoredPart,
    StoreHead,
    new_life,
    note_owned,
    owned,
    owner_of,
)
from gossamer.backup.one_agent import agree_on_tables
from gossamer.backup.opening import CLOUDS, open_store, probe
from gossamer.backup.options import AGENT, PUBLISHER, StoreOptions
from gossamer.backup.publisher import PublisherSheet
from gossamer.crawls.control.at_rest import standing_in_store
from gossamer.crawls.control.standing import CrawlStanding, StoredAgent
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.options import CrawlOptions, part_of
from gossamer.engine.errors import refusing
from gossamer.engine.files import Point, crash_at, replace_file, user_folder
from gossamer.engine.sheet import build, show_bytes
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.members import note_behind, write_division, write_members
from gossamer.storage.recovery import InStore
from gossamer.storage.tables.places import CRAWL_FILE, flocked
from gossamer.values.agents import at_work, member
from gossamer.values.errors import CrawlDirectoryError, UsageError

T = TypeVar("T")

#: Threads that read heads at once: a crawl may have dozens of agents.
_LOOKERS = 8

#: Seconds for a request about a crawl directory that is killed: the store is asked beside what the directory says.
_PATIENCE = 1.0

#: Bytes that crawls which were read have together, unless people say it.
CACHE_BYTES = 10_000_000_000

#: A reader that finds a part gone looks for a newer checkpoint so many times: an owner publishes every few minutes.
_LOOKS = 3

_NOTE, _LOCK, _CRAWL = "checkpoint.json", "lock", "crawl"


def is_store(text: str) -> bool:
    """Whether a text names a store, and neither a crawl directory nor a page."""
    scheme, colon, _ = text.partition(":")
    if colon and (scheme in (*CLOUDS, "folder") or ("://" in text and scheme not in ("http", "https"))):
        return True
    return not Path(text, CRAWL_FILE).exists() and Path(text, "agents", AGENT, "head.json").exists()


def bring_back(text: str, into: str, options: CrawlOptions) -> CrawlOptions:
    """Become the owner of the crawl in a store, and write its last checkpoint into an empty folder; returns the options by which
    it goes on there. A kill leaves no folder, and the same call does it again. Raises UsageError: it is no store, holds no crawl,
    or the folder is not free; CrawlDirectoryError: the store does not do or is damaged, or the owner of the crawl may be
    alive."""
    folder, given, store = Path(into), part_of(options, StoreOptions), open_store(text)
    if not into:
        raise UsageError(f"{text} is a store; name an empty folder for the crawl with -o")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name an empty folder for the crawl of {text} with -o")
    crawl = CrawlInStore(store)
    now, _ = probe(store)
    for place in crawl.places:
        place.refuse_older(now, take_over=given.take_over)
    if not given.take_over:
        for place in crawl.places:
            place.refuse_living(now)
    life, holder = new_life()
    making = folder.absolute().with_name(f".{folder.absolute().name}.restoring")
    with _left_on_error(crawl, life, folder, making):
        for place in crawl.places:
            place.claim(life, holder, given.lease, restores=True)
        shutil.rmtree(making, ignore_errors=True)
        _bring_all(crawl, making, given)
        if crawl.places[1:]:
            agree_on_tables(making)
            write_members(making, crawl.members)
            write_division(making, crawl.division)
            note_behind(making, crawl.behind)
        for place in crawl.places:
            assert place.head is not None
            note_owned(making, place.agent, store.name, (life,), place.head)
        crash_at(Point.RESTORING)
        if folder.exists():
            folder.rmdir()
        making.rename(folder)
    return msgspec.structs.replace(options, output=into, store=store.name)


@contextlib.contextmanager
def _left_on_error(crawl: "CrawlInStore", life: str, folder: Path, making: Path) -> Iterator[None]:
    """Bring a crawl back within: if that fails, nothing of it stays here, and its last owner may go on. Raises
    CrawlDirectoryError."""
    try:
        yield
    except (ObjectChanged, CrawlDirectoryError, OSError) as error:
        shutil.rmtree(making, ignore_errors=True)
        with contextlib.suppress(StoreFailed, ObjectChanged):
            for place in crawl.places:
                if place.head is not None and place.head.life == life:
                    place.give_back()
        if isinstance(error, CrawlDirectoryError):
            raise
        if isinstance(error, ObjectChanged):
            raise CrawlDirectoryError(f"another process has just taken the crawl in {crawl.first.store.name}") from None
        raise CrawlDirectoryError(f"{folder} cannot be written: {error.strerror or error}") from None


def _bring_all(crawl: "CrawlInStore", making: Path, given: StoreOptions) -> None:
    """Write a crawl directory; of the archive only as much as the options, or else its wiring, say that it keeps."""
    beats = time.monotonic()

    def beat() -> None:
        nonlocal beats
        if time.monotonic() - beats > given.lease / 3:
            for place in crawl.places:
                place.renew()
            beats = time.monotonic()

    files, archive = crawl.files(crawl.checkpoints({}))
    crawl.first.bring(files, making, beat=beat)
    plan = read_wiring(making).providers.get(PUBLISHER)
    most = given.keep_local
    if most is None and plan is not None:
        most = build(PublisherSheet, plan.settings).keep_local  # a person may have written it as a text
    if most is not None:
        for name in beyond({name: far.size for name, (far, _) in archive.items()}, most):
            put_link(making / name, archive.pop(name)[0])
    crawl.first.bring({name: parts for name, (_, parts) in archive.items()}, making, beat=beat)


class CrawlInStore:
    """All agents of a crawl in a store. One that has published nothing has left what it was owed with the others."""

    def __init__(self, store: Store) -> None:
        """Look at the heads. Raises UsageError: there is no crawl, or nothing of it; CrawlDirectoryError: the store is damaged."""
        self.first = AgentInStore(store, AGENT)
        """The one that names the others."""
        if (head := self.first.read()) is None:
            raise UsageError(f"the store {store.name} holds no crawl; name the place that --store had")
        if not head.checkpoint:
            raise UsageError(f"the store {store.name} holds no checkpoint of its crawl yet, so begin that again")
        self.members, self.division = head.members, head.division
        """All agents, and the number of their division, as the one knows them that has published last after a change."""
        found = {AGENT: self.first}
        while names := [one.agent for one in map(member, self.members) if one.agent not in found]:
            fresh = [AgentInStore(store, name) for name in names]
            found |= zip(names, fresh, strict=True)
            with ThreadPoolExecutor(_LOOKERS) as pool:
                heads = [one for one in pool.map(AgentInStore.read, fresh) if one is not None]
            newest = max(heads, key=lambda one: one.division, default=head)
            if newest.division > self.division:
                self.members, self.division = newest.members, newest.division
        self.places = list(found.values())

    @property
    def behind(self) -> dict[str, tuple[str, ...]]:
        """Agents whose checkpoints are of before the last change of agents, with those that there were then."""
        heads = {place.agent: place.head or StoreHead(0, "", "", 0.0) for place in self.places}
        return {agent: head.members for agent, head in heads.items() if head.division < self.division}

    def told(self) -> list[StoredAgent]:
        """The agents as the store knows them. Where one seems to be gone by this machine's clock, the clock of the store counts, if
        that may be written to."""
        found = self._told(time.time())
        if any(one.holder and not 0.0 < one.heard < one.lease for one in found):
            with contextlib.suppress(StoreFailed):
                found = self._told(probe(self.first.store)[0])
        return found

    def _told(self, now: float) -> list[StoredAgent]:
        found = []
        for place in self.places:
            if (head := place.head) is not None and place.agent in (at_work(self.members) or (AGENT,)):
                published = max(0.0, now - head.published) if head.checkpoint else None
                age = place.age(now)
                found.append(StoredAgent(place.agent, head.holder, age, head.lease, published, head.epoch))
        return found

    def checkpoints(self, known: Mapping[str, StoredCheckpoint]) -> dict[str, StoredCheckpoint]:
        """The checkpoints of all agents by their keys; those that are `known` are not asked for."""
        heads = {place.head.checkpoint: place for place in self.places if place.head is not None}
        fresh = [key for key in heads if key not in known]
        with ThreadPoolExecutor(_LOOKERS) as pool:
            found = dict(zip(fresh, pool.map(AgentInStore.checkpoint, map(heads.__getitem__, fresh)), strict=True))
        return {key: found[key] if key in found else known[key] for key in heads}

    def files(
        self, checkpoints: Mapping[str, StoredCheckpoint]
    ) -> tuple[dict[str, tuple[StoredPart, ...]], dict[str, tuple[InStore, tuple[StoredPart, ...]]]]:
        """The files of all agents, each by its parts; and those of the archive apart, which also say where they are. Files of
        the whole crawl are those that the first agent at work has published by the newest division."""
        found, archive = {}, {}
        heads = {place: place.head or StoreHead(0, "", "", 0.0) for place in self.places}
        have = {place: checkpoints.get(head.checkpoint, StoredCheckpoint({})).files for place, head in heads.items()}
        newest = {one: (head.division, one.agent in at_work(head.members)) for one, head in heads.items()}
        whole = max(self.places, key=lambda one: (CRAWL_FILE in have[one], newest[one]))
        for place, files in have.items():
            for name, parts in files.items():
                if place is not whole and not owner_of(name):
                    continue
                if name.startswith(f"{WARC_DIRECTORY}/"):
                    size = sum(part.size for part in parts)
                    archive[name] = InStore(place.agent, size, place.store.name), parts
                else:
                    found[name] = parts
        return found, archive


# -- readers


class _Cached(msgspec.Struct, frozen=True):
    """The files in the cache of one crawl."""

    checkpoints: dict[str, StoredCheckpoint]
    """Those that were read, by their keys."""
    files: dict[str, tuple[StoredPart, ...]]
    """Their files that are there; of the archive links alone."""


def standing_of_store(store: Store) -> CrawlStanding:
    """How the crawl in a store stands, by the last checkpoints of its agents: two requests for each. Raises UsageError: it holds no
    crawl; CrawlDirectoryError: the store cannot be read, or is damaged."""

    def look() -> tuple[CrawlInStore, dict[str, StoredCheckpoint]]:
        return (stored := CrawlInStore(store)), stored.checkpoints({})

    stored, checkpoints = _looked(look)
    published = {}
    for place in stored.places:
        raw = checkpoints[place.head.checkpoint].standing if place.head is not None else b"null"
        try:
            if (standing := msgspec.json.decode(raw, type=CrawlStanding | None)) is not None:
                published[place.agent] = standing
        except ValueError as error:
            raise CrawlDirectoryError(f"the store {store.name} is damaged: {error}") from None
    return standing_in_store(store.name, stored.told(), published)


def read_here(text: str, most: float = CACHE_BYTES) -> tuple[Path, str]:
    """A crawl directory that has the last checkpoint of the crawl in a store, for readers alone, and the name of the store; all
    crawls that were read have `most` bytes together. In the place of archive files it has links, so that of these only those parts
    are fetched that are read. Raises UsageError: it is no store, holds no crawl, or the crawl is larger than that;
    CrawlDirectoryError: the store cannot be read, or is damaged."""
    store = open_store(text)
    home = user_folder("cache") / "stores" / hashlib.blake2b(store.name.encode(), digest_size=10).hexdigest()
    with refusing(
        CrawlDirectoryError,
        f"{home.parent} cannot be written, where crawls of stores are read",
        "; let XDG_CACHE_HOME name a folder with room",
    ):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with flocked(home / _LOCK, fcntl.LOCK_EX):
            os.utime(home)
            _looked(lambda: _fill(CrawlInStore(store), home, most))
    return home / _CRAWL, store.name


def _looked(look: Callable[[], T]) -> T:
    """The result of a look at a store: its owner may publish meanwhile, and remove objects that the look needs."""
    for _ in range(_LOOKS - 1):
        with contextlib.suppress(CrawlDirectoryError):
            return look()
    return look()


def gone_elsewhere(directory: Path) -> list[StoredAgent]:
    """The agents as the store knows them, where another process has taken the crawl of a directory since; empty where none has, or
    the store cannot be reached."""
    with contextlib.suppress(CrawlDirectoryError, UsageError):
        if (note := owned(directory, AGENT)) is not None:
            store = open_store(note.url, patience=_PATIENCE)
            head = AgentInStore(store, AGENT).read()
            if head is not None and head.life not in note.lives:
                return CrawlInStore(store).told()
    return []


def _fill(stored: CrawlInStore, home: Path, most: float) -> None:
    """Bring what has changed since the last look, and let go of other crawls until there is room for it."""
    note = _Cached({}, {})
    with contextlib.suppress(OSError, ValueError):
        note = msgspec.json.decode((home / _NOTE).read_bytes(), type=_Cached)
    checkpoints = stored.checkpoints(note.checkpoints)
    if checkpoints.keys() == note.checkpoints.keys():
        return
    files, archive = stored.files(checkpoints)
    name, left = stored.first.store.name, most - (size := StoredCheckpoint(files).bytes)
    if left < 0:
        raise UsageError(
            f"the crawl in {name} has {show_bytes(size)} beside its archive, and crawls that are read may have {show_bytes(most)}; "
            f"give more by --cache, or bring it back whole: gossamer resume {name} -o DIR"
        )
    others = sorted((path for path in home.parent.iterdir() if path != home), key=lambda path: -path.stat().st_mtime)
    for path in others:  # those that were read longest ago make room
        left -= sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        if left < 0:
            shutil.rmtree(path, ignore_errors=True)
    (home / _NOTE).unlink(missing_ok=True)
    crawl = home / _CRAWL
    have = {name: parts for name, parts in note.files.items() if (crawl / name).exists()}
    for name in have.keys() - files.keys():
        (crawl / name).unlink()
    stored.first.bring(files, crawl, have)
    shutil.rmtree(crawl / WARC_DIRECTORY, ignore_errors=True)
    for name, (far, _) in archive.items():
        put_link(crawl / name, far)
    if stored.places[1:]:
        agree_on_tables(crawl)
    replace_file(home / _NOTE, msgspec.json.encode(_Cached(checkpoints, files)))
