"""A generated web has the statistics that its parameters ask for."""

import statistics

import numpy as np
import pytest

from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.graph import Graph
from gossamer.simweb.pages import Kind

SPEC = WebSpec(seed=5, pages=60_000, hosts=200)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph(SimWeb(SPEC))


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (Kind.DUPLICATE, SPEC.duplicate_share),
        (Kind.NEAR_DUPLICATE, SPEC.near_duplicate_share),
        (Kind.REDIRECT, SPEC.redirect_share),
        (Kind.GONE, SPEC.gone_share),
        (Kind.FLAKY, SPEC.flaky_share),
    ],
)
def test_each_kind_of_page_has_the_share_asked_for(graph: Graph, kind: Kind, asked: float) -> None:
    assert (graph.kinds == kind).mean() == pytest.approx(asked, rel=0.1)


def test_pages_have_the_mean_number_of_links_asked_for(graph: Graph) -> None:
    counts = np.diff(graph.starts)
    assert counts[counts > 0].mean() == pytest.approx(SPEC.links, rel=0.1)


def test_a_tenth_of_the_links_leave_their_host(graph: Graph) -> None:
    sources = np.repeat(np.arange(graph.count), np.diff(graph.starts))
    leaving = graph.host_of[sources] != graph.host_of[graph.targets]
    assert leaving.mean() == pytest.approx(SPEC.external_share, rel=0.15)


def test_few_pages_receive_most_of_the_links(graph: Graph) -> None:
    degrees = np.sort(graph.indegrees())[::-1]
    assert degrees[: graph.count // 100].sum() > 0.3 * degrees.sum()


def test_pages_are_as_large_as_asked_for() -> None:
    web = SimWeb(WebSpec(pages=3000, hosts=3, size_median=20_000, size_sigma=0))
    host = web.hosts.host(0)
    sizes = [len(_body(web, host.name, index)) for index in range(web.pages.inner(host.size))]
    assert statistics.mean(sizes) == pytest.approx(20_000, rel=0.1)


def _body(web: SimWeb, name: str, index: int) -> bytes:
    from gossamer.simweb.pages import path_of
    from gossamer.simweb.site import Conditions

    door = web.door(name)
    assert door is not None
    return web.answer(door, path_of(index), Conditions(), web.spec.epoch).body
