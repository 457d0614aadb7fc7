"""The run of one agent or one master: its graph, and all that its supervisor asks of it.

Place in the flow: :mod:`process` makes one. The supervisor steers an agent as a person steers a crawl, and asks for its news;
tables, followers and the directory itself are the supervisor's. When the supervisor is gone, an agent goes on with what it was
lent, and waits for another one (:mod:`supervision`); after a time it stops as if a person had said so, and the crawl can go on
later.

A master keeps nothing of its own: what it must not forget lies in the file that all masters share, or is owed by the agents that
have sent it. So it ends by dropping what it has in hand.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.digests import claim_again, write_copies
from gossamer.agents.domain_moves import MovingDomains
from gossamer.agents.ended import forget_agent_end, note_agent_end
from gossamer.agents.joining import Load, LoadGauge
from gossamer.agents.mail import MassMail
from gossamer.agents.marshaler import Marshal
from gossamer.agents.shares import AgentReport, LentRates
from gossamer.agents.supervision import QUIET, REQUESTS, Solitude
from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.picture import UnitInstances, instances_of
from gossamer.crawls.control.server import ControlServer, place_of
from gossamer.crawls.control.standing import CrawlStanding, MasterStanding
from gossamer.crawls.control.wire import Answered, ControlRequest, ProcessRequest, tag_of
from gossamer.crawls.figures import RunFigures, Sampler
from gossamer.crawls.live import LiveChanges
from gossamer.crawls.work import CrawlAtWork, Lapsing
from gossamer.engine.graph import Graph
from gossamer.engine.planning import plan
from gossamer.engine.running import RunningGraph
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.whole_crawl import RateUse
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.storage.logs import log_path, setting_aside
from gossamer.storage.mailbox.mailbox import Mailbox
from gossamer.storage.members import crawl_id
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Under this name an agent's ledger keeps the identity of its crawl.
CRAWL = "crawl"


class AgentNews(msgspec.Struct, frozen=True):
    """The report of an agent to its supervisor."""

    report: AgentReport
    pages: int = 0
    bytes: int = 0
    in_flight: int = 0
    share: int | None = None
    """Its part of `--max-pages`; None where there is no such limit."""
    byte_share: int | None = None
    """Its part of `--max-bytes`, likewise."""
    is_settled: bool = False
    """It has nothing in flight, and owes nothing."""
    wants_pages: bool = False
    """It has work, and will have used up its share soon."""
    wants_bytes: bool = False
    """Likewise."""
    rates: dict[str, RateUse] = {}
    """Its use of rates of the whole crawl, by their settings' names."""
    wants_turns: list[str] = []
    """Addresses that it would ask."""
    turns_back: dict[str, tuple[int, float]] = {}
    """Address -> number of the turn that has ended, and the seconds in which no agent may ask there."""
    turns_held: dict[str, int] = {}
    """Address -> number of the turn that it has. Told only to a supervisor that asks for the first time."""
    is_ending: bool = False
    """It was told to end."""
    said: list[str] = []
    """Lines for people that it could not tell since its supervisor was gone."""
    load: Load = Load()
    """How loaded it is."""
    limit: str = ""
    """The limit that it has reached, by its setting's name."""
    logged: int = 0
    """The byte up to which its log is committed."""


class Watched:
    """A process of a crawl as its supervisor reaches it."""

    def __init__(self, name: str, directory: Path, report: Callable[[str], bool]) -> None:
        """`report` takes lines for people, and says whether they are heard."""
        self.life = f"{os.getpid()}-{time.time_ns()}"
        self.solitude = Solitude(report, time.monotonic())
        self._place = place_of(directory, name)

    @contextlib.asynccontextmanager
    async def reached(self, steer: Callable[[ControlRequest], Awaitable[Answered]]) -> AsyncIterator[None]:
        """While the block runs, the supervisor can ask."""
        control = ControlServer(self._place, steer, self.solitude.tell, requests=REQUESTS)
        try:
            await control.start()
            yield
        finally:
            await control.stop()


class AgentRun(CrawlAtWork):
    def __init__(
        self,
        agent: str,
        graph: Graph,
        directory: Path,
        folder: Path,
        report: Callable[[str], bool],
        *,
        among: Sequence[str],
        accept_loss: bool = False,
        lease: float = 0.0,
    ) -> None:
        """Nothing is touched yet. `report` takes lines for people, and says whether they are heard; of `lease`, see
        :attr:`AgentOrders.lease`."""
        self.lease = lease
        self._is_alone = False
        self.agent = agent
        self.watched = Watched(agent, directory, report)
        self.report = self.watched.solitude.tell
        """Takes a line for people."""
        super().__init__(directory, self.report)
        self._accept_loss = accept_loss
        keep_failed = setting_aside(directory, agent)
        self.running = RunningGraph(graph, report=self.report, meeting=str(folder), keep_failed=keep_failed)
        self.changes = LiveChanges(self.running, lambda wiring: plan(wiring, catalog()))
        self._sampler = Sampler(self, beside=partial(write_copies, self))
        self._rates = LentRates(self.units, among)
        self.figures = RunFigures(directory, self.units, self, time.monotonic())
        self._gauge = LoadGauge(self)
        self.moving = MovingDomains(self)
        """Its part in moves of domains."""
        self._has_lapsed = False

    async def run(self) -> None:
        """Work until the supervisor says that all is over, or that it is to stop. Raises FlowError: a unit cannot start, or
        fails; CrawlDirectoryError: its files are in use, damaged, or another crawl's."""
        running = self.graph_at_work
        try:
            await running.start()
            known, ours = self.ledger.meta(CRAWL), crawl_id(self.directory).encode()
            if known and known != ours:
                raise CrawlDirectoryError(
                    f"{place_of(self.directory, self.agent)} belongs to another crawl ({known.decode('ascii', 'replace')}); bring "
                    "its own back from a copy"
                )
            if not known:
                self.ledger.put_meta(CRAWL, ours)
            self._rates.begin()
            self.moving.begin()
            self._go_on_with_kept(accept=self._accept_loss)
            await claim_again(self)
            for unit in self.providers(Lapsing):
                unit.lapsed = self._lapse
            await self.until_done(running.work(), running, self.units.frontier, self._attended())
            if self._has_lapsed:
                raise CrawlDirectoryError(f"another process has {self.agent} by now, and what came here is not kept")
            if not self.is_aborted:
                write_copies(self)
            self._keep_end(self.figures.last_summary(), self._sampler)
        finally:
            await running.stop()
        note_agent_end(self.directory, self.agent, RocksLedger(self.ledger.sheet))

    def _lapse(self) -> None:
        self._has_lapsed = True
        self.abort()

    @contextlib.asynccontextmanager
    async def _attended(self) -> AsyncIterator[None]:
        async with self.watched.reached(self._steer), self.figures.pulse.beating(), self._sampler.sampling():
            yield

    async def _steer(self, request: ControlRequest) -> Answered:
        return await request.act(self)  # the supervisor notes what people change

    # -- what the supervisor asks

    def news(self, *, first: bool = False) -> AgentNews:
        """The news of this agent; `first` says that the supervisor has just taken the agent over."""
        frontier, counters = self.units.frontier, self.ledger.counters()
        # A visit that was kept, or URLs that came in, raise these: an agent at rest does nothing else.
        commits = counters.get("received", 0) + sum(n for name, n in counters.items() if name.startswith("outcome:"))
        in_flight = int(frontier.metrics.snapshot()["in_flight"])
        owes_nothing = not any(box.owes for box in self.units.providers(Mailbox))
        is_at_rest = owes_nothing and frontier.termination.is_at_rest()
        polite = self.units.providers(HostPoliteness)
        wants, back = polite[0].turns() if polite else ([], {})
        return AgentNews(
            AgentReport(self.agent, self.watched.life, commits, is_at_rest),
            pages=counters.get("pages", 0),
            bytes=counters.get("bytes", 0),
            in_flight=in_flight,
            is_settled=owes_nothing and not in_flight,
            share=frontier.sheet.page_share,
            byte_share=frontier.sheet.byte_share,
            wants_pages=frontier.wants_pages and not is_at_rest,
            wants_bytes=frontier.wants_bytes and not is_at_rest,
            rates=self._rates.uses(),
            wants_turns=wants,
            turns_back=back,
            turns_held=polite[0].turns_held() if polite and first else {},
            is_ending=self.is_stopping,
            said=self.watched.solitude.asked(time.monotonic()),
            load=self._gauge.read(time.monotonic()),
            limit=frontier.totals.reached or self.cut_by,
            logged=self.ledger.committed_ends().get(log_path(self.agent), 0),
        )

    def take_turns(
        self, granted: Mapping[str, tuple[int, float]], recalled: Sequence[str], noted: Mapping[str, int]
    ) -> None:
        """Addresses that it may ask, or no longer. See :meth:`HostPoliteness.take_turns`."""
        for polite in self.units.providers(HostPoliteness):
            polite.take_turns(granted, recalled, noted)
        self.units.frontier.signal("tasks")

    def attend(self, *, is_alone: bool) -> None:
        """Ask no host while no supervisor asks for news, since another agent may get the hosts of this one."""
        if is_alone == self._is_alone or not self.working:
            return
        self._is_alone = is_alone
        if is_alone:
            self.units.frontier.pause()
            self.report(
                f"no supervisor has asked {self.agent} for {QUIET * self.lease:g} s, so it pauses until one does"
            )
        elif not self.is_paused:
            self.go_on()
            self.report(f"{self.agent} has a supervisor again, and goes on")

    def go_on(self) -> None:
        super().go_on()
        if self._is_alone:
            self.units.frontier.pause()

    def take_rates(self, shares: Mapping[str, float]) -> None:
        self._rates.take(shares)

    # -- as a crawl is steered

    @property
    def others(self) -> None:
        """Its supervisor lets agents join."""

    async def instances(self, name: str) -> UnitInstances:

        return instances_of(name, self.graph_at_work, [], self.agent)

    async def standing(self, *, units: bool) -> CrawlStanding:
        from gossamer.crawls.control.at_work import standing_of

        return standing_of(self, os.getpid(), units=units)


class MasterRun:
    def __init__(self, master: str, graph: Graph, directory: Path, folder: Path, report: Callable[[str], bool]) -> None:
        """Nothing is touched yet. Agents and masters meet in `folder`; `report` takes lines for people, and says whether they are
        heard."""
        self.master = master
        self.directory = directory
        self.watched = Watched(master, directory, report)
        self.report = self.watched.solitude.tell
        """Takes a line for people."""
        self._is_ending = asyncio.Event()
        self.graph_at_work = RunningGraph(graph, report=self.report, meeting=str(folder))

    async def run(self) -> None:
        """Work until the supervisor says that all is over, or that it is to stop. Raises FlowError: a unit cannot start, or
        fails; CrawlDirectoryError: the table of the masters is damaged, or another crawl's."""
        running = self.graph_at_work
        with contextlib.closing(ProcessLock(place_of(self.directory, self.master) / "lock")):
            forget_agent_end(self.directory, self.master)
            try:
                await running.start()
                async with self.watched.reached(self._steer):
                    work, ending = asyncio.ensure_future(running.work()), asyncio.ensure_future(self._is_ending.wait())
                    await asyncio.wait((work, ending), return_when=asyncio.FIRST_COMPLETED)
                    ending.cancel()
                    if not work.done():
                        work.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await work
                    note_agent_end(self.directory, self.master)
            finally:
                await running.stop()

    async def _steer(self, request: ControlRequest) -> Answered:
        if not isinstance(request, ProcessRequest):
            raise UsageError(
                f"{self.master} only passes URLs on, and cannot answer {tag_of(type(request))!r}; ask the crawl in {self.directory}"
            )
        return await request.act(self)

    # -- what the supervisor asks

    def news(self, *, first: bool = False) -> AgentNews:
        """The news of this master. It is at rest when no mail waits."""
        mail = self._mail
        report = AgentReport(self.master, self.watched.life, mail.commits, mail.is_empty)
        return AgentNews(
            report,
            is_settled=report.is_at_rest,
            is_ending=self._is_ending.is_set(),
            said=self.watched.solitude.asked(time.monotonic()),
        )

    def master_standing(self) -> MasterStanding:
        """How it stands, for people."""
        components = (runner.component for runner in self.graph_at_work.runners.values())
        marshal, mail = next(one for one in components if isinstance(one, Marshal)), self._mail
        return MasterStanding(
            self.master,
            "running",
            process=os.getpid(),
            marshaled=int(marshal.metrics.counters["marshaled"]),
            waiting=mail.waiting,
            lag=round(mail.lag, 1),
        )

    @property
    def _mail(self) -> MassMail:
        return next(one for one in self.graph_at_work.providers.values() if isinstance(one, MassMail))

    def stop(self) -> None:
        """End. Mail in hand is owed by the agents that have sent it. Safe to call at any time."""
        self._is_ending.set()

    finish = abort = stop

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        self.graph_at_work.set(unit, settings)
