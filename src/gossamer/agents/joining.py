"""Agents that join and leave a crawl at work: by a person's word, by the rule of growth, or because their loads differ.

Place in the flow: :mod:`crawl` has one :class:`Joining`; commands ask it, and it looks about once a second at how loaded the
agents are (:class:`LoadGauge`). The rules are pure. Where members change, the crawl comes to rest, domains change hands
(:mod:`roster`), and its agents go on; single domains move while agents work (:mod:`domain_moves`).

A crawl that waits for servers uses little of its core, so it never grows, however many sites wait. One that grows rests for some
seconds, so it must have had no core left for a while, and must have work for longer than that.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gossamer.agents.wiring import domain_rule_of, has_application, has_store, ledger_settings
from gossamer.crawls.crawlers import crawlers_of
from gossamer.crawls.machine import cores, free_memory, room_for_agents
from gossamer.engine.errors import FlowError
from gossamer.engine.graph import Graph
from gossamer.frontier.limits import FrontierSheet
from gossamer.values.agents import agent_name, member
from gossamer.values.errors import GossamerError, UsageError
from gossamer.values.settings import MOST_AGENTS

if TYPE_CHECKING:
    from gossamer.agents.crawl import SupervisedCrawl
    from gossamer.crawls.work import CrawlAtWork

#: Shares of a core. At the first one a crawl has none left: the system and other programs take the rest. Below the second one it
#: has; between the two nothing is decided anew, so that a crawl at the border does not come and go.
BUSY, CALM = 0.85, 0.7

#: Seconds for which a crawl must be busy. Its figures are a mean of ten seconds already.
GROWN_AFTER = 10.0

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
    return min(
        sheet.max_agents or MOST_AGENTS, room_for_agents(working, cores(), free_memory(), sheet.memory), MOST_AGENTS
    )


def why_fixed(graph: Graph) -> str:
    """Why no agent joins a crawl by itself, though a person may let others join; empty where one may."""
    http = graph.providers.get("http")
    if http is not None and getattr(http.sheet, "cookies", "off") != "off":
        return "cookies are in the memory of its process"
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
        """How many agents there should be."""
        if load.busy < CALM:
            self._since = math.inf
        elif load.busy >= BUSY:
            self._since = min(self._since, now)
        if now - self._since < GROWN_AFTER or load.seconds_left < WORTH or now < self._not_before:
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
            frontier, pulse = self._crawl.units.frontier, self._crawl.figures.pulse
            self._last = Load(pulse.busy)
            # Only a busy crawl grows: the hosts of one that waits are not counted.
            if self._last.busy >= CALM:
                domains = set[str]()
                for host in frontier.hosts_due():
                    domains.add(self._rule.assignable(host))
                    if len(domains) >= EACH * MOST_AGENTS:
                        break
                pages, fetched = pulse.speeds
                left = [len(frontier.queues) / fetched if fetched else 0.0, frontier.totals.ends_at() - now]
                if frontier.sheet.max_pages is not None and pages:
                    left.append((frontier.sheet.max_pages - self._crawl.ledger.counters().get("pages", 0)) / pages)
                self._last = Load(self._last.busy, len(domains), min(left))
        return self._last


# When an agent that has little to do should get domains of one that is busy. Pure.
#
# Hashing gives each agent about as many domains as the others. It cannot know how large they are: among 400 hosts whose
# sizes follow a power law, one of two agents got a quarter more pages than the other (docs/benchmarks.md). So one of them
# runs out of work, and its core stays unused until the crawl ends. Domains move while both fetch on, so that it takes little
# work for a move to be worth it.

#: The share of a core below which an agent has room for domains of others: it has half its core left, or more.
IDLE = 0.5

#: Seconds for which one agent must be idle beside a busy one, also after a move: their figures are a mean of ten seconds.
LASTING = 5.0

#: Seconds of work that must be left for a move.
LEFT = 5.0


class Wish(NamedTuple):
    """Domains that should move."""

    giver: str
    taker: str
    share: float
    """Part of the giver's domains."""


class Balance:
    """Says which agent should give domains to which. Pure: it is told the time, in monotonic seconds."""

    def __init__(self) -> None:
        self._since = math.inf

    def hear(self, now: float, loads: Mapping[str, Load]) -> Wish | None:
        """The move from the busiest agent at work to the idlest that gives both the same work; None where all stays
        as it is."""
        giver = max(loads, key=lambda name: loads[name].busy)
        taker = min(loads, key=lambda name: loads[name].busy)
        busy, idle = loads[giver], loads[taker]
        if busy.busy < BUSY or idle.busy >= IDLE or busy.domains < 2 or busy.seconds_left < LEFT:
            self._since = math.inf
            return None
        self._since = min(self._since, now)
        if now - self._since < LASTING:
            return None
        self._since = now
        return Wish(giver, taker, (busy.busy - idle.busy) / 2 / busy.busy)


# Agents that join and leave, and domains that go from a busy agent to an idle one.


class Joining:
    """Lets agents join and leave, and divides the domains more evenly."""

    def __init__(self, crawl: "SupervisedCrawl", growth: Growth | None = None) -> None:
        self._crawl = crawl
        self._growth = growth or Growth()
        self.balance = Balance()
        """Says which agent should give domains to which."""
        self._gauge: LoadGauge | None = None
        self._stays = ""
        """Why no agent joins but where a person says so; empty where one may."""
        self._wish = 0
        self._stirred = asyncio.Event()

    # -- what people ask

    def stay(self, why: str) -> None:
        """Let no agent join but where a person says so, for this reason."""
        self._stays = why

    def why_alone(self) -> str:
        """Why no agent joins the only one by itself; empty where one may, or several work."""
        lone = self._crawl.lone
        if lone is None or self._stays:
            return self._stays if lone is not None else ""
        if lone.beside:
            return "it exchanges URLs by files"
        if lone.units.frontier.sheet.max_agents == 1:
            return "no more are allowed"
        if self._most(1) <= 1:
            return "the machine has no core or no memory for another one"
        return self._why_not(2)

    def check_number(self, number: int) -> None:
        """Refuse a number of agents that the crawl cannot have. Raises as :meth:`resize`."""
        if (lone := self._crawl.lone) is None:
            self._crawl.several.check_may_move()
            self._crawl.several.roster.with_number(self._crawl.several.graph, number)
            return
        from gossamer.agents.membership import check_can_change
        from gossamer.agents.process import check_can_divide

        if lone.is_stopping:
            raise UsageError("the crawl is about to end; its agents stay as they are")
        if number > 1:
            check_can_divide(lone.graph, list(map(agent_name, range(number))), lone.directory)
            check_can_change(lone.wiring, lone.directory)

    def resize(self, number: int) -> str:
        """Let the crawl have so many agents, in some seconds; returns how, in words. Raises UsageError: it cannot have them, or is
        about to end. Nothing has changed; WiringError: likewise."""
        self.check_number(number)
        if self._crawl.lone is not None:
            self._wish = number
            self._stirred.set()
        elif number != len((several := self._crawl.several).supervisor.agents):
            several.roster.want(several.graph, number)
            if not several.rest_with_room():
                return f"as soon as a machine has joined for {' and '.join(several.roster.joining)}"
        return "all agents rest for some seconds while domains change hands"

    # -- looks at the load

    async def watch(self) -> None:
        """Let agents join where those at work have no core left, and idle ones get domains of busy ones, until it is cancelled, or
        the only agent has come to rest for others."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._stirred.wait()
            self._stirred.clear()
            now, number = time.monotonic(), self._wish
            if (lone := self._crawl.lone) is None:
                self._look_at(now)
            elif lone.working and not number and not lone.beside:
                self._gauge = self._gauge or LoadGauge(lone)
                number = self._wanted(now, 1, self._gauge.read(now))
            if lone is not None and lone.working and number > 1:
                is_handed_over = await self._crawl.hand_over(number)
                self._growth.postpone(time.monotonic())
                if is_handed_over:
                    return
                if self._wish:
                    self._report(
                        f"the crawl did not come to rest, so {number} agents cannot share it yet; it tries again in {AGAIN:g} s"
                    )
                    await asyncio.sleep(AGAIN)

    def _look_at(self, now: float) -> None:
        """Decide on several agents by their loads, unless they rest, or one of them has not told."""
        several = self._crawl.several
        agents = several.supervisor.agents
        loads = {name: one.news.load for name, one in agents.items() if one.news is not None and not one.is_late}
        if several.supervisor.is_resting or len(loads) < len(agents):
            return
        if several.roster.joining:  # they have waited for machines
            several.rest_with_room()
            return
        if (number := self._wanted(now, len(loads), together(loads.values()))) > len(loads):
            self._growth.postpone(now)
            self.resize(number)
        elif self._may_move and (wish := self.balance.hear(now, loads)) is not None:
            self._evening = asyncio.create_task(several.moves.even_out(*wish))  # the loop holds tasks only weakly

    @property
    def _may_move(self) -> bool:
        """Domains may move without a person's word: the ring alone says whose they are, and no process has what others lack."""
        several = self._crawl.several
        # With a store, a domain that moves while agents work would be in two checkpoints of different instants, or in none.
        is_bound = several.supervisor.is_about_to_end or several.roster.masters or has_store(several.graph.wiring)
        if is_bound or several.moves.is_under_way or not several.is_shared:
            return False
        return not any(member(text).place for text in several.roster.members) and not why_fixed(several.graph)

    def _wanted(self, now: float, working: int, load: Load) -> int:
        """How many agents there should be by the rule, unless something is against more of them, which is told once."""
        if self._stays or (self._crawl.lone is None and not self._crawl.several.is_shared):
            return working
        number = self._growth.hear(now, working, self._most(working), load)
        if number > working and (why := self._why_not(number)):
            self._stays = why
            self._report(
                f"the processor is busy, and more agents could take a part of the hosts, but none joins: {why}"
            )
            return working
        return number

    def _most(self, working: int) -> int:
        lone = self._crawl.lone
        sheet = lone.units.frontier.sheet if lone is not None else self._crawl.several.graph.sheet("frontier")
        return bounded(sheet, working) if isinstance(sheet, FrontierSheet) else working

    def _why_not(self, number: int) -> str:
        """Why no agent can join so that there are this many; empty where one can."""
        lone = self._crawl.lone
        if why := why_fixed(lone.graph if lone is not None else self._crawl.several.graph):
            return why
        try:
            self.check_number(number)
        except (FlowError, GossamerError) as error:
            return str(error)
        return ""

    def _report(self, line: str) -> None:
        (self._crawl.lone or self._crawl.several).report(line)
