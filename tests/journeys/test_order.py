"""Whole crawls that choose what comes next: by importance (`--strategy opic`), and by a topic (`--topic`)."""

import random
from collections import Counter
from pathlib import Path

import pytest

from gossamer.cli.status import lines_of
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeWeb, html
from gossamer.values.errors import UsageError


def crawl(web: FakeWeb, folder: Path, **options: object) -> Summary:
    given = {"delay": 0, "output": str(folder), "per_host": 1, "concurrency": 1, **options}
    return run(Crawl([web.url("/")], build(all_options(), given), tables=False))


def resumed(folder: Path) -> Summary:
    return run(
        Crawl([], build(all_options(), {"resume": True, "output": str(folder), "max_pages": 1_000}), tables=False)
    )


def asked(web: FakeWeb) -> list[str]:
    return [request.target for request in web.requests]


@pytest.fixture
def linked() -> dict[str, FakePage]:
    """A hub leads to thirty pages, each of which leads to one that the hub names last, and to one of its own."""
    names = [f"/p{n}" for n in range(30)]
    pages = {"/": html("hub", [*names, "/wanted"]), "/wanted": html("w", ["/"])}
    for name in names:
        pages[name] = html(name, ["/", "/wanted", f"{name}-end"])
        pages[f"{name}-end"] = html(name, [])
    return pages


def test_opic_fetches_early_what_many_pages_lead_to_and_every_page_once(
    linked: dict[str, FakePage], tmp_path: Path
) -> None:
    with FakeWeb(linked) as web:
        summary = crawl(web, tmp_path / "opic", strategy="opic")
        order = asked(web)
    assert Counter(order) == Counter(linked.keys())
    assert order.index("/wanted") < 20, "by breadth it is the last of the first thirty-one"
    assert summary.state == "finished" and summary.queued == 0
    assert summary.discovered == len(linked), "who was queued again was not discovered again"


def test_a_crawl_by_opic_goes_on_where_it_stopped(linked: dict[str, FakePage], tmp_path: Path) -> None:
    with FakeWeb(linked) as web:
        crawl(web, tmp_path / "opic", strategy="opic", max_pages=12)
        before = len(web.requests)
        resumed(tmp_path / "opic")
        assert before < len(linked) and Counter(asked(web)) == Counter(linked.keys())


TOPIC = "glacier crevasse moraine"


def page(text: str, *links: str) -> FakePage:
    anchors = " ".join(f'<a href="{link}">{link.strip("/").replace("-", " ")}</a>' for link in links)
    filler = "This page has words that all of them have, and then some more of them to be prose. " * 3
    return FakePage(
        f"<html><head><title>{text}</title></head><body><p>{text} {text}. {filler}</p>{anchors}</body></html>"
    )


def test_a_topic_comes_first_and_tunnels_end(tmp_path: Path) -> None:
    chance = random.Random(1)
    others = [f"/other-{n}" for n in range(12)]
    good = [f"/glacier-{n}" for n in range(12)]
    mixed = [*others, *good]
    chance.shuffle(mixed)
    pages = {"/": page(TOPIC, *mixed, "/far-1")}
    pages |= {name: page(TOPIC) for name in good} | {name: page("stocks shares bonds") for name in others}
    # A relevant page behind two irrelevant ones, and one behind four.
    pages["/far-1"], pages["/far-2"] = page("gardens"), page("gardens")
    pages |= {
        "/far-1": page("gardens", "/far-2"),
        "/far-2": page("gardens", "/near-end", "/far-3"),
        "/near-end": page(TOPIC),
    }
    pages |= {"/far-3": page("gardens", "/far-4"), "/far-4": page("gardens", "/far-end"), "/far-end": page(TOPIC)}
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path / "focused", topic=(TOPIC,), irrelevant_hops=2)
        order = asked(web)
    places = [order.index(name) for name in good]
    assert max(places) <= 14, "links that speak of the topic come before all others"
    assert "/near-end" in order and "/far-3" in order, "two irrelevant pages in a row are passed"
    assert "/far-4" not in order and "/far-end" not in order, "the third is the end of the tunnel"
    assert summary.relevant == 14 and summary.judged == len(order)
    standing = standing_at_rest(tmp_path / "focused")
    assert (standing.relevant, standing.judged) == (14, len(order))
    assert any(line.startswith("harvest:") and f"14 of {len(order)}" in line for line in lines_of(standing, 0.0))


def test_a_tunnel_without_a_topic_is_refused(tmp_path: Path) -> None:
    with FakeWeb({"/": html("x", [])}) as web, pytest.raises(UsageError, match="--topic"):
        crawl(web, tmp_path / "none", irrelevant_hops=5)


@pytest.mark.parametrize("seen", ["url-trie", "bloom-seen"])
def test_a_seen_set_by_configuration_serves_a_whole_crawl_and_its_resumption(
    linked: dict[str, FakePage], tmp_path: Path, seen: str
) -> None:
    from gossamer.crawls.compiling import compile_wiring
    from gossamer.engine.wiring import ProviderPlan

    with FakeWeb(linked) as web:
        wiring = compile_wiring([web.url("/")], build(all_options(), {"delay": 0}))
        wiring.providers["seen"] = ProviderPlan(seen, {"ledger": "ledger"})
        options = build(all_options(), {"delay": 0, "output": str(tmp_path / "crawl"), "max_pages": 12})
        run(Crawl([web.url("/")], options, wiring=wiring, tables=False))
        resumed(tmp_path / "crawl")
        assert Counter(asked(web)) == Counter(linked.keys())
