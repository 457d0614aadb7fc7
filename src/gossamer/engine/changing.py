"""A running graph becomes another one: new parts start, leaving ones are emptied, the ends move, old parts are stopped.

:func:`steps` says what has to be done, or refuses before anything is touched: both graphs are checked already, each as a whole, and
are held against each other. Then three parts:

1. *Begin.* A new part is made and started, live settings are given. Where that fails, all of it is taken back.
2. *Empty.* In the order in which items flow: producers are held before a connector that leaves, until it is empty; a component
   that leaves finishes what it has in hand. Its items go where they always went.
3. *Move.* In one step of the event loop, all ends and roles are bound as the new graph says. Then work goes on, and what left
   is stopped when no handler is in the middle of using it.

So every item goes the whole old way or the new one from where it waited; none is lost, none is handled twice.
"""

import asyncio
import contextlib
import itertools
import operator
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gossamer.engine.component import SynchronousFilter
from gossamer.engine.connector import DEFAULT_LIMIT, Connector, Retired, Statistics, class_of
from gossamer.engine.ends import Out
from gossamer.engine.errors import EndOfItems, WiringError
from gossamer.engine.gate import current
from gossamer.engine.graph import ComponentNode, ConnectorNode, Graph, ProviderNode, in_flow_order, used_names
from gossamer.engine.local import FusedConnector
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import change, properties
from gossamer.engine.unit import Provider, Unit
from gossamer.engine.wiring import TABLES

if TYPE_CHECKING:
    from gossamer.engine.running import RunningGraph


#: Fields of a component's plan that nothing but another instance can follow.
_OF_AN_INSTANCE = ("instances", "on_error", "restarts", "errors")


class Steps(msgspec.Struct, frozen=True):
    """The way to another graph. A unit that is exchanged for another of its name both leaves and comes."""

    leaving_components: tuple[str, ...]
    coming_components: tuple[str, ...]
    leaving_providers: tuple[str, ...]
    coming_providers: tuple[str, ...]
    """In the order in which they start."""
    leaving_connectors: tuple[str, ...]
    coming_connectors: tuple[str, ...]
    exchanged_connectors: tuple[str, ...]
    """Connectors whose ends stay where they are, and get another address or capacity between them."""
    settings: Mapping[str, Mapping[str, Any]]
    """New values of live settings, by unit that stays."""
    pools: tuple[str, ...]
    """Components that stay and whose pool gets another size."""


def steps(now: Graph, then: Graph, process: str) -> Steps:
    """The steps of this process by which the graph `now` becomes `then`. Raises WiringError: what cannot be done while the
    graph runs, one line for each finding."""
    return _Comparison(now, then).steps(process)


class _Comparison:
    def __init__(self, now: Graph, then: Graph) -> None:
        self.now, self.then = now, then
        self.findings: list[str] = []
        self.settings: dict[str, dict[str, Any]] = {}

    def steps(self, process: str) -> Steps:
        self.leave_other_processes_alone({*self.now.wiring.processes, *self.then.wiring.processes} - {process})
        now, then = self.now.part(process), self.then.part(process)
        providers = {name for name, old in now.providers.items() if self.stays(old, then.providers.get(name))}
        components = {name for name, old in now.components.items() if self.stays(old, then.components.get(name))}
        same_ends, exchanged = self.connectors(now, then, components)
        for name, node in sorted(now.components.items()):
            if name not in components and (why := node.unit.lasts):
                self.finding(f"components.{name}", f"cannot leave a graph that runs: {why}")
        self.what_is_remembered(providers)
        for name in sorted(components):
            old, new = now.components[name], then.components[name]
            if issubclass(old.unit, SynchronousFilter) and old.inputs != new.inputs:
                self.finding(f"components.{name}.ports", "its inputs are taken together, and stay while it runs")
        if self.findings:
            raise WiringError("\n".join(self.findings))

        def without(names: Mapping[str, Any], staying: set[str]) -> tuple[str, ...]:
            return tuple(name for name in names if name not in staying)

        def pool(graph: Graph, name: str) -> tuple[int, float]:
            return graph.components[name].plan.workers, graph.components[name].plan.idle

        return Steps(
            leaving_components=without(now.components, components),
            coming_components=without(then.components, components),
            leaving_providers=without(now.providers, providers),
            coming_providers=without(then.providers, providers),
            leaving_connectors=without(now.connectors, same_ends),
            coming_connectors=without(then.connectors, same_ends),
            exchanged_connectors=tuple(exchanged),
            settings=self.settings,
            pools=tuple(sorted(name for name in components if pool(now, name) != pool(then, name))),
        )

    def finding(self, key: str, text: str) -> None:
        self.findings.append(f"{self.then.wiring.source}: {key}: {text}")

    def leave_other_processes_alone(self, others: set[str]) -> None:
        for other in sorted(others):
            before, after = self.now.part(other), self.then.part(other)
            for table in TABLES:
                old, new = getattr(before, table), getattr(after, table)
                for name in dict.fromkeys((*old, *new)):
                    if old.get(name) != new.get(name):
                        self.finding(
                            f"{table}.{name}",
                            f"belongs to process {other!r}, whose graph is fixed while it runs; stop the crawl, change "
                            "its wiring, and go on",
                        )

    def stays(self, old: ProviderNode | ComponentNode, new: ProviderNode | ComponentNode | None) -> bool:
        """Whether the same instance can go on with the new plan; its new settings are noted then."""
        if new is None or old.unit is not new.unit:
            return False
        lasts: object = issubclass(old.unit, Provider) and old.unit.keeps_state
        if isinstance(old, ComponentNode) and isinstance(new, ComponentNode):
            lasts = old.unit.lasts
            if any(getattr(old.plan, key) != getattr(new.plan, key) for key in _OF_AN_INSTANCE):
                return False
        before, after = msgspec.to_builtins(old.sheet), msgspec.to_builtins(new.sheet)
        values = {name: value for name, value in after.items() if before.get(name) != value}
        fixed = {one.name: one.reason for one in properties(type(old.sheet)) if not one.live and one.name in values}
        if fixed and lasts:
            for setting, reason in fixed.items():
                self.finding(old.name, f"setting {setting!r} can change only with a restart: {reason}")
        elif values and not fixed:
            self.settings[old.name] = values
        return bool(lasts or not fixed)

    def what_is_remembered(self, staying: set[str]) -> None:
        """A role goes on being served by what it was served by, if that remembers something."""
        now, then = self.now, self.then
        for user, roles in sorted(now.roles().items()):
            for role, old in roles.items() if user in then.roles() else ():
                new = then.roles()[user].get(role, old)
                if not isinstance(old, str):
                    continue
                new = new if isinstance(new, str) else old
                behind = now.reached([old])
                remembering = {name for name in behind if now.providers[name].unit.keeps_state}
                if remembering <= then.reached([new]) & staying or (new != old and new in staying & behind):
                    continue
                other = "another in its place" if new == old else repr(new)
                self.finding(
                    f"{user}.providers.{role}",
                    f"{old!r} remembers what {other} would not know, and the graph runs; bind the role to a provider "
                    f"that stands in front of {old!r}",
                )

    def connectors(self, now: Graph, then: Graph, components: set[str]) -> tuple[set[str], list[str]]:
        staying: set[str] = set()
        exchanged: list[str] = []

        def ends(graph: Graph, connector: ConnectorNode) -> set[tuple[str, str]] | None:
            names = (*connector.producers, *connector.consumers)
            if not components.issuperset(names):
                return None
            nodes = [graph.components[name] for name in names]
            bound = ((node.name, *end) for node in nodes for end in (*node.inputs.items(), *node.outputs.items()))
            return {(name, role) for name, role, end in bound if end == connector.name}

        for name in (name for name in now.connectors if name in then.connectors):
            old, new = now.connectors[name], then.connectors[name]
            if class_of(old.item_type) is not class_of(new.item_type):
                self.finding(
                    f"connectors.{name}",
                    f"carries {old.item_name} and cannot carry {new.item_name}; add a connector of another name",
                )
            elif old.plan == new.plan:
                staying.add(name)
            elif ends(self.now, old) == ends(self.then, new) is not None:
                staying.add(name)
                exchanged.append(name)
        return staying, exchanged


U = TypeVar("U", bound="Unit[Any] | Connector[Any]")


async def apply(running: "RunningGraph", then: Graph) -> None:
    todo = steps(running.whole, then, running.process)
    async with contextlib.AsyncExitStack() as begun:
        job = _Change(running, then, todo, begun)
        await job.begin()
        for name in todo.exchanged_connectors:
            await _exchange(running, name, job.connectors[name])
        await job.empty()
        job.move()
        begun.pop_all()
    await job.finish()


class _Change:
    """One change on its way. The steps that it has begun are on a stack, to be taken back if the change does not come about."""

    def __init__(self, running: "RunningGraph", then: Graph, todo: Steps, begun: contextlib.AsyncExitStack) -> None:
        self.running, self.todo, self.begun = running, todo, begun
        self.now, self.then, self.whole = running.graph, then.part(running.process), then
        self.providers: dict[str, Provider[Any]] = {}
        """All that the new graph has, by name, in the order in which they start."""
        self.connectors: dict[str, Connector[Any]] = {}
        self.runners: dict[str, Runner] = {}
        """Those that come."""
        self.held: list[Out[Any]] = []
        self.guarded: list[Connector[Any]] = []
        self.called: list[FusedConnector[Any]] = []
        """Those whose consumer is about to be another."""
        self.left: list[Connector[Any] | Provider[Any]] = []

    async def begin(self) -> None:
        """Make and start what comes. Raises FlowError: a stream that a new unit would feed has ended, something cannot start,
        or refuses its settings; then nothing has changed."""
        running = self.running
        for name in self.todo.coming_components:
            for connector in self.then.components[name].outputs.values():
                old = running.connectors.get(connector)
                if old is not None and old.ended and connector not in self.todo.leaving_connectors:
                    raise WiringError(
                        f"{self.whole.wiring.source}: components.{name}: connector {connector!r} has ended; no unit would "
                        "receive what it sends"
                    )
        for name, values in self.todo.settings.items():
            before = running.sheet(name)
            running.give(name, change(before, values, running=True))
            self.begun.callback(running.give, name, before)
        for name, opened in self.then.connectors.items():
            if name in self.todo.coming_connectors or name in self.todo.exchanged_connectors:
                self.connectors[name] = await self._started(running.open(opened, self.whole))
            else:
                self.connectors[name] = running.connectors[name]
        for name, provider in self.then.providers.items():
            if name in self.todo.coming_providers:
                self.providers[name] = await self._started(running.make_provider(provider, self.providers))
            else:
                self.providers[name] = running.providers[name]
        for name in self.todo.coming_components:
            made = running.make_component(self.then.components[name], self.connectors, self.providers)
            for key, runner in made.items():
                self.begun.callback(runner.close_outputs)
                await self._started(runner.component)
                self.runners[key] = runner

    async def _started(self, unit: U) -> U:
        self.begun.push_async_callback(self.running.stop_one, unit)
        await self.running.start_one(unit)
        return unit

    async def empty(self) -> None:
        """Let everything that leaves finish what it has, in the order in which items flow."""
        running = self.running
        # No stream ends because those who feed it are about to be others.
        self.guarded = [one for one in running.connectors.values() if one.producers and not one.ended]
        for connector in self.guarded:
            connector.add_producer()
        self.begun.callback(self._let_go_on)
        # Connectors that leave, and those that call another component in place from now on.
        leaving = {name: running.connectors[name] for name in self.todo.leaving_connectors}
        for name, connector in running.connectors.items():
            if isinstance(connector, FusedConnector) and name in self.then.connectors and name not in leaving:
                before, after = self.now.connectors[name].consumers, self.then.connectors[name].consumers
                if before != after or not set(before).isdisjoint(self.todo.leaving_components):
                    self.called.append(connector)
                    leaving[name] = connector
        for name in in_flow_order(running.whole):
            node = self.now.components.get(name)
            if node is None:
                continue
            for role, connector_name in node.inputs.items():
                if connector_name in leaving and role not in getattr(node.unit, "spills", ()):
                    await self._emptied(leaving.pop(connector_name))
            if name in self.todo.leaving_components:
                for runner in running.instances(name):
                    await running.let_go(runner)
        for connector in leaving.values():
            await self._emptied(connector)

    async def _emptied(self, connector: Connector[Any]) -> None:
        # Its producers are held until it is empty. Those that leave have left already.
        _, outs = self.running.ends(connector)
        self.held += outs
        for out in outs:
            out.hold()
        await connector.idle()

    def _let_go_on(self) -> None:
        for out in self.held:
            out.release()
        for connector in self.guarded:
            connector.remove_producer()

    def move(self) -> None:
        """Bind everything as the new graph says. Nothing else runs meanwhile."""
        running, todo = self.running, self.todo
        old = {name: running.connectors[name] for name in todo.leaving_connectors}
        self.left = [*(running.providers[name] for name in todo.leaving_providers), *old.values()]
        moved = self._move_ends()
        for name, connector in old.items():
            running.earlier[name] = connector.statistics().after(running.earlier.get(name, Statistics()))
            connector.retire()
        running.connectors = self.connectors
        running.providers = self.providers
        running.runners.update(self.runners)
        running.whole = self.whole
        running.bind()
        for node, runner in self._staying():
            if node.name in todo.pools:
                runner.resize(node.plan.workers, node.plan.idle)
        for runner in moved:
            runner.look_again()
        for name, runner in self.runners.items():
            running.set_to_work(name, runner)
        self._let_go_on()

    def _staying(self) -> Iterator[tuple[ComponentNode, Runner]]:
        for name, node in self.then.components.items():
            if name not in self.todo.coming_components:
                for runner in self.running.instances(name):
                    yield node, runner

    def _move_ends(self) -> list[Runner]:
        for called in self.called:
            called.detach()
        moved = []
        for node, runner in self._staying():
            for role, inlet in runner.component.ins.items():
                if self.connectors[node.inputs[role]] is not inlet.connector:
                    inlet.rebind(self.connectors[node.inputs[role]])
                    moved.append(runner)
        # A fused connector must know its consumer before a producer goes on.
        for runner in (*moved, *self.runners.values()):
            runner.attach()
        for node, runner in self._staying():
            for role, out in runner.component.outs.items():
                before, after = out.connector, self.connectors[node.outputs[role]]
                if after is not before:
                    out.rebind(after)
                    for _ in range(out.open_ends):
                        before.remove_producer()
        return moved

    async def finish(self) -> None:
        for node, runner in list(self._staying()):
            before = self.now.components.get(node.name)
            if before is not None and self.now.reached(used_names(before.roles)).intersection(
                self.todo.leaving_providers
            ):
                await runner.gate.turnover()
        for unit in reversed(self.left):
            await self.running.stop_one(unit)


async def _exchange(running: "RunningGraph", name: str, new: Connector[Any]) -> None:
    """Put another connector between the same ends while items flow; none is lost, and their order is kept.

    Producers are held; what waits in the old connector goes over into the new one, also while its consumers are suspended. Only a
    fused one has no room, and a remote one a window: they wait for the consumers.
    """
    old = running.connectors[name]
    ins, outs = running.ends(old)
    for out in outs:
        out.hold()
    moved = 0
    try:
        if isinstance(new, FusedConnector) or not ins:
            await old.idle()
        else:
            # Consumers that wait at the old one take what still comes until it is retired; all others go to the new one at once.
            for inlet in ins:
                inlet.rebind(new)
            async with asyncio.TaskGroup() as group:
                moving = group.create_task(_move(old, new))
                await old.idle()
                old.retire()
            moved = moving.result()
    finally:
        # Also if it was cut short: the ends must not be left between two connectors. A fused one must know its consumer first.
        for inlet in ins:
            inlet.rebind(new)
        if isinstance(new, FusedConnector):
            for runner in running.runners.values():
                if any(inlet in ins for inlet in runner.component.ins.values()):
                    runner.attach()
        for out in outs:
            out.rebind(new)
            out.release()
        figures = old.statistics().after(running.earlier.get(name, Statistics()))
        running.earlier[name] = msgspec.structs.replace(figures, passed=figures.passed - moved)
        running.connectors[name] = new
    old.retire()
    if old.ended:
        new.end_here()
    await running.stop_one(old)


async def _move(old: Connector[Any], new: Connector[Any]) -> int:
    moved = 0
    while True:
        try:
            items, receipts = await old.take(DEFAULT_LIMIT)
        except (Retired, EndOfItems):
            return moved
        moved += len(items)
        pairs = zip(items, receipts or itertools.repeat(None), strict=False)
        for receipt, group in itertools.groupby(pairs, key=operator.itemgetter(1)):
            batch = [item for item, _ in group]
            token = current.set(receipt)
            try:
                await new.adopt(batch, receipt)
            finally:
                current.reset(token)
            if receipt is not None:
                receipt.release(len(batch))
