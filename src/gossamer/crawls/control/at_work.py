"""How a crawl at work stands: all that `status` shows of it, and why it waits.

Place in the flow: the control socket, progress and the summary's end ask here; the values are those of
:mod:`~gossamer.crawls.control.standing`, which a crawl at rest (:mod:`~gossamer.crawls.control.at_rest`) has, too. Each part of a
crawl knows the reasons for which it waits.
"""

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gossamer.crawls.children import Figures, figures_of
from gossamer.crawls.control import standing
from gossamer.crawls.control.at_rest import added, exchange_standing
from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.steering import blocked
from gossamer.crawls.control.waits import (
    MOST_COUNTED,
    NAMED,
    Wait,
    data_sets,
    disk_free,
    gathered,
    lent_waits,
    retry_waits,
    set_aside_waits,
)
from gossamer.crawls.options import settings_of_options
from gossamer.engine.graph import ComponentNode, Graph, ProviderNode
from gossamer.engine.sheet import show_seconds
from gossamer.fetcher.http import HttpModule
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import blocked_by_orders
from gossamer.parsing.contract import SessionsTold
from gossamer.parsing.duplicates import UrlSeen
from gossamer.storage.commit.commit_stage import Commit, Tally

if TYPE_CHECKING:
    from gossamer.crawls.summary import Summary
    from gossamer.crawls.work import CrawlAtWork
    from gossamer.frontier.limits import FrontierSheet


def standing_of(
    crawl: "CrawlAtWork", process: int, *, units: bool, elsewhere: Sequence[Figures] = (), alone: str = ""
) -> CrawlStanding:
    """How a running crawl stands, with all that takes a look at the disk or at other processes.

    `elsewhere` is what other processes of it have counted; `alone` says why no other agents join.
    """
    glance = glance_at(crawl, process)
    return msgspec.structs.replace(
        glance,
        alone=alone,
        problems=problems_of(glance),
        checkpoints=crawl.ledger.checkpoints(),
        units=_units(crawl, elsewhere) if units else [],
        connectors=_connectors(crawl, elsewhere) if units else [],
    )


def glance_at(crawl: "CrawlAtWork", process: int) -> CrawlStanding:
    """How a running crawl stands, by what is in memory: cheap enough for every redraw of a terminal."""
    figures, frontier = crawl.figures, crawl.units.frontier
    summary, pulse = figures.summary(), figures.pulse
    in_flight = int(frontier.metrics.snapshot()["in_flight"])
    links = [unit.metrics.counters for unit in crawl.units.components(UrlSeen)]
    told_of_sessions = [one for one in crawl.units.running.providers.values() if isinstance(one, SessionsTold)]
    time_left, (pages_a_second, fetched_a_second) = time_left_of(frontier.sheet, summary), pulse.speeds
    estimate = summary.queued / fetched_a_second if fetched_a_second > 0 and not time_left else 0.0
    return CrawlStanding(
        **{**msgspec.structs.asdict(summary), "state": crawl.state_at_work},
        errors=standing.errors_of(summary.outcomes),
        failing=standing.failing_of(crawl.ledger.failing_hosts()),
        links=sum(int(one["looked_up"]) for one in links),
        new_links=sum(int(one["new"]) for one in links),
        in_flight=in_flight,
        concurrency=frontier.sheet.concurrency,
        busy=round(pulse.busy, 3),
        disk_free=disk_free(crawl.directory),
        process=process,
        recent_pages_per_second=round(pages_a_second, 2),
        limits=limits_of(crawl.graph),
        time_left=time_left,
        estimate=round(estimate, 1),
        waits=waits_of(crawl, set_aside=summary.set_aside, queued=summary.queued, in_flight=in_flight),
        sizes=data_sets(pulse.sizes, pulse.growth, discovered=summary.discovered, queued=summary.queued),
        slowest=[
            standing.SlowHost(host, round(seconds, 4))
            for host, seconds in heapq.nlargest(
                standing.SLOWEST,
                (pair for tally in crawl.units.components(Tally) for pair in tally.slowest.items()),
                key=lambda pair: pair[1],
            )
        ],
        # The hosts that are left alone for longest because of their errors or refusals.
        slowed=[
            standing.SlowedHost(host, round(delay, 3), reason)
            for unit in crawl.providers(HostPoliteness)
            for host, delay, reason in unit.slowed(standing.SLOWEST)
        ][: standing.SLOWEST],
        proxies=heapq.nlargest(
            100, (one for http in crawl.providers(HttpModule) for one in http.proxies()), lambda one: one.rests
        ),
        sessions=next(filter(None, (one.sessions_standing(standing.SLOWEST) for one in told_of_sessions)), None),
        suspended=sorted(crawl.suspensions.names),
        blocked=[*blocked(crawl.graph), *blocked_by_orders(crawl.ledger)][:100],
        exchange=exchange_standing(crawl.ledger, crawl.directory),
        stored=[
            one.stored_agent()
            for one in crawl.units.running.providers.values()
            if isinstance(one, standing.PublishesAgent)
        ],
    )


#: Options that bound a crawl.
LIMITS = ("max_pages", "max_time", "total_time", "max_bytes", "max_pages_per_host", "min_free_disk", "depth")


def limits_of(graph: Graph) -> dict[str, float]:
    """The limits that are set, by the names of their options."""
    found: dict[str, float] = {}
    for option in LIMITS:
        for unit, setting in settings_of_options()[option]:
            if unit in graph.components:
                sheet = graph.sheet(unit)
                value = getattr(sheet, setting)
                if value != getattr(type(sheet)(), setting):
                    found[option] = value
    return found


def time_left_of(sheet: "FrontierSheet", now: "Summary | CrawlStanding") -> str:
    """How long until a limit of time or pages is reached at this pace; empty where there is none."""
    limits = []
    if sheet.max_time is not None:
        limits.append(sheet.max_time - now.seconds)
    if sheet.max_pages is not None and now.pages_per_second > 0:
        limits.append((sheet.max_pages - now.pages) / now.pages_per_second)
    return show_seconds(max(0.0, min(limits))) if limits else ""


def _units(crawl: "CrawlAtWork", elsewhere: Sequence[Figures]) -> list[standing.UnitFigures]:
    """Every unit of the crawl, in whichever process; units of one name in several processes are added up."""
    nodes: dict[str, ComponentNode | ProviderNode] = {**crawl.graph.components, **crawl.graph.providers}
    parts = [figures_of(crawl.graph_at_work), *elsewhere]
    found = []
    for name, node in nodes.items():
        total = added(part.units.get(name, {}) for part in parts)
        metrics = {key: round(value, 3) for key, value in sorted(total.items())}
        found.append(standing.UnitFigures(name, node.use, metrics, name in crawl.suspensions.names))
    return found


def _connectors(crawl: "CrawlAtWork", elsewhere: Sequence[Figures]) -> list[standing.ConnectorFigures]:
    """Every connector; one that crosses counts where items are taken out."""
    here, found = crawl.graph_at_work.statistics(), []
    for name, node in crawl.graph.connectors.items():
        is_taken_here = any(taker in crawl.graph_at_work.graph.components for taker in node.consumers)
        others = [part.connectors[name] for part in elsewhere if name in part.connectors]
        ends = [here[name]] if name in here and (is_taken_here or not others) else others
        if ends:
            one = max(ends, key=lambda end: end.passed)
            found.append(standing.ConnectorFigures(name, one.passed, one.waiting, one.peak, round(one.stalled, 3)))
    return found


def waits_of(crawl: "CrawlAtWork", *, set_aside: int, queued: int, in_flight: int) -> list[Wait]:
    """Why a running crawl waits, the weightiest reason first; empty while nothing does."""
    frontier, now = crawl.units.frontier, crawl.ledger.clock.now()
    for_disk = any(unit.metrics.snapshot()["waits_for_disk"] for unit in crawl.units.components(Commit))
    slow = crawl.figures.pulse.slow_pages
    slowest = [page.url for page in slow[:NAMED]]
    probes = [unit.network_probe for unit in crawl.providers(HostPoliteness)]
    return [
        *([Wait("paused", urls=queued)] if frontier.termination.is_paused else ()),
        *([Wait("disk_full")] if for_disk else ()),
        *([Wait("memory")] if frontier.totals.is_over_memory else ()),
        *(Wait("network_down", until=now + probe) for probe in probes if probe is not None),
        *retry_waits(crawl.ledger.queues.delayed.owed(MOST_COUNTED)),
        *_hosts(crawl, now, 0 if in_flight else queued),
        *([Wait("look_ups", hosts=look_ups)] if (look_ups := int(frontier.metrics.snapshot()["lookups"])) else []),
        *([Wait("slow_pages", len(slow), names=slowest, seconds=round(slow[0].seconds, 1))] if slow else ()),
        *lent_waits(crawl.ledger.counters()),
        *set_aside_waits(set_aside, crawl.ledger.aside()),
    ]


def _hosts(crawl: "CrawlAtWork", now: float, queued: int) -> list[Wait]:
    rules = list(crawl.providers(HostPoliteness))
    waits = gathered((one for unit in rules for one in unit.held()), now, queued)
    for wait in waits:
        if wait.why == "delay":
            delay = max(unit.delay(wait.names[0]) for unit in rules)
            return [*waits[:-1], msgspec.structs.replace(wait, seconds=round(delay, 3))]
    return waits
