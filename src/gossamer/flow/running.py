"""The plan at work: units are made, started in order, watched, changed while they run, and stopped in order.

Start: providers (whoever is used first), connectors, components. End: when every component's inputs have ended; then
components, connectors and providers are stopped in the opposite order, after a failure too.
While it runs: sheets are read and replaced, metrics read, units suspended and resumed, providers and connectors exchanged,
components added and removed. None of this needs to know a particular unit.
"""

import asyncio
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gossamer.flow.clock import Clock, SystemClock
from gossamer.flow.component import Component
from gossamer.flow.connector import Connector, In, Out, Statistics
from gossamer.flow.errors import FlowError, UnknownName, WiringError
from gossamer.flow.fused import FusedConnector
from gossamer.flow.graph import ComponentNode, ConnectorNode, Graph, ProviderNode, Roles, used_names
from gossamer.flow.runner import Policy, Runner
from gossamer.flow.sheet import Sheet, change, nearest
from gossamer.flow.remote.links import Exchange
from gossamer.flow.transports import Opening, open_connector
from gossamer.flow.unit import Provider, Unit
from gossamer.flow.wiring import MAIN_PROCESS


class RunningGraph:
    """One process' part of a graph, running."""

    def __init__(
        self,
        graph: Graph,
        *,
        process: str = MAIN_PROCESS,
        clock: Clock | None = None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.graph = graph.part(process)
        self.process = process
        self.clock = clock or SystemClock()
        self.report = report
        self.providers: dict[str, Provider[Any]] = {}
        self.connectors: dict[str, Connector[Any]] = {}
        self.runners: dict[str, Runner] = {}
        """By instance: `fetch`, or `fetch.1`, `fetch.2` where there are several."""
        self._whole = graph
        self._exchange = Exchange()
        self._earlier: dict[str, Statistics] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._more = asyncio.Event()
        self._retired: list[Unit[Any]] = []

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

    async def start(self) -> None:
        """Make and start all units, in order."""
        for provider in self.graph.providers.values():
            await self._add_provider(provider)
        for connector in self.graph.connectors.values():
            self.connectors[connector.name] = self._open(connector)
        for component in self.graph.components.values():
            self._make_component(component)
        for opened in self.connectors.values():
            await opened.start()
        for runner in self.runners.values():
            await _started(runner.component)

    async def work(self) -> None:
        """Run the components until all have ended; the first failure ends the others."""
        for name, runner in self.runners.items():
            self._tasks[name] = asyncio.create_task(runner.run(), name=name)
        try:
            while self._tasks:
                self._more.clear()
                more = asyncio.create_task(self._more.wait())
                done, _ = await asyncio.wait({*self._tasks.values(), more}, return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
                self._settle(done)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._tasks.clear()

    def _settle(self, done: set[asyncio.Task[Any]]) -> None:
        failures = []
        for name, task in list(self._tasks.items()):
            if task in done:
                del self._tasks[name]
                if not task.cancelled() and (error := task.exception()) is not None:
                    failures.append(error)
        if failures:
            raise failures[0]

    def drain(self) -> None:
        """Start nothing new; what is in hand is finished, then everything ends by itself."""
        for runner in self.runners.values():
            runner.component.drain()
            runner.resume()

    async def stop(self) -> None:
        """Stop components, connectors and providers, in this order. A unit that fails to stop is reported, the rest is stopped."""
        await self._stop_all(runner.component for runner in reversed(self.runners.values()))
        for connector in self.connectors.values():
            try:
                await connector.stop()
            except Exception as error:
                self.report(f"connector {connector.name!r} did not stop cleanly: {type(error).__name__}: {error}")
        await self._stop_all(iter(self._retired))
        await self._stop_all(reversed(self.providers.values()))
        self.runners.clear()
        self.providers.clear()

    async def _stop_all(self, units: Iterator[Unit[Any]]) -> None:
        for unit in units:
            try:
                await unit.stop()
            except Exception as error:
                self.report(f"unit {unit.name!r} did not stop cleanly: {type(error).__name__}: {error}")

    # -- making

    async def _add_provider(self, node: ProviderNode) -> Provider[Any]:
        provider = node.unit(node.sheet)
        self._set_up(provider, node.name, node.roles)
        await _started(provider)
        self.providers[node.name] = provider
        return provider

    def _set_up(self, unit: Unit[Any], name: str, roles: Roles) -> None:
        unit.name = name
        unit.clock = self.clock
        for role, bound in roles.items():
            setattr(unit, role, self._resolved(bound))

    def _resolved(self, bound: str | Mapping[str, tuple[str, ...]]) -> Any:
        if isinstance(bound, str):
            return self.providers[bound]
        return {key: tuple(self.providers[name] for name in names) for key, names in bound.items()}

    def _open(self, node: ConnectorNode) -> Connector[Any]:
        where = {name: self._whole.components[name].plan.process for name in (*node.producers, *node.consumers)}
        sends = any(where[name] == self.process for name in node.producers)
        receives = any(where[name] == self.process for name in node.consumers)
        return open_connector(
            Opening(
                name=node.name,
                item_type=node.item_type,
                address=node.plan.address,
                capacity=node.plan.capacity,
                side="both" if sends and receives else "send" if sends else "receive",
                slot=self.process,
                senders=frozenset(where[name] for name in node.producers),
                options=node.plan.options,
                exchange=self._exchange,
            )
        )

    def _make_component(self, node: ComponentNode) -> list[Runner]:
        made = []
        plan = node.plan
        for number in range(1, plan.instances + 1):
            component: Component[Any] = node.unit(node.sheet)
            self._set_up(component, node.name if plan.instances == 1 else f"{node.name}.{number}", node.roles)
            component.bind(
                {role: In(role, self.connectors[name]) for role, name in node.inputs.items()},
                {role: Out(role, self.connectors[name]) for role, name in node.outputs.items()},
            )
            runner = Runner(component, workers=plan.workers, policy=Policy(plan.on_error, plan.restarts))
            runner.report = self.report
            self.runners[component.name] = runner
            made.append(runner)
        return made

    # -- watching

    def unit(self, name: str) -> Unit[Any]:
        """A provider, or the first instance of a component.

        Raises:
            UnknownName: there is none of that name here; lists those that are.
        """
        if name in self.providers:
            return self.providers[name]
        return self.instances(name)[0].component

    def instances(self, name: str) -> list[Runner]:
        """All instances of a component (`fetch`), or one of them (`fetch.2`)."""
        found = [runner for key, runner in self.runners.items() if key == name or key.rpartition(".")[0] == name]
        if not found:
            known = [*self.providers, *self.graph.components]
            raise UnknownName(f"no unit {name!r} runs in process {self.process!r}{nearest(name, known)}")
        return found

    def sheet(self, name: str) -> Sheet:
        """The settings of a unit as they stand."""
        return typing.cast(Sheet, self.unit(name).sheet)

    def metrics(self, name: str) -> Mapping[str, float]:
        """What a unit has counted, its instances added up."""
        if name in self.providers:
            return self.providers[name].metrics.snapshot()
        total: dict[str, float] = {}
        for runner in self.instances(name):
            for key, value in runner.component.metrics.snapshot().items():
                total[key] = total.get(key, 0) + value
        return total

    def statistics(self) -> dict[str, Statistics]:
        """What every connector has done, exchanges included."""
        return {
            name: connector.statistics().after(self._earlier.get(name, Statistics()))
            for name, connector in self.connectors.items()
        }

    # -- changing

    def set(self, name: str, values: Mapping[str, Any]) -> Sheet:
        """Replace settings of a running unit; all its instances get the new sheet.

        Raises:
            SettingError: unknown, out of bounds, or only to be changed with a restart.
        """
        units = [self.providers[name]] if name in self.providers else [r.component for r in self.instances(name)]
        before = units[0].sheet
        after: Sheet = typing.cast(Sheet, change(before, values, running=True))
        for unit in units:
            unit.sheet = after
            unit.changed(before)
        return after

    async def suspend(self, name: str) -> None:
        """Let a component take up nothing more; returns when what it has in hand is finished."""
        await asyncio.gather(*(runner.suspend() for runner in self.instances(name)))

    def resume(self, name: str) -> None:
        """Let a suspended component go on."""
        for runner in self.instances(name):
            runner.resume()

    async def exchange_provider(self, name: str, node: ProviderNode) -> None:
        """Put another provider in the place of `name` while its users work.

        The new one starts, every user is bound to it, and the old one stops when nobody is in the middle of using it.
        A new one that wraps (`behind`) may be bound to the old one under its old name's role: then the old one stays.
        """
        old = self.providers[name]
        new = node.unit(node.sheet)
        self._set_up(new, name, {role: bound for role, bound in node.roles.items() if bound != name})
        wraps = [role for role, bound in node.roles.items() if bound == name]
        for role in wraps:
            setattr(new, role, old)
        await _started(new)
        self.providers[name] = new
        for user in self._users(name, new):
            self._rebind(user)
        await asyncio.gather(*(runner.turnover() for runner in self.runners.values()))
        if wraps:
            old.name = f"{name}.behind"
            self._retired.append(old)
        else:
            await old.stop()
        nodes = {**self.graph.providers, name: msgspec.structs.replace(node, name=name)}
        self.graph = msgspec.structs.replace(self.graph, providers=nodes)

    def _users(self, name: str, new: Unit[Any]) -> Iterator[tuple[Unit[Any], Roles]]:
        for node in self.graph.providers.values():
            unit = self.providers[node.name]
            if unit is not new and name in used_names(node.roles):
                yield unit, node.roles
        for component in self.graph.components.values():
            if name in used_names(component.roles):
                for runner in self.instances(component.name):
                    yield runner.component, component.roles

    def _rebind(self, user: tuple[Unit[Any], Roles]) -> None:
        unit, roles = user
        for role, bound in roles.items():
            setattr(unit, role, self._resolved(bound))

    async def exchange_connector(self, name: str, address: str, **options: Any) -> None:
        """Put another connector in the place of `name` while items flow; none is lost, and their order is kept.

        Producers are held at their ends, consumers empty the old connector, both ends move, producers go on.
        """
        old = self.connectors[name]
        node = self.graph.connectors[name]
        plan = msgspec.structs.replace(node.plan, address=address, options=options)
        node = msgspec.structs.replace(node, plan=plan)
        new = self._open(node)
        await new.start()
        ins, outs = self._ends(name)
        for out in outs:
            out.hold()
        await old.idle()
        self._earlier[name] = old.statistics().after(self._earlier.get(name, Statistics()))
        self.connectors[name] = new
        if isinstance(new, FusedConnector):
            runner = self.instances(node.consumers[0])[0]
            new.attach(runner.fused_handler(runner.input_handler))
        for inlet in ins:
            inlet.rebind(new)
        for out in outs:
            out.rebind(new)
        old.retire()
        await old.stop()
        self.graph = msgspec.structs.replace(self.graph, connectors={**self.graph.connectors, name: node})

    def _ends(self, name: str) -> tuple[list[In[Any]], list[Out[Any]]]:
        node = self.graph.connectors[name]
        ins, outs = [], []
        for component in {*node.producers, *node.consumers}:
            for runner in self.runners.values():
                if runner.component.name.split(".")[0] == component:
                    ins += [end for end in runner.component.ins.values() if end.connector is self.connectors[name]]
                    outs += [end for end in runner.component.outs.values() if end.connector is self.connectors[name]]
        return ins, outs

    async def add_component(self, node: ComponentNode) -> None:
        """Start one more component on connectors that exist."""
        if node.name in self.graph.components:
            raise WiringError(f"a component {node.name!r} runs already; give the new one another name")
        runners = self._make_component(node)
        self.graph = msgspec.structs.replace(self.graph, components={**self.graph.components, node.name: node})
        for runner in runners:
            await _started(runner.component)
            self._tasks[runner.component.name] = asyncio.create_task(runner.run(), name=runner.component.name)
        self._more.set()

    async def remove_component(self, name: str) -> None:
        """Take a component out: it finishes what it has in hand and closes its outputs. What waits for it stays for others."""
        for runner in self.instances(name):
            task = self._tasks.pop(runner.component.name, None)
            await runner.leave()
            if task is not None:
                await task
            await runner.component.stop()
            del self.runners[runner.component.name]
        self._more.set()
        kept = {key: node for key, node in self.graph.components.items() if key != name}
        self.graph = msgspec.structs.replace(self.graph, components=kept)


async def _started(unit: Unit[Any]) -> None:
    """Start a unit.

    Raises:
        FlowError: it raised; names the unit.
    """
    try:
        await unit.start()
    except FlowError:
        raise
    except Exception as error:
        if hasattr(error, "exit_code"):
            raise
        raise FlowError(f"unit {unit.name!r} cannot start: {type(error).__name__}: {error}") from error
