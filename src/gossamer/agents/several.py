"""A crawl whose agents work in processes of their own: run by a supervisor, which begins anew with other agents or another graph.

Place in the flow: :class:`gossamer.agents.crawl.SupervisedCrawl` has one where several agents work. The steps of the run are those
of every crawl (:class:`~gossamer.crawls.crawl.AnyCrawl`).
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.cluster import LocalCluster, cluster_of, meeting, supervisor_lock
from gossamer.agents.contract import Cluster, ClusterNeeds, FarCluster
from gossamer.agents.domain_moves import DomainMoves
from gossamer.agents.ended import added, is_ledger_gone, summary_of_run
from gossamer.agents.joining import LOOK, Joining
from gossamer.agents.lending import place_turns
from gossamer.agents.lost import LostWork, brought_back, loss_of, store_is_there, told_of_missing
from gossamer.agents.membership import given_domains, told_of_assigned
from gossamer.agents.parcels import ends_of
from gossamer.agents.process import is_renewed, write_orders
from gossamer.agents.roster import Roster
from gossamer.agents.steering import GraphChanges, answer, standing_of_all
from gossamer.agents.supervised import take_over
from gossamer.agents.supervision import unless
from gossamer.agents.supervisor import GRACE_WITH_STORE, AgentEnded, Supervisor
from gossamer.agents.wiring import has_store
from gossamer.crawls.control.resting import refuse_half_restored
from gossamer.crawls.control.server import AgentLine
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import Answered, ControlRequest
from gossamer.crawls.crawl import AnyCrawl, BegunAlone
from gossamer.crawls.damage import refuse_without_ledger
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import CrawlPlan
from gossamer.crawls.summary import ENDED_FILE, RunEnding, Summary
from gossamer.engine.errors import refusing
from gossamer.engine.files import replace_file
from gossamer.engine.graph import Graph
from gossamer.engine.sheet import change
from gossamer.engine.unit import SystemClock, meanwhile
from gossamer.engine.wiring import Difference, Wiring
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.logs import LOG_PATH, log_path, merge_logs
from gossamer.storage.members import members_of
from gossamer.storage.rewrite_journals import refuse_unfinished
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import at_work
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.instants import utc_text

#: Seconds after its fetch in which a page is usually committed: so long the merged log waits, to be in the order of time.
HELD_BACK = 5.0


class SeveralAgents(AnyCrawl):
    """A crawl whose agents work in processes of their own."""

    def __init__(
        self,
        seeds: Sequence[str],
        options: CrawlOptions,
        others: Joining,
        *,
        wiring: Wiring | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        report: Callable[[str], None],
        tables: bool,
        begun: BegunAlone | None = None,
    ) -> None:
        """Check everything. Raises as :class:`AnyCrawl`, and UsageError or FlowError: the crawl cannot be divided."""
        plan = CrawlPlan(seeds, options, wiring, settings or {}, None, ())
        self._graph = plan.graph
        super().__init__(plan, options, report, tables=tables, begun=begun)
        if options.resume:
            refuse_half_restored(self.directory)
            refuse_without_ledger(self.directory)
            refuse_unfinished(self.directory)
        self.roster = Roster(self.directory, self.graph, options, self.report, partial(store_is_there, self))
        self.rewiring = GraphChanges(
            self.plan, self._place, lambda graph: self.roster.check(graph, self.roster.members), goes_on=options.resume
        )
        self._supervisor: Supervisor | None = None
        self._cluster: Cluster = self._made_cluster(Path())
        self.others = others
        self.is_told_to_stop = False
        self._is_torn = False
        self.has_rested = False
        """All agents have ended in this run, so that none is at work which the supervisor has not placed."""
        self.waits_for_store = False
        """All agents rest until the store can be reached."""
        self._pages_before = 0
        self._losses: list[LostWork] = []
        self.troubled = 0
        """Pages that were kept but could not be processed in full; each row of the log says why. Known at the end."""
        self._latest = begun and begun.standing

    @property
    def graph(self) -> Graph:
        return self._graph

    # -- the run

    async def _start(self, held: contextlib.AsyncExitStack) -> None:
        lock = supervisor_lock(self.directory) if self._begun is None else self._begun.lock
        held.callback(lock.close)
        folder = held.enter_context(
            meeting(self.directory, (*at_work(self.roster.members), *self.roster.masters.names))
        )
        self._cluster = self._made_cluster(folder)
        held.push_async_callback(self._cluster.close)
        if not self.options.resume:
            share_secret(self.directory / STATE_DIRECTORY)
            return
        cluster = self._cluster
        if not self.is_shared and self.roster.goes_out(self.graph):
            cluster = LocalCluster(self.directory, folder)
            held.push_async_callback(cluster.close)
        await self.roster.prepare(self.graph, cluster)
        if cluster is not self._cluster:
            await self.roster.send_out(self.graph)
        await self.roster.look_at_left(self.graph)
        resting = set(self.roster.names) - (await self._cluster.living(self.roster.names)).keys()
        so_far = added(self.directory, await ends_of(self.directory, self.graph.wiring, resting)).pages
        self._pages_before = so_far if self._begun is None else self._begun.pages_before

    @property
    def is_shared(self) -> bool:
        """All agents work in the crawl's directory."""
        return self._cluster.is_shared

    async def nodes(self) -> dict[str, str]:
        """The machine of each agent that has a crawl directory of its own there."""
        nodes = [] if self._cluster.is_shared else await self._cluster.nodes()
        return {agent: node.name for node in nodes for agent in node.processes}

    def _made_cluster(self, folder: Path) -> Cluster:
        return cluster_of(ClusterNeeds(self.directory, folder, self.options, self.report))

    @property
    def has_begun(self) -> bool:
        return self._has_begun or (self._supervisor is not None and self._supervisor.has_begun)

    async def _crawled(self) -> Summary:
        (self.directory / ENDED_FILE).unlink(missing_ok=True)  # until the run ends in order, it has been killed
        has_other_wiring = is_renewed(self._cluster.folder, self.graph.wiring, self.roster.masters)
        self._engage()
        if self.options.resume:
            # Agents that are at work rest first where the crawl is to have others, or another wiring.
            if names := await take_over(self.supervisor, self._cluster):
                if self._begun is None:
                    known = [agent.news for agent in self.supervisor.agents.values()]
                    self._pages_before += sum(news.pages for news in known if news is not None)
                self.report(f"{' and '.join(names)} went on without a supervisor, and have one again")
                if has_other_wiring:
                    self.roster.renew()
            if self.roster.is_wishing:
                self.rest_with_room()
        async with self._companions.at_work(), self._attended():
            await self._worked()
            # Where people ask for other agents, these go on when domains have changed hands.
            # One that waits for a machine is left to the next run.
            while self.roster.is_wishing and self.supervisor.is_resting and not self.supervisor.is_about_to_end:
                await self._change()
                await self._worked()
        return await self._summed()

    async def _worked(self) -> None:
        """Let the agents work until they rest or end; where they cannot begin with a new graph, with the one before."""
        before = self.rewiring.take_before()
        try:
            await self.supervisor.work()
        except AgentEnded as error:
            if before is None or self.supervisor.has_begun:
                raise
            self.report(f"the change of the graph is taken back: {error}")
            self._graph = self.rewiring.take_back(before)
            self._engage()
            await self.supervisor.work()

    def _engage(self) -> None:
        """Make a supervisor of the agents that the crawl has."""
        before = self._supervisor
        self.has_rested = before is not None
        self._has_begun = self.has_begun
        self._orders = self.roster.orders(self.graph, self._cluster.folder)
        turns = place_turns(self.graph)
        self._supervisor = Supervisor(
            *(self._orders, self._cluster, self.report),
            turns=turns,
            lets_go=self._lets_go,
            is_damaged=self._is_damaged,
            restores=partial(brought_back, self) if has_store(self.graph.wiring) else None,
            may_lose=lambda: self.roster.may_lose(self.graph),
            begins_anew=self._begins_anew,
        )
        if has_store(self.graph.wiring):
            self._supervisor.grace = GRACE_WITH_STORE
        self.moves = DomainMoves(self.directory, self._supervisor, self._note_moved, self.report)
        self._limit_by_frontier()
        if (was := before or self._begun) is not None:
            self._supervisor.is_paused = was.is_paused
        if self.is_told_to_stop:
            self._supervisor.stop()

    async def _change(self) -> None:
        """Let the crawl, which rests, have other agents."""
        merge_logs(self.directory, self.roster.members)
        wanted, told = self.roster.take_wish() or self.roster.members, ""
        while not self.is_told_to_stop:
            for agent in self._gone():
                await brought_back(self, agent, is_dead=True)
            try:
                change = self.roster.change(self.graph, self._cluster, wanted)
                # On other machines it may wait; then a stop leaves it to the next run, as a kill does.
                await unless(change, lambda: self.is_told_to_stop and not self.is_shared)
                break
            except CrawlDirectoryError as error:
                # A store that was away is waited for, so that only the same again counts.
                if str(error) == told and not (self._gone() or self.is_told_to_stop):
                    raise
                told = str(error)
        await self.roster.look_at_left(self.graph)
        self._engage()

    def _gone(self) -> list[str]:
        """Agents of a crawl with a store that have lost their folders while all rest."""
        names = at_work(members_of(self.directory)) if has_store(self.graph.wiring) and self._cluster.is_shared else ()
        return [agent for agent in names if is_ledger_gone(self.directory, agent)]

    def _lets_go(self, agent: str) -> bool:
        if is_leaving := self._cluster.is_shared and self.roster.let_go(self.graph, agent):
            self._cluster.prepare(self.roster.soon)
        return is_leaving

    async def _is_damaged(self, agent: str) -> bool:
        with contextlib.suppress(CrawlDirectoryError):  # another version's, which its next start refuses
            return bool((await ends_of(self.directory, self.graph.wiring, [agent]))[agent].damage)
        return False

    async def _begins_anew(self, agent: str) -> None:
        self._losses.append(loss_of(self.directory, agent))
        await self.roster.begin_anew(self.graph, [agent])

    def rest(self) -> None:
        """Let all agents come to rest, for what was asked of :attr:`roster`; those who go on load the program meanwhile."""
        self.supervisor.rest()
        self._cluster.prepare(self.roster.soon)

    async def assign(self, agents: Mapping[str, str]) -> str:
        """Give domains to agents: by the ring while they fetch on, by masters at once where no agent has them, else, and with a
        store, in some seconds; returns what was done, in words. Raises UsageError: that cannot be, or the crawl is about to end.
        Nothing has changed."""
        self.check_may_move()
        if self.is_shared and not (self.roster.masters or has_store(self.graph.wiring)):
            given = given_domains(agents, list(self.supervisor.agents), self.graph.wiring)
            return await self.moves.assign(given, self.roster.division(self.graph).owner)
        later = self.roster.assign(self.graph, agents)
        if later:
            self.roster.renew()
            self.rest()
        return told_of_assigned(agents, later, "(all agents rest for some seconds, and go on)")

    def _note_moved(self, agents: Mapping[str, str]) -> Mapping[str, str]:
        moved = self.roster.move(agents)
        self._orders = self.roster.orders(self.graph, self._cluster.folder)
        return moved

    def _note(self) -> None:
        self.roster.write()
        super()._note()

    def _limit_by_frontier(self) -> None:
        self.roster.limit(self.supervisor, self.graph, self.began)

    def _watches(self) -> Iterable[AbstractAsyncContextManager[None]]:
        yield meanwhile(self._look_on(), self.others.watch(), self._go_on_moving())

    async def _look_on(self) -> None:
        """Look again and again how all agents stand, for the panel and the lines of progress; the crawl's log grows meanwhile."""
        while True:
            await asyncio.sleep(LOOK)
            if self.supervisor.is_resting:
                continue
            self._latest = await self.standing(units=False)
            news = [agent.news for agent in self.supervisor.agents.values() if agent.news is not None]
            ends = {log_path(one.report.agent): one.logged for one in news}
            before = utc_text(SystemClock().now() - HELD_BACK)
            try:
                await asyncio.to_thread(merge_logs, self.directory, self.roster.members, ends, before=before)
            except OSError as error:
                log = self.directory / LOG_PATH
                self.report(f"{log} cannot be written ({error.strerror or error}); it is completed when the crawl ends")

    async def _go_on_moving(self) -> None:
        """Finish moves of domains that were interrupted, as soon as their agents work."""
        while True:
            with contextlib.suppress(UsageError):
                await self.moves.go_on()
            await asyncio.sleep(LOOK)

    async def _steer(self, request: ControlRequest) -> Answered:
        return await answer(self, request)

    # -- the end

    async def _summed(self) -> Summary:
        """The summary of the run, by what the agents told of their ends."""
        ends = await ends_of(self.directory, self.graph.wiring, self.roster.names)
        self.troubled = sum(end.counters.get("troubled", 0) for end in ends.values())
        summary = summary_of_run(
            self.directory,
            ends,
            self._orders.names,
            limit=self.supervisor.limit,
            is_stopping=self.supervisor.is_stopping,
            pages_before=self._pages_before,
            seconds=time.monotonic() - self.began,
        )
        self._has_begun = self.has_begun or summary.fetched > 0  # agents may end before they were asked for news
        if self._losses and summary.state == "finished" and (told := await told_of_missing(self, self._losses)):
            self.report(told)
            return msgspec.structs.replace(summary, state="incomplete")
        return summary

    def _end(self, summary: Summary) -> RunEnding:
        merge_logs(self.directory, self.roster.members)
        replace_file(self.directory / ENDED_FILE, msgspec.json.encode(summary))
        return RunEnding(self.directory, self.seeds, has_lingered=summary.state == "incomplete")

    # -- how it is steered

    @property
    def supervisor(self) -> Supervisor:
        assert self._supervisor is not None, "it does not run yet"
        return self._supervisor

    @property
    def working(self) -> bool:
        return self._latest is not None

    @property
    def is_aborted(self) -> bool:
        return self._is_torn

    def stop(self) -> None:
        self.is_told_to_stop = True
        if self._supervisor is not None:
            self._supervisor.stop()

    def abort(self) -> None:
        self.is_told_to_stop = self._is_torn = True
        self._companions.abort()
        if self._supervisor is not None:
            self._supervisor.abort()

    def line_to(self, host: str) -> AgentLine:
        agents = self.supervisor.agents
        owner = self.roster.division(self.graph).owner(host)
        return (agents.get(owner) or next(iter(agents.values()))).line

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a unit in all agents, at once and for every later run. Raises SettingError: a value that the
        setting cannot have, or a setting that changes only with a restart; UsageError: the change cannot be kept, or what it
        sets cannot be divided among the agents."""
        before = self.graph.sheet(unit)
        after = change(before, settings, running=True)
        new = msgspec.to_builtins(after)
        given = {name: new[name] for name in settings}
        self.roster.check_settings(self.graph.with_settings(unit, given, after))
        if not self.supervisor.is_resting:  # who begins again reads it then
            await self.supervisor.giving.give(unit, given)
        self._graph = self.graph.with_settings(unit, given, after)
        with refusing(UsageError, f"{self.directory / CRAWL_FILE} cannot be written"):
            self._place.write(self.kept, self.graph)
            write_orders(self._cluster.folder, self._orders, self.graph.wiring, self.roster.masters)
        if unit == "frontier":
            self._limit_by_frontier()

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """Change the graph, now and for every later run: all agents rest for a moment, and begin again with it. Raises
        FlowError: the change does not fit. Nothing has changed; UsageError: several agents cannot run the graph, it cannot be
        kept, or the crawl is about to end. Likewise."""
        return self._begin_again(self.rewiring.planned(self.graph, change))

    def foreseen(self, change: Callable[[Wiring], Wiring]) -> Difference:
        return Difference.between(self.graph.wiring, self.rewiring.planned(self.graph, change).wiring)

    async def undo(self) -> Difference:
        return self._begin_again(self.rewiring.undone(self.graph), is_undone=True)

    def _begin_again(self, graph: Graph, *, is_undone: bool = False) -> Difference:
        self.check_goes_on()
        difference = self.rewiring.keep(self.graph, graph, is_undone=is_undone)
        self._graph = graph
        self.roster.renew()
        self.rest()
        return difference

    def check_may_move(self) -> None:
        """Refuse to let hosts change hands, by a UsageError, where the crawl is about to end, or agents cannot bring them."""
        self.check_goes_on()
        if not (self.is_shared or isinstance(self._cluster, FarCluster)):
            raise UsageError(self.roster.told_kept)
        if not self.is_shared and (away := self.supervisor.away):
            raise UsageError(f"{' and '.join(away)} must be at work before hosts change hands; see gossamer status")

    def rest_with_room(self) -> bool:
        """Let all agents rest where there is room for those that are to join; False where that is waited for."""
        if not isinstance(self._cluster, FarCluster) or self._cluster.has_room(self.roster.joining):
            self.rest()
        return self.supervisor.is_resting

    def check_goes_on(self) -> None:
        """Refuse to begin again where the crawl is about to end, by a UsageError."""
        if self.supervisor.is_about_to_end:
            raise UsageError("the crawl is about to end; its agents stay as they are")

    @property
    def pace(self) -> tuple[float, int]:
        return time.monotonic() - self.began, self._pages_before

    def glance(self) -> CrawlStanding:
        assert self._latest is not None
        if not self.waits_for_store:
            return self._latest
        return msgspec.structs.replace(self._latest, stored=[one.away() for one in self._latest.stored])

    async def standing(self, *, units: bool) -> CrawlStanding:
        return await standing_of_all(self, os.getpid(), units=units)
