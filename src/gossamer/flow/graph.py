"""The graph: a wiring whose names were found and whose types fit, as one value.

Supervisor, `topology`, dashboard and documentation all read it; none of them needs to know a particular unit.
:func:`gossamer.flow.planning.plan` makes it, or says everything that is wrong with the wiring.
"""

import graphlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gossamer.flow.component import Component
from gossamer.flow.connector import class_of
from gossamer.flow.errors import WiringError
from gossamer.flow.sheet import Sheet
from gossamer.flow.unit import Provider
from gossamer.flow.wiring import ComponentPlan, ConnectorPlan, Wiring

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

    @property
    def kind(self) -> str:
        """As `filter` or `producer`."""
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
        """The item type, as people write it."""
        return class_of(self.item_type).__name__

    @property
    def scheme(self) -> str:
        """The address scheme, without the colon."""
        return self.plan.address.partition(":")[0]


class Graph(msgspec.Struct, frozen=True):
    """Units and connectors, checked against each other. A running graph that is changed goes on with another value."""

    providers: Mapping[str, ProviderNode]
    """In the order in which they start: whoever is used comes first."""
    connectors: Mapping[str, ConnectorNode]
    components: Mapping[str, ComponentNode]
    wiring: Wiring
    """The plan that it was made from; what was changed since then stands in the nodes."""

    def roles(self) -> dict[str, Roles]:
        """The bound roles of every unit, components first."""
        components = {name: node.roles for name, node in self.components.items()}
        return {**components, **{name: node.roles for name, node in self.providers.items()}}

    def part(self, process: str) -> "Graph":
        """What of it one process runs: its components, the connectors that they touch, the providers that they reach."""
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

    # -- changed copies

    def with_component(self, node: ComponentNode) -> "Graph":
        """With one more component at the connectors that it is bound to."""
        connectors = dict(self.connectors)
        for name in node.inputs.values():
            connector = connectors[name]
            connectors[name] = msgspec.structs.replace(connector, consumers=(*connector.consumers, node.name))
        for name in node.outputs.values():
            connector = connectors[name]
            connectors[name] = msgspec.structs.replace(connector, producers=(*connector.producers, node.name))
        return msgspec.structs.replace(self, connectors=connectors, components={**self.components, node.name: node})

    def without_component(self, name: str) -> "Graph":
        """With one component less; its connectors stay."""
        connectors = {
            key: msgspec.structs.replace(
                connector,
                producers=tuple(end for end in connector.producers if end != name),
                consumers=tuple(end for end in connector.consumers if end != name),
            )
            for key, connector in self.connectors.items()
        }
        components = {key: node for key, node in self.components.items() if key != name}
        return msgspec.structs.replace(self, connectors=connectors, components=components)

    def with_connector(self, node: ConnectorNode) -> "Graph":
        """With another connector of this name."""
        return msgspec.structs.replace(self, connectors={**self.connectors, node.name: node})

    def with_providers(self, *nodes: ProviderNode) -> "Graph":
        """With other providers of these names, or more of them, in a fresh order of starting.

        Raises:
            WiringError: they would use each other in a circle.
        """
        return msgspec.structs.replace(
            self, providers=start_order({**self.providers, **{node.name: node for node in nodes}})
        )

    def with_sheet(self, name: str, sheet: Sheet) -> "Graph":
        """With another sheet of the unit of this name."""
        if name in self.components:
            changed = msgspec.structs.replace(self.components[name], sheet=sheet)
            return msgspec.structs.replace(self, components={**self.components, name: changed})
        provider = msgspec.structs.replace(self.providers[name], sheet=sheet)
        return msgspec.structs.replace(self, providers={**self.providers, name: provider})


def start_order(providers: Mapping[str, ProviderNode]) -> dict[str, ProviderNode]:
    """Providers in the order in which they start: whoever is used comes first.

    Raises:
        WiringError: they use each other in a circle.
    """
    uses = {name: set(used_names(node.roles)) for name, node in providers.items()}
    try:
        return {name: providers[name] for name in graphlib.TopologicalSorter(uses).static_order()}
    except graphlib.CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise WiringError(f"use each other in a circle: {circle}; cut it in one place") from None


def used_names(roles: Roles) -> Iterator[str]:
    """Every provider that some roles are bound to."""
    for bound in roles.values():
        if isinstance(bound, str):
            yield bound
        else:
            for names in bound.values():
                yield from names
