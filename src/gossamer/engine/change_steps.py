"""The steps by which a running graph becomes another one, or the reason why it cannot.

Place in the flow: :mod:`~gossamer.engine.changing` asks here before it touches anything, and carries out the answer. Both graphs
are checked already, each as a whole; here they are held against each other. Plain code: nothing runs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gossamer.engine.component import SynchronousFilter
from gossamer.engine.connector import class_of
from gossamer.engine.errors import WiringError
from gossamer.engine.graph import ComponentNode, ConnectorNode, Graph, ProviderNode
from gossamer.engine.sheet import Sheet, properties

#: Fields of a component's plan that nothing but another instance can follow.
_OF_AN_INSTANCE = ("instances", "on_error", "restarts", "errors")


class Steps(msgspec.Struct, frozen=True):
    """The way from one graph to another. A unit that is exchanged for another of its name both leaves and comes."""

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
    """The steps of this process by which the graph `now` becomes `then`.

    Raises:
        WiringError: what cannot be done while the graph runs, one line for each finding.
    """
    return _Comparison(now, then, process).steps()


class _Comparison:
    def __init__(self, now: Graph, then: Graph, process: str) -> None:
        self.now, self.then, self.process = now, then, process
        self.findings: list[str] = []
        self.settings: dict[str, dict[str, Any]] = {}

    def steps(self) -> Steps:
        now, then = self.now.part(self.process), self.then.part(self.process)
        self.leave_other_processes_alone()
        providers = {name for name in now.providers if name in then.providers and self.provider_stays(name)}
        components = {name for name in now.components if name in then.components and self.component_stays(name)}
        same_ends, exchanged = self.connectors(now, then, components)
        self.what_lasts(set(now.components) - components)
        self.what_is_remembered(providers)
        self.what_is_taken_together(components)
        if self.findings:
            raise WiringError("\n".join(self.findings))
        return Steps(
            leaving_components=_without(now.components, components),
            coming_components=_without(then.components, components),
            leaving_providers=_without(now.providers, providers),
            coming_providers=_without(then.providers, providers),
            leaving_connectors=_without(now.connectors, same_ends),
            coming_connectors=_without(then.connectors, same_ends),
            exchanged_connectors=tuple(exchanged),
            settings=self.settings,
            pools=tuple(sorted(name for name in components if _pool(now, name) != _pool(then, name))),
        )

    def finding(self, key: str, text: str) -> None:
        self.findings.append(f"{self.then.wiring.source}: {key}: {text}")

    def leave_other_processes_alone(self) -> None:
        now, then = self.now, self.then
        others = {*now.wiring.processes, *then.wiring.processes} - {self.process}
        for other in sorted(others):
            before, after = now.part(other), then.part(other)
            for table in ("providers", "connectors", "components"):
                old, new = getattr(before, table), getattr(after, table)
                for name in dict.fromkeys((*old, *new)):
                    if old.get(name) != new.get(name):
                        self.finding(
                            f"{table}.{name}",
                            f"belongs to process {other!r}, whose graph is fixed while it runs; stop the crawl, change "
                            "its wiring, and go on",
                        )

    # -- units

    def provider_stays(self, name: str) -> bool:
        old, new = self.now.providers[name], self.then.providers[name]
        return old.unit is new.unit and self.is_set_live(name, old, new, "")

    def component_stays(self, name: str) -> bool:
        old, new = self.now.components[name], self.then.components[name]
        if old.unit is not new.unit or any(getattr(old.plan, key) != getattr(new.plan, key) for key in _OF_AN_INSTANCE):
            return False
        return self.is_set_live(name, old, new, old.unit.lasts)

    def is_set_live(
        self, name: str, old: ProviderNode | ComponentNode, new: ProviderNode | ComponentNode, lasts: str
    ) -> bool:
        """Whether the same instance can go on with the new settings; they are noted then."""
        values = _changed_values(old.sheet, new.sheet)
        fixed = {one.name: one.reason for one in properties(type(old.sheet)) if not one.live and one.name in values}
        if fixed and (lasts or (isinstance(old, ProviderNode) and old.unit.keeps_state)):
            for setting, reason in fixed.items():
                self.finding(name, f"setting {setting!r} can change only with a restart: {reason}")
            return True
        if fixed:
            return False
        if values:
            self.settings[name] = values
        return True

    def what_lasts(self, leaving: set[str]) -> None:
        for name in sorted(leaving):
            if why := self.now.components[name].unit.lasts:
                self.finding(f"components.{name}", f"cannot leave a graph that runs: {why}")

    def what_is_remembered(self, providers: set[str]) -> None:
        """A role goes on being served by what it was served by, if that remembers something."""
        roles_now, roles_then = self.now.roles(), self.then.roles()
        for user in sorted(roles_now.keys() & roles_then.keys()):
            for role, old in _single(roles_now[user]):
                new = dict(_single(roles_then[user])).get(role, old)
                if not self.is_remembered(old, new, providers):
                    other = "another in its place" if new == old else repr(new)
                    self.finding(
                        f"{user}.providers.{role}",
                        f"{old!r} remembers what {other} would not know, and the graph runs; bind the role to a provider "
                        f"that stands in front of {old!r}",
                    )

    def is_remembered(self, old: str, new: str, staying: set[str]) -> bool:
        before = {name for name in self.now.reached([old]) if self.now.providers[name].unit.keeps_state}
        after = self.then.reached([new]) & staying
        return before <= after or (new != old and new in staying and new in self.now.reached([old]))

    def what_is_taken_together(self, components: set[str]) -> None:
        for name in sorted(components):
            old, new = self.now.components[name], self.then.components[name]
            if issubclass(old.unit, SynchronousFilter) and old.inputs != new.inputs:
                self.finding(f"components.{name}.ports", "its inputs are taken together, and stay while it runs")

    # -- connectors

    def connectors(self, now: Graph, then: Graph, components: set[str]) -> tuple[set[str], list[str]]:
        """Those that stay the same object or are exchanged between the same ends; and which of them are exchanged."""
        staying: set[str] = set()
        exchanged: list[str] = []
        for name in now.connectors:
            if name not in then.connectors:
                continue
            old, new = now.connectors[name], then.connectors[name]
            if class_of(old.item_type) is not class_of(new.item_type):
                self.finding(
                    f"connectors.{name}",
                    f"carries {old.item_name} and cannot carry {new.item_name}; add a connector of another name",
                )
            elif old.plan == new.plan:
                staying.add(name)
            elif self.ends(self.now, old, components) == self.ends(self.then, new, components) is not None:
                staying.add(name)
                exchanged.append(name)
        return staying, exchanged

    def ends(self, graph: Graph, connector: ConnectorNode, staying: set[str]) -> set[tuple[str, str]] | None:
        """Component and role of each end; None where one of the components does not stay."""
        if not staying.issuperset((*connector.producers, *connector.consumers)):
            return None
        return {
            (name, role)
            for name in (*connector.producers, *connector.consumers)
            for role, bound in (*graph.components[name].inputs.items(), *graph.components[name].outputs.items())
            if bound == connector.name
        }


def _without(names: Mapping[str, Any], staying: set[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in staying)


def _pool(graph: Graph, name: str) -> tuple[int, float]:
    plan = graph.components[name].plan
    return plan.workers, plan.idle


def _single(roles: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((role, bound) for role, bound in roles.items() if isinstance(bound, str))


def _changed_values(old: Sheet, new: Sheet) -> dict[str, Any]:
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return {name: value for name, value in after.items() if before.get(name) != value}
