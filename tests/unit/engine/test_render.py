"""Every rendering mentions every unit and every connector, and reads nothing but the graph."""

import json
import re
from typing import Any

import msgspec
import pytest

from gossamer.engine.component import Consumer, Producer
from gossamer.engine.ends import In, Out
from gossamer.engine.graph import (
    ComponentNode,
    ConnectorNode,
    Graph,
    ProviderNode,
    to_dot,
    to_json,
    to_mermaid,
    to_text,
)
from gossamer.engine.sheet import Sheet
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ComponentPlan, ConnectorPlan, Wiring


class CountSheet(Sheet, frozen=True):
    count: int = 3


class Count(Producer[CountSheet]):
    """Counts up.

    At length.
    """

    outbox: Out[int]


class Keep(Consumer):
    inbox: In[int]


class Disk(Provider):
    """Keeps bytes."""


GRAPH = Graph(
    providers={"disk": ProviderNode("disk", "files", Disk, Disk().sheet, {})},
    connectors={"the-numbers": ConnectorNode("the-numbers", int, ConnectorPlan("local:", 7), ("a-b",), ("end", "a_b"))},
    components={
        "a-b": ComponentNode(
            "a-b", "count", Count, CountSheet(), {}, {}, {"outbox": "the-numbers"}, ComponentPlan("count")
        ),
        "end": ComponentNode(
            "end",
            "keep",
            Keep,
            Keep().sheet,
            {"store": "disk"},
            {"inbox": "the-numbers"},
            {},
            ComponentPlan("keep", workers=4),
        ),
        "a_b": ComponentNode(
            "a_b", "keep", Keep, Keep().sheet, {}, {"inbox": "the-numbers"}, {}, ComponentPlan("keep", instances=2)
        ),
    },
    wiring=Wiring(),
)


@pytest.mark.parametrize("form", [to_text, to_dot, to_mermaid, lambda graph: json.dumps(to_json(graph))])
def test_every_unit_and_connector_is_mentioned(form: Any) -> None:
    shown = form(GRAPH)
    for name in ("a-b", "end", "a_b", "disk", "the-numbers"):
        assert name in shown


def test_text_tells_pools_instances_arrows_and_users() -> None:
    assert to_text(GRAPH).splitlines() == [
        "components and connectors",
        "  a-b (producer) - Counts up.",
        "    outbox --[the-numbers: int, local:]--> end, a_b",
        "  end (consumer, 4 workers)",
        "  a_b x2 (consumer)",
        "providers",
        "  disk (files), used by end - Keeps bytes.",
    ]


def test_dot_draws_arrows_and_uses() -> None:
    shown = to_dot(GRAPH)
    assert '"a-b" -> "end" [label="the-numbers"];' in shown
    assert '"a-b" -> "a_b" [label="the-numbers"];' in shown
    assert '"end" -> "disk" [style=dashed, arrowhead=open];' in shown
    assert shown.count("{") == shown.count("}") == 1


def test_mermaid_gives_each_unit_an_identifier_of_its_own() -> None:
    shown = to_mermaid(GRAPH)
    identifiers = re.findall(r"^  (\w+)[(\[]", shown, re.MULTILINE)
    assert len(identifiers) == len(set(identifiers)) == 4
    assert "u_a_0b -- the-numbers --> u_a__b" in shown


def test_json_is_plain_data_with_settings_and_ends() -> None:
    told = to_json(GRAPH)
    assert json.loads(msgspec.json.encode(told)) == told
    assert told["components"]["a-b"]["settings"] == {"count": 3}
    assert told["components"]["a-b"]["doc"] == "Counts up."
    assert told["components"]["end"]["providers"] == ["disk"]
    assert told["connectors"]["the-numbers"] == {
        "carries": "int",
        "address": "local:",
        "capacity": 7,
        "from": ["a-b"],
        "to": ["end", "a_b"],
    }
