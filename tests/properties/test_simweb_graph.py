"""The graph in arrays is the web that is served: link by link, rule by rule, page by page."""

import re
from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.graph import WebGraph, allowed_pages, expected_pages
from gossamer.simweb.hosts import SimHost
from gossamer.simweb.hosts import allowed as is_allowed
from gossamer.simweb.page import PageKind, path_of, size_class
from gossamer.simweb.site import Conditions, Role

specs = st.builds(
    WebSpec,
    seed=st.integers(0, 1 << 40),
    pages=st.integers(40, 500),
    hosts=st.integers(1, 40),
    branching=st.integers(3, 12),
    navigation=st.integers(0, 30),
    external_share=st.sampled_from([0.0, 0.1, 0.5]),
    trap_share=st.sampled_from([0.0, 0.5]),
)
few = settings(max_examples=8, deadline=None)


@few
@given(specs)
def test_the_graph_has_the_links_that_single_pages_have(spec: WebSpec) -> None:
    web = SimWeb(spec)
    graph = WebGraph(web)
    for page in range(graph.count):
        host = web.hosts.host(int(graph.host_of[page]))
        index = page - host.base
        kind = web.pages.kind(host, index)
        assert kind == graph.kinds[page]
        if kind in (PageKind.REDIRECT, PageKind.GONE):
            continue
        copied = kind in (PageKind.DUPLICATE, PageKind.NEAR_DUPLICATE)
        assert graph.links_of(page) == links_of(web, host, web.pages.original(host, index) if copied else index)


def links_of(web: SimWeb, host: SimHost, index: int) -> list[int]:
    """The pages that a page with content of its own links to: menu, parent, children, local, external, homes."""
    pages, base, group = web.pages, web.hosts.base, size_class(host.log_size)
    local, external = pages.choice(host, pages.bits(host, index))
    inside = [0, *range(1, min(web.spec.navigation, host.size - 1) + 1)]
    inside += [(index - 1) // web.spec.branching] if index else []
    inside += pages.children(host.size, index)
    inside += [place for block in pages.local_chain(local) for place in pages.local_block(group, block)]
    outside = [link for block in pages.external_chain(external) for link in pages.external_block(block)]
    homes = pages.homes_below(host.source) if index == 0 else range(0)
    return (
        [host.base + place for place in inside] + [base(rank) + place for rank, place in outside] + [*map(base, homes)]
    )


@few
@given(specs, st.sampled_from(["Gossamer/1", "Scrapy/2", "other"]))
def test_the_graph_allows_what_the_rules_of_each_page_allow(spec: WebSpec, agent: str) -> None:
    web = SimWeb(spec)
    graph = WebGraph(web)
    allowed = allowed_pages(graph, agent)
    for page in range(graph.count):
        host = web.hosts.host(int(graph.host_of[page]))
        assert allowed[page] == is_allowed(host.robots, agent, path_of(page - host.base))


def crawl(web: SimWeb, depth: int | None, agent: str) -> dict[tuple[str, str], int]:
    """Crawl the served bytes themselves, breadth-first, by the plainest means; returns depths."""
    moment = web.spec.epoch
    depths: dict[tuple[str, str], int] = {}
    queue = deque([((web.hosts.name(0), "/"), 0)])
    while queue:
        (name, target), level = queue.popleft()
        door = web.door(name)
        if (name, target) in depths or door is None or (depth is not None and level > depth):
            continue
        role, _ = web.locate(door.host, target)
        if role is not Role.PAGE or not is_allowed(door.host.robots, agent, target):
            continue
        depths[name, target] = level
        answer = web.answer(door, target, Conditions(), moment)
        if answer.status == 503:
            answer = web.answer(door, target, Conditions(), moment)
        moved = re.search(rb"Location: http://([^/]+)(\S*)", answer.head)
        if moved:
            # A redirect's target has the depth of its source, so it goes first.
            queue.appendleft(((moved[1].decode(), moved[2].decode()), level))
        for link in re.findall(rb'href="([^"]+)"', answer.body):
            found = re.fullmatch(r"(?:http://([^/]+))?(/.*)", link.decode())
            if found:
                queue.append(((found[1] or name, found[2]), level + 1))
    return depths


@few
@given(specs, st.sampled_from([None, 1, 2, 3]))
def test_a_crawl_of_the_served_pages_finds_what_the_graph_expects(spec: WebSpec, depth: int | None) -> None:
    web = SimWeb(spec)
    graph = WebGraph(web)
    expected = expected_pages(graph, depth=depth, agent="Gossamer/1")
    wanted = {
        (graph.url(int(page))[7:].partition("/")[0], path_of(int(graph.index_of[page]))): int(level)
        for page, level in zip(expected.requests, expected.depths, strict=True)
    }
    assert crawl(web, depth, "Gossamer/1") == wanted
