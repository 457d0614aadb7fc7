"""The graph: a wiring whose names were found and whose types fit, as one value; the checks of what fits what; and the value for
people and programs, as text, DOT, Mermaid and JSON (TOML is the wiring itself).

Place in the flow: :func:`gossamer.engine.planning.plan` makes a graph, or says everything that is wrong with the wiring. A
running graph asks the same checks before it is changed, so both refuse for the same reasons in the same words. Supervisor,
`topology`, dashboard and documentation read the value; none of them needs to know a particular unit, and none shows what a sheet
calls secret.
"""

import graphlib
import inspect
import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from gossamer.engine import ends as ports
from gossamer.engine.component import AsynchronousFilter, Component, OneInput, SynchronousFilter
from gossamer.engine.connector import class_of
from gossamer.engine.errors import SettingError, WiringError
from gossamer.engine.sheet import Sheet, build, hidden, shown
from gossamer.engine.transports import transport_of
from gossamer.engine.unit import Provider, bind
from gossamer.engine.wiring import ComponentPlan, ConnectorPlan, OnError, Wiring, with_settings

# -- the value

Roles = Mapping[str, str | Mapping[str, tuple[str, ...]]]
"""A provider's name for each role, or names by key for a keyed role."""


class ProviderNode(msgspec.Struct, frozen=True):
    """A provider of the graph."""

    name: str
    use: str
    unit: type[Provider[Any]]
    sheet: Sheet
    roles: Roles


class ComponentNode(msgspec.Struct, frozen=True):
    """A component of the graph."""

    name: str
    use: str
    unit: type[Component[Any]]
    sheet: Sheet
    roles: Roles
    inputs: Mapping[str, str]
    """Connector of each input."""
    outputs: Mapping[str, str]
    plan: ComponentPlan
    on_error: OnError = "stop"
    """The rule of the plan for errors, or the usual one where the plan has none."""

    @property
    def kind(self) -> str:
        return self.unit.kind


class ConnectorNode(msgspec.Struct, frozen=True):
    """A connector of the graph, with the components at its ends."""

    name: str
    item_type: Any
    plan: ConnectorPlan
    producers: tuple[str, ...]
    consumers: tuple[str, ...]

    @property
    def item_name(self) -> str:
        return class_of(self.item_type).__name__

    @property
    def scheme(self) -> str:
        return self.plan.address.partition(":")[0]


class Graph(msgspec.Struct, frozen=True):
    """Units and connectors, checked against each other. A running graph that is changed goes on with another value."""

    providers: Mapping[str, ProviderNode]
    """In the order in which they start: the used before their users."""
    connectors: Mapping[str, ConnectorNode]
    components: Mapping[str, ComponentNode]
    wiring: Wiring
    """The same as a plan: planned again it gives this graph, whatever was changed on the way."""

    def roles(self) -> dict[str, Roles]:
        components = {name: node.roles for name, node in self.components.items()}
        return {**components, **{name: node.roles for name, node in self.providers.items()}}

    def sheet(self, name: str) -> Sheet:
        """The settings of a unit, in whichever process it runs."""
        return (self.components.get(name) or self.providers[name]).sheet

    def part(self, process: str) -> "Graph":
        """The part that one process runs: its components, the connectors that they touch, the providers that they reach."""
        components = {name: node for name, node in self.components.items() if node.plan.process == process}
        touched = {end for node in components.values() for end in (*node.inputs.values(), *node.outputs.values())}
        reached = self.reached(name for node in components.values() for name in used_names(node.roles))
        return msgspec.structs.replace(
            self,
            components=components,
            connectors={name: node for name, node in self.connectors.items() if name in touched},
            providers={name: node for name, node in self.providers.items() if name in reached},
        )

    def reached(self, names: Iterable[str]) -> set[str]:
        """These providers, and all that stand behind them."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += used_names(self.providers[name].roles)
        return found

    def with_settings(self, name: str, values: Mapping[str, Any], sheet: Sheet) -> "Graph":
        """A copy in which the unit of this name has another sheet, made of these values on top of what it had."""
        wiring = with_settings(self.wiring, name, dict(values))
        if name in self.components:
            node = msgspec.structs.replace(self.components[name], sheet=sheet, plan=wiring.components[name])
            return msgspec.structs.replace(self, wiring=wiring, components={**self.components, name: node})
        provider = msgspec.structs.replace(self.providers[name], sheet=sheet)
        return msgspec.structs.replace(self, wiring=wiring, providers={**self.providers, name: provider})


def start_order(providers: Mapping[str, ProviderNode]) -> dict[str, ProviderNode]:
    """Providers in the order in which they start: the used before their users. Raises WiringError: they use each other in a
    circle."""
    uses = {name: set(used_names(node.roles)) for name, node in providers.items()}
    try:
        return {name: providers[name] for name in graphlib.TopologicalSorter(uses).static_order()}
    except graphlib.CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise WiringError(f"depend on each other in a circle: {circle}; cut it in one place") from None


def used_names(roles: Roles) -> Iterator[str]:
    for bound in roles.values():
        if isinstance(bound, str):
            yield bound
        else:
            for names in bound.values():
                yield from names


Finding = tuple[str, str]
"""The key of the wiring that is wrong; what is wrong with it and what would be right."""


def misfits(graph: Graph) -> Iterator[Finding]:
    yield from _arrows(graph)
    for node in graph.components.values():
        if node.plan.workers > 1 and not issubclass(node.unit, OneInput):
            text = f"is {node.plan.workers}, but {node.use!r} is of kind {node.kind}; only filters and consumers have a pool"
            yield f"components.{node.name}.workers", text
    yield from _processes(graph)
    for connector in graph.connectors.values():
        key, consumers = (
            f"connectors.{connector.name}.address",
            [graph.components[name] for name in connector.consumers],
        )
        if connector.scheme == "fused" and (len(consumers) != 1 or consumers[0].plan.instances != 1):
            yield key, "fused: takes one consumer of one instance; use local: for several"
        elif connector.scheme == "fused" and not issubclass(consumers[0].unit, OneInput):
            yield key, f"fused: takes a filter or a consumer; {consumers[0].name!r} is neither, use local:"
    # A ring of bounded queues can stop dead: one input on it accepts always, and spills (ARCHITECTURE.md).
    try:
        in_flow_order(graph)
    except graphlib.CycleError as error:
        ring = " -> ".join(error.args[1])
        text = f"{ring} is a ring in which no input spills to disk, so it can deadlock; let one input on it spill"
        yield "components", text


def _arrows(graph: Graph) -> Iterator[Finding]:
    """Both ends of an arrow speak of one type, and it has a codec."""
    for connector in graph.connectors.values():
        key, made, taken = f"connectors.{connector.name}", dict[str, Any](), dict[str, Any]()
        for node in graph.components.values():
            declared = ports.declared(node.unit)
            for found, kinds, bound in ((made, declared.outputs, node.outputs), (taken, declared.inputs, node.inputs)):
                found |= {f"{node.name}.{role}": kinds[role] for role, name in bound.items() if name == connector.name}
        for (source, makes), (target, takes) in itertools.product(made.items(), taken.items()):
            if not assignable(makes, takes):
                differ = f"{source} makes {type_name(makes)}, but {target} takes {type_name(takes)}"
                yield key, f"{differ}; bind ports of one type"
        try:
            class_of(connector.item_type)
            build(transport_of(connector.plan.address).sheet, connector.plan.options)
        except (WiringError, SettingError) as error:
            yield key, str(error)


def _processes(graph: Graph) -> Iterator[Finding]:
    """An arrow between two processes is remote; a provider that keeps state lives in one process."""
    where = {name: node.plan.process for name, node in graph.components.items()}
    for connector in graph.connectors.values():
        ends = {where[name] for name in (*connector.producers, *connector.consumers)}
        try:
            is_wrong = len(ends) > 1 and not transport_of(connector.plan.address).remote
        except WiringError:
            continue  # an unknown scheme is another finding's
        if is_wrong:
            joined = f"{connector.plan.address!r} joins processes {', '.join(sorted(ends))}"
            yield f"connectors.{connector.name}.address", f"{joined}; give it a unix: or tcp: address"
    homes: dict[str, set[str]] = {}
    for process in sorted(set(where.values())):
        for name in graph.part(process).providers:
            homes.setdefault(name, set()).add(process)
    for name, processes in homes.items():
        if len(processes) > 1 and graph.providers[name].unit.keeps_state:
            used = f"keeps state and is used from processes {', '.join(sorted(processes))}"
            yield f"providers.{name}", f"{used}; give each process a provider of its own"


def in_flow_order(graph: Graph) -> list[str]:
    """Components in the order in which items reach them; inputs that spill do not count. Raises graphlib.CycleError: there is
    a ring without a spill."""
    feeds: dict[str, set[str]] = {name: set() for name in graph.components}
    for node in graph.components.values():
        spilling = node.unit.spills if issubclass(node.unit, AsynchronousFilter) else frozenset()
        for role, connector in node.inputs.items():
            if role not in spilling:
                feeds[node.name] |= set(graph.connectors[connector].producers)
    return list(graphlib.TopologicalSorter(feeds).static_order())


def skippable(unit: type[Component[Any]]) -> bool:
    """Whether an item that the component cannot handle can do without it: nothing comes after, or it goes on as it is."""
    declared = ports.declared(unit)
    if issubclass(unit, SynchronousFilter) or not declared.inputs:
        return False
    if not declared.outputs:
        return True
    outputs = list(declared.outputs.values())
    return len(outputs) == 1 and all(assignable(taken, outputs[0]) for taken in declared.inputs.values())


@lru_cache(maxsize=512)  # the same pairs are asked for in each plan of a process, and when a unit is exchanged
def lacking(unit: type, interface: Any) -> tuple[str, ...]:
    """Methods of a Protocol (or base class) that a class lacks or takes other parameters for."""
    bare = typing.get_origin(interface) or interface
    missing = []
    for name in dir(bare):
        wanted = None if name.startswith("_") else getattr(bare, name, None)
        if not callable(wanted):
            continue
        offered = getattr(unit, name, None)
        if not callable(offered):
            missing.append(f"{name}()")
        elif inspect.isfunction(offered) and inspect.isfunction(wanted) and not _takes(offered, wanted):
            names = [p for p in inspect.signature(wanted).parameters if p != "self"]
            missing.append(f"{name}({', '.join(names)})")
    return tuple(missing)


def _takes(offered: Any, wanted: Any) -> bool:
    """Whether one method can be called as another is: as many by position, and every keyword that it names."""
    if not hasattr(offered, "__wrapped__") and not hasattr(wanted, "__wrapped__"):
        # As many by position, and nothing by keyword alone: as nearly all methods are.
        has_code, needs_code = offered.__code__, wanted.__code__
        if has_code.co_argcount == needs_code.co_argcount and not needs_code.co_kwonlyargcount:
            return True
    has, needs = inspect.signature(offered).parameters.values(), inspect.signature(wanted).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in has):
        return True
    by_position = [p for p in has if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    given = [p for p in needs if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(by_position) < len(given) or any(p.default is p.empty for p in by_position[len(given) :]):
        return False
    named = {p.name for p in has} if not any(p.kind is p.VAR_KEYWORD for p in has) else None
    return named is None or all(p.name in named for p in needs if p.kind is p.KEYWORD_ONLY)


def assignable(made: Any, taken: Any) -> bool:
    """Whether an item of one type may go where another is taken."""
    if made == taken:
        return True
    return isinstance(made, type) and isinstance(taken, type) and issubclass(made, taken)


def type_name(item_type: Any) -> str:
    return getattr(item_type, "__name__", str(item_type))


# -- the graph for people and programs


def first_sentence(unit: type) -> str:
    return (unit.__doc__ or "").strip().split("\n")[0]


def _shown(node: ComponentNode | ProviderNode) -> dict[str, Any]:
    providers = sorted(set(used_names(node.roles)))
    return {"providers": providers, "settings": shown(node.sheet), "doc": first_sentence(node.unit)}


def to_json(graph: Graph) -> dict[str, Any]:
    """Plain data: units with their kinds, bindings and settings, connectors with their ends."""
    return {
        "components": {
            node.name: {
                "use": node.use,
                "kind": node.kind,
                "process": node.plan.process,
                "workers": node.plan.workers,
                "instances": node.plan.instances,
                "inputs": dict(node.inputs),
                "outputs": dict(node.outputs),
                **_shown(node),
            }
            for node in graph.components.values()
        },
        "connectors": {
            node.name: {
                "carries": node.item_name,
                "address": node.plan.address,
                "capacity": node.plan.capacity,
                "from": list(node.producers),
                "to": list(node.consumers),
            }
            for node in graph.connectors.values()
        },
        "providers": {node.name: {"use": node.use, **_shown(node)} for node in graph.providers.values()},
    }


def without_secrets(graph: Graph) -> Wiring:
    """The wiring of a graph, to be shown: with secrets hidden, which are to be given again before it runs."""

    def hide(plans: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: msgspec.structs.replace(plan, settings=hidden(type(graph.sheet(name)), plan.settings))
            for name, plan in plans.items()
        }

    wiring = graph.wiring
    return msgspec.structs.replace(wiring, components=hide(wiring.components), providers=hide(wiring.providers))


def to_text(graph: Graph) -> str:
    """One line for each arrow, in the order of the wiring, then the providers and their users."""
    lines = ["components and connectors"]
    for component in graph.components.values():
        plan = component.plan
        many = f" x{plan.instances}" if plan.instances > 1 else ""
        pool = f", {plan.workers} workers" if plan.workers > 1 else ""
        told = " - ".join(filter(None, (f"({component.kind}{pool})", first_sentence(component.unit))))
        lines.append(f"  {component.name}{many} {told}")
        for role, name in component.outputs.items():
            connector = graph.connectors[name]
            takers = ", ".join(connector.consumers) or "none"
            lines.append(f"    {role} --[{name}: {connector.item_name}, {connector.plan.address}]--> {takers}")
    lines.append("providers")
    for provider in graph.providers.values():
        users = ", ".join(user for user, used in _uses(graph) if used == provider.name) or "none"
        told = " - ".join(filter(None, (f"used by {users}", first_sentence(provider.unit))))
        lines.append(f"  {provider.name} ({provider.use}), {told}")
    return "\n".join(lines)


def to_dot(graph: Graph) -> str:
    """Graphviz: components as ellipses, providers as cylinders, connectors as labelled arrows."""
    lines = ["digraph gossamer {", "  rankdir=LR;"]
    lines += [
        f'  "{node.name}" [shape=ellipse, label="{node.name}\\n({node.kind})"];' for node in graph.components.values()
    ]
    lines += [f'  "{name}" [shape=cylinder];' for name in graph.providers]
    lines += [f'  "{source}" -> "{target}" [label="{label}"];' for source, target, label in _drawn(graph)]
    lines += [f'  "{user}" -> "{used}" [style=dashed, arrowhead=open];' for user, used in _uses(graph)]
    return "\n".join([*lines, "}"])


def to_mermaid(graph: Graph) -> str:
    def identifier(name: str) -> str:
        """One that Mermaid takes, also where the name is one of its words (`end`); another for each name."""
        return "u_" + name.replace("_", "__").replace("-", "_0")

    lines = ["flowchart LR"]
    lines += [f"  {identifier(name)}([{name}])" for name in graph.components]
    lines += [f"  {identifier(name)}[({name})]" for name in graph.providers]
    lines += [f"  {identifier(one)} -- {label} --> {identifier(other)}" for one, other, label in _drawn(graph)]
    lines += [f"  {identifier(user)} -.-> {identifier(used)}" for user, used in _uses(graph)]
    return "\n".join(lines)


def _drawn(graph: Graph) -> list[tuple[str, str, str]]:
    return [
        (one, other, node.name)
        for node in graph.connectors.values()
        for one in node.producers
        for other in node.consumers
    ]


def _uses(graph: Graph) -> list[tuple[str, str]]:
    return [(name, used) for name, roles in graph.roles().items() for used in sorted(set(used_names(roles)))]


def providers_of(
    graph: Graph, names: Iterable[str], known: Mapping[str, Provider[Any]] = {}
) -> dict[str, Provider[Any]]:
    """These providers of a graph, each behind those that it uses, made as a crawl makes them, in a life of their own; none is
    started. `known` stand for those of their names."""
    wanted = graph.reached(names)
    units: dict[str, Provider[Any]] = {}
    for name, node in graph.providers.items():
        if name in wanted and name in known:
            units[name] = known[name]
        elif name in wanted:
            units[name] = unit = node.unit(node.sheet)
            unit.name = name
            bind(unit, node.roles, units)
    return units
