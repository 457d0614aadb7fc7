"""The units of one process: made from a graph, started in order, found by name, stopped in the opposite order.

:class:`~gossamer.engine.running.RunningGraph` puts them to work and changes them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gossamer.engine.clock import Clock, SystemClock
from gossamer.engine.component import Component
from gossamer.engine.connector import Connector
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import FlowError, UnknownName
from gossamer.engine.graph import ComponentNode, ConnectorNode, Graph, ProviderNode, Roles
from gossamer.engine.handling import ErrorPolicy, KeepFailed, forget
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import nearest
from gossamer.engine.transports import Opening, open_connector, transport_of
from gossamer.engine.unit import Provider, Unit
from gossamer.engine.wiring import MAIN_PROCESS

if TYPE_CHECKING:
    from gossamer.engine.remote.links import Exchange


class Units:
    """One process' part of a graph."""

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
            process: whose units are made here.
            clock: the time that units see.
            report: tells the person who runs it something, in one line.
            meeting: a folder; connectors at `unix:` without a path meet at sockets in it.
            keep_failed: keeps items that a component could not handle and that went on without it.
        """
        self.keep_failed = keep_failed
        self.process = process
        self.meeting = meeting
        self.clock = clock or SystemClock()
        self.report = report
        self.providers: dict[str, Provider[Any]] = {}
        """In the order in which they start: the used before their users."""
        self.connectors: dict[str, Connector[Any]] = {}
        self.runners: dict[str, Runner] = {}
        """By instance: `fetch`, or `fetch.1`, `fetch.2` where there are several."""
        self._whole = graph
        self._started: set[Unit[Any] | Connector[Any]] = set()

    @property
    def graph(self) -> Graph:
        """What of the graph this process runs, as it stands now."""
        return self._whole.part(self.process)

    # -- starting and stopping

    async def start(self) -> None:
        """Make and start all units: providers, connectors, components.

        Connectors are made first, so that an address which cannot be opened is known before anything has started.

        Raises:
            FlowError: a unit cannot start; names it. What was started is stopped by :meth:`stop`.
        """
        graph = self.graph
        for connector in graph.connectors.values():
            self.connectors[connector.name] = self.open(connector, self._whole)
        for provider in graph.providers.values():
            self.providers[provider.name] = self.make_provider(provider, self.providers)
            await self.start_one(self.providers[provider.name])
        for component in graph.components.values():
            self.runners.update(self.make_component(component, self.connectors, self.providers))
        for runner in self.runners.values():
            runner.attach()
        for opened in self.connectors.values():
            await self.start_one(opened)
        for runner in self.runners.values():
            await self.start_one(runner.component)

    async def start_providers(self, names: Iterable[str]) -> None:
        """Make and start these providers and those that they use, and nothing else: for work on what a graph keeps while it rests.

        Raises:
            FlowError: one cannot start; names it. What was started is stopped by :meth:`stop`.
        """
        graph = self.graph
        wanted = graph.reached(names)
        for provider in graph.providers.values():
            if provider.name in wanted:
                self.providers[provider.name] = self.make_provider(provider, self.providers)
                await self.start_one(self.providers[provider.name])

    async def start_one(self, unit: Unit[Any] | Connector[Any]) -> None:
        """Start a unit or connector.

        Raises:
            FlowError: it raised; names it.
        """
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
        """Stop components, connectors and providers, in this order, each in the order opposite to its start.

        What was never started is not stopped, and nothing is stopped twice. A unit that fails to stop is reported, and
        the rest is stopped. What the units counted can still be read.
        """
        for runner in reversed(self.runners.values()):
            await self.stop_one(runner.component)
        for connector in reversed(self.connectors.values()):
            await self.stop_one(connector)
        for provider in reversed(self.providers.values()):
            await self.stop_one(provider)

    async def stop_one(self, unit: Unit[Any] | Connector[Any]) -> None:
        """Stop a unit or connector, once; report it if it does not stop cleanly."""
        if unit not in self._started:
            return
        self._started.discard(unit)
        try:
            await unit.stop()
        except Exception as error:
            self.report(f"{_called(unit)} did not stop cleanly: {type(error).__name__}: {error}")

    # -- making

    def make_provider(self, node: ProviderNode, known: Mapping[str, Provider[Any]]) -> Provider[Any]:
        """A provider, bound to others of those that are `known`."""
        provider = node.unit(node.sheet)
        self.set_up(provider, node.name, node.roles, known)
        return provider

    def set_up(self, unit: Unit[Any], name: str, roles: Roles, known: Mapping[str, Provider[Any]]) -> None:
        """Name a unit, give it the clock and its providers."""
        unit.name = name
        unit.clock = self.clock
        unit.report = self.report
        bind(unit, roles, known)

    def open(self, node: ConnectorNode, whole: Graph) -> Connector[Any]:
        """The connector behind an address, as this process sees it: it sends into it, receives from it, or both."""
        where = {name: whole.components[name].plan.process for name in (*node.producers, *node.consumers)}
        address = node.plan.address
        if address == "unix:" and self.meeting:
            address = f"unix:{self.meeting}/{node.name}.sock"
        sends = any(where[name] == self.process for name in node.producers)
        receives = any(where[name] == self.process for name in node.consumers)
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
        """The links to other processes; a graph that is not divided has none."""
        from gossamer.engine.remote.links import Exchange

        return Exchange()

    def make_component(
        self, node: ComponentNode, connectors: Mapping[str, Connector[Any]], providers: Mapping[str, Provider[Any]]
    ) -> dict[str, Runner]:
        """All instances of a component by name, bound to connectors and providers, each with its runner."""
        made = {}
        plan = node.plan
        for number in range(1, plan.instances + 1):
            component: Component[Any] = node.unit(node.sheet)
            name = node.name if plan.instances == 1 else f"{node.name}.{number}"
            self.set_up(component, name, node.roles, providers)
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

    # -- finding

    def unit(self, name: str) -> Unit[Any]:
        """A provider, or the first instance of a component.

        Raises:
            UnknownName: there is none of that name here; lists those that are.
        """
        return self.units(name)[0]

    def units(self, name: str) -> list[Unit[Any]]:
        """A provider, all instances of a component (`fetch`), or one of them (`fetch.2`)."""
        if name in self.providers:
            return [self.providers[name]]
        return [runner.component for runner in self.instances(name)]

    def instances(self, name: str) -> list[Runner]:
        """All instances of a component (`fetch`), or one of them (`fetch.2`)."""
        found = [runner for key, runner in self.runners.items() if name in (key, key.rpartition(".")[0])]
        if not found:
            known = [*self.providers, *self.graph.components]
            raise UnknownName(f"no unit {name!r} runs in process {self.process!r}{nearest(name, known)}")
        return found

    def ends(self, connector: Connector[Any]) -> tuple[list[In[Any]], list[Out[Any]]]:
        """All ends of a connector in this process."""
        components = [runner.component for runner in self.runners.values()]
        return (
            [end for component in components for end in component.ins.values() if end.connector is connector],
            [end for component in components for end in component.outs.values() if end.connector is connector],
        )


def bind(unit: Unit[Any], roles: Roles, known: Mapping[str, Provider[Any]]) -> None:
    """Set a unit's providers."""
    for role, bound in roles.items():
        if isinstance(bound, str):
            setattr(unit, role, known[bound])
        else:
            setattr(unit, role, {key: tuple(known[name] for name in names) for key, names in bound.items()})


def _called(unit: Unit[Any] | Connector[Any]) -> str:
    return f"{'connector' if isinstance(unit, Connector) else 'unit'} {unit.name!r}"
