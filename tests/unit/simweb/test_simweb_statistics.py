"""A generated web has the statistics that its parameters ask for."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from gossamer.cli.main import commands
from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.describe import describe, to_json, to_text
from gossamer.simweb.graph import WebGraph, indegrees

SPECS = {
    "default": WebSpec(seed=5, pages=60_000, hosts=2000),
    "steep": WebSpec(
        seed=6, pages=60_000, hosts=1500, host_exponent=2.2, links=60, link_exponent=2.3, external_share=0.3,
        size_median=30_000, size_sigma=0.5, duplicate_share=0.4, gone_share=0.1, trap_share=0.4, mirror_share=0.3,
    ),
}  # fmt: skip

NEAR = {
    "exponent of pages a host": 0.1,
    "exponent of links a page": 0.4,
    "exponent of a page's popularity": 0.2,
    "links a page": 2.0,
    "links that leave their host": 0.03,
    "median bytes of a page": 3000,
    "spread of bytes (sigma of the logarithm)": 0.15,
    "hosts an address": 0.1,
}
"""How far a figure may be from what was asked for; all others are shares, and may be off by three hundredths."""


@pytest.mark.parametrize("name", SPECS)
def test_a_web_is_what_was_asked_for(name: str) -> None:
    facts = describe(SimWeb(SPECS[name]))
    assert len(facts) > 40
    for fact in facts:
        assert fact.found == pytest.approx(fact.asked, abs=NEAR.get(fact.what, 0.03)), fact


def test_nearly_a_third_of_the_pages_repeat_another() -> None:
    facts = {fact.what: fact.found for fact in describe(SimWeb(SPECS["default"]))}
    copies = facts["pages that are exact duplicates"] + facts["pages that are near-duplicates"]
    assert copies == pytest.approx(0.3, abs=0.02)


def test_few_pages_receive_most_of_the_links() -> None:
    graph = WebGraph(SimWeb(WebSpec(seed=5, pages=60_000, hosts=200)))
    degrees = np.sort(indegrees(graph))[::-1]
    assert degrees[: graph.count // 100].sum() > 0.3 * degrees.sum()


@pytest.mark.parametrize("spec", [WebSpec(pages=1, hosts=1), WebSpec(pages=30, hosts=3)], ids=repr)
def test_of_the_smallest_webs_nothing_is_claimed_that_cannot_be_told(spec: WebSpec) -> None:
    facts = describe(SimWeb(spec))
    assert math.isnan({fact.what: fact.found for fact in facts}["exponent of pages a host"])
    assert "too small" in to_text(facts)
    assert any(fact["found"] is None for fact in json.loads(to_json(facts)))


def test_the_command_describes_the_web_that_it_would_serve() -> None:
    done = CliRunner().invoke(
        commands, ["simweb", "--describe", "--pages", "2000", "--json", "--set", "gone_share=0.3"]
    )
    assert done.exit_code == 0
    found = {fact["what"]: fact for fact in json.loads(done.output)}
    assert found["pages that are gone"]["asked"] == 0.3
    assert found["pages that are gone"]["found"] == pytest.approx(0.3, abs=0.03)
