"""How a crawl stands: one value, made by the crawl while it runs and out of its ledger while it rests.

The names are those of the line that `--json` ends a crawl with, and mean the same.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.assembly.children import Figures, figures_of
from gossamer.assembly.compiling import SETTINGS
from gossamer.assembly.control.steering import blocked
from gossamer.assembly.summary import ENDED, Summary
from gossamer.flow.graph import ComponentNode, Graph, ProviderNode
from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.outcome import ERRORS
from gossamer.services.orders import blocked_by_orders
from gossamer.stores.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger

if TYPE_CHECKING:
    from gossamer.assembly.crawl import Crawl

#: Hosts that are named as the slowest.
SLOWEST = 10

#: Options that bound a crawl.
LIMITS = ("max_pages", "max_time", "max_bytes", "max_pages_per_host", "min_free_disk", "depth")


class SlowHost(msgspec.Struct, frozen=True):
    """A host that answers slowly."""

    host: str
    seconds: float
    """Mean of its last answers."""


class SlowedHost(msgspec.Struct, frozen=True):
    """A host that is asked less often because of its errors or refusals."""

    host: str
    delay: float
    """Seconds between two requests."""
    reason: str
    """`errors` or `refusals`."""


class UnitFigures(msgspec.Struct, frozen=True):
    """What a component or provider has counted."""

    name: str
    use: str
    metrics: dict[str, float]


class ConnectorFigures(msgspec.Struct, frozen=True):
    """What passed through a connector."""

    name: str
    passed: int
    waiting: int
    peak: int
    stalled: float
    """Seconds that its producers had to wait."""


class CrawlStanding(msgspec.Struct, frozen=True):
    """How a crawl stands."""

    crawl: str
    state: str
    """At work: `running`, `paused`, `stopping`. At rest: `finished`, `limit`, `stopped`, `incomplete`, or `killed`."""
    pages: int = 0
    fetched: int = 0
    unique_documents: int = 0
    bytes: int = 0
    outcomes: dict[str, int] = {}
    errors: int = 0
    """Requests that failed, on either side, and names without an address (`is_error` of :data:`gossamer.model.outcome.TRAITS`)."""
    discovered: int = 0
    queued: int = 0
    set_aside: int = 0
    """URLs that look like parts of traps: they wait behind everything else."""
    cuts: dict[str, int] = {}
    """Cuts that depend on the order of events: :func:`gossamer.assembly.summary.cuts_of`."""
    in_flight: int = 0
    hosts: int = 0
    seconds: float = 0.0
    """Of this run, or of the last one."""
    pages_per_second: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    process: int = 0
    """Number of the process that is at work; 0 at rest."""
    limits: dict[str, float] = {}
    """Limits of the crawl that are set, by the names of their options."""
    time_left: str = ""
    slowest: list[SlowHost] = []
    slowed: list[SlowedHost] = []
    """The hosts that errors or refusals slow down most; only of a crawl that is at work."""
    blocked: list[str] = []
    """Hosts and domains that are not asked any more; the first hundred."""
    checkpoints: list[str] = []
    units: list[UnitFigures] = []
    connectors: list[ConnectorFigures] = []

    @property
    def is_at_work(self) -> bool:
        """A process is at it."""
        return self.process > 0


def standing_of(crawl: "Crawl", process: int, *, units: bool, elsewhere: Sequence[Figures] = ()) -> CrawlStanding:
    """How a running crawl stands; `elsewhere` is what other processes of it have counted."""
    summary = crawl.progress()
    frontier = crawl.frontier
    state = "stopping" if crawl.is_stopping else "paused" if frontier.is_paused else "running"
    return CrawlStanding(
        **_shared(summary),
        state=state,
        errors=_errors(summary.outcomes),
        in_flight=int(frontier.metrics.snapshot()["in_flight"]),
        process=process,
        limits=_limits(crawl.graph),
        time_left=crawl.time_left(summary),
        slowest=[SlowHost(host, round(seconds, 4)) for host, seconds in crawl.slowest_hosts(SLOWEST)],
        slowed=[SlowedHost(host, round(delay, 3), reason) for host, delay, reason in crawl.slowed_hosts(SLOWEST)],
        blocked=[*blocked(crawl.graph), *blocked_by_orders(crawl.ledger)][:100],
        checkpoints=crawl.ledger.checkpoints(),
        units=_units(crawl, elsewhere) if units else [],
        connectors=_connectors(crawl, elsewhere) if units else [],
    )


def _limits(graph: Graph) -> dict[str, float]:
    """The limits that are set, by the names of their options."""
    found: dict[str, float] = {}
    for option in LIMITS:
        for unit, setting in SETTINGS[option]:
            if unit in graph.components:
                sheet = graph.sheet(unit)
                value = getattr(sheet, setting)
                if value != getattr(type(sheet)(), setting):
                    found[option] = value
    return found


def _shared(summary: Summary) -> dict[str, Any]:
    """The fields that a summary has too, but for the state."""
    plain = msgspec.structs.asdict(summary)
    del plain["state"]
    return plain


def _errors(outcomes: Mapping[str, int]) -> int:
    return sum(count for name, count in outcomes.items() if name in ERRORS)


def _units(crawl: "Crawl", elsewhere: Sequence[Figures]) -> list[UnitFigures]:
    """Every unit of the crawl, in whichever process; what several processes have of one name is added up."""
    nodes: dict[str, ComponentNode | ProviderNode] = {**crawl.graph.components, **crawl.graph.providers}
    parts = [figures_of(crawl.graph_at_work), *elsewhere]
    found = []
    for name, node in nodes.items():
        total: dict[str, float] = {}
        for part in parts:
            for key, value in part.units.get(name, {}).items():
                total[key] = total.get(key, 0) + value
        found.append(UnitFigures(name, node.use, {key: round(value, 3) for key, value in sorted(total.items())}))
    return found


def _connectors(crawl: "Crawl", elsewhere: Sequence[Figures]) -> list[ConnectorFigures]:
    """Every connector; one that crosses counts where items are taken out."""
    here, found = crawl.graph_at_work.statistics(), []
    for name, node in crawl.graph.connectors.items():
        is_taken_here = any(taker in crawl.graph_at_work.graph.components for taker in node.consumers)
        others = [part.connectors[name] for part in elsewhere if name in part.connectors]
        ends = [here[name]] if name in here and (is_taken_here or not others) else others
        if ends:
            one = max(ends, key=lambda end: end.passed)
            found.append(ConnectorFigures(name, one.passed, one.waiting, one.peak, round(one.stalled, 3)))
    return found


# -- at rest


def ledgers_of(directory: Path) -> list[RocksLedger]:
    """The ledgers of a crawl's agents, not open.

    Raises:
        CrawlDirectoryError: there is none.
    """
    found = sorted(path.parent.name for path in (directory / STATE_DIRECTORY).glob("*/ledger"))
    if not found:
        raise CrawlDirectoryError(
            f"{directory} has no ledger: its crawl ended before anything was kept, or its {STATE_DIRECTORY}/ is lost; "
            "begin anew with --overwrite"
        )
    return [RocksLedger(LedgerSheet(directory=str(directory), agent=agent)) for agent in found]


def standing_at_rest(directory: Path) -> CrawlStanding:
    """How a crawl stands that nobody is at work on, by its ledgers. Nothing is changed.

    Raises:
        CrawlDirectoryError: a ledger is missing or damaged.
    """
    found = [_of_ledger(directory, ledger) for ledger in ledgers_of(directory)]
    return found[0] if len(found) == 1 else _sum(directory, found)


def _of_ledger(directory: Path, ledger: RocksLedger) -> CrawlStanding:
    with ledger.looking():
        counters, told = ledger.counters(), ledger.meta(ENDED)
        outcomes = {name.partition(":")[2]: n for name, n in counters.items() if name.startswith("outcome:")}
        ended = msgspec.json.decode(told, type=CrawlStanding) if told else CrawlStanding(str(directory), "killed")
        return CrawlStanding(
            crawl=str(directory),
            state=ended.state,
            pages=counters.get("pages", 0),
            fetched=counters.get("fetched", 0),
            unique_documents=counters.get("documents", 0),
            bytes=counters.get("bytes", 0),
            outcomes=outcomes,
            errors=_errors(outcomes),
            discovered=counters.get("discovered", 0),
            queued=len(ledger.queues),
            cuts=ended.cuts,
            hosts=counters.get("hosts", 0),
            seconds=ended.seconds,
            pages_per_second=ended.pages_per_second,
            cpu_seconds=ended.cpu_seconds,
            peak_rss_bytes=ended.peak_rss_bytes,
            blocked=blocked_by_orders(ledger)[:100],
            checkpoints=ledger.checkpoints(),
        )


def _sum(directory: Path, parts: list[CrawlStanding]) -> CrawlStanding:
    """Several agents' ledgers as one."""
    added = ("pages", "fetched", "unique_documents", "bytes", "errors", "discovered", "queued", "hosts", "cpu_seconds")
    outcomes, cuts = Counter[str](), Counter[str]()
    for part in parts:
        outcomes.update(part.outcomes)
        cuts.update(part.cuts)
    return msgspec.structs.replace(
        parts[0],
        crawl=str(directory),
        outcomes=dict(outcomes),
        cuts=dict(cuts),
        blocked=sorted({name for part in parts for name in part.blocked})[:100],
        seconds=max(part.seconds for part in parts),
        peak_rss_bytes=sum(part.peak_rss_bytes for part in parts),
        **{name: sum(getattr(part, name) for part in parts) for name in added},
    )


def checkpoint_name() -> str:
    """A name for a checkpoint that has none: the time."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
