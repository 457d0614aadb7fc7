"""How a crawl stands, as one value, with a part for each agent and master of several.

Place in the flow: a crawl makes it while it runs; of a crawl at rest, :mod:`~gossamer.crawls.control.at_rest` makes it out of
the ledger, and of several agents :mod:`~gossamer.crawls.control.at_rest` adds it up. The names are those of the line
with which `--json` ends a crawl.
"""

import heapq
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from gossamer.crawls.children import Figures, figures_of
from gossamer.crawls.control.problems import Problem, problems_of
from gossamer.crawls.control.steering import blocked
from gossamer.crawls.control.waits import DataSet, Wait, data_sets, disk_free, waits_of
from gossamer.crawls.options import settings_of_options
from gossamer.crawls.summary import Summary
from gossamer.engine.graph import ComponentNode, Graph, ProviderNode
from gossamer.engine.sheet import show_seconds
from gossamer.fetcher.contract import ProxyHealth
from gossamer.frontier.limits import RetriesWaiting
from gossamer.frontier.politeness.rules import blocked_by_orders
from gossamer.parsing.contract import SessionsStanding
from gossamer.parsing.duplicates import UrlSeen
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.mailbox.exchange_files import FILES, written_files
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, read_key
from gossamer.storage.tables.places import check_is_here
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.outcome import ERRORS

if TYPE_CHECKING:
    from gossamer.crawls.work import CrawlAtWork
    from gossamer.frontier.limits import FrontierSheet


# The part of one agent among several, and of one master.

#: The state of an agent or a master that does not answer: it is being started again, or is lost.
SILENT = "silent"


class AgentStanding(msgspec.Struct, frozen=True):
    """One agent. The names are those of the whole crawl, and mean the same."""

    name: str
    state: str
    """As of a crawl, or `silent`."""
    process: int = 0
    pages: int = 0
    fetched: int = 0
    bytes: int = 0
    errors: int = 0
    queued: int = 0
    hosts: int = 0
    in_flight: int = 0
    concurrency: int = 0
    recent_pages_per_second: float = 0.0
    busy: float = 0.0
    peak_rss_bytes: int = 0
    silent_seconds: float = 0.0
    """Since it answered its supervisor last, where that is long; 0 where it is not."""
    silences: int = 0
    """How often it has been silent in this run."""
    restarts: int = 0
    """How often it was started again in this run."""
    node: str = ""
    """The machine that runs it, where it has a crawl directory of its own there."""


class MasterStanding(msgspec.Struct, frozen=True):
    """One master that gives domains to agents."""

    name: str
    state: str
    """`running`, `silent`, or `gone`: another master does its work."""
    process: int = 0
    marshaled: int = 0
    """URLs that it has taken from agents, since it was started."""
    waiting: int = 0
    """URLs that it has yet to bring to agents, in memory and on the disk."""
    lag: float = 0.0
    """Seconds for which the agent that is latest has not acknowledged what it was sent."""


def agent_standing(name: str, told: "CrawlStanding | None") -> AgentStanding:
    if told is None:
        return AgentStanding(name, SILENT)
    shared = {field: getattr(told, field) for field in AgentStanding.__struct_fields__ if hasattr(told, field)}
    return AgentStanding(name, **shared)


#: Hosts that are named as the slowest, or as those with the most errors.
SLOWEST = 10

#: Options that bound a crawl.
LIMITS = ("max_pages", "max_time", "total_time", "max_bytes", "max_pages_per_host", "min_free_disk", "depth")


class SlowHost(msgspec.Struct, frozen=True):
    """A host that answers slowly."""

    host: str
    seconds: float
    """Mean of its last answers."""


class FailingHost(msgspec.Struct, frozen=True):
    """A host whose fetches failed."""

    host: str
    errors: int
    """In the whole life of the crawl."""


class SlowedHost(msgspec.Struct, frozen=True):
    """A host that is asked less often because of its errors or refusals."""

    host: str
    delay: float
    """Seconds between two requests."""
    reason: str
    """`errors` or `refusals`."""


class UnitFigures(msgspec.Struct, frozen=True):
    """The counters of a component or provider."""

    name: str
    use: str
    metrics: dict[str, float]
    is_suspended: bool = False


class ConnectorFigures(msgspec.Struct, frozen=True):
    """The traffic of a connector."""

    name: str
    passed: int
    waiting: int
    peak: int
    stalled: float
    """Seconds that its producers had to wait."""


class FilesForAgent(msgspec.Struct, frozen=True):
    """Exchange files that one other agent has not confirmed."""

    agent: str
    files: int = 0
    urls: int = 0


class ExchangeStanding(msgspec.Struct, frozen=True):
    """How an agent stands that exchanges URLs by files."""

    agent: str
    agents: int
    """How many there are."""
    owed: int
    """URLs of others that are in no file yet."""
    written: int
    """URLs of others in files that were not said to be merged."""
    unconfirmed: list[FilesForAgent]
    """These files, by agent."""
    merged: int
    """Files of others that were merged here, as often as it was done."""
    received: int
    """URLs that were in them."""


class StoredAgent(msgspec.Struct, frozen=True):
    """What a store says of an agent."""

    name: str
    holder: str
    """The process that has it, as `process 12 on host`; empty where it has ended."""
    heard: float
    """Seconds since that said that it is alive."""
    lease: float
    """Seconds of silence after which it may be counted as gone."""
    published: float | None
    """Seconds since the last checkpoint, which is what the store has of the agent; None where there is none."""
    owner: int = 0
    """The number of the process that has it: each one that takes over has the next number."""
    uncovered: int = 0
    """Bytes of archive, rows and log that no checkpoint has; only of an agent at work."""

    @property
    def is_alive(self) -> bool:
        return bool(self.holder) and self.heard < self.lease


@runtime_checkable
class PublishesAgent(Protocol):
    """A provider that publishes its agent into a store."""

    def stored_agent(self) -> StoredAgent:
        """What the store has of it, by its own word."""
        ...


class CrawlStanding(msgspec.Struct, frozen=True):
    crawl: str
    state: str
    """At work: `running`, `paused`, `stopping`. At rest: `finished`, `limit`, `stopped`, `incomplete`, or `killed`. Of a crawl in a
    store that another process has: `elsewhere`."""
    pages: int = 0
    fetched: int = 0
    unique_documents: int = 0
    bytes: int = 0
    outcomes: dict[str, int] = {}
    errors: int = 0
    """Requests that failed, on either side, and names without an address (`is_error` of :data:`gossamer.values.outcome.TRAITS`)."""
    raised: int = 0
    """Visits on which processors or handlers raised: the table `errors` says which, and where."""
    needs_browser: int = 0
    """Pages that seem to need a browser: they hold scripts, few words and hardly a link."""
    failing: list[FailingHost] = []
    """The hosts with the most errors; while it runs, of those that failed in this run."""
    discovered: int = 0
    queued: int = 0
    set_aside: int = 0
    """URLs that look like parts of traps: they wait behind everything else."""
    cuts: dict[str, int] = {}
    """URLs that limits left out: :func:`gossamer.crawls.summary.cuts_of`."""
    limit: str = ""
    """The limit that ended the last run, by the name of its setting; empty where none did."""
    goal: str = ""
    """The URL at which `--until` ended the last run; empty where it did not."""
    waiting: RetriesWaiting | None = None
    """Retries that were due later when the last run ended."""
    failure: str = ""
    """Why tables and index could not be made at the end of the last run; empty where they were, and while a run is at work."""
    judged: int = 0
    """Pages whose relevance a focused crawl has judged."""
    relevant: int = 0
    """Those that were relevant: `relevant / judged` is the harvest rate."""
    links: int = 0
    """Links that were looked up in this run, each once a page; 0 at rest, and where another process looks them up."""
    new_links: int = 0
    """Those of them that led to URLs which were new."""
    in_flight: int = 0
    concurrency: int = 0
    """Requests that may be in flight; 0 at rest."""
    agents: int = 1
    """Agents at work."""
    alone: str = ""
    """Why no other agents join by themselves; empty where they may, and at rest."""
    busy: float = 0.0
    """Share of a core that the crawl's own process used over the last ten seconds; 0 at rest."""
    disk_free: int = 0
    """Bytes on the disk of the crawl directory that can still be written; 0 at rest, and where it is not known."""
    hosts: int = 0
    seconds: float = 0.0
    """Of this run, or of the last one."""
    pages_per_second: float = 0.0
    """The mean of this run, or of the last one."""
    recent_pages_per_second: float = 0.0
    """Over the last ten seconds; 0 at rest."""
    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    process: int = 0
    """Number of the process that is at work; 0 at rest."""
    limits: dict[str, float] = {}
    """Limits of the crawl that are set, by the names of their options."""
    time_left: str = ""
    """Until a limit of time or pages is reached at this speed; empty where there is none."""
    estimate: float = 0.0
    """Without such a limit: seconds in which the queue would be fetched at the speed of the last ten seconds, if nothing new came;
    0 where that says nothing."""
    waits: list[Wait] = []
    """Why something waits, and until when; the weightiest reason first."""
    sizes: list[DataSet] = []
    """The main data sets."""
    slowest: list[SlowHost] = []
    slowed: list[SlowedHost] = []
    """The hosts that errors or refusals slow down most; only of a crawl that is at work."""
    proxies: list[ProxyHealth] = []
    """How the proxies do, those that rest first; the first hundred, of a crawl that is at work."""
    sessions: SessionsStanding | None = None
    """How the sessions of a spider do; only of a crawl that is at work."""
    suspended: list[str] = []
    """Components that were suspended one by one, in any agent: each waits for `gossamer continue --unit`."""
    blocked: list[str] = []
    """Hosts and domains that are not asked any more; the first hundred."""
    exchange: ExchangeStanding | None = None
    """The debts to agents that no network connects it with; None where there are none."""
    checkpoints: list[str] = []
    each_agent: list[AgentStanding] = []
    """Each agent of a crawl that has several."""
    each_master: list[MasterStanding] = []
    """Each master of a crawl that has some; only while it is at work."""
    units: list[UnitFigures] = []
    connectors: list[ConnectorFigures] = []
    problems: list[Problem] = []
    """The problems, the worst first; not of a glance."""

    stored: list[StoredAgent] = []
    """Of a crawl that was read in a store, or is at work and has one."""

    @property
    def is_at_work(self) -> bool:
        return self.process > 0


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
    links, new_links = _links(crawl)
    time_left, (pages_a_second, fetched_a_second) = time_left_of(frontier.sheet, summary), pulse.speeds
    estimate = summary.queued / fetched_a_second if fetched_a_second > 0 and not time_left else 0.0
    return CrawlStanding(
        **_shared(summary),
        state=crawl.state_at_work,
        errors=errors_of(summary.outcomes),
        failing=failing_of(crawl.ledger.failing_hosts()),
        links=links,
        new_links=new_links,
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
        slowest=[SlowHost(host, round(seconds, 4)) for host, seconds in figures.slowest_hosts(SLOWEST)],
        slowed=[SlowedHost(host, round(delay, 3), reason) for host, delay, reason in figures.slowed_hosts(SLOWEST)],
        proxies=sorted(figures.proxies(), key=lambda one: -one.rests)[:100],
        sessions=figures.sessions(SLOWEST),
        suspended=sorted(crawl.suspensions.names),
        blocked=[*blocked(crawl.graph), *blocked_by_orders(crawl.ledger)][:100],
        exchange=exchange_standing(crawl.ledger, crawl.directory),
        stored=[
            one.stored_agent() for one in crawl.units.running.providers.values() if isinstance(one, PublishesAgent)
        ],
    )


def exchange_standing(ledger: RocksLedger, directory: Path) -> ExchangeStanding | None:
    """The files that agents exchange, as a ledger has them; None where they exchange none."""
    if not (directory / EXCHANGE_KEY).exists():
        return None
    key, counters = read_key(directory / EXCHANGE_KEY), ledger.counters()
    ledger.spaces.open(FILES)
    unconfirmed: dict[str, FilesForAgent] = {}
    for file in (one for one in written_files(ledger.spaces) if one.urls):
        before = unconfirmed.get(file.agent, FilesForAgent(file.agent))
        unconfirmed[file.agent] = FilesForAgent(file.agent, before.files + 1, before.urls + file.urls)
    return ExchangeStanding(
        agent=ledger.sheet.agent,
        agents=len(key.members),
        owed=counters.get("owed", 0),
        written=counters.get("written", 0),
        unconfirmed=[unconfirmed[agent] for agent in sorted(unconfirmed)],
        merged=counters.get("merged_files", 0),
        received=counters.get("received", 0),
    )


def _links(crawl: "CrawlAtWork") -> tuple[int, int]:
    counted = [unit.metrics.counters for unit in crawl.units.components(UrlSeen)]
    return sum(int(one["looked_up"]) for one in counted), sum(int(one["new"]) for one in counted)


def time_left_of(sheet: "FrontierSheet", now: Summary | CrawlStanding) -> str:
    """How long until a limit of time or pages is reached at this pace; empty where there is none."""
    limits = []
    if sheet.max_time is not None:
        limits.append(sheet.max_time - now.seconds)
    if sheet.max_pages is not None and now.pages_per_second > 0:
        limits.append((sheet.max_pages - now.pages) / now.pages_per_second)
    return show_seconds(max(0.0, min(limits))) if limits else ""


def failing_of(errors: Mapping[str, int]) -> list[FailingHost]:
    most = heapq.nlargest(SLOWEST, errors.items(), key=lambda pair: pair[1])
    return [FailingHost(host, count) for host, count in most]


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


def _shared(summary: Summary) -> dict[str, Any]:
    """The fields that a summary has too, but for the state."""
    plain = msgspec.structs.asdict(summary)
    del plain["state"]
    return plain


def errors_of(outcomes: Mapping[str, int]) -> int:
    return sum(count for name, count in outcomes.items() if name in ERRORS)


def _units(crawl: "CrawlAtWork", elsewhere: Sequence[Figures]) -> list[UnitFigures]:
    """Every unit of the crawl, in whichever process; what several processes have of one name is added up."""
    nodes: dict[str, ComponentNode | ProviderNode] = {**crawl.graph.components, **crawl.graph.providers}
    parts = [figures_of(crawl.graph_at_work), *elsewhere]
    found = []
    for name, node in nodes.items():
        total: dict[str, float] = {}
        for part in parts:
            for key, value in part.units.get(name, {}).items():
                total[key] = total.get(key, 0) + value
        metrics = {key: round(value, 3) for key, value in sorted(total.items())}
        found.append(UnitFigures(name, node.use, metrics, name in crawl.suspensions.names))
    return found


def _connectors(crawl: "CrawlAtWork", elsewhere: Sequence[Figures]) -> list[ConnectorFigures]:
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


def ledgers_of(directory: Path) -> list[RocksLedger]:
    """The ledgers of a crawl's agents, not open. Raises CrawlDirectoryError: there is none."""
    found = sorted(path.parent.name for path in (directory / STATE_DIRECTORY).glob("*/ledger"))
    check_is_here(directory)
    if not found:
        raise CrawlDirectoryError(
            f"{directory} has no ledger: the crawl ended before it kept anything, or its {STATE_DIRECTORY}/ is lost; "
            "begin anew with --overwrite"
        )
    return [RocksLedger(LedgerSheet(directory=str(directory), agent=agent)) for agent in found]


def checkpoint_name() -> str:
    """A name for a checkpoint that has none: the time."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
