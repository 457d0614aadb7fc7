"""The plan at work: units are made, started in order, watched, changed while they run, and stopped in order.

Start: providers (the used before their users), connectors, components. End: when every component's inputs have ended; then
components, connectors and providers are stopped in the opposite order, after a failure too.
While it runs it owns the truth about its wiring: sheets are read and replaced, metrics read, units suspended and resumed, and
the whole becomes another graph (:mod:`gossamer.engine.changing`), by a difference that is kept and can be undone. None of this
needs to know a particular unit.
"""

import asyncio
import typing
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from gossamer.engine import changing
from gossamer.engine.changing import steps
from gossamer.engine.clock import Clock
from gossamer.engine.component import Component
from gossamer.engine.connector import Statistics
from gossamer.engine.errors import FlowError, SettingError, WiringError
from gossamer.engine.graph import Graph
from gossamer.engine.handling import KeepFailed, forget
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import Sheet, change
from gossamer.engine.unit import Unit
from gossamer.engine.units import Units
from gossamer.engine.wiring import MAIN_PROCESS, Difference, Wiring

Planner = Callable[[Wiring], Graph]
"""Makes a checked graph of a wiring, or raises what is wrong with it."""


class RunningGraph(Units):
    """One process' part of a graph, running."""

    def __init__(
        self,
        graph: Graph,
        *,
        process: str = MAIN_PROCESS,
        clock: Clock | None = None,
        report: Callable[[str], None] = lambda line: None,
        meeting: str = "",
        keep_failed: KeepFailed = forget,
    ) -> None:
        super().__init__(graph, process=process, clock=clock, report=report, meeting=meeting, keep_failed=keep_failed)
        self.history: list[Difference] = []
        """What the graph became, change by change; the last is what :meth:`undo` takes back."""
        self.earlier: dict[str, Statistics] = {}
        """What the predecessors of exchanged connectors have done."""
        self._working = False
        self.has_begun = False
        """Its components were set to work, so it can be changed until they end."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._more = asyncio.Event()
        self._changes: set[asyncio.Task[Difference]] = set()
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<RunningGraph {self.process}: {len(self.runners)} components, {len(self._tasks)} at work>"

    # -- life

    async def run(self) -> None:
        """Start everything, work until every input has ended, stop everything.

        Raises:
            FlowError: a unit could not start, or a component failed and its policy says stop.
        """
        try:
            await self.start()
            await self.work()
        finally:
            await self.stop()

    async def work(self) -> None:
        """Run the components until all have ended; the first failure ends the others."""
        self._working = True
        for name, runner in self.runners.items():
            self.set_to_work(name, runner)
        self.has_begun = True
        more: asyncio.Task[Any] | None = None
        try:
            while self._tasks:
                self._more.clear()
                more = asyncio.create_task(self._more.wait())
                done, _ = await asyncio.wait({*self._tasks.values(), more}, return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
                self._settle(done)
        finally:
            self._working = False
            left = [*self._tasks.values(), *self._changes, *([more] if more else [])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            self._report_late(self._tasks.values())
            self._tasks.clear()

    def set_to_work(self, name: str, runner: Runner) -> "asyncio.Task[None]":
        """Let a component run; the graph ends when it and all others have ended."""
        self._tasks[name] = asyncio.create_task(runner.run(), name=name)
        self._more.set()
        return self._tasks[name]

    async def let_go(self, runner: Runner) -> None:
        """Wait until a component has finished what it has in hand, and stop it. If it fails at that, the graph fails."""
        await runner.leave()
        name = runner.component.name
        if (task := self._tasks.get(name)) is not None:
            await asyncio.wait([task])
            # A failure is left to `work`, which ends the graph with it; here it ends the change.
            task.result()
            self._tasks.pop(name, None)
        await self.stop_one(runner.component)
        del self.runners[name]

    def _settle(self, done: set[asyncio.Task[Any]]) -> None:
        failures: list[BaseException] = []
        for name, task in list(self._tasks.items()):
            if task in done:
                del self._tasks[name]
                if task.cancelled():
                    failures.append(FlowError(f"component {name!r} was cancelled by something outside of its graph"))
                elif (error := task.exception()) is not None:
                    failures.append(error)
        for other in failures[1:]:
            self.report(str(other))
        if failures:
            raise failures[0]

    def _report_late(self, tasks: typing.Iterable["asyncio.Task[Any]"]) -> None:
        """A component that failed while it was being stopped did not cause the end, but is not kept silent."""
        for task in tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                self.report(str(error))

    def drain(self, kind: type[Component[Any]] = Component) -> None:
        """Start nothing new in components of this kind; what is in hand is finished, then they end by themselves."""
        for runner in self.runners.values():
            if not isinstance(runner.component, kind):
                continue
            try:
                runner.drain()
            except Exception as error:
                self.report(f"unit {runner.component.name!r} did not drain: {type(error).__name__}: {error}")

    # -- watching

    def sheet(self, name: str) -> Sheet:
        """The settings of a unit as they stand."""
        return typing.cast(Sheet, self.unit(name).sheet)

    def metrics(self, name: str) -> Mapping[str, float]:
        """What a unit has counted, its instances added up."""
        total: dict[str, float] = {}
        for unit in self.units(name):
            for key, value in unit.metrics.snapshot().items():
                total[key] = total.get(key, 0) + value
        return total

    def statistics(self) -> dict[str, Statistics]:
        """What every connector has done, exchanges included."""
        return {
            name: connector.statistics().after(self.earlier.get(name, Statistics()))
            for name, connector in self.connectors.items()
        }

    # -- changing

    def set(self, name: str, values: Mapping[str, Any]) -> Sheet:
        """Replace settings of a running unit; all its instances get the new sheet.

        Of a unit that only another process has, it is noted what it is set to: that process has to be told.

        Raises:
            SettingError: unknown, out of bounds, refused by the unit, or only to be changed with a restart. Then nothing
                has changed.
        """
        if self._changing.locked():
            raise SettingError("the graph is being changed; set this when that is done")
        is_whole = name in self._whole.components or name in self._whole.providers
        graph = self.graph
        is_elsewhere = is_whole and name not in graph.components and name not in graph.providers
        before = self._whole.sheet(name) if is_elsewhere else self.sheet(name)
        after: Sheet = change(before, values, running=True)
        if not is_elsewhere:
            self.give(name, after)
        if is_whole:
            new = msgspec.to_builtins(after)
            self._whole = self._whole.with_settings(name, {key: new[key] for key in values}, after)
        return after

    def give(self, name: str, after: Sheet) -> None:
        """Give all instances of a unit another sheet; if one refuses it, all have the old one again."""
        units = self.units(name)
        self._give(units, after, typing.cast(Sheet, units[0].sheet))

    @staticmethod
    def _give(units: Sequence[Unit[Any]], after: Sheet, before: Sheet) -> None:
        """Give instances of a unit another sheet; if one refuses it, all have the old one again."""
        told: list[Unit[Any]] = []
        try:
            for unit in units:
                told.append(unit)
                unit.sheet = after
                unit.changed(before)
        except Exception:
            for unit in told:
                unit.sheet = before
                unit.changed(after)
            raise

    async def suspend(self, name: str) -> None:
        """Let a component take up nothing more; returns when what it has in hand is finished."""
        await asyncio.gather(*(runner.suspend() for runner in self.instances(name)))

    def resume(self, name: str) -> None:
        """Let a suspended component go on."""
        for runner in self.instances(name):
            runner.resume()

    async def apply(self, change: Callable[[Wiring], Wiring], planner: Planner) -> Difference:
        """Become another graph while items flow. None is lost and none is handled twice; each goes the old way or the new.

        Args:
            change: makes the wiring that is wanted of the one that runs.
            planner: makes a checked graph of it.

        Returns:
            What has changed, which is the last of :attr:`history` now.

        Raises:
            FlowError: the wiring is wrong, this graph cannot become it while it runs, or what is new cannot start; then
                nothing has changed.
        """
        return await self._change(self._become(change, planner))

    def foreseen(self, change: Callable[[Wiring], Wiring], planner: Planner) -> Difference:
        """What :meth:`apply` would change, as far as that can be said before anything new starts.

        Raises:
            FlowError: the wiring is wrong, or this graph cannot become it while it runs.
        """
        then = planner(change(self.wiring))
        steps(self.whole, then, self.process)
        return Difference.between(self.wiring, then.wiring)

    async def undo(self, planner: Planner) -> Difference:
        """Undo the last change; settings that were changed since then stay changed. Raises as :meth:`apply`."""
        return await self._change(self._take_back(planner))

    async def _become(self, change: Callable[[Wiring], Wiring], planner: Planner) -> Difference:
        before = self.wiring
        graph = planner(change(before))
        await changing.apply(self, graph)
        # What it was read from names the file of the change while that is judged, and then the wiring again.
        wiring = msgspec.structs.replace(graph.wiring, source=before.source)
        self._whole = msgspec.structs.replace(graph, wiring=wiring)
        self.history.append(Difference.between(before, wiring))
        return self.history[-1]

    async def _take_back(self, planner: Planner) -> Difference:
        if not self.history:
            raise WiringError("there is nothing to undo: the graph has not been changed since it started")
        opposite = self.history[-1].opposite
        await changing.apply(self, planner(opposite.applied(self.wiring)))
        self.history.pop()
        return opposite

    def replace_graph(self, whole: Graph) -> None:
        """The graph as it is after a change."""
        self._whole = whole

    @property
    def whole(self) -> Graph:
        """The graph with the parts that other processes run."""
        return self._whole

    @property
    def wiring(self) -> Wiring:
        """The wiring that the graph stands for now: planned anew it gives the same graph."""
        return self._whole.wiring

    async def _change(self, change: Coroutine[Any, Any, Difference]) -> Difference:
        """One change after the other. A change that has begun is finished even if who asked for it is cancelled."""
        if not self._working:
            change.close()
            raise FlowError(f"the graph in process {self.process!r} is not at work; change its wiring instead")
        task = asyncio.create_task(self._in_turn(change))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        task.add_done_callback(lambda _: change.close())  # a change that never got its turn
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                task.add_done_callback(lambda left: self._report_late([left]))
                raise
            raise FlowError(f"the graph in process {self.process!r} ended before the change was made") from None

    async def _in_turn(self, change: Coroutine[Any, Any, Difference]) -> Difference:
        async with self._changing:
            return await change
