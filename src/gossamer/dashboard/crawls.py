"""The crawls that a dashboard shows: those it was given, and those in folders it was given.

Place in the flow: every page and the metrics ask here. However many browsers ask, a crawl is asked once a second at most, over one
connection; what takes files or a crawl's answer happens in threads.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from gossamer.assembly.control.standing import CrawlStanding
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.operations.watching import CrawlWatch
from gossamer.query.host_list import HostList, read_hosts
from gossamer.query.places import CRAWL_FILE
from gossamer.query.samples import combined, read_samples
from gossamer.stores.tables.samples import SampleRow

T = TypeVar("T")

#: Seconds for which an answer of a crawl is good enough for everybody.
FRESH = 1.0

#: Seconds between two looks for new crawls, and between two reads of samples.
LOOK_AROUND, SAMPLED = 10.0, 10.0

#: Seconds after which a list of hosts is made anew.
LISTED = 10.0

#: Threads that look at crawls and files at once.
THREADS = 4

#: Crawls that are shown at most: a folder may hold anything.
MOST = 1_000


class NoSuchCrawl(UsageError):
    """Nothing of that name is shown."""


class ShownCrawl:
    """One crawl."""

    def __init__(self, key: str, directory: Path, run: Callable[..., Any]) -> None:
        self.key = key
        self.directory = directory
        self._run = run
        self._watch: CrawlWatch | None = None
        self._asking, self._reading = asyncio.Lock(), asyncio.Lock()
        self._told: dict[bool, tuple[float, CrawlStanding]] = {}
        self._hosts: HostList | None = None
        self._listing: asyncio.Future[None] | None = None
        self._samples: tuple[float, str, list[SampleRow]] = (-SAMPLED, "", [])

    def __repr__(self) -> str:
        return f"<ShownCrawl {self.key}>"

    async def standing(self, *, units: bool = False, fresh: float = FRESH) -> CrawlStanding:
        """How it stands, as of `fresh` seconds ago at most. Raises as :meth:`CrawlWatch.look`."""
        async with self._asking:
            at, found = self._told.get(units, (-fresh, None))
            if found is None or time.monotonic() - at >= fresh:
                found = await self._run(self._look, units)
                self._told[units] = time.monotonic(), found
            return found

    def _look(self, units: bool) -> CrawlStanding:
        try:
            if self._watch is None:
                self._watch = CrawlWatch(self.directory)
            return self._watch.look(units=units)
        except OSError as error:
            raise CrawlDirectoryError(f"{self.directory} cannot be read: {error.strerror or error}") from None

    async def samples(self, since: str) -> list[SampleRow]:
        """Its samples after an instant, of all agents together, as of ten seconds ago at most."""
        async with self._reading:
            at, of, rows = self._samples
            if time.monotonic() - at >= SAMPLED or since < of:
                rows = await self._run(lambda: combined(read_samples(self.directory, since)))
                self._samples = time.monotonic(), since, rows
            return [row for row in rows if row.taken_at > since]

    async def hosts(self) -> HostList:
        """Its hosts. A list that is older than ten seconds is made anew; meanwhile the one before is good enough."""
        if self._hosts is None:
            self._listing = self._listing or asyncio.ensure_future(self._list())
            await asyncio.shield(self._listing)
        elif time.time() - self._hosts.made_at >= LISTED and self._listing is None:
            self._listing = asyncio.ensure_future(self._list())
        assert self._hosts is not None
        return self._hosts

    async def _list(self) -> None:
        try:
            self._hosts = await self._run(read_hosts, self.directory, self._hosts)
        finally:
            self._listing = None

    async def run(self, work: Callable[..., T], *given: object) -> T:
        """Do something of its own in a thread."""
        found: T = await self._run(work, *given)
        return found

    def close(self) -> None:
        """Hang up."""
        if self._watch is not None:
            self._watch.close()


class Crawls:
    """All of them."""

    def __init__(self, places: Sequence[Path]) -> None:
        """`places` are directories of crawls, and folders that hold some."""
        self._places = places
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="look")
        self._shown: dict[str, ShownCrawl] = {}
        self._looked = -LOOK_AROUND

    def __repr__(self) -> str:
        return f"<Crawls: {len(self._shown)}>"

    async def all(self) -> Mapping[str, ShownCrawl]:
        """Those that are there now, by their keys; a new one is found within ten seconds."""
        if time.monotonic() - self._looked >= LOOK_AROUND:
            self._looked = time.monotonic()
            found = await self._run(find_crawls, self._places)
            keys = {key_of(path): path for path in found}
            for gone in self._shown.keys() - keys.keys():
                self._shown.pop(gone).close()
            for key, path in keys.items():
                if key not in self._shown:
                    self._shown[key] = ShownCrawl(key, path, self._run)
        return self._shown

    async def named(self, key: str) -> ShownCrawl:
        """The crawl of a key.

        Raises:
            NoSuchCrawl: there is none.
        """
        shown = (await self.all()).get(key)
        if shown is None:
            raise NoSuchCrawl("there is no such crawl here")
        return shown

    async def _run(self, work: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def close(self) -> None:
        """Hang up everywhere."""
        for shown in self._shown.values():
            shown.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def find_crawls(places: Sequence[Path]) -> list[Path]:
    """The directories of crawls among `places` and directly below them, by name; a thousand at most."""
    found: dict[Path, None] = {}
    for place in places:
        try:
            below = [place] if (place / CRAWL_FILE).is_file() else sorted(place.iterdir())
            found |= {path: None for path in below if (path / CRAWL_FILE).is_file()}
        except OSError:
            continue  # a folder that is gone, or closed to us, holds nothing that could be shown
    return list(found)[:MOST]


def key_of(directory: Path) -> str:
    """What a crawl is called in addresses: a part of its name, and enough of a hash of its place to be the only one."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", directory.resolve().name).strip("-.")[:40]
    return f"{name or 'crawl'}-{hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:8]}"
