"""The graph is a value: parts, order of starting, changed copies."""

from typing import Any

import msgspec
import pytest

from gossamer.engine.component import Component, Consumer, Filter
from gossamer.engine.errors import WiringError
from gossamer.engine.graph import ComponentNode, ConnectorNode, Graph, ProviderNode, start_order, used_names
from gossamer.engine.sheet import NoSettings, Sheet
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ComponentPlan, ConnectorPlan, ProviderPlan, Wiring


def component(
    name: str, inputs: dict[str, str], outputs: dict[str, str], process: str = "main", **roles: Any
) -> ComponentNode:
    unit: type[Component[Any]] = Filter if outputs else Consumer
    return ComponentNode(name, name, unit, NoSettings(), roles, inputs, outputs, ComponentPlan(name, process=process))


def connector(
    name: str, producers: tuple[str, ...], consumers: tuple[str, ...], address: str = "local:"
) -> ConnectorNode:
    return ConnectorNode(name, int, ConnectorPlan(address), producers, consumers)


def provider(name: str, **roles: Any) -> ProviderNode:
    return ProviderNode(name, name, Provider, NoSettings(), roles)


GRAPH = Graph(
    providers={"store": provider("store"), "cache": provider("cache", behind="store"), "log": provider("log")},
    connectors={
        "a": connector("a", ("one",), ("two",)),
        "b": connector("b", ("two",), ("three",), "unix:/x"),
    },
    components={
        "one": component("one", {}, {"outbox": "a"}),
        "two": component("two", {"inbox": "a"}, {"outbox": "b"}, seen="cache"),
        "three": component("three", {"inbox": "b"}, {}, "other", logs={"x": ("log",)}),
    },
    wiring=Wiring(),
)


def test_a_part_has_the_components_of_its_process_their_connectors_and_the_providers_that_they_reach() -> None:
    main, other = GRAPH.part("main"), GRAPH.part("other")
    assert [*main.components] == ["one", "two"]
    assert [*main.connectors] == ["a", "b"]
    assert [*main.providers] == ["store", "cache"]
    assert [*other.components] == ["three"]
    assert [*other.connectors] == ["b"]
    assert [*other.providers] == ["log"]
    assert not GRAPH.part("nowhere").components


def test_used_names_are_those_of_single_and_keyed_roles() -> None:
    assert sorted(used_names({"one": "a", "many": {"x": ("b", "c"), "y": ("b",)}})) == ["a", "b", "b", "c"]


def test_whoever_is_used_starts_first_and_a_circle_is_refused() -> None:
    nodes = {"c": provider("c", behind="b"), "b": provider("b", behind="a"), "a": provider("a")}
    assert [*start_order(nodes)] == ["a", "b", "c"]
    with pytest.raises(WiringError, match=r"depend on each other in a circle: .*; cut it in one place"):
        start_order({**nodes, "a": provider("a", behind="c")})


def test_settings_are_changed_in_a_copy_and_in_the_wiring_that_it_stands_for() -> None:
    class Two(Sheet, frozen=True):
        x: int = 1

    wiring = Wiring(components={"two": GRAPH.components["two"].plan}, providers={"log": ProviderPlan("log")})
    graph = msgspec.structs.replace(GRAPH, wiring=wiring)
    changed = graph.with_settings("two", {"x": 2}, Two(x=2)).with_settings("log", {"x": 3}, Two(x=3))
    assert (changed.sheet("two"), changed.sheet("log")) == (Two(x=2), Two(x=3))
    assert changed.components["two"].plan == changed.wiring.components["two"]
    assert [plan.settings for plan in (*changed.wiring.components.values(), *changed.wiring.providers.values())] == [
        {"x": 2},
        {"x": 3},
    ]
    assert graph.wiring == wiring


def test_roles_of_all_units_are_told() -> None:
    assert GRAPH.roles()["two"] == {"seen": "cache"}
    assert GRAPH.roles()["cache"] == {"behind": "store"}


def test_a_graph_is_frozen() -> None:
    with pytest.raises(AttributeError):
        GRAPH.wiring = Wiring()  # type: ignore[misc]
    assert msgspec.structs.replace(GRAPH) == GRAPH
