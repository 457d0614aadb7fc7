"""The run of one master: its graph, and the line on which its supervisor asks.

Place in the flow: :mod:`process` makes one, as it makes agents, and the supervisor starts and steers both alike. A master keeps
nothing of its own: what it must not forget lies in the file that all masters share (:mod:`gossamer.stores.shared_state`), or is
owed by the agents that have sent it. So it ends by dropping what it has in hand.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer.assembly.agency.agent import AgentNews
from gossamer.assembly.agency.line import place_of
from gossamer.assembly.agency.meeting import Solitude, Unheard
from gossamer.assembly.control.agents import MasterStanding
from gossamer.assembly.control.server import ControlServer
from gossamer.assembly.quiescence import AgentReport
from gossamer.flow.graph import Graph
from gossamer.flow.running import RunningGraph
from gossamer.stages.marshaling.component import Marshal
from gossamer.stores.exchange.mail import MassMail
from gossamer.stores.ledger.lock import ProcessLock

if TYPE_CHECKING:
    from gossamer.assembly.control.wire import Answered, ControlRequest


class MasterRun:
    """One master at work."""

    def __init__(self, master: str, graph: Graph, directory: Path, folder: Path, report: Callable[[str], bool]) -> None:
        """Nothing is touched yet.

        Args:
            master: its name.
            graph: planned of its own wiring.
            directory: of the crawl.
            folder: where agents and masters meet.
            report: takes lines for people; says whether somebody hears them.
        """
        self.master = master
        self.directory = directory
        self._unheard = Unheard(report)
        self.report = self._unheard.tell
        """Takes a line for people."""
        self.solitude = Solitude(time.monotonic())
        """How long no supervisor has asked."""
        self._life = f"{os.getpid()}-{time.time_ns()}"
        self._is_ending = asyncio.Event()
        self.graph_at_work = RunningGraph(graph, report=self.report, meeting=str(folder))

    def __repr__(self) -> str:
        return f"<MasterRun {self.master} of {self.directory}>"

    async def run(self) -> None:
        """Work until the supervisor says that all is over, or that it is to stop.

        Raises:
            FlowError: a unit cannot start, or fails.
            CrawlDirectoryError: what masters share is damaged, or another crawl's.
        """
        place, running = place_of(self.directory, self.master), self.graph_at_work
        with contextlib.closing(ProcessLock(place / "lock")):
            control = ControlServer(place, self._steer, self.report)
            try:
                await running.start()
                await control.start()
                work, ending = asyncio.ensure_future(running.work()), asyncio.ensure_future(self._is_ending.wait())
                await asyncio.wait((work, ending), return_when=asyncio.FIRST_COMPLETED)
                ending.cancel()
                if not work.done():
                    work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work
            finally:
                await control.stop()
                await running.stop()

    async def _steer(self, request: "ControlRequest") -> "Answered":
        return await request.act(self)  # type: ignore[arg-type]  # it has what its supervisor asks for, and no ledger

    # -- what the supervisor asks

    def news(self, *, first: bool = False) -> AgentNews:
        """What it has come to. It is at rest when no mail waits, neither here nor on the disk."""
        self.solitude.asked(time.monotonic())
        mail = self._mail
        report = AgentReport(self.master, self._life, mail.commits, mail.is_empty)
        return AgentNews(
            report, is_settled=report.is_at_rest, is_ending=self._is_ending.is_set(), said=self._unheard.taken()
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

    def finish(self) -> None:
        """End: all is over."""
        self._is_ending.set()

    def stop(self) -> None:
        """End. What is in hand is owed by the agents that have sent it. Safe to call at any time."""
        self._is_ending.set()

    def abort(self) -> None:
        """End, as :meth:`stop`."""
        self._is_ending.set()

    def pause(self) -> None:
        """Go on: agents that pause send nothing."""

    def go_on(self) -> None:
        """Go on."""

    def take_turns(
        self, granted: Mapping[str, tuple[int, float]], recalled: Sequence[str], noted: Mapping[str, int]
    ) -> None:
        """Nothing: a master asks no address."""

    def take_rates(self, shares: Mapping[str, float]) -> None:
        """Nothing: a master fetches nothing."""

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a running unit.

        Raises:
            SettingError: a value that the setting cannot have, or a setting that changes only with a restart.
        """
        self.graph_at_work.set(unit, settings)
