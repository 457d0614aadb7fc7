"""The wiring of an agent: what a crawl of one has, and the arrows to and from the others."""

import pytest

from gossamer.agents.wiring import with_agents
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import WiringError
from gossamer.engine.planning import plan
from gossamer.engine.wiring import ComponentPlan, Wiring, with_settings
from gossamer.values.errors import UsageError

AGENTS = ("agent-00", "agent-01", "agent-02")


def crawl_wiring(**options: object) -> Wiring:
    return compile_wiring(["http://a.test/"], CrawlOptions(**options))  # type: ignore[arg-type]


def test_an_agent_has_an_arrow_to_each_other_one_and_a_single_one_from_them() -> None:
    wiring = with_settings(crawl_wiring(depth=3), "commit", {"max_per_host": 7})
    graph = plan(with_agents(wiring, AGENTS, "agent-01", "/run/x"), catalog())
    arrows = {name: node for name, node in graph.connectors.items() if name.startswith("urls-")}
    assert {name: (node.producers, node.consumers) for name, node in arrows.items()} == {
        "urls-agent-01": (("agent-00", "agent-02"), ("receive",)),
        "urls-agent-00": (("send-agent-00",), ("agent-00",)),
        "urls-agent-02": (("send-agent-02",), ("agent-02",)),
    }
    assert graph.sheet("receive") == graph.sheet("commit")
    assert graph.sheet("receive").max_per_host == 7  # type: ignore[attr-defined]
    own = {name: graph.providers[name].sheet.agent for name in ("ledger", "archive", "log", "outbox")}  # type: ignore[attr-defined]
    assert set(own.values()) == {"agent-01"}


def test_a_wiring_that_cannot_be_divided_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="random walk"):
        with_agents(crawl_wiring(strategy="random-walk"), AGENTS, "agent-00", "/run/x")
    wiring = crawl_wiring()
    wiring.components["receive"] = ComponentPlan("tally")
    with pytest.raises(WiringError, match="receive: several agents need this name"):
        with_agents(wiring, AGENTS, "agent-00", "/run/x")
