"""Facts about one host or one URL: the part of their pages and stories that only the crawl's own process can tell
while it runs.

Place in the flow: the messages :class:`~gossamer.crawls.control.messages.ReadHost` and
:class:`~gossamer.crawls.control.messages.Why` ask here in a running crawl, and :mod:`gossamer.analysis.watching` and `gossamer
why` of a crawl at rest.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from gossamer.crawls.control.steering import Steerable, blocked
from gossamer.crawls.control.waits import held_at_rest
from gossamer.crawls.identity import HOST_SETTINGS
from gossamer.engine.graph import Graph
from gossamer.frontier.contract import CRAWLERS, LAST_CRAWLER, LENT, LastCrawler, LentTask
from gossamer.frontier.politeness.places import Held
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import Blocklist, blocked_by_orders
from gossamer.frontier.traps.judging import evidence_of
from gossamer.frontier.traps.likeness import ALIASES
from gossamer.frontier.traps.memory import WHAT as TRAPS
from gossamer.mobile.manager.lent import lent_of
from gossamer.storage.contract import MAIL, OWED
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.mailbox.exchange_files import FILES, WRITTEN, parted, written_files
from gossamer.storage.mailbox.staging import mailed, owed_key, owed_task
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.outcome import ERRORS
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of, site_of

#: Tasks of a queue that are counted, and visited URLs that are looked at: some ten milliseconds, which a crawl can spare.
COUNTED, LOOKED_AT = 1_000, 2_000

#: Tasks and failed URLs that are named.
NAMED = 20

#: Settings of single hosts that are shown; a header field may hold a password.
SHOWN = ("delay", "per_host", "max_pages", "min_interval", "max_interval")


class WaitingUrl(msgspec.Struct, frozen=True):
    """A URL in the queue of the host."""

    url: str
    depth: int
    attempt: int
    source: str
    """The URL that it was found on; empty for a seed."""
    relation: str
    due: float = 0.0
    """Seconds since the epoch before which it is not queued; 0 where it is."""


class FailedUrl(msgspec.Struct, frozen=True):
    """A URL whose last visit brought no page."""

    url: str
    outcome: str
    status: int
    fetched_at: float
    """Seconds since the epoch."""
    error: str = ""
    """The failure, where there was no answer, as the log has it."""


class KeptOfHost(msgspec.Struct, frozen=True):
    """The note of a host in a ledger, as :class:`~gossamer.values.ledger_rows.HostState` has it."""

    counters: dict[str, int]
    first_seen: float
    """0 where nothing is kept."""
    last_seen: float
    address: str
    delay: float
    delay_reason: str
    robots_state: str
    robots_date: float


class HostKnown(msgspec.Struct, frozen=True):
    host: str
    state: KeptOfHost
    blocked_by: str
    """The host, or the domain above it, that is blocked; empty where none is."""
    held_by: str = ""
    """Why it is not asked now, in one word; empty where nothing but its turn is against it."""
    until: float = 0.0
    """When it is asked again if nothing changes, in seconds since the epoch; 0 where nothing holds it."""
    queued: int = 0
    """URLs in its queue, counted up to a thousand."""
    is_more: bool = False
    """There are more than were counted."""
    head: list[WaitingUrl] = []
    """The first URLs of the queue; those in flight are among them."""
    later: list[WaitingUrl] = []
    """URLs that are tried again at a time, the first that are due first: of the next thousand of all hosts."""
    outcomes: dict[str, int] = {}
    """Last visits by outcome, of those of its URLs that were looked at."""
    is_part: bool = False
    """Not all of its URLs were looked at."""
    failed: list[FailedUrl] = []
    """The last of the failed URLs among them, the newest first."""
    sites: list[str] = []
    """Its sites that were met, as `https://example.org`."""
    given: dict[str, Any] = {}
    """Settings of this host alone: `delay`, `per_host`, `max_pages`."""


class HostNow(msgspec.Struct, frozen=True):
    """How a host of a running crawl stands at this moment."""

    delay: float
    """Seconds between two requests."""
    delay_reason: str
    held_by: str = ""
    """Why it is not asked now, in one word; empty where nothing but its turn is against it."""
    until: float = 0.0
    """When it is asked again if nothing changes, in seconds since the epoch; 0 where nothing holds it."""
    blocked_by: str = ""
    """The host, or the domain above it, that is blocked; empty where none is."""


class HostsNow(msgspec.Struct, frozen=True):
    """How some hosts of a running crawl stand at this moment, by their names."""

    hosts: dict[str, HostNow]


def hosts_of_running(crawl: Steerable, names: Sequence[str]) -> HostsNow:
    """How hosts of a running crawl stand, by their canonical names: some microseconds for each."""
    now = crawl.ledger.clock.now()
    found = {}
    for unit in crawl.providers(HostPoliteness):
        held = {one.host: one for one in unit.held(names) if one.why}
        for name in names:
            why, until = (str(held[name].why), now + held[name].seconds) if name in held else ("", 0.0)
            found[name] = HostNow(unit.delay(name), unit.delay_reason(name), why, until, unit.rule_against(name))
    return HostsNow(found)


def host_of_running(crawl: Steerable, host: str) -> HostKnown:
    """Facts about a host of a running crawl, by its canonical name."""
    known = host_known(crawl.ledger, crawl.graph, host)
    now = hosts_of_running(crawl, [host]).hosts.get(host)
    if now is None:
        return known
    state = msgspec.structs.replace(known.state, delay=now.delay, delay_reason=now.delay_reason)
    return msgspec.structs.replace(known, state=state, held_by=now.held_by, until=now.until)


def host_known(ledger: RocksLedger, graph: Graph, host: str) -> HostKnown:
    """Facts about a host in a ledger; those that hold it are as of the last note."""
    state, now = ledger.host_states([host])[0], ledger.clock.now()
    waiting = list(islice(ledger.queue_of(host), COUNTED + 1))
    rows = list(islice(ledger.documents_of(host), LOOKED_AT + 1))
    failed = heapq.nlargest(NAMED, (row for row in rows if row.outcome in ERRORS), key=lambda row: row.fetched_at)
    held = next(held_at_rest([state], now), Held(host, 0.0, ""))
    return HostKnown(
        host=host,
        state=KeptOfHost(**{name: getattr(state, name) for name in KeptOfHost.__struct_fields__}),
        blocked_by=Blocklist([*blocked(graph), *blocked_by_orders(ledger)]).rule(host),
        held_by=str(held.why),
        until=now + held.seconds if held.why else 0.0,
        queued=min(len(waiting), COUNTED),
        is_more=len(waiting) > COUNTED,
        head=[_waiting(one) for one in waiting[:NAMED]],
        later=[_waiting(task, due) for task, due in ledger.queues.delayed.of(host, COUNTED)[:NAMED]],
        outcomes=dict(Counter(str(row.outcome) for row in rows[:LOOKED_AT]).most_common()),
        is_part=len(rows) > LOOKED_AT,
        failed=[FailedUrl(row.url, str(row.outcome), row.status, row.fetched_at) for row in failed],
        sites=sorted({site_of(url) for url in (*(one.url for one in waiting), *(row.url for row in rows))})[:NAMED],
        given=given_to(graph, host),
    )


def _waiting(task: Task, due: float = 0.0) -> WaitingUrl:
    return WaitingUrl(task.url, task.depth, task.attempt, task.source, task.relation, due)


def given_to(graph: Graph, host: str) -> dict[str, Any]:
    """The settings of a host alone, by the names of the options."""
    found = {}
    for option in SHOWN:
        unit, setting = HOST_SETTINGS[option]
        if unit in graph.components or unit in graph.providers:
            value = getattr(graph.sheet(unit), setting, {}).get(host)
            if value is not None:
                found[option] = value
    return found


#: Names under which watchers keep what they have learnt of a host and its story tells.
TOLD = (TRAPS, ALIASES)

#: Chunks of a host's queue that are looked at for a URL, 128 tasks each: some 20 ms, which a crawl can spare.
CHUNKS = 1_000


class Known(msgspec.Struct, frozen=True):
    """Facts about a canonical URL."""

    url: str
    is_seen: bool
    """It was queued at some time."""
    flights: int = 0
    """Requests for it that are under way."""
    task: Task | None = None
    """As it waits or is in flight; None where it is done, unknown, or too far back in its host's queue."""
    due: float = 0.0
    """Seconds since the epoch before which a task for later is not queued; 0 where it is."""
    depth: int | None = None
    """The lowest depth that it was met at, where the crawl keeps depths."""
    row: DocumentRow | None = None
    """Its last visit."""
    host: HostState | None = None
    robots: bytes = b""
    """The note of the robots part of its site."""
    aside: Family | None = None
    """The family under which it is set aside."""
    evidence: str = ""
    """Why that looks like a trap."""
    blocked_by: str = ""
    """The host or domain above it that an order of a processor blocks; empty where none does."""
    is_cut: bool = False
    """It was met, and is neither visited nor waiting: a budget or a limit of depth cut it."""
    is_owed: bool = False
    """It is another agent's, and that agent has not said that it has it."""
    file: str = ""
    """The exchange file that it was written into; empty where it waits for the next one."""
    lent: LentTask | None = None
    """As it is lent to a mobile crawler, or waits for one."""
    crawled_by: LastCrawler | None = None
    """The mobile crawler that came home from its host last."""
    learnt: dict[str, bytes] = {}
    """The notes of watchers of its host, by their names for it."""


def known_of(ledger: RocksLedger, url: str) -> Known:
    """Facts about a canonical URL in this ledger."""
    host = host_of(url)
    waiting = ledger.waiting(url, CHUNKS)
    aside = ledger.shelf.find(url, CHUNKS) if waiting is None and host else None
    family = aside[0] if aside else None
    lent, crawled_by = _of_crawlers(ledger, url, host)
    is_seen, row, flights = ledger.is_seen(url), ledger.document(url), ledger.queues.flights(url)
    owed, file = _owed(ledger, url, host)
    is_anywhere = not is_seen or row is not None or flights > 0 or waiting is not None or aside is not None
    return Known(
        url=url,
        is_seen=is_seen,
        flights=flights,
        task=waiting.task if waiting else aside[1] if aside else owed,
        due=waiting.due if waiting else 0.0,
        depth=ledger.depth_of([url])[0],
        row=row,
        host=ledger.host_states([host])[0] if host else None,
        robots=ledger.robots(site_of(url), host) or b"" if host else b"",
        aside=family,
        evidence=evidence_of(ledger.learnt((family.owner,), TRAPS)[0], family) if family else "",
        blocked_by=Blocklist(blocked_by_orders(ledger)).rule(host) if host else "",
        is_owed=owed is not None,
        file=file,
        lent=lent,
        crawled_by=crawled_by,
        is_cut=not is_anywhere and owed is None and ledger.is_looked_at_whole(url, CHUNKS),
        learnt={what: data for what in TOLD if (data := ledger.learnt((host,), what)[0])} if host else {},
    )


def _owed(ledger: RocksLedger, url: str, host: str) -> tuple[Task | None, str]:
    """The task as it is owed to another agent, and the name of the exchange file that it was written into."""
    counters, key = ledger.counters(), owed_key(Task(url, host))
    if not (counters.get("owed") or counters.get("written")):
        return None, ""
    for space in (OWED, MAIL, WRITTEN, FILES):
        ledger.spaces.open(space)
    if (value := ledger.spaces.get(OWED, host, key)) is not None:
        return owed_task(value), ""
    if (value := ledger.spaces.get(MAIL, host, key)) is not None:
        return mailed(value)[1], ""
    if (value := ledger.spaces.get(WRITTEN, host, key)) is None:
        return None, ""
    file, task = parted(value)
    return task, next((one.name for one in written_files(ledger.spaces) if one.id == file), file)


def _of_crawlers(ledger: RocksLedger, url: str, host: str) -> tuple[LentTask | None, LastCrawler | None]:
    """How a URL is lent, and which crawler came home from its host last."""
    counters = ledger.counters()
    if not host or not (counters.get("crawlers_sent") or counters.get("lent")):
        return None, None  # without a look at spaces that this crawl may not have
    for space in (LENT, CRAWLERS):
        ledger.spaces.open(space)
    last = ledger.spaces.get(CRAWLERS, host, LAST_CRAWLER)
    return lent_of(ledger.spaces, url, host), msgspec.msgpack.decode(last, type=LastCrawler) if last else None
