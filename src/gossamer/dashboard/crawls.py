"""The crawls that a dashboard shows, those it was given and those in folders that it was given or that are sites; and how they
stand, told again and again: events for browsers, and figures for Prometheus.

Place in the flow: every page and the metrics ask here. However many browsers ask, a crawl is asked once a second at most, over
one connection; what takes files or a crawl's answer happens in threads. A browser that reads slowly misses some events and gets
the newest. `/metrics` has the figures in the text format 0.0.4. Their labels are the crawl's key, an outcome or the name of a
data set: closed lists, so that no web site adds a time series or writes into one.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gossamer.analysis.watching import CrawlWatch, combined, read_samples
from gossamer.crawls.control.facts import HostNow
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.dashboard.sites import is_own
from gossamer.engine.errors import refusing
from gossamer.query.host_list import HostList, HostPage
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.storage.tables.row_tables import SampleRow
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError
from gossamer.values.outcome import Outcome

T = TypeVar("T")

#: Seconds for which an answer of a crawl is good enough for all readers.
FRESH = 1.0

#: Seconds between two looks for new crawls, and between two reads of samples.
LOOK_AROUND, SAMPLED = 10.0, 10.0

#: Seconds that a list of hosts may be old, and after which it is brought up to date; seconds that an answer waits for that.
LISTED, LISTING, PATIENCE = 10.0, 5.0, 0.1

#: Lists of hosts that are held at once, those that were asked for last.
LISTS = 4

#: Threads that look at crawls and files at once.
THREADS = 4

#: Crawls that are shown at most: a folder may hold anything.
MOST = 1_000


class NoSuchCrawl(UsageError):
    """Nothing of that name is shown."""


class ListedHosts(HostPage, frozen=True):
    """A part of the list of hosts, as browsers get it."""

    is_being_made: bool = False
    """A list that is ten seconds old at most takes longer than an answer may; this is the one before, or an empty one."""
    now: dict[str, HostNow] = msgspec.field(default_factory=dict)
    """How the hosts of the rows stand at this moment, where the crawl runs and that was asked."""


class ShownCrawl:
    def __init__(
        self, key: str, directory: Path, run: Callable[..., Any], run_long: Callable[..., Any] | None = None
    ) -> None:
        """`run` does work in a thread; `run_long` does work of seconds, behind which no short work waits."""
        self.key = key
        self.directory = directory
        self.site = ""
        self.run, self._run_long = run, run_long or run
        self._watch: CrawlWatch | None = None
        self._asking, self._reading = asyncio.Lock(), asyncio.Lock()
        self._told: dict[tuple[bool, str], tuple[float, CrawlStanding]] = {}
        self._hosts: HostList | None = None
        self._listing: asyncio.Task[None] | None = None
        self._trouble = ""
        """Why its hosts cannot be listed."""
        self._samples: tuple[float, str, list[SampleRow]] = (-SAMPLED, "", [])

    async def standing(self, *, units: bool = False, agent: str = "", fresh: float = FRESH) -> CrawlStanding:
        """How it, or one of its agents, stands, as of `fresh` seconds ago at most. Raises as :meth:`CrawlWatch.look`."""
        async with self._asking:
            at, found = self._told.get((units, agent), (-fresh, None))
            if found is None or time.monotonic() - at >= fresh:
                found = await self.run(self._look, units, agent)
                self._told[units, agent] = time.monotonic(), found
            return found

    def _look(self, units: bool, agent: str) -> CrawlStanding:
        with refusing(CrawlDirectoryError, f"{self.directory} cannot be read"):
            return self._watching().look(units=units, agent=agent)

    def _watching(self) -> CrawlWatch:
        if self._watch is None:
            self._watch = CrawlWatch(self.directory)
        return self._watch

    async def samples(self, since: str) -> list[SampleRow]:
        """Its samples after an instant, of all agents together, as of ten seconds ago at most."""
        async with self._reading:
            at, of, rows = self._samples
            if time.monotonic() - at >= SAMPLED or since < of:
                rows = await self.run(lambda: combined(read_samples(self.directory, since)))
                self._samples = time.monotonic(), since, rows
            return [row for row in rows if row.taken_at > since]

    async def hosts(self) -> tuple[HostList, bool]:
        """Its hosts, and whether a list that is ten seconds old at most is still being made.
        Raises CrawlDirectoryError: the list cannot be made."""
        if self._hosts is None:
            self._hosts, self._trouble = HostList(self.directory), ""
        made, listing = self._hosts, self._listing
        age = time.time() - made.made_at
        if listing is None and age >= LISTING:
            listing = self._listing = asyncio.create_task(self._list(made))
        is_old = age >= LISTED
        if is_old and listing is not None:
            await asyncio.wait([listing], timeout=PATIENCE)
            is_old = not listing.done()
        if self._trouble:
            raise CrawlDirectoryError(self._trouble)
        return made, is_old

    async def _list(self, made: HostList) -> None:
        try:
            await self._run_long(made.refresh)
            self._trouble = ""
        except CrawlDirectoryError as error:
            self._trouble = str(error)
        finally:
            self._listing = None

    async def drop_hosts(self) -> None:
        made, self._hosts = self._hosts, None
        if made is not None:
            await self._run_long(made.close)

    async def hosts_now(self, names: Sequence[str]) -> dict[str, HostNow]:
        """How these hosts stand at this moment, where the crawl runs."""
        async with self._asking:
            found: dict[str, HostNow] = await self.run(lambda: self._watching().hosts(names))
            return found

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._hosts is not None:
            self._hosts.close()


class Crawls:
    def __init__(self, places: Sequence[Path], sites: Callable[[], Mapping[Path, str]] = dict) -> None:
        """Look nowhere yet. `places` are directories of crawls, and folders that hold some; `sites` tells further ones at each
        look, by the names of their sites."""
        self._places, self._sites = places, sites
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="look")
        self._listers = ThreadPoolExecutor(1, thread_name_prefix="list")
        self._listed: dict[str, ShownCrawl] = {}
        """Those whose hosts are listed, the one that was asked for last at the end."""
        self._shown: dict[str, ShownCrawl] = {}
        self._looked, self._looking = -LOOK_AROUND, asyncio.Lock()

    async def all(self) -> Mapping[str, ShownCrawl]:
        """Those that are there now, by their keys; a new one is found within ten seconds."""
        # A request that comes during a look waits for its result.
        async with self._looking:
            if time.monotonic() - self._looked >= LOOK_AROUND:
                self._looked = time.monotonic()
                found = await self.run(self._find)
                keys = {key_of(path): path for path in found}
                for gone in self._shown.keys() - keys.keys():
                    self._listed.pop(gone, None)
                    self._shown.pop(gone).close()
                for key, path in keys.items():
                    if key not in self._shown:
                        self._shown[key] = ShownCrawl(key, path, self.run, self._run_long)
                    self._shown[key].site = found[path]
        return self._shown

    def _find(self) -> dict[Path, str]:
        """Directories of crawls, and the names of their sites; one that the dashboard was given is of no site."""
        found = dict.fromkeys(find_crawls(self._places), "")
        given = {path.resolve() for path in found}
        for place, site in self._sites().items():
            for path in find_crawls([place]):
                if path.resolve() not in given and len(found) < MOST and is_own(path):
                    found[path] = site
        return found

    def folders(self) -> list[Path]:
        """The folders of crawls among the places and sites: a crawl can be started there."""
        found = dict.fromkeys([*self._places, *(place for place in self._sites() if is_own(place))])
        return [place for place in found if place.is_dir() and not (place / CRAWL_FILE).is_file()]

    def look_anew(self) -> None:
        """Look for crawls at the next question: the list of sites has changed."""
        self._looked = -LOOK_AROUND

    async def named(self, key: str) -> ShownCrawl:
        """The crawl of a key. Raises NoSuchCrawl: there is none."""
        shown = (await self.all()).get(key)
        if shown is None:
            raise NoSuchCrawl("there is no such crawl here")
        return shown

    async def hosts_of(self, shown: ShownCrawl) -> tuple[HostList, bool]:
        """The hosts of a crawl, as :meth:`ShownCrawl.hosts`; the lists of four crawls are held."""
        self._listed.pop(shown.key, None)
        self._listed[shown.key] = shown
        if len(self._listed) > LISTS:
            await self._listed.pop(next(iter(self._listed))).drop_hosts()
        return await shown.hosts()

    async def _run_long(self, work: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._listers, work, *given)

    async def run(self, work: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def close(self) -> None:
        for shown in self._shown.values():
            shown.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._listers.shutdown(wait=False, cancel_futures=True)


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
    """The key of a crawl in addresses: a part of its name, and enough of a hash of its place to be the only one."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", directory.resolve().name).strip("-.")[:40]
    return f"{name or 'crawl'}-{hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:8]}"


# Figures for Prometheus.

#: Field of a standing -> type, and the text of its help.
FIGURES: dict[str, tuple[str, str]] = {
    "pages": ("counter", "Successful HTML documents."),
    "fetched": ("counter", "Answered requests, without those for robots.txt."),
    "unique_documents": ("counter", "Documents that differ from each other."),
    "bytes": ("counter", "Bytes that were received."),
    "errors": ("counter", "Requests that failed, and names without an address."),
    "raised": ("counter", "Visits on which processors or handlers raised."),
    "discovered": ("gauge", "URLs that were found."),
    "queued": ("gauge", "URLs that wait."),
    "set_aside": ("gauge", "URLs that look like parts of traps."),
    "in_flight": ("gauge", "Requests in flight."),
    "hosts": ("gauge", "Hosts that were asked."),
    "seconds": ("gauge", "Seconds of the present run, or of the last one."),
    "recent_pages_per_second": ("gauge", "Speed over the last ten seconds."),
    "cpu_seconds": ("gauge", "Seconds of CPU that the run has used."),
    "peak_rss_bytes": ("gauge", "Most bytes of memory that the run has held."),
    "disk_free": ("gauge", "Free bytes on the disk of the crawl directory."),
}


def exposition(crawls: Mapping[str, CrawlStanding]) -> str:
    """The figures of crawls, by their keys."""
    lines: list[str] = []
    for name, (kind, text) in FIGURES.items():
        full = f"gossamer_{name}" + ("_total" if kind == "counter" else "")
        samples = ((f'crawl="{key}"', getattr(now, name)) for key, now in crawls.items())
        lines += _family(full, kind, text, samples)
    running = ((f'crawl="{key}"', int(now.is_at_work)) for key, now in crawls.items())
    lines += _family("gossamer_running", "gauge", "Whether a process is at work on the crawl.", running)
    problems = ((f'crawl="{key}"', len(now.problems)) for key, now in crawls.items())
    lines += _family("gossamer_problems", "gauge", "Problems that the crawl has.", problems)
    outcomes = (
        (f'crawl="{key}",outcome="{outcome}"', now.outcomes.get(outcome, 0))
        for key, now in crawls.items()
        for outcome in Outcome
    )
    lines += _family("gossamer_requests_total", "counter", "Requests by what became of them.", outcomes)
    sizes = ((f'crawl="{key}",store="{one.name}"', one.bytes) for key, now in crawls.items() for one in now.sizes)
    lines += _family("gossamer_store_bytes", "gauge", "Bytes of the main data sets.", sizes)
    return "".join(f"{line}\n" for line in lines)


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{{{labels}}} {value}"


#: Seconds between two looks at a crawl that a browser watches.
INTERVAL = 2.0

#: Seconds after which a comment shows a silent browser that we are there, and us that it is.
HEARTBEAT = 15.0

#: Streams at once.
MAX_STREAMS = 100


class Streams:
    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self.count = 0
        """Streams that are open."""

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_STREAMS

    async def of(self, shown: ShownCrawl) -> AsyncIterator[bytes]:
        """The events of a crawl, as `text/event-stream` has them, each other than the one before; ends when its reader is gone. All
        streams look at the same standing (:meth:`ShownCrawl.standing`)."""
        self.count += 1
        last, told_at = b"", 0.0
        try:
            while True:
                try:
                    standing = await shown.standing(fresh=self._interval / 2)
                    event = b"event: standing\ndata: " + msgspec.json.encode(standing) + b"\n\n"
                except GossamerError as error:
                    event = b"event: trouble\ndata: " + msgspec.json.encode({"error": str(error)}) + b"\n\n"
                if event != last or time.monotonic() - told_at >= HEARTBEAT:
                    yield event if event != last else b": still here\n\n"
                    last, told_at = event, time.monotonic()
                await asyncio.sleep(self._interval)
        finally:
            self.count -= 1
