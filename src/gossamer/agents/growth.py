"""When agents join a crawl by themselves: a rule that is told how loaded the crawl is, and says how many agents it should have.

Place in the flow: :mod:`gossamer.agents.joining` asks it about once a second, whether one agent works or several. The rule is
pure; :class:`LoadGauge` looks at a crawl for it.

A crawl that waits for servers uses little of its core, so it never grows, however many sites wait. One that grows rests
for some seconds, so it must have had no core left for a while, and must have work for longer than that.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from gossamer.agents.wiring import domain_rule_of, has_application, ledger_settings
from gossamer.crawls.crawlers import crawlers_of
from gossamer.crawls.machine import cores, free_memory, room_for_agents
from gossamer.crawls.options import MOST_AGENTS
from gossamer.engine.graph import Graph
from gossamer.frontier.limits import FrontierSheet

if TYPE_CHECKING:
    from gossamer.crawls.work import CrawlAtWork

#: Shares of a core. At the first one a crawl has none left: the system and other programs take the rest. Below the second one it
#: has; between the two nothing is decided anew, so that a crawl at the border does not come and go.
BUSY, CALM = 0.85, 0.7

#: Seconds for which a crawl must be busy. What it tells is a mean of ten seconds already.
LASTING = 10.0

#: Assignable domains with work that there must be for each agent: they are divided by hashing, which is uneven among fewer.
EACH = 4

#: Seconds of work that must be left: several times what it takes until all agents are at work.
WORTH = 20.0

#: Seconds after a crawl could not come to rest, or has grown, before it rests again; twice as long each time.
AGAIN = 60.0

#: Seconds between two looks at how loaded a crawl is.
LOOK = 1.0


class Load(msgspec.Struct, frozen=True):
    """How loaded an agent is, or several on the average."""

    busy: float = 0.0
    """Share of a core that its process used over the last ten seconds."""
    domains: int = 0
    """Assignable domains with queued URLs that may be asked now."""
    seconds_left: float = 0.0
    """Seconds in which its queue would be fetched at the pace of the last ten seconds, within the limits of the crawl."""


def together(loads: Iterable[Load]) -> Load:
    """The load of several agents: their domains are different ones, and the one that has most to do is the last to end."""
    found = list(loads)
    return Load(
        sum(load.busy for load in found) / len(found),
        sum(load.domains for load in found),
        max(load.seconds_left for load in found),
    )


def bounded(sheet: FrontierSheet, working: int) -> int:
    """How many agents may work on this machine, with those that do, by the settings of the crawl's frontier."""
    return min(sheet.max_agents or MOST_AGENTS, room_for_agents(working, cores(), free_memory()), MOST_AGENTS)


def why_fixed(graph: Graph) -> str:
    """Why no agent joins a crawl by itself, though a person may let others join; empty where one may."""
    http = graph.providers.get("http")
    if http is not None and getattr(http.sheet, "cookies", "off") != "off":
        return "cookies are in the memory of its process"
    if "store-publisher" in {plan.use for plan in graph.wiring.providers.values()}:
        return "--store keeps a crawl of one agent"
    if crawlers_of(graph.wiring):
        return "crawlers share its queue already"
    if any(plan.use == "crawlers" for plan in graph.wiring.components.values()):
        return "mobile crawlers come home to its process"
    if has_application(graph.wiring):
        return "a program of its own chooses the URLs, and expects the number of agents that it was told"
    return ""


class Growth:
    """Says how many agents a crawl should have. Pure: it is told the time, in monotonic seconds."""

    def __init__(self) -> None:
        self._since = math.inf
        self._not_before = -math.inf
        self._pause = AGAIN

    def hear(self, now: float, agents: int, most: int, load: Load) -> int:
        """How many agents there should be.

        Args:
            now: monotonic seconds.
            agents: those that there are.
            most: as many as there may be.
            load: how loaded they are.
        """
        if load.busy < CALM:
            self._since = math.inf
        elif load.busy >= BUSY:
            self._since = min(self._since, now)
        if now - self._since < LASTING or load.seconds_left < WORTH or now < self._not_before:
            return agents
        return max(agents, min(most, load.domains // EACH))

    def postpone(self, now: float) -> None:
        """The crawl could not come to rest, or has just grown: say nothing for a while, which is twice as long each time."""
        self._since = math.inf
        self._not_before = now + self._pause
        self._pause *= 2


class LoadGauge:
    """Looks at a crawl, or at an agent, now and then; in between it tells the last look."""

    def __init__(self, crawl: "CrawlAtWork") -> None:
        self._crawl = crawl
        self._rule = domain_rule_of(ledger_settings(crawl.graph.wiring))
        self._last = Load()
        self._next = -math.inf

    def read(self, now: float) -> Load:
        """How loaded it is, or was at the last look; `now` is monotonic seconds."""
        if now >= self._next:
            self._next = now + LOOK
            busy = self._crawl.figures.pulse.busy
            # Who is not busy does not grow: the hosts of a crawl that waits are not counted.
            self._last = Load(busy, self._domains(), self._seconds_left(now)) if busy >= CALM else Load(busy)
        return self._last

    def _domains(self) -> int:
        found = set[str]()
        for host in self._crawl.units.frontier.hosts_due():
            found.add(self._rule.assignable(host))
            if len(found) >= EACH * MOST_AGENTS:
                break
        return len(found)

    def _seconds_left(self, now: float) -> float:
        frontier = self._crawl.units.frontier
        pages, fetched = self._crawl.figures.pulse.speeds
        left = [len(frontier.queues) / fetched if fetched else 0.0, frontier.totals.ends_at() - now]
        if frontier.sheet.max_pages is not None and pages:
            left.append((frontier.sheet.max_pages - self._crawl.ledger.counters().get("pages", 0)) / pages)
        return min(left)
