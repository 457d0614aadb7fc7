"""What a crawl knows of one host: the part of its page that only the crawl's own process can tell while it runs.

Place in the flow: the message :class:`~gossamer.crawls.control.messages.ReadHost` asks here in a running crawl, and
:mod:`gossamer.analysis.watching` of a crawl at rest.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from gossamer.crawls.control.steerable import Steerable
from gossamer.crawls.control.steering import blocked
from gossamer.crawls.control.waits import held_at_rest
from gossamer.crawls.identity import HOST_SETTINGS
from gossamer.engine.graph import Graph
from gossamer.frontier.politeness.places import Held
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import Blocklist, blocked_by_orders
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.values.outcome import ERRORS
from gossamer.values.task import Task
from gossamer.values.url import site_of

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
    """What went wrong, where there was no answer, as the log has it."""


class KeptOfHost(msgspec.Struct, frozen=True):
    """What a ledger keeps of a host, as :class:`~gossamer.values.ledger_rows.HostState` has it."""

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
    """Facts about a host."""

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
    """What is set for this host alone: `delay`, `per_host`, `max_pages`."""


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
    """What a running crawl knows of a host, by its canonical name."""
    known = host_known(crawl.ledger, crawl.graph, host)
    now = crawl.ledger.clock.now()
    for unit in crawl.providers(HostPoliteness):
        state = msgspec.structs.replace(known.state, delay=unit.delay(host), delay_reason=unit.delay_reason(host))
        held = next(iter(unit.held([host])), Held(host, 0.0, ""))
        until = now + held.seconds if held.why else 0.0
        known = msgspec.structs.replace(known, state=state, held_by=str(held.why), until=until)
    return known


def host_known(ledger: RocksLedger, graph: Graph, host: str) -> HostKnown:
    """What a ledger knows of a host; what holds it is as of the last note."""
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
    """What is set for a host alone, by the names of the options."""
    found = {}
    for option in SHOWN:
        unit, setting = HOST_SETTINGS[option]
        if unit in graph.components or unit in graph.providers:
            value = getattr(graph.sheet(unit), setting, {}).get(host)
            if value is not None:
                found[option] = value
    return found
