"""A running graph becomes another one: what is new is started, what leaves is emptied, the ends are moved, what left is stopped.

:mod:`~gossamer.engine.change_steps` says what has to be done, or refuses before anything is touched. Then three parts:

1. *Begin.* What comes is made and started, live settings are given. Where that fails, all of it is taken back.
2. *Empty.* In the order in which items flow: producers are held before a connector that leaves, until it is empty; a component
   that leaves finishes what it has in hand. What it sends goes where it always went.
3. *Move.* In one step of the event loop, all ends and roles are bound as the new graph says. Then work goes on, and what left
   is stopped when no handler is in the middle of using it.

So every item goes the whole old way or the new one from where it waited; none is lost, none is handled twice.
"""

import asyncio
import contextlib
import itertools
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gossamer.engine.change_steps import Steps, steps
from gossamer.engine.connector import DEFAULT_LIMIT, Connector, Retired, Statistics
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import EndOfItems, WiringError
from gossamer.engine.gate import current
from gossamer.engine.graph import ComponentNode, Graph, in_flow_order, used_names
from gossamer.engine.local import FusedConnector
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import change
from gossamer.engine.unit import Provider, Unit
from gossamer.engine.units import bind

if TYPE_CHECKING:
    from gossamer.engine.running import RunningGraph

U = TypeVar("U", bound="Unit[Any] | Connector[Any]")


async def apply(running: "RunningGraph", then: Graph) -> None:
    """See :meth:`RunningGraph.apply`."""
    todo = steps(running.whole, then, running.process)
    async with contextlib.AsyncExitStack() as begun:
        job = _Change(running, then, todo, begun)
        job.check_streams()
        await job.begin()
        for name in todo.exchanged_connectors:
            await _exchange(running, name, job.connectors[name])
        await job.empty()
        job.move()
        begun.pop_all()
    await job.finish()


class _Change:
    """One change on its way. What it has begun is put on a stack, to be taken back if the change does not come about."""

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

    # -- before anything is touched

    def check_streams(self) -> None:
        """Refuse a producer for a stream that has ended: its items would be lost."""
        for name in self.todo.coming_components:
            for connector in self.then.components[name].outputs.values():
                old = self.running.connectors.get(connector)
                if old is not None and old.ended and connector not in self.todo.leaving_connectors:
                    raise WiringError(
                        f"{self.whole.wiring.source}: components.{name}: connector {connector!r} has ended; no unit would "
                        "receive what it sends"
                    )

    # -- begin

    async def begin(self) -> None:
        """Make and start what comes.

        Raises:
            FlowError: something cannot start, or refuses its settings; then nothing has changed.
        """
        running = self.running
        for name, values in self.todo.settings.items():
            before = running.sheet(name)
            running.give(name, change(before, values, running=True))
            self.begun.callback(running.give, name, before)
        for name, connector in self.then.connectors.items():
            if name in self.todo.coming_connectors or name in self.todo.exchanged_connectors:
                self.connectors[name] = await self._started(running.open(connector, self.whole))
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

    # -- empty

    async def empty(self) -> None:
        """Let everything that leaves finish what it has, in the order in which items flow."""
        running = self.running
        # No stream ends because those who feed it are about to be others.
        self.guarded = [one for one in running.connectors.values() if one.producers and not one.ended]
        for connector in self.guarded:
            connector.add_producer()
        self.begun.callback(self._let_go_on)
        leaving = self._to_be_empty()
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

    def _to_be_empty(self) -> dict[str, Connector[Any]]:
        """Connectors that leave, and those that call another component in place from now on."""
        running, leaving = self.running, self.todo.leaving_components
        found = {name: running.connectors[name] for name in self.todo.leaving_connectors}
        for name, connector in running.connectors.items():
            if isinstance(connector, FusedConnector) and name in self.then.connectors and name not in found:
                before, after = self.now.connectors[name].consumers, self.then.connectors[name].consumers
                if before != after or not set(before).isdisjoint(leaving):
                    self.called.append(connector)
                    found[name] = connector
        return found

    async def _emptied(self, connector: Connector[Any]) -> None:
        """Hold the producers of a connector until it is empty. Those that leave have left already."""
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

    # -- move

    def move(self) -> None:
        """Bind everything as the new graph says. Nothing else runs meanwhile."""
        running, todo = self.running, self.todo
        old = {name: running.connectors[name] for name in todo.leaving_connectors}
        self.left = [*(running.providers[name] for name in todo.leaving_providers), *old.values()]
        moved = self._move_inputs()
        self._move_outputs()
        for name, connector in old.items():
            running.earlier[name] = connector.statistics().after(running.earlier.get(name, Statistics()))
            connector.retire()
        running.connectors = self.connectors
        running.providers = self.providers
        running.runners.update(self.runners)
        running.replace_graph(self.whole)
        for name, roles in self.then.roles().items():
            if name not in todo.coming_components and name not in todo.coming_providers:
                for unit in running.units(name):
                    bind(unit, roles, self.providers)
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

    def _move_inputs(self) -> list[Runner]:
        """Runners that take from elsewhere now. A fused connector must know its consumer before a producer goes on."""
        for connector in self.called:
            connector.detach()
        moved = []
        for node, runner in self._staying():
            for role, inlet in runner.component.ins.items():
                if self.connectors[node.inputs[role]] is not inlet.connector:
                    inlet.rebind(self.connectors[node.inputs[role]])
                    moved.append(runner)
        for runner in (*moved, *self.runners.values()):
            runner.attach()
        return moved

    def _move_outputs(self) -> None:
        for node, runner in self._staying():
            for role, out in runner.component.outs.items():
                before, after = out.connector, self.connectors[node.outputs[role]]
                if after is not before:
                    out.rebind(after)
                    for _ in range(out.open_ends):
                        before.remove_producer()

    # -- finish

    async def finish(self) -> None:
        """Stop the units that left, once no handler is in the middle of using them."""
        leaving = set(self.todo.leaving_providers)
        users = [
            runner
            for node, runner in self._staying()
            if node.name in self.now.components
            and leaving & self.now.reached(used_names(self.now.components[node.name].roles))
        ]
        await asyncio.gather(*(runner.turnover() for runner in users))
        for unit in reversed(self.left):
            await self.running.stop_one(unit)


# -- a connector between the same ends


async def _exchange(running: "RunningGraph", name: str, new: Connector[Any]) -> None:
    """Put another connector between the same ends while items flow; none is lost, and their order is kept.

    Producers are held at their ends; what waits in the old connector goes over into the new one, also while its
    consumers are suspended. Only a fused one has no room, and a remote one a window: they wait for the consumers.
    """
    old = running.connectors[name]
    ins, outs = running.ends(old)
    for out in outs:
        out.hold()
    moved = 0
    try:
        moved = await _empty(old, new, ins)
    finally:
        # Also if it was cut short: the ends must not be left between two connectors.
        _move_ends(running, new, ins, outs)
        figures = old.statistics().after(running.earlier.get(name, Statistics()))
        running.earlier[name] = msgspec.structs.replace(figures, passed=figures.passed - moved)
        running.connectors[name] = new
    old.retire()
    if old.ended:
        new.end_here()
    await running.stop_one(old)


def _move_ends(running: "RunningGraph", new: Connector[Any], ins: list[In[Any]], outs: list[Out[Any]]) -> None:
    """Consumers first: a fused connector must know its consumer before a producer goes on."""
    for inlet in ins:
        inlet.rebind(new)
    if isinstance(new, FusedConnector):
        for runner in running.runners.values():
            if any(inlet in ins for inlet in runner.component.ins.values()):
                runner.attach()
    for out in outs:
        out.rebind(new)
        out.release()


async def _empty(old: Connector[Any], new: Connector[Any], ins: list[In[Any]]) -> int:
    """Wait until nothing is left in the old connector; how many items went over into the new one.

    Consumers that wait at the old one take what still comes until it is retired; all others go to the new one at once.
    """
    if isinstance(new, FusedConnector) or not ins:
        await old.idle()
        return 0
    for inlet in ins:
        inlet.rebind(new)
    async with asyncio.TaskGroup() as group:
        moving = group.create_task(_move(old, new))
        await old.idle()
        old.retire()
    return moving.result()


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
