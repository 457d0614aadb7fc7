"""The plan at work: units are made, started in order, watched, changed while they run, and stopped in order.

Start: providers (whoever is used first), connectors, components. End: when every component's inputs have ended; then
components, connectors and providers are stopped in the opposite order, after a failure too.
While it runs: sheets are read and replaced, metrics read, units suspended and resumed, providers and connectors exchanged,
components added and removed (:mod:`gossamer.flow.changing`). None of this needs to know a particular unit.
"""

import asyncio
import typing
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from gossamer.flow import changing
from gossamer.flow.clock import Clock
from gossamer.flow.connector import Statistics
from gossamer.flow.errors import FlowError
from gossamer.flow.graph import ComponentNode, Graph, ProviderNode
from gossamer.flow.runner import Runner
from gossamer.flow.sheet import Sheet, change
from gossamer.flow.unit import Unit
from gossamer.flow.units import Units
from gossamer.flow.wiring import MAIN_PROCESS


class RunningGraph(Units):
    """One process' part of a graph, running."""

    def __init__(
        self,
        graph: Graph,
        *,
        process: str = MAIN_PROCESS,
        clock: Clock | None = None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        super().__init__(graph, process=process, clock=clock, report=report)
        self.earlier: dict[str, Statistics] = {}
        """What the predecessors of exchanged connectors have done."""
        self._working = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._more = asyncio.Event()
        self._changes: set[asyncio.Task[None]] = set()
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
        if runner.component.name in self._tasks:
            await asyncio.wait([self._tasks[runner.component.name]])
        await self.stop_one(runner.component)
        del self.runners[runner.component.name]

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

    def _report_late(self, tasks: typing.Iterable["asyncio.Task[None]"]) -> None:
        """A component that failed while it was being stopped did not cause the end, but is not kept silent."""
        for task in tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                self.report(str(error))

    def drain(self) -> None:
        """Start nothing new; what is in hand is finished, then everything ends by itself."""
        for runner in self.runners.values():
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

        Raises:
            SettingError: unknown, out of bounds, refused by the unit, or only to be changed with a restart. Then nothing
                has changed.
        """
        units = self.units(name)
        before = units[0].sheet
        after: Sheet = typing.cast(Sheet, change(before, values, running=True))
        self._give(units, after, before)
        if name in self._whole.components or name in self._whole.providers:
            self._whole = self._whole.with_sheet(name, after)
        return after

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

    async def exchange_provider(self, name: str, node: ProviderNode) -> None:
        """Put another provider in the place of `name` while its users work.

        The new one starts, every user is bound to it, and the old one stops when no component is in the middle of an item
        that it handles with it. (A producer between two items is not waited for.) If a role of the new one is bound to
        `name`, it wraps the old one, which then stays, as `NAME-behind`.

        Raises:
            FlowError: it does not fit, or cannot start; then nothing has changed.
        """
        await self._change(changing.exchange_provider(self, name, node))

    async def exchange_connector(self, name: str, address: str, **options: Any) -> None:
        """Put another connector in the place of `name` while items flow; none is lost, and their order is kept.

        Producers are held at their ends; what waits in the old connector goes over into the new one, also while its
        consumers are suspended. Only a fused one has no room, and a remote one a window: they wait for the consumers.

        Raises:
            FlowError: it does not fit, or cannot start; then nothing has changed.
        """
        await self._change(changing.exchange_connector(self, name, address, options))

    async def add_component(self, node: ComponentNode) -> None:
        """Start one more component on connectors and providers that exist.

        Raises:
            FlowError: it does not fit, or cannot start; then nothing has changed.
        """
        await self._change(changing.add_component(self, node))

    async def remove_component(self, name: str) -> None:
        """Take a component out: it finishes what it has in hand and closes its outputs. What waits for it stays for others.

        Raises:
            FlowError: there are no others, so that its producers would wait for ever.
        """
        await self._change(changing.remove_component(self, name))

    def replace_graph(self, whole: Graph) -> None:
        """The graph as it is after a change."""
        self._whole = whole

    @property
    def whole(self) -> Graph:
        """The graph with the parts that other processes run."""
        return self._whole

    async def _change(self, change: Coroutine[Any, Any, None]) -> None:
        """One change after the other. A change that has begun is finished even if who asked for it is cancelled."""
        if not self._working:
            change.close()
            raise FlowError(f"the graph in process {self.process!r} is not at work; change its wiring instead")
        task = asyncio.create_task(self._in_turn(change))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        task.add_done_callback(lambda _: change.close())  # a change that never got its turn
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                task.add_done_callback(lambda left: self._report_late([left]))
                raise
            raise FlowError(f"the graph in process {self.process!r} ended before the change was made") from None

    async def _in_turn(self, change: Coroutine[Any, Any, None]) -> None:
        async with self._changing:
            await change
