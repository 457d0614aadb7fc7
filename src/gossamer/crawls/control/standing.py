"""How a crawl stands, as one value, with a part for each agent and master of several.

Place in the flow: :mod:`~gossamer.crawls.control.at_work` makes it while the crawl runs; of a crawl at rest,
:mod:`~gossamer.crawls.control.at_rest` makes it out of the ledger, and of several agents it adds it up. The names are those of
the line with which `--json` ends a crawl.
"""

import heapq
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec

from gossamer.crawls.control.problems import Problem
from gossamer.crawls.control.waits import DataSet, Wait
from gossamer.crawls.summary import CrawlSums
from gossamer.fetcher.contract import ProxyHealth
from gossamer.parsing.contract import SessionsStanding
from gossamer.values.outcome import ERRORS

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
    """The entry of an agent in its store."""

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
    is_away: bool = False
    """The agent cannot reach the store; only of an agent at work."""
    rests: bool = False
    """It asks no host until it can reach the store."""

    @property
    def is_alive(self) -> bool:
        return bool(self.holder) and self.heard < self.lease

    def away(self) -> "StoredAgent":
        """The agent while it rests since its store cannot be reached, and tells nothing of it."""
        return StoredAgent(self.name, "", 0.0, self.lease, None, is_away=True, rests=True)


@runtime_checkable
class PublishesAgent(Protocol):
    """A provider that publishes its agent into a store."""

    def stored_agent(self) -> StoredAgent:
        """The entry of the agent in the store, by the store's own word."""
        ...


class CrawlStanding(CrawlSums, msgspec.Struct, frozen=True):
    """How a crawl stands. Its state is `running`, `paused` or `stopping` at work; at rest that of a crawl that has ended, or
    `killed`; of a crawl in a store that another process has, `elsewhere`."""

    errors: int = 0
    """Requests that failed, on either side, and names without an address (`is_error` of :data:`gossamer.values.outcome.TRAITS`)."""
    failing: list[FailingHost] = []
    """The hosts with the most errors; while it runs, of those that failed in this run."""
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
    recent_pages_per_second: float = 0.0
    """Over the last ten seconds; 0 at rest."""
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


def failing_of(errors: Mapping[str, int]) -> list[FailingHost]:
    most = heapq.nlargest(SLOWEST, errors.items(), key=lambda pair: pair[1])
    return [FailingHost(host, count) for host, count in most]


def errors_of(outcomes: Mapping[str, int]) -> int:
    return sum(count for name, count in outcomes.items() if name in ERRORS)
