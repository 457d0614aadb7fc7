"""Places the agents of a crawl, places them again when they die, asks them in rounds, and tells them when all is over.

Place in the flow: :mod:`several` runs it. It holds no URL and no page, and nothing that must outlive it:
what a round brings is all that it decides by.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from gossamer.agents.contract import Cluster
from gossamer.agents.lending import Giving, Lending, PlaceTurns
from gossamer.agents.process import AgentOrders
from gossamer.agents.run import AgentNews
from gossamer.agents.shares import Quiescence
from gossamer.agents.supervised import AgentProcess, Heartbeats, MasterProcess, SupervisedProcess
from gossamer.agents.supervision import REFUSING, Finish
from gossamer.crawls.control.messages import Pause, Stop
from gossamer.crawls.control.server import AgentSilent
from gossamer.crawls.control.wire import ControlRequest, RequestRefused
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.processes import told_death
from gossamer.values.errors import CrawlDirectoryError, GossamerError

#: Seconds between two rounds: two of them pass between the last page and the end.
ROUND = 0.1

#: Seconds that agents have to end once all is over or they were told to stop: more than they give what is in flight; and those of a
#: crawl with a store, which ship what the store lacks: 256 MB over a line of 5 Mbit/s.
GRACE, GRACE_WITH_STORE = 15.0, 450.0

#: Seconds in which agents that are to rest commit nothing more, and yet do not come to rest: an answer takes no longer.
PATIENCE = 30.0

#: The same where an agent has left and nothing is in flight: mail for it cannot be delivered before its hosts have another
#: agent, and what the others owe each other takes a round or two.
PATIENCE_AFTER_LEAVE = 2.0

#: Seconds between two looks at whether a lost ledger is back.
_LOOK = 0.5


class AgentEnded(GossamerError):
    """An agent cannot run, and has said why."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Supervisor:
    """The agents of one crawl."""

    def __init__(
        self,
        orders: AgentOrders,
        cluster: Cluster,
        report: Callable[[str], None],
        *,
        turns: PlaceTurns | None = None,
        lets_go: Callable[[str], bool] = lambda agent: False,
        is_damaged: Callable[[str], Awaitable[bool]] | None = None,
        may_lose: Callable[[], bool] = lambda: False,
        begins_anew: Callable[[str], Awaitable[None]] | None = None,
        restores: Callable[[str, bool], Awaitable[bool]] | None = None,
    ) -> None:
        """No process is placed yet.

        Args:
            orders: what they are to run, as it is written in the folder where they meet.
            turns: says who may ask at a place where several agents have hosts.
            lets_go: says whether an agent that a person has stopped may leave the crawl; it is started again where it may not.
            is_damaged: says whether the ledger of an agent that has ended is damaged.
            restores: brings an agent back whose ledger is lost; it gets its name, and whether it is known to be dead, and says
                whether all have to rest before it works. None where there is no store.
            may_lose: says whether an agent whose ledger is lost may begin again.
            begins_anew: puts an empty ledger in its place.
        """
        self.agents = {name: AgentProcess(name, cluster, report) for name in orders.names}
        self.masters = {name: MasterProcess(name, cluster, report) for name in orders.masters}
        """Those that say whose a host is; none where the ring does."""
        self.limit = ""
        """The limit that ended the crawl, by its setting's name; empty where none did."""
        self.is_stopping = False
        """A person has said that it is to end."""
        self.is_paused = False
        self.is_moving: Callable[[], bool] = lambda: False
        """Says whether domains are moving: both agents work until they have."""
        self.is_resting = False
        """The agents hand out nothing more, deliver what they owe, and end."""
        self.beats = Heartbeats(report)
        """Processes that answer, and those that are silent."""
        self.lending = Lending(self.agents, turns)
        """Divides what the agents have together."""
        self.giving = Giving(self.agents, self.masters)
        """Gives changes of settings, and tells who was away."""
        self.grace = GRACE
        """Seconds that they have to end once all is over or they were told to stop."""
        self._report = report
        self._lets_go = lets_go
        self._has_damage = is_damaged
        self._restores = restores
        self._may_lose, self._begins_anew = may_lose, begins_anew
        self._is_torn = False
        self._resting_since = (0, 0.0)
        self._has_lost_one = False
        self._quiescence = Quiescence(self._reporting())
        self._is_over = asyncio.Event()

    @property
    def _everybody(self) -> list[SupervisedProcess]:
        return [*self.agents.values(), *self.masters.values()]

    @property
    def masters_at_work(self) -> list[MasterProcess]:
        """The masters, but for those that are gone for good."""
        return [one for one in self.masters.values() if not one.is_gone]

    def _reporting(self) -> set[str]:
        gone = {name for name, agent in self.agents.items() if self.is_resting and agent.has_ended}
        return (self.agents.keys() - gone) | {one.name for one in self.masters_at_work}

    @property
    def is_about_to_end(self) -> bool:
        return self.is_stopping or bool(self.limit)

    @property
    def away(self) -> list[str]:
        """Agents that are not at work, or do not answer."""
        return [one.name for one in self.agents.values() if not one.is_alive or one.is_late or one.news is None]

    @property
    def has_begun(self) -> bool:
        return any(agent.has_begun for agent in self.agents.values())

    @property
    def restarts(self) -> int:
        return sum(agent.restarts.count for agent in self.agents.values())

    async def work(self) -> None:
        """Run the agents to the end of the crawl, or to :meth:`stop`. Raises AgentEnded: one of them cannot run;
        ComponentFailed: one of them died again and again."""
        watches = [asyncio.create_task(self._watch(agent), name=agent.name) for agent in self.agents.values()]
        watches += [asyncio.create_task(self._watch_master(one), name=one.name) for one in self.masters.values()]
        rounds = asyncio.create_task(self._rounds())
        failure: BaseException | None = None
        pending: set[asyncio.Task[None]] = {*watches, rounds}
        try:
            while pending - {rounds}:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if not task.cancelled() and (error := task.exception()) is not None and failure is None:
                        failure = error
                        await self._end(Stop())
            if failure is not None:
                raise failure
        finally:
            for task in (*watches, rounds):
                task.cancel()
            for one in self._everybody:
                one.kill()
            await asyncio.gather(*watches, rounds, return_exceptions=True)

    async def _watch(self, agent: AgentProcess) -> None:
        """Run one agent until it ends in order; start it again where it dies."""
        while not self._is_over.is_set():
            is_gone = agent.is_lost and not agent.is_alive
            if is_gone and self._restores is not None and await self._restores(agent.name, agent.has_begun):
                self._has_lost_one = True
                self.rest()
                return
            code = await agent.run_once(self._is_over)
            is_refused = code in REFUSING
            why = agent.told_last(is_why=is_refused)
            if code == 0 and len(self.agents) == 1 and not self.masters:
                self._is_over.set()  # an agent without others ends by itself
            if self._is_torn or (code == 0 and (self._is_over.is_set() or self._has_left(agent))):
                return
            if code == 0:
                continue
            is_working = agent.has_begun and not self._is_over.is_set()
            if is_refused and self._leaves_it_out(agent, why):
                continue
            if is_working and agent.is_lost and self._restores is not None:
                continue
            if is_working and (agent.is_lost or (is_refused and await self._is_damaged(agent.name))):
                if await self._comes_back(agent):
                    continue
                return
            if is_refused:
                raise _cannot_run(agent, why, code)
            if self._is_over.is_set():
                return  # what it had is kept; a later run goes on with it
            await self._again(agent, code, agent.restarts.died(has_worked=agent.has_worked))

    def _leaves_it_out(self, agent: AgentProcess, why: str) -> bool:
        """Whether the others go on without an agent that cannot run on the machine that has it, until that can or another one has
        it. Where none of them can run, the fault is not that of one machine."""
        agent.is_refused = agent.is_apart
        if not agent.is_refused or self._is_over.is_set() or all(one.is_refused for one in self.agents.values()):
            return False
        self._report(
            f"{agent.name} cannot run on {agent.placed}, and the others go on without it: {why or 'it says nothing'}"
        )
        return True

    async def _watch_master(self, master: MasterProcess) -> None:
        """Run one master until all is over; start it again where it dies, unless it is gone for good and others are there."""
        while not self._is_over.is_set():
            code = await master.run_once(self._is_over)
            is_refused = code in REFUSING
            why = master.told_last(is_why=is_refused)
            if self._is_torn or self._is_over.is_set():
                return
            if is_refused:
                raise _cannot_run(master, why, code)
            wait = 0.0 if code == 0 else master.restarts.died(has_worked=master.has_worked)
            others = [one.name for one in self.masters_at_work if one is not master]
            if others and (wait is None or master.is_lost):
                master.is_gone = True
                self._quiescence = Quiescence(self._reporting())
                self._report(f"{master.name} is gone for good; its work falls to {' and '.join(others)}")
                return
            await self._again(master, code, wait)

    async def _again(self, one: SupervisedProcess, code: int, wait: float | None) -> None:
        """Wait until a process that has ended is started again. Raises ComponentFailed: it died again and again."""
        if wait is None:
            raise ComponentFailed(
                f"{one.name} died {one.restarts.count} times ({told_death(code)}), the last ones before it did anything; "
                "see its messages above. What was kept is kept: gossamer resume goes on"
            )
        self._report(f"{one.name} {f'died ({told_death(code)})' if code else 'was stopped'}; it is started again")
        await asyncio.sleep(wait)

    def _has_left(self, agent: AgentProcess) -> bool:
        """A person has stopped one agent: whether it leaves the crawl. If so, the others rest until its hosts are theirs."""
        if agent.is_ending:
            return False  # the supervisor before this one has told it to end
        if not self._lets_go(agent.name):
            self._report(f"{agent.name} was stopped, and its hosts cannot go to others; it is started again")
            return False
        self._report(f"{agent.name} was stopped; the other agents get its hosts")
        self._has_lost_one = True
        self.rest()
        return True

    async def _is_damaged(self, agent: str) -> bool:
        return self._has_damage is not None and await self._has_damage(agent)

    async def _comes_back(self, agent: AgentProcess) -> bool:
        """One agent has lost its ledger: whether it goes on, with the ledger that a person brings back in time, or with an empty
        one. Raises AgentEnded: no other agent is at work, or the crawl cannot go on without it; CrawlDirectoryError: an empty
        ledger cannot be written."""
        others = [one for one in self.agents.values() if one is not agent and one.is_alive]
        if not others or self._begins_anew is None or not self._may_lose():
            raise AgentEnded(
                f"{agent.name} has lost its ledger while it was at work; bring state/{agent.name} back from a copy, or "
                f"fetch the part of {agent.name} again: gossamer resume {agent.directory} --accept-loss",
                CrawlDirectoryError.exit_code,
            )
        wait = self.beats.ended_after
        self._report(
            f"{agent.name} has lost its ledger; if state/{agent.name} is not brought back from a copy within {wait:g} s, "
            f"{agent.name} begins again, and the other agents tell it what they know of its part"
        )
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline and not self.is_resting and not self._is_over.is_set():
            if not (agent.is_lost or await self._is_damaged(agent.name)):
                self._report(f"{agent.name} has its ledger again, and is started again")
                return True
            await asyncio.sleep(_LOOK)
        if self._is_over.is_set():
            return False
        await self._begins_anew(agent.name)
        return True

    # -- rounds

    async def _rounds(self) -> None:
        """Ask all agents again and again, until all is over."""
        while not self._is_over.is_set():
            await asyncio.sleep(ROUND)
            told = await self.beats.ask([*self.agents.values(), *self.masters_at_work])
            await asyncio.gather(*map(self._catch_up, told))
            news = [one for name, one in told.items() if name in self.agents]
            everybody = list(told.values())
            self.limit = self.limit or self.lending.reached(news)
            await asyncio.gather(self.lending.lend_turns(news), self.lending.lend_rates(news))
            if self.limit and not self.is_resting:
                break
            if self.is_resting:
                if not self.is_moving() and self._has_come_to_rest(everybody):
                    await self._end(Stop())
                    return
            elif not self.is_moving() and self._quiescence.is_over([one.report for one in everybody]):
                break
            else:
                await self.lending.lend_limits(news)
        await self._end(Finish())

    def _has_come_to_rest(self, news: Sequence[AgentNews]) -> bool:
        """Whether agents that are to rest have nothing in flight and owe nothing; or do nothing any more to come there."""
        commits, now = sum(one.report.commits for one in news), time.monotonic()
        if commits != self._resting_since[0]:
            self._resting_since = commits, now
        reports = [msgspec.structs.replace(one.report, is_at_rest=one.is_settled) for one in news]
        is_soon = self._has_lost_one and not any(one.in_flight for one in news)
        patience = PATIENCE_AFTER_LEAVE if is_soon else PATIENCE
        return self._quiescence.is_over(reports) or now - self._resting_since[1] > patience

    async def _catch_up(self, name: str) -> None:
        if why := await self.giving.catch_up(name, is_held=self.is_paused or self.is_resting):
            self._report(f"{name} does not take what was changed while it was away: {why}")

    # -- steering

    async def pause(self, request: ControlRequest) -> None:
        """Let all agents pause, or go on; one that comes back later is told then."""
        self.is_paused = isinstance(request, Pause)
        if self.is_resting:
            return
        for agent in [one for one in self.agents.values() if not one.is_late]:
            with contextlib.suppress(AgentSilent, RequestRefused):
                await agent.line.do(request)
                agent.is_held = self.is_paused

    def rest(self) -> None:
        """Let all agents come to rest, and end, so that domains can change hands. Safe to call before they are started."""
        if self.is_resting:
            return
        self.is_resting = True
        self._resting_since = -1, time.monotonic()
        self._quiescence = Quiescence(self._reporting())

    # -- the end

    def stop(self) -> None:
        """Let all agents finish what is in flight, and end. Safe to call at any time."""
        self.is_stopping = True
        self._spread(Stop())

    def abort(self) -> None:
        self.is_stopping = self._is_torn = True
        self._spread(Stop(now=True))

    def _spread(self, request: ControlRequest) -> None:
        self._spreading = asyncio.create_task(self._end(request))  # the loop itself holds tasks only weakly

    async def _end(self, request: ControlRequest) -> None:
        """Tell every agent how to end, also one that starts only now, and end those that take too long."""
        self._is_over.set()
        self.beats.close()
        deadline = time.monotonic() + self.grace
        left = {agent for agent in self._everybody if agent.is_alive}
        untold = set(left)
        while left and time.monotonic() < deadline:
            told = await asyncio.gather(*(_is_told(agent, request) for agent in untold))
            untold = {agent for agent, is_told in zip(untold, told, strict=True) if not is_told}
            await asyncio.sleep(ROUND)
            left = {agent for agent in self._everybody if agent.is_alive}
        for agent in left:
            self._report(
                f"{agent.name} did not end within {self.grace:g} s, and was ended; what it had in hand is fetched again"
            )
            agent.kill()


async def _is_told(agent: SupervisedProcess, request: ControlRequest) -> bool:
    try:
        await agent.line.do(request)
    except (AgentSilent, RequestRefused):
        return False
    return True


def _cannot_run(process: SupervisedProcess, why: str, code: int) -> AgentEnded:
    return AgentEnded(f"{process.name} cannot run: {why or 'it does not say why'}", code)
