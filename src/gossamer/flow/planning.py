"""Planning: a wiring's names are looked up and its types held against each other, before anything is started.

What is wrong is said all at once, one line for each finding, so that a person mends the file in one go.
"""

import graphlib
import inspect
import typing
from collections.abc import Mapping
from typing import Any

from gossamer.flow import ports
from gossamer.flow.catalog import Catalog
from gossamer.flow.component import AsynchronousFilter, OneInput
from gossamer.flow.connector import class_of
from gossamer.flow.errors import SettingError, WiringError
from gossamer.flow.graph import ComponentNode, ConnectorNode, Graph, ProviderNode, Roles, used_names
from gossamer.flow.sheet import build, nearest
from gossamer.flow.transports import transport_of
from gossamer.flow.wiring import ComponentPlan, ConnectorPlan, ProviderPlan, Wiring

N = typing.TypeVar("N")


def plan(wiring: Wiring, catalog: Catalog) -> Graph:
    """Check a wiring and make its graph.

    Raises:
        WiringError: what is wrong, one line for each finding, each naming file, key and what would be right.
    """
    return _Planner(wiring, catalog).graph()


def provider_node(name: str, provider_plan: ProviderPlan, wiring: Wiring, catalog: Catalog) -> ProviderNode:
    """One provider more for a graph that runs: checked as in a plan, before anything is exchanged.

    Raises:
        WiringError: what is wrong with it.
    """
    planner = _Planner(wiring, catalog)
    node = planner.provider(name, provider_plan)
    planner.stop_if_wrong()
    assert node is not None
    return node


class _Planner:
    """Collects findings, so that a person mends them all at once."""

    def __init__(self, wiring: Wiring, catalog: Catalog) -> None:
        self.wiring = wiring
        self.catalog = catalog
        self.findings: list[str] = []

    def finding(self, key: str, text: str) -> None:
        self.findings.append(f"{self.wiring.source}: {key}: {text}")

    def stop_if_wrong(self) -> None:
        if self.findings:
            raise WiringError("\n".join(self.findings))

    def graph(self) -> Graph:
        if not self.wiring.components:
            self.finding("components", "there are none; a plan has one at least")
        providers = _found({name: self.provider(name, plan) for name, plan in self.wiring.providers.items()})
        components = _found({name: self.component(name, plan) for name, plan in self.wiring.components.items()})
        self.stop_if_wrong()
        ordered = self.start_order(providers)
        connectors = self.connect(components)
        self.stop_if_wrong()
        graph = Graph(ordered, connectors, components, self.wiring)
        self.unused_providers(graph)
        self.processes(graph)
        self.fused(graph)
        self.cycles(graph)
        self.stop_if_wrong()
        return graph

    # -- units

    def provider(self, name: str, plan: ProviderPlan) -> ProviderNode | None:
        key = f"providers.{name}"
        try:
            unit = self.catalog.provider(plan.use)
            sheet = build(unit.sheet_type, plan.settings)
        except (WiringError, SettingError) as error:
            self.finding(key, str(error))
            return None
        return ProviderNode(name, plan.use, unit, sheet, self.roles(key, unit, plan.providers))

    def component(self, name: str, plan: ComponentPlan) -> ComponentNode | None:
        key = f"components.{name}"
        try:
            unit = self.catalog.component(plan.use)
            sheet = build(unit.sheet_type, plan.settings)
        except (WiringError, SettingError) as error:
            self.finding(key, str(error))
            return None
        for problem in unit.problems():
            self.finding(key, problem)
        declared = ports.declared(unit)
        for role in plan.ports:
            if role not in declared.inputs and role not in declared.outputs:
                self.finding(f"{key}.ports", f"unknown port {role!r}{nearest(role, [*declared.inputs, *declared.outputs])}")
        for role in (*declared.inputs, *declared.outputs):
            if role not in plan.ports:
                self.finding(f"{key}.ports", f"port {role!r} of {plan.use!r} is not bound; name a connector for it")
        inputs = {role: plan.ports[role] for role in declared.inputs if role in plan.ports}
        outputs = {role: plan.ports[role] for role in declared.outputs if role in plan.ports}
        return ComponentNode(name, plan.use, unit, sheet, self.roles(key, unit, plan.providers), inputs, outputs, plan)

    def roles(self, key: str, unit: type, bound: Mapping[str, Any]) -> Roles:
        declared = ports.declared(unit)
        known = {**declared.uses, **declared.uses_many}
        found: dict[str, str | dict[str, tuple[str, ...]]] = {}
        for role, target in bound.items():
            where = f"{key}.providers.{role}"
            if role not in known:
                self.finding(f"{key}.providers", f"unknown role {role!r}{nearest(role, known)}")
            elif role in declared.uses and isinstance(target, str):
                self.fits(where, target, known[role])
                found[role] = target
            elif role in declared.uses_many and isinstance(target, dict):
                table = {k: tuple([v] if isinstance(v, str) else v) for k, v in target.items()}
                for inner, names in table.items():
                    for name in names:
                        self.fits(f"{where}.{inner}", name, known[role])
                found[role] = table
            else:
                right = "one provider's name" if role in declared.uses else "a table of key = provider names"
                self.finding(where, f"is {target!r}; it takes {right}")
        for role in known:
            if role not in bound:
                self.finding(f"{key}.providers", f"role {role!r} is not bound; name a provider of {_name(known[role])}")
        return found

    def fits(self, where: str, name: str, interface: Any) -> None:
        if name not in self.wiring.providers:
            self.finding(where, f"no provider {name!r}{nearest(name, self.wiring.providers)}")
            return
        try:
            unit = self.catalog.provider(self.wiring.providers[name].use)
        except WiringError:
            return
        missing = lacking(unit, interface)
        if missing:
            self.finding(where, f"provider {name!r} ({unit.__name__}) is no {_name(interface)}: it lacks {', '.join(missing)}")

    def start_order(self, providers: Mapping[str, ProviderNode]) -> dict[str, ProviderNode]:
        uses = {name: set(used_names(node.roles)) for name, node in providers.items()}
        try:
            return {name: providers[name] for name in graphlib.TopologicalSorter(uses).static_order()}
        except graphlib.CycleError as error:
            self.finding("providers", f"use each other in a circle: {' -> '.join(reversed(error.args[1]))}; cut it in one place")
            self.stop_if_wrong()
            raise

    # -- connectors

    def connect(self, components: Mapping[str, ComponentNode]) -> dict[str, ConnectorNode]:
        producers: dict[str, list[tuple[str, str]]] = {name: [] for name in self.wiring.connectors}
        consumers: dict[str, list[tuple[str, str]]] = {name: [] for name in self.wiring.connectors}
        for node in components.values():
            for table, bound in ((consumers, node.inputs), (producers, node.outputs)):
                for role, connector in bound.items():
                    if connector in table:
                        table[connector].append((node.name, role))
                    else:
                        where = f"components.{node.name}.ports.{role}"
                        self.finding(where, f"no connector {connector!r}{nearest(connector, self.wiring.connectors)}")
        self.stop_if_wrong()
        return _found(
            {
                name: self.connector(name, plan, producers[name], consumers[name], components)
                for name, plan in self.wiring.connectors.items()
            }
        )

    def connector(
        self,
        name: str,
        connector_plan: ConnectorPlan,
        producers: list[tuple[str, str]],
        consumers: list[tuple[str, str]],
        components: Mapping[str, ComponentNode],
    ) -> ConnectorNode | None:
        key = f"connectors.{name}"
        if not producers or not consumers:
            side = "produces into it" if not producers else "consumes from it"
            self.finding(key, f"nothing {side}; bind a port to it or remove it")
            return None
        given = {(c, r): ports.declared(components[c].unit).outputs[r] for c, r in producers}
        wanted = {(c, r): ports.declared(components[c].unit).inputs[r] for c, r in consumers}
        item_type = next(iter(wanted.values()))
        for (component, role), made in given.items():
            for (taker, inlet), taken in wanted.items():
                if not _assignable(made, taken):
                    self.finding(
                        key,
                        f"{component}.{role} makes {_name(made)}, but {taker}.{inlet} takes {_name(taken)}; "
                        "bind ports of one type",
                    )
        try:
            class_of(item_type)
            build(transport_of(connector_plan.address).sheet, connector_plan.options)
        except (WiringError, SettingError) as error:
            self.finding(key, str(error))
        return ConnectorNode(name, item_type, connector_plan, tuple(c for c, _ in producers), tuple(c for c, _ in consumers))

    # -- the whole

    def unused_providers(self, graph: Graph) -> None:
        used = {name for node in graph.components.values() for name in used_names(node.roles)}
        used |= {name for provider in graph.providers.values() for name in used_names(provider.roles)}
        for name in graph.providers:
            if name not in used:
                self.finding(f"providers.{name}", "nothing uses it; bind a role to it or remove it")

    def processes(self, graph: Graph) -> None:
        """An arrow between two processes is remote; a provider that keeps state lives in one process."""
        where = {name: node.plan.process for name, node in graph.components.items()}
        for connector in graph.connectors.values():
            ends = {where[name] for name in (*connector.producers, *connector.consumers)}
            if len(ends) > 1 and not transport_of(connector.plan.address).remote:
                self.finding(
                    f"connectors.{connector.name}.address",
                    f"{connector.plan.address!r} joins processes {', '.join(sorted(ends))}; give it a unix: or tcp: address",
                )
        homes: dict[str, set[str]] = {}
        for process in graph.wiring.processes:
            for name in graph.part(process).providers:
                homes.setdefault(name, set()).add(process)
        for name, processes in homes.items():
            if len(processes) > 1 and graph.providers[name].unit.keeps_state:
                self.finding(
                    f"providers.{name}",
                    f"keeps state and is used from processes {', '.join(sorted(processes))}; "
                    "give each process a provider of its own",
                )

    def fused(self, graph: Graph) -> None:
        for connector in graph.connectors.values():
            if connector.scheme != "fused":
                continue
            key = f"connectors.{connector.name}.address"
            if len(connector.consumers) != 1 or graph.components[connector.consumers[0]].plan.instances != 1:
                self.finding(key, "fused: takes one consumer of one instance; use local: for several")
            elif not issubclass(graph.components[connector.consumers[0]].unit, OneInput):
                self.finding(key, f"fused: takes a filter or a consumer; {connector.consumers[0]!r} is neither, use local:")

    def cycles(self, graph: Graph) -> None:
        """A ring of bounded queues can stop dead: one input on it accepts always, and spills (DESIGN 1)."""
        feeds: dict[str, set[str]] = {name: set() for name in graph.components}
        for node in graph.components.values():
            spilling = node.unit.spills if issubclass(node.unit, AsynchronousFilter) else frozenset()
            for role, connector in node.inputs.items():
                if role not in spilling:
                    feeds[node.name] |= set(graph.connectors[connector].producers)
        try:
            graphlib.TopologicalSorter(feeds).prepare()
        except graphlib.CycleError as error:
            ring = " -> ".join(error.args[1])
            self.finding("components", f"{ring} is a ring without a spill and can stop dead; one input on it must spill to disk")


def lacking(unit: type, interface: Any) -> list[str]:
    """Methods of a Protocol (or base class) that a class lacks or takes other parameters for."""
    bare = typing.get_origin(interface) or interface
    missing = []
    for name, wanted in inspect.getmembers(bare, callable):
        if name.startswith("_"):
            continue
        offered = getattr(unit, name, None)
        if not callable(offered):
            missing.append(f"{name}()")
        elif inspect.isfunction(offered) and inspect.isfunction(wanted):
            names = [p for p in inspect.signature(wanted).parameters if p != "self"]
            if len(names) > len([p for p in inspect.signature(offered).parameters if p != "self"]):
                missing.append(f"{name}({', '.join(names)})")
    return missing


def _found(nodes: Mapping[str, N | None]) -> dict[str, N]:
    """Without those that could not be made; their findings are noted."""
    return {name: node for name, node in nodes.items() if node is not None}


def _assignable(made: Any, taken: Any) -> bool:
    if made == taken:
        return True
    return isinstance(made, type) and isinstance(taken, type) and issubclass(made, taken)


def _name(item_type: Any) -> str:
    return getattr(item_type, "__name__", str(item_type))
