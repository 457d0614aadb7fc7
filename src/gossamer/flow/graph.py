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
from gossamer.flow.wiring import ComponentPlan, ConnectorPlan, OnError, Wiring, with_settings

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
    """What the plan says, or what holds where it says nothing."""

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
    """The same as a plan: planned again it gives this graph, whatever was changed on the way."""

    def roles(self) -> dict[str, Roles]:
        """The bound roles of every unit, components first."""
        components = {name: node.roles for name, node in self.components.items()}
        return {**components, **{name: node.roles for name, node in self.providers.items()}}

    def sheet(self, name: str) -> Sheet:
        """The settings of a unit, in whichever process it runs."""
        return (self.components.get(name) or self.providers[name]).sheet

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

    def with_settings(self, name: str, values: Mapping[str, Any], sheet: Sheet) -> "Graph":
        """A copy in which the unit of this name has another sheet, made of these values on top of what it had."""
        wiring = with_settings(self.wiring, name, dict(values))
        if name in self.components:
            node = msgspec.structs.replace(self.components[name], sheet=sheet, plan=wiring.components[name])
            return msgspec.structs.replace(self, wiring=wiring, components={**self.components, name: node})
        provider = msgspec.structs.replace(self.providers[name], sheet=sheet)
        return msgspec.structs.replace(self, wiring=wiring, providers={**self.providers, name: provider})


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
        raise WiringError(f"depend on each other in a circle: {circle}; cut it in one place") from None


def used_names(roles: Roles) -> Iterator[str]:
    """Every provider that some roles are bound to."""
    for bound in roles.values():
        if isinstance(bound, str):
            yield bound
        else:
            for names in bound.values():
                yield from names
