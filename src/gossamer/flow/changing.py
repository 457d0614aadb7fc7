"""Changes of a running graph: providers and connectors exchanged, components added and removed, while items flow.

Each is one coroutine that :class:`~gossamer.flow.running.RunningGraph` runs, one after the other. First the change is made
to the graph as a value and checked, as a wiring is; then it is carried out; so a change that is refused has changed nothing.
"""

import asyncio
import itertools
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.flow import ports
from gossamer.flow.connector import DEFAULT_LIMIT, Connector, Retired, Statistics
from gossamer.flow.ends import In, Out
from gossamer.flow.errors import EndOfItems, UnknownName, WiringError
from gossamer.flow.fitting import lacking, misfits, type_name
from gossamer.flow.fused import FusedConnector
from gossamer.flow.graph import ComponentNode, Graph, ProviderNode, used_names
from gossamer.flow.receipt import current
from gossamer.flow.sheet import nearest
from gossamer.flow.units import bind, renamed

if TYPE_CHECKING:
    from gossamer.flow.running import RunningGraph


def _refuse_misfits(what: str, graph: Graph) -> None:
    found = [f"{what}: {key}: {text}" for key, text in misfits(graph)]
    if found:
        raise WiringError("\n".join(found))


# -- providers


async def exchange_provider(running: "RunningGraph", name: str, node: ProviderNode) -> None:
    """See :meth:`RunningGraph.exchange_provider`."""
    if name not in running.providers:
        raise UnknownName(f"no provider {name!r} runs in process {running.process!r}{nearest(name, running.providers)}")
    old = running.providers[name]
    behind = _unused(f"{name}-behind", running) if name in used_names(node.roles) else ""
    node = msgspec.structs.replace(node, name=name, roles=renamed(node.roles, name, behind))
    moved = [msgspec.structs.replace(running.whole.providers[name], name=behind)] if behind else []
    known = {**running.providers, **({behind: old} if behind else {})}
    _refuse_unfit_provider(running, name, node, known)
    whole = running.whole.with_providers(node, *moved)
    new = running.make_provider(node, known)
    async with running.stopped_on_failure(new):
        await running.start_one(new)
    known[name] = new
    running.providers = {key: known[key] for key in whole.providers if key in known}
    running.replace_graph(whole)
    for user, roles in running.users(name):
        bind(user, roles, running.providers)
    if behind:
        old.name = behind
        return
    await asyncio.gather(*(runner.turnover() for runner in running.reaching(name)))
    await running.stop_one(old)


def _unused(name: str, running: "RunningGraph") -> str:
    """This name, or with a number, where an earlier exchange took it."""
    taken = {**running.whole.providers, **running.whole.components}
    return next(
        free for number in itertools.count(1) if (free := name + (f"-{number}" if number > 1 else "")) not in taken
    )


def _refuse_unfit_provider(running: "RunningGraph", name: str, node: ProviderNode, known: Mapping[str, Any]) -> None:
    what = f"provider {name!r} cannot be exchanged for {node.use!r}"
    for used in used_names(node.roles):
        if used not in known:
            raise UnknownName(f"{what}: no provider {used!r} runs here{nearest(used, known)}")
    for user, roles in running.users(name):
        declared = ports.declared(type(user))
        for role, interface in {**declared.uses, **declared.uses_many}.items():
            if name in used_names({role: roles[role]}) and (missing := lacking(node.unit, interface)):
                wanted = f"{type_name(interface)}, as {user.name}.{role} needs"
                raise WiringError(f"{what}: {node.unit.__name__} is no {wanted}: it lacks {', '.join(missing)}")


# -- connectors


async def exchange_connector(running: "RunningGraph", name: str, address: str, options: Mapping[str, Any]) -> None:
    """See :meth:`RunningGraph.exchange_connector`."""
    node = running.connector_node(name)
    old = running.connectors[name]
    node = msgspec.structs.replace(
        node, plan=msgspec.structs.replace(node.plan, address=address, options=dict(options))
    )
    whole = running.whole.with_connector(node)
    _refuse_misfits(f"connector {name!r} cannot become {address!r}", whole)
    new = running.open(node)
    async with running.stopped_on_failure(new):
        await running.start_one(new)
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
        running.replace_graph(whole)
    old.retire()
    if old.ended:
        new.end_here()
    await running.stop_one(old)


def _move_ends(running: "RunningGraph", new: Connector[Any], ins: list[In[Any]], outs: list[Out[Any]]) -> None:
    """Consumers first: a fused connector must know whom to call before a producer goes on."""
    for inlet in ins:
        inlet.rebind(new)
    if isinstance(new, FusedConnector):
        for runner in running.runners.values():
            if any(inlet in ins for inlet in runner.component.ins.values()):
                runner.attach()
    for out in outs:
        out.rebind(new)


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


# -- components


async def add_component(running: "RunningGraph", node: ComponentNode) -> None:
    """See :meth:`RunningGraph.add_component`."""
    _refuse_unfit_component(running, node)
    whole = running.whole.with_component(node)
    _refuse_misfits(f"component {node.name!r} cannot be added", whole)
    runners = running.make_component(node)
    running.replace_graph(whole)
    try:
        for runner in runners:
            await running.start_one(runner.component)
    except BaseException:
        running.replace_graph(running.whole.without_component(node.name))
        for runner in runners:
            runner.close_outputs()
            del running.runners[runner.component.name]
            await running.stop_one(runner.component)
        raise
    for runner in runners:
        running.set_to_work(runner.component.name, runner)


def _refuse_unfit_component(running: "RunningGraph", node: ComponentNode) -> None:
    what = f"component {node.name!r} cannot be added"
    if node.name in running.whole.components or node.name in running.whole.providers:
        raise WiringError(f"{what}: a unit of this name runs already; give the new one another name")
    if node.plan.process != running.process:
        raise WiringError(f"{what}: it is planned for process {node.plan.process!r}, and this is {running.process!r}")
    for connector in (*node.inputs.values(), *node.outputs.values()):
        running.connector_node(connector)
    for connector in node.outputs.values():
        if running.connectors[connector].ended:
            raise WiringError(f"{what}: connector {connector!r} has ended; nobody would receive what it sends")
    for provider in used_names(node.roles):
        if provider not in running.providers:
            raise UnknownName(f"{what}: no provider {provider!r} runs here{nearest(provider, running.providers)}")


async def remove_component(running: "RunningGraph", name: str) -> None:
    """See :meth:`RunningGraph.remove_component`."""
    components = running.graph.components
    if name not in components:
        raise UnknownName(f"no component {name!r} runs in process {running.process!r}{nearest(name, components)}")
    whole = running.whole.without_component(name)
    for connector in components[name].inputs.values():
        node = whole.connectors[connector]
        if node.producers and not node.consumers:
            makers = ", ".join(node.producers)
            raise WiringError(
                f"component {name!r} cannot be removed: nothing else takes what {makers} puts into {connector!r}; "
                "add another consumer first"
            )
    for runner in running.instances(name):
        await running.let_go(runner)
    running.replace_graph(whole)
