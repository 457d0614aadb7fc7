"""The standings of several agents as one. Pure.

Place in the flow: the supervisor of agents at work adds up what they say; :mod:`at_rest` what their ledgers say.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from gossamer.crawls.control.standing import SLOWEST, ConnectorFigures, CrawlStanding, UnitFigures, failing_of
from gossamer.crawls.control.waits import NAMED, WALKED, DataSet, Wait
from gossamer.frontier.limits import RetriesWaiting

#: Fields that are added up.
_SUMS = (
    "pages", "fetched", "unique_documents", "bytes", "errors", "raised", "needs_browser", "discovered", "queued", "set_aside",
    "links", "new_links",
    "in_flight", "concurrency", "hosts", "judged", "relevant", "pages_per_second", "recent_pages_per_second", "cpu_seconds",
    "peak_rss_bytes",
)  # fmt: skip

#: Hosts of retries that are told.
_TOLD = 20


def added_standing(directory: Path, parts: Sequence[CrawlStanding]) -> CrawlStanding:
    """Several agents as one. What only the crawl as a whole has (its state, its limits) is that of the first.

    Args:
        directory: of the crawl.
        parts: one for each agent; a crawl of which no agent has begun has none.
    """
    if not parts:
        return CrawlStanding(str(directory), "killed")
    return msgspec.structs.replace(
        parts[0],
        crawl=str(directory),
        outcomes=_counted(part.outcomes for part in parts),
        cuts=_counted(part.cuts for part in parts),
        goal=next((part.goal for part in parts if part.goal), ""),
        failing=failing_of({one.host: one.errors for part in parts for one in part.failing}),
        waiting=_waiting([part.waiting for part in parts if part.waiting is not None]),
        waits=_waits(chain.from_iterable(part.waits for part in parts)),
        sizes=_sizes(part.sizes for part in parts),
        slowest=heapq.nlargest(SLOWEST, chain.from_iterable(part.slowest for part in parts), lambda one: one.seconds),
        slowed=heapq.nlargest(SLOWEST, chain.from_iterable(part.slowed for part in parts), lambda one: one.delay),
        blocked=sorted({name for part in parts for name in part.blocked})[:100],
        checkpoints=[name for name in parts[0].checkpoints if all(name in part.checkpoints for part in parts)],
        busy=max(part.busy for part in parts),
        seconds=max(part.seconds for part in parts),
        estimate=max(part.estimate for part in parts),
        units=_units(chain.from_iterable(part.units for part in parts)),
        connectors=_connectors(chain.from_iterable(part.connectors for part in parts)),
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMS},
    )


def _counted(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    counted = Counter[str]()
    for part in parts:
        counted.update(part)
    return dict(counted)


def _waiting(parts: Sequence[RetriesWaiting]) -> RetriesWaiting | None:
    if not parts:
        return None
    hosts = {host: why for part in parts for host, why in part.hosts.items()}
    told = dict(list(hosts.items())[:_TOLD])
    return RetriesWaiting(sum(part.urls for part in parts), min(part.next for part in parts), told)


def _waits(parts: Iterable[Wait]) -> list[Wait]:
    """One wait for each reason, in the order in which they first come."""
    found: dict[tuple[str, str], list[Wait]] = {}
    for one in parts:
        found.setdefault((one.why, one.reason), []).append(one)
    return [
        msgspec.structs.replace(
            those[0],
            urls=sum(one.urls for one in those),
            hosts=sum(one.hosts for one in those),
            until=min((one.until for one in those if one.until), default=0.0),
            names=list(chain.from_iterable(one.names for one in those))[:NAMED],
            seconds=max(one.seconds for one in those),
            is_more=any(one.is_more for one in those),
        )
        for those in found.values()
    ]


def _sizes(parts: Iterable[list[DataSet]]) -> list[DataSet]:
    """Data sets by name; what is walked over is the crawl's, and each part has all of it."""
    sums: dict[str, DataSet] = {}
    for one in chain.from_iterable(parts):
        other = sums.get(one.name)
        if other is None or one.name in WALKED:
            sums[one.name] = one
        else:
            growth = one.growth + other.growth
            sums[one.name] = DataSet(one.name, one.bytes + other.bytes, growth, one.items + other.items)
    return list(sums.values())


def _units(parts: Iterable[UnitFigures]) -> list[UnitFigures]:
    """Units by name: agents have the same ones, but for what leads from each to the others."""
    sums: dict[str, UnitFigures] = {}
    for one in parts:
        before = sums.get(one.name)
        metrics = dict(before.metrics) if before is not None else {}
        for name, value in one.metrics.items():
            metrics[name] = metrics.get(name, 0) + value
        sums[one.name] = UnitFigures(
            one.name, one.use, metrics, one.is_suspended or (before is not None and before.is_suspended)
        )
    return list(sums.values())


def _connectors(parts: Iterable[ConnectorFigures]) -> list[ConnectorFigures]:
    sums: dict[str, ConnectorFigures] = {}
    for one in parts:
        other = sums.get(one.name)
        sums[one.name] = one if other is None else _both(one, other)
    return list(sums.values())


def _both(one: ConnectorFigures, other: ConnectorFigures) -> ConnectorFigures:
    peak = max(one.peak, other.peak)
    return ConnectorFigures(
        one.name, one.passed + other.passed, one.waiting + other.waiting, peak, one.stalled + other.stalled
    )
