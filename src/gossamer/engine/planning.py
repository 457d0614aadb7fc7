"""The catalog says which class stands behind a name that a wiring uses; a plan looks up the names of a wiring and holds its types
against each other, before anything is started.

The composition root says where what ships is; other packages say it by entry points (`gossamer.components`,
`gossamer.providers`). Both are imported only when a wiring names them, and listing names imports nothing. What is wrong with a
wiring is said all at once, one line for each finding, so that a person mends the file in one go.
"""

import operator
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any

from gossamer.engine import ends
from gossamer.engine.component import Component
from gossamer.engine.errors import SettingError, UnknownName, WiringError
from gossamer.engine.graph import (
    ComponentNode,
    ConnectorNode,
    Graph,
    ProviderNode,
    Roles,
    lacking,
    misfits,
    skippable,
    start_order,
    type_name,
    used_names,
)
from gossamer.engine.sheet import Sheet, build, nearest
from gossamer.engine.subjects import found_at, installed, loaded, offered, package_of
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ComponentPlan, OnError, ProviderPlan, Wiring


class Catalog:
    """Names of component and provider classes."""

    def __init__(
        self,
        components: Mapping[str, type[Component[Any]] | str] = {},
        providers: Mapping[str, type[Provider[Any]] | str] = {},
    ) -> None:
        """A catalog.

        Args:
            components, providers: classes by name, or where they are, as `package.module:Class`.
        """
        self._shipped = frozenset(components)
        self._own: dict[str, set[str]] = {"components": set(), "providers": set()}
        self._known: dict[str, dict[str, type | str]] = {"components": dict(components), "providers": dict(providers)}

    def component(self, name: str) -> type[Component[Any]]:
        """The component class of this name. Raises UnknownName: there is none; lists the known ones."""
        found: type[Component[Any]] = self._find("components", name, Component)
        return found

    def provider(self, name: str) -> type[Provider[Any]]:
        """The provider class of this name. Raises UnknownName: there is none; lists the known ones."""
        found: type[Provider[Any]] = self._find("providers", name, Provider)
        return found

    def add(self, name: str, unit: Any) -> None:
        """Register a class of one's own, as a program does that makes its wiring itself. Raises WiringError: it is neither a
        component nor a provider."""
        for table, base in (("components", Component), ("providers", Provider)):
            if isinstance(unit, type) and issubclass(unit, base):
                self._known[table][name] = unit
                self._shipped -= {name}
                self._own[table].add(name)
                return
        raise WiringError(f"{name!r}: {unit!r} is neither a component nor a provider class; derive it from one of them")

    def is_shipped(self, name: str) -> bool:
        return name in self._shipped

    def places_of_own(self) -> dict[str, dict[str, str]]:
        """The places of classes that a program registered itself, by table and name; without those that cannot be imported."""
        return {
            table: {
                name: f"{unit.__module__}:{unit.__qualname__}"
                for name, unit in known.items()
                if name in self._own[table] and isinstance(unit, type) and not _why_not_importable(unit)
            }
            for table, known in self._known.items()
        }

    def why_not_elsewhere(self, table: str, name: str) -> str:
        """Why another process cannot import a class that a program registered itself; empty where it can."""
        unit = self._known[table].get(name)
        return _why_not_importable(unit) if name in self._own[table] and isinstance(unit, type) else ""

    def names(self, table: str) -> list[str]:
        of_packages = {name for one in installed() for name in getattr(one, table)}
        return sorted({*self._known[table], *of_packages, *(entry.name for entry in offered(f"gossamer.{table}"))})

    def _find(self, table: str, name: str, base: type) -> Any:
        known = self._known[table]
        place = known.get(name)
        if place is None:
            place = next((there for one in installed() if (there := getattr(one, table).get(name))), None)
        if isinstance(place, str):
            known[name] = found_at(place)
        elif place is None:
            entries = offered(f"gossamer.{table}", name)
            if len({entry.value for entry in entries}) > 1:
                packages = ", ".join(sorted(map(package_of, entries)))
                raise WiringError(
                    f"{table[:-1]} {name!r} is registered by several packages: {packages}; uninstall all but one"
                )
            for entry in entries[:1]:
                found = loaded(entry, table[:-1])
                if not (isinstance(found, type) and issubclass(found, base)):
                    kind = f"is not a {base.__name__.lower()} class: {entry.value}"
                    raise UnknownName(f"{name!r} of package {package_of(entry)} {kind}")
                known[name] = found
        if name not in known:
            raise UnknownName(f"unknown {table[:-1]} {name!r}{nearest(name, self.names(table))}")
        return known[name]


def _why_not_importable(unit: type) -> str:
    if unit.__module__ == "__main__":
        return "is a class of the program that was started"
    if "<locals>" in unit.__qualname__:
        return "is defined inside a function"
    try:
        found = operator.attrgetter(unit.__qualname__)(sys.modules.get(unit.__module__))
    except AttributeError:
        found = None
    return "" if found is unit else "was made while the program ran"


U = typing.TypeVar("U", bound=type)


def plan(wiring: Wiring, catalog: Catalog) -> Graph:
    """Check a wiring and make its graph. Raises WiringError: what is wrong, one line for each finding, each naming file, key
    and what would be right."""
    return _Planner(wiring, catalog).graph()


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
            self.finding("components", "there are none; a wiring needs at least one")
        made = [self.provider(name, plan) for name, plan in self.wiring.providers.items()]
        providers = {node.name: node for node in made if node is not None}
        units = [self.component(name, plan) for name, plan in self.wiring.components.items()]
        components = {node.name: node for node in units if node is not None}
        for name in self.wiring.components:
            if name in self.wiring.providers:
                self.finding(f"providers.{name}", "a component has this name too; give one of them another")
        self.stop_if_wrong()
        ordered: dict[str, ProviderNode] = {}
        try:
            ordered = start_order(providers)
        except WiringError as error:
            self.finding("providers", str(error))
        connectors = self.connect(components)
        self.stop_if_wrong()
        graph = Graph(ordered, connectors, components, self.wiring)
        used = {name for roles in graph.roles().values() for name in used_names(roles)}
        for name in graph.providers:
            if name not in used:
                self.finding(f"providers.{name}", "nothing uses it; bind a role to it or remove it")
        for key, text in misfits(graph):
            self.finding(key, text)
        self.stop_if_wrong()
        return graph

    # -- units

    def provider(self, name: str, plan: ProviderPlan) -> ProviderNode | None:
        key = f"providers.{name}"
        unit, sheet = self.unit_and_sheet(key, plan, self.catalog.provider)
        if unit is None:
            return None
        roles = self.roles(key, unit, plan.providers)
        return None if sheet is None else ProviderNode(name, plan.use, unit, sheet, roles)

    def component(self, name: str, plan: ComponentPlan) -> ComponentNode | None:
        key = f"components.{name}"
        unit, sheet = self.unit_and_sheet(key, plan, self.catalog.component)
        if unit is None:
            return None
        for problem in unit.problems():
            self.finding(f"{key}.use", problem)
        declared = ends.declared(unit)
        for role in plan.ports:
            if role not in declared.inputs and role not in declared.outputs:
                self.finding(
                    f"{key}.ports", f"unknown port {role!r}{nearest(role, [*declared.inputs, *declared.outputs])}"
                )
        for role in (*declared.inputs, *declared.outputs):
            if role not in plan.ports and role not in unit.optional:
                self.finding(f"{key}.ports", f"port {role!r} of {plan.use!r} is not bound; name a connector for it")
        inputs = {role: plan.ports[role] for role in declared.inputs if role in plan.ports}
        outputs = {role: plan.ports[role] for role in declared.outputs if role in plan.ports}
        roles = self.roles(key, unit, plan.providers)
        on_error = self.on_error(key, unit, plan)
        if sheet is None:
            return None
        return ComponentNode(name, plan.use, unit, sheet, roles, inputs, outputs, plan, on_error)

    def on_error(self, key: str, unit: type[Component[Any]], plan: ComponentPlan) -> OnError:
        """The answer when the component raises. One bad item ends no crawl by default, where it can do without."""
        can_skip = skippable(unit)
        if plan.on_error == "skip" and not can_skip:
            text = f"'skip' lets an item go on without the component, and {plan.use!r} has no output that could take it"
            self.finding(f"{key}.on_error", f"{text}; use 'stop' or 'restart'")
        if plan.on_error is not None:
            return plan.on_error
        return "skip" if can_skip and not self.catalog.is_shipped(plan.use) else "stop"

    def unit_and_sheet(
        self, key: str, plan: ProviderPlan | ComponentPlan, find: Callable[[str], U]
    ) -> tuple[U, Sheet | None] | tuple[None, None]:
        """The class and the sheet that a plan speaks of; None in the place of what cannot be had, which is then noted."""
        try:
            unit = find(plan.use)
            ends.declared(unit)
        except WiringError as error:
            self.finding(f"{key}.use", str(error))
            return None, None
        try:
            return unit, build(unit.sheet_type, plan.settings)  # type: ignore[attr-defined]  # every unit class has one
        except SettingError as error:
            self.finding(f"{key}.settings", str(error))
            return unit, None

    def roles(self, key: str, unit: type, bound: Mapping[str, Any]) -> Roles:
        declared = ends.declared(unit)
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
        for role, interface in known.items():
            if role not in bound and not hasattr(unit, role):  # a role with a default may be left out
                self.finding(
                    f"{key}.providers", f"role {role!r} is not bound; name a provider of {type_name(interface)}"
                )
        return found

    def fits(self, where: str, name: str, interface: Any) -> None:
        if name not in self.wiring.providers:
            self.finding(where, f"there is no provider {name!r}{nearest(name, self.wiring.providers)}")
            return
        try:
            unit: type = self.catalog.provider(self.wiring.providers[name].use)
        except WiringError:
            return
        missing = lacking(unit, interface)
        if missing:
            self.finding(
                where,
                f"provider {name!r} ({unit.__name__}) is not a {type_name(interface)}: it lacks {', '.join(missing)}",
            )

    # -- connectors

    def connect(self, components: Mapping[str, ComponentNode]) -> dict[str, ConnectorNode]:
        found: dict[str, tuple[list[tuple[str, str]], ...]] = {name: ([], []) for name in self.wiring.connectors}
        for node in components.values():
            for side, bound in enumerate((node.outputs, node.inputs)):
                for role, connector in bound.items():
                    if connector in found:
                        found[connector][side].append((node.name, role))
                    else:
                        near = nearest(connector, self.wiring.connectors)
                        where = f"components.{node.name}.ports.{role}"
                        self.finding(where, f"there is no connector {connector!r}{near}")
        self.stop_if_wrong()
        nodes = {}
        for name, (producers, consumers) in found.items():
            if not producers or not consumers:
                lacking_side = "produces into it" if not producers else "consumes from it"
                self.finding(f"connectors.{name}", f"nothing {lacking_side}; bind a port to it or remove it")
                continue
            taker, inlet = consumers[0]
            item_type = ends.declared(components[taker].unit).inputs[inlet]
            names = (tuple(component for component, _ in one) for one in (producers, consumers))
            nodes[name] = ConnectorNode(name, item_type, self.wiring.connectors[name], *names)
        return nodes
