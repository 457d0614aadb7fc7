"""The plan at work: units are made from a graph, started in order, found by name, watched, changed, and stopped in order.

Start: providers (the used before their users), connectors, components. End: when every component's inputs have ended; then
components, connectors and providers are stopped in the opposite order, after a failure too.
While it runs it owns the truth about its wiring: sheets are read and replaced, metrics read, units suspended and resumed, and
the whole becomes another graph (:mod:`gossamer.engine.changing`), by a difference that is kept and can be undone. None of this
needs to know a particular unit.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec

from gossamer.engine import changing
from gossamer.engine.component import Component
from gossamer.engine.connector import Connector, Statistics
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import FlowError, SettingError, UnknownName, WiringError
from gossamer.engine.graph import ComponentNode, ConnectorNode, Graph, ProviderNode
from gossamer.engine.handling import ErrorPolicy, KeepFailed, forget
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import Sheet, change, nearest
from gossamer.engine.transports import Opening, open_connector, transport_of
from gossamer.engine.unit import Clock, Provider, SystemClock, Unit, bind
from gossamer.engine.wiring import MAIN_PROCESS, Difference, Wiring

if TYPE_CHECKING:
    from gossamer.engine.remote.links import Exchange

Planner = Callable[[Wiring], Graph]
"""Makes a checked graph of a wiring, or raises what is wrong with it."""


class RunningGraph:
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
        """The units of `process`.

        Args:
            graph: the graph of all processes.
            report: tells the person who runs it something, in one line.
            meeting: a folder; connectors at `unix:` without a path meet at sockets in it.
            keep_failed: keeps items that a component could not handle and that went on without it.
        """
        self.keep_failed, self.process, self.meeting, self.report = keep_failed, process, meeting, report
        self.clock = clock or SystemClock()
        self.whole = graph
        """The graph with the parts that other processes run."""
        self.providers: dict[str, Provider[Any]] = {}
        """In the order in which they start: the used before their users."""
        self.connectors: dict[str, Connector[Any]] = {}
        self.runners: dict[str, Runner] = {}
        """By instance: `fetch`, or `fetch.1`, `fetch.2` where there are several."""
        self.history: list[Difference] = []
        """The graphs that it became, change by change; the last is what :meth:`undo` takes back."""
        self.earlier: dict[str, Statistics] = {}
        """The counts of the predecessors of exchanged connectors."""
        self.has_begun = False
        """Its components were set to work, so it can be changed until they end."""
        self._started: set[Unit[Any] | Connector[Any]] = set()
        self._working = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._more = asyncio.Event()
        self._changes: set[asyncio.Task[Difference]] = set()
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<RunningGraph {self.process}: {len(self.runners)} components, {len(self._tasks)} at work>"

    @property
    def graph(self) -> Graph:
        """The part of the graph that this process runs, as it stands now."""
        return self.whole.part(self.process)

    @property
    def wiring(self) -> Wiring:
        return self.whole.wiring

    async def run(self) -> None:
        """Start everything, work until every input has ended, stop everything. Raises FlowError: a unit could not start, or a
        component failed and its policy says stop."""
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
                failures: list[BaseException] = []
                for name, task in [(name, task) for name, task in self._tasks.items() if task in done]:
                    del self._tasks[name]
                    if task.cancelled():
                        failures.append(
                            FlowError(f"component {name!r} was cancelled by something outside of its graph")
                        )
                    elif (error := task.exception()) is not None:
                        failures.append(error)
                for other in failures[1:]:
                    self.report(str(other))
                if failures:
                    raise failures[0]
        finally:
            self._working = False
            left = [*self._tasks.values(), *self._changes, *([more] if more else [])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            self._report_late(self._tasks.values())
            self._tasks.clear()

    async def start(self) -> None:
        """Make and start all units. Connectors are made first, so that a wrong address is known before anything has started.
        Raises FlowError: a unit cannot start; names it. Units that were started are stopped by :meth:`stop`."""
        graph = self.graph
        for connector in graph.connectors.values():
            self.connectors[connector.name] = self.open(connector, self.whole)
        await self.start_providers(graph.providers)
        for component in graph.components.values():
            self.runners.update(self.make_component(component, self.connectors, self.providers))
        for runner in self.runners.values():
            runner.attach()
        components = [runner.component for runner in self.runners.values()]
        units: list[Unit[Any] | Connector[Any]] = [*self.connectors.values(), *components]
        for unit in units:
            await self.start_one(unit)

    async def start_providers(self, names: Iterable[str]) -> None:
        """Make and start these providers and those that they use, and nothing else: for work on what a graph keeps while it
        rests. Raises FlowError: one cannot start; names it. Units that were started are stopped by :meth:`stop`."""
        wanted = self.graph.reached(names)
        for provider in self.graph.providers.values():
            if provider.name in wanted:
                self.providers[provider.name] = self.make_provider(provider, self.providers)
                await self.start_one(self.providers[provider.name])

    async def start_one(self, unit: Unit[Any] | Connector[Any]) -> None:
        """Start a unit or connector. Raises FlowError: it raised; names it."""
        self._started.add(unit)
        try:
            await unit.start()
        except FlowError:
            raise
        except Exception as error:
            if hasattr(error, "exit_code"):
                raise
            raise FlowError(f"{_called(unit)} cannot start: {type(error).__name__}: {error}") from error

    async def stop(self) -> None:
        """Stop what was started: components, connectors and providers, each in the order opposite to its start. A unit that fails
        to stop is reported, and the rest is stopped. The counts of the units can still be read."""
        components = [runner.component for runner in self.runners.values()]
        for units in (components, list(self.connectors.values()), list(self.providers.values())):
            for unit in reversed(units):
                await self.stop_one(unit)

    async def stop_one(self, unit: Unit[Any] | Connector[Any]) -> None:
        """Stop a unit or connector, once; report it if it does not stop cleanly."""
        if unit in self._started:
            self._started.discard(unit)
            try:
                await unit.stop()
            except Exception as error:
                self.report(f"{_called(unit)} did not stop cleanly: {type(error).__name__}: {error}")

    def set_to_work(self, name: str, runner: Runner) -> None:
        """Let a component run; the graph ends when it and all others have ended."""
        self._tasks[name] = asyncio.create_task(runner.run(), name=name)
        self._more.set()

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

    def _report_late(self, tasks: Iterable["asyncio.Task[Any]"]) -> None:
        """A component that failed while it was being stopped did not cause the end, but is not kept silent."""
        for task in tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                self.report(str(error))

    def drain(self, kind: type[Component[Any]] = Component) -> None:
        """Start nothing new in components of this kind; work in hand is finished, then they end by themselves."""
        for runner in (one for one in self.runners.values() if isinstance(one.component, kind)):
            try:
                runner.drain()
            except Exception as error:
                self.report(f"unit {runner.component.name!r} did not drain: {type(error).__name__}: {error}")

    def make_provider(self, node: ProviderNode, known: Mapping[str, Provider[Any]]) -> Provider[Any]:
        """A provider, bound to others of those that are `known`."""
        provider = node.unit(node.sheet)
        provider.name, provider.clock, provider.report = node.name, self.clock, self.report
        bind(provider, node.roles, known)
        return provider

    def open(self, node: ConnectorNode, whole: Graph) -> Connector[Any]:
        """The connector behind an address, as this process sees it: it sends into it, receives from it, or both."""
        where = {name: whole.components[name].plan.process for name in (*node.producers, *node.consumers)}
        address = node.plan.address
        if address == "unix:" and self.meeting:
            address = f"unix:{self.meeting}/{node.name}.sock"
        sends, receives = (
            any(where[name] == self.process for name in names) for names in (node.producers, node.consumers)
        )
        return open_connector(
            Opening(
                name=node.name,
                item_type=node.item_type,
                address=address,
                capacity=node.plan.capacity,
                side="both" if sends and receives else "send" if sends else "receive",
                slot=self.process,
                senders=frozenset(where[name] for name in node.producers),
                options=node.plan.options,
                exchange=self._exchange if transport_of(address).remote else None,
            )
        )

    @cached_property
    def _exchange(self) -> "Exchange":
        from gossamer.engine.remote.links import Exchange  # a graph that is not divided has no links

        return Exchange()

    def make_component(
        self, node: ComponentNode, connectors: Mapping[str, Connector[Any]], providers: Mapping[str, Provider[Any]]
    ) -> dict[str, Runner]:
        """All instances of a component by name, bound to connectors and providers, each with its runner."""
        made, plan = {}, node.plan
        for number in range(1, plan.instances + 1):
            component: Component[Any] = node.unit(node.sheet)
            name = node.name if plan.instances == 1 else f"{node.name}.{number}"
            component.name, component.clock, component.report = name, self.clock, self.report
            bind(component, node.roles, providers)
            component.bind(
                {role: In(role, connectors[end]) for role, end in node.inputs.items()},
                {role: Out(role, connectors[end]) for role, end in node.outputs.items()},
            )
            made[name] = Runner(
                component,
                workers=plan.workers,
                idle=plan.idle,
                policy=ErrorPolicy(node.on_error, plan.restarts, plan.errors),
                report=self.report,
                keep_failed=self.keep_failed,
                is_called=False,
            )
        return made

    def unit(self, name: str) -> Unit[Any]:
        """A provider, or the first instance of a component. Raises UnknownName."""
        return self.units(name)[0]

    def units(self, name: str) -> list[Unit[Any]]:
        found = self.providers.get(name)
        return [runner.component for runner in self.instances(name)] if found is None else [found]

    def instances(self, name: str) -> list[Runner]:
        """All instances of a component (`fetch`), or one of them (`fetch.2`). Raises UnknownName, with the known ones."""
        found = [runner for key, runner in self.runners.items() if name in (key, key.rpartition(".")[0])]
        if not found:
            known = [*self.providers, *self.graph.components]
            raise UnknownName(f"no unit {name!r} runs in process {self.process!r}{nearest(name, known)}")
        return found

    def ends(self, connector: Connector[Any]) -> tuple[list[In[Any]], list[Out[Any]]]:
        """All ends of a connector in this process."""
        ins = [end for runner in self.runners.values() for end in runner.component.ins.values()]
        outs = [end for runner in self.runners.values() for end in runner.component.outs.values()]
        return [end for end in ins if end.connector is connector], [end for end in outs if end.connector is connector]

    def sheet(self, name: str) -> Sheet:
        return cast(Sheet, self.unit(name).sheet)

    def metrics(self, name: str) -> Mapping[str, float]:
        total: dict[str, float] = {}
        for unit in self.units(name):
            for key, value in unit.metrics.snapshot().items():
                total[key] = total.get(key, 0) + value
        return total

    def statistics(self) -> dict[str, Statistics]:
        none = Statistics()
        return {name: one.statistics().after(self.earlier.get(name, none)) for name, one in self.connectors.items()}

    def set(self, name: str, values: Mapping[str, Any]) -> Sheet:
        """Replace settings of a running unit; all its instances get the new sheet.

        Of a unit that only another process has, it is noted what it is set to: that process has to be told. Raises SettingError:
        unknown, out of bounds, refused by the unit, or fixed until a restart. Then nothing has changed."""
        if self._changing.locked():
            raise SettingError("the graph is being changed; set this when that is done")
        is_whole = name in self.whole.components or name in self.whole.providers
        graph = self.graph
        is_elsewhere = is_whole and name not in graph.components and name not in graph.providers
        before = self.whole.sheet(name) if is_elsewhere else self.sheet(name)
        after: Sheet = change(before, values, running=True)
        if not is_elsewhere:
            self.give(name, after)
        if is_whole:
            new = msgspec.to_builtins(after)
            self.whole = self.whole.with_settings(name, {key: new[key] for key in values}, after)
        return after

    def give(self, name: str, after: Sheet) -> None:
        """Give all instances of a unit another sheet; if one refuses it, all have the old one again."""
        units = self.units(name)
        before, told = units[0].sheet, list[Unit[Any]]()
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
        if isinstance(units[0], Provider):
            self.bind()  # it may have something to say now, or nothing any more

    def bind(self) -> None:
        """Give every unit the providers of its roles, as the graph says."""
        for name, roles in self.graph.roles().items():
            for unit in self.units(name):
                bind(unit, roles, self.providers)

    async def suspend(self, name: str) -> None:
        """Let a component take up nothing more; return when what it has in hand is finished."""
        await asyncio.gather(*(runner.gate.suspend() for runner in self.instances(name)))

    def resume(self, name: str) -> None:
        for runner in self.instances(name):
            runner.gate.resume()

    async def apply(self, change: Callable[[Wiring], Wiring], planner: Planner) -> Difference:
        """Become another graph while items flow. None is lost and none is handled twice; each goes the old way or the new.

        `change` makes the wiring that is wanted of the one that runs, `planner` a checked graph of it. Returns what has changed,
        which is the last of :attr:`history` now. Raises FlowError: the wiring is wrong, this graph cannot become it while it
        runs, or what is new cannot start; then nothing has changed."""

        async def become() -> Difference:
            before = self.wiring
            graph = planner(change(before))
            await changing.apply(self, graph)
            # Its source names the file of the change while that is judged, and then the wiring again.
            wiring = msgspec.structs.replace(graph.wiring, source=before.source)
            self.whole = msgspec.structs.replace(graph, wiring=wiring)
            self.history.append(Difference.between(before, wiring))
            return self.history[-1]

        return await self._change(become())

    def foreseen(self, change: Callable[[Wiring], Wiring], planner: Planner) -> Difference:
        """The changes that :meth:`apply` would make, as far as that can be said before anything new starts. Raises FlowError: the
        wiring is wrong, or this graph cannot become it while it runs."""
        then = planner(change(self.wiring))
        changing.steps(self.whole, then, self.process)
        return Difference.between(self.wiring, then.wiring)

    async def undo(self, planner: Planner) -> Difference:
        """Undo the last change; settings that were changed since then stay changed. Raises as :meth:`apply`."""

        async def take_back() -> Difference:
            if not self.history:
                raise WiringError("there is nothing to undo: the graph has not been changed since it started")
            opposite = self.history[-1].opposite
            await changing.apply(self, planner(opposite.applied(self.wiring)))
            self.history.pop()
            return opposite

        return await self._change(take_back())

    async def _change(self, change: Coroutine[Any, Any, Difference]) -> Difference:
        """One change after the other. A change that has begun is finished even if who asked for it is cancelled."""
        if not self._working:
            change.close()
            raise FlowError(f"the graph in process {self.process!r} is not at work; change its wiring instead")

        async def in_turn() -> Difference:
            async with self._changing:
                return await change

        task = asyncio.create_task(in_turn())
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


def _called(unit: Unit[Any] | Connector[Any]) -> str:
    return f"{'connector' if isinstance(unit, Connector) else 'unit'} {unit.name!r}"
