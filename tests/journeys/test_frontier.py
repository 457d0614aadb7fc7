"""What the frontier promises of whole crawls: robots first, order, budgets, no racing, and going on after a kill."""

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.names import FakeDns

from gossamer.analysis.why import story_of
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb, html
from gossamer.values.errors import UsageError

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def crawl(web: FakeWeb, folder: Path, seeds: tuple[str, ...] = (), **options: object) -> Summary:
    """Crawl a fake web into a folder, without delays unless they are given."""
    given = {"delay": 0, "output": str(folder / "crawl"), **options}
    return run(Crawl(seeds or [web.url("/")], build(all_options(), given), tables=False))


def elsewhere(web: FakeWeb) -> dict[str, object]:
    """Options for a web of several hosts."""
    return {"scope": "any", "resolve": [web.resolve], "allow_network": ["127.0.0.0/8"]}


def robots(text: str) -> FakePage:
    return FakePage(text, type="text/plain")


# -- names


def with_names(names: FakeDns, seeds: list[str], folder: Path, **options: object) -> Summary:
    """Crawl by a name server of the test's own, until the end."""
    given = {"delay": 0, "output": str(folder), "scope": "any", "allow_network": ("127.0.0.0/8",), **options}

    async def body() -> Summary:
        async with names:
            settings = {"dns": {"servers": [names.server]}}
            return await Crawl(seeds, build(all_options(), given), settings=settings, tables=False).run()

    return asyncio.run(body())


def test_names_that_do_not_exist_are_counted_and_kept_and_no_request_is_made_for_them(tmp_path: Path) -> None:
    links = [f"http://nowhere{number}.test/{page}" for number in range(600) for page in range(3)]
    with FakeWeb({"/": html("x", links)}) as web:
        names = FakeDns({})
        summary = with_names(names, [web.url("/")], tmp_path / "crawl", retries=0)
        assert web.targets().count("/") == 1
    assert summary.outcomes == {"ok": 1, "dns_failed": 600}
    assert (summary.state, summary.queued, summary.hosts) == ("incomplete", 1800, 601)
    assert all(names.asked[f"nowhere{number}.test"] <= 2 for number in range(600)), (
        "once, and once more after 10 s; not for each URL"
    )


def test_behind_a_proxy_no_name_is_looked_up_here(tmp_path: Path) -> None:
    names = FakeDns({})
    with FakeWeb({"http://elsewhere.test/": "by the proxy"}) as web:
        proxy = web.url("/").rstrip("/")
        # With a contact the crawl may leave this machine; without, it has to know what is on it.
        given = {"proxy": proxy, "contact": "crawl@example.org", "retries": 0}
        summary = with_names(names, ["http://elsewhere.test/"], tmp_path / "crawl", **given)
    assert (summary.outcomes, dict(names.asked)) == ({"ok": 1}, {})


# -- slots


def test_slow_hosts_leave_slots_to_those_that_answered_well(tmp_path: Path) -> None:
    slow = [f"http://slow{number}.test/" for number in range(24)]
    well = [f"http://well.test/{number}" for number in range(20)]
    pages: dict[str, str | FakePage] = {"http://well.test/": html("well", [*slow, *well])}
    pages |= dict.fromkeys(well, "well") | {url: FakePage("at last", latency=1.5) for url in slow}
    with FakeWeb(pages) as web:
        given = {"delay": 0, "output": str(tmp_path / "crawl"), "concurrency": 8, "retries": 0, **elsewhere(web)}
        run(Crawl(["http://well.test/"], build(all_options(), given), tables=False))
        asked = [request.host.partition(":")[0] for request in web.requests]
    last = len(asked) - asked[::-1].index("well.test")
    assert asked.count("well.test") == 21
    assert sum(host.startswith("slow") for host in asked[:last]) <= 8
    assert len({host for host in asked if host.startswith("slow")}) == len(slow)


# -- robots.txt


def test_robots_txt_is_asked_for_first_and_obeyed(tmp_path: Path) -> None:
    pages = {
        "/robots.txt": robots("User-agent: *\nDisallow: /no"),
        "/": html("x", ["/yes", "/no/1", "/no/2"]),
        "/yes": "y",
    }
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path)
        assert web.targets() == ["/robots.txt", "/", "/yes"]
    assert summary.outcomes == {"ok": 2, "robots_denied": 2}
    assert (summary.fetched, summary.state) == (2, "finished")
    told = [json.loads(line) for line in (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines()]
    assert {row["error"] for row in told if row["outcome"] == "robots_denied"} == {"Disallow: /no (robots.txt, line 2)"}


def test_every_site_of_a_host_has_its_own_robots_txt_and_one_out_of_reach_allows_nothing(tmp_path: Path) -> None:
    pages: dict[str, str | FakePage] = {
        "http://a.test/": html("a", ["http://b.test/x", "http://c.test/x"]),
        "http://b.test/robots.txt": FakePage(status=500),
        "http://b.test/x": "never",
        "http://c.test/robots.txt": FakePage(status=404),
        "http://c.test/x": "c",
    }
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path, ("http://a.test/",), retries=0, max_time=1.5, **elsewhere(web))
        asked = {(request.host.partition(":")[0], request.target) for request in web.requests}
    assert ("b.test", "/robots.txt") in asked
    assert ("b.test", "/x") not in asked
    assert ("c.test", "/x") in asked
    assert summary.queued == 1


def test_a_redirected_robots_txt_rules_its_first_host(tmp_path: Path) -> None:
    pages: dict[str, str | FakePage] = {
        "http://a.test/robots.txt": FakePage(status=301, headers=(("Location", "http://b.test/rules"),)),
        "http://b.test/rules": robots("User-agent: *\nDisallow: /no"),
        "http://a.test/": html("a", ["/no", "/yes"]),
        "http://a.test/yes": "y",
    }
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path, ("http://a.test/",), **elsewhere(web))
    assert summary.outcomes == {"ok": 2, "robots_denied": 1}


def test_a_site_whose_robots_txt_leads_to_a_blocked_host_ends_with_a_named_outcome(tmp_path: Path) -> None:
    pages: dict[str, str | FakePage] = {
        "http://a.test/": html("a", ["http://c.test/x"]),
        "http://c.test/robots.txt": FakePage(status=301, headers=(("Location", "http://b.test/rules"),)),
        "http://c.test/x": "never",
        "http://b.test/rules": robots("User-agent: *\nDisallow: /no"),
    }
    with FakeWeb(pages) as web:
        given = {"delay": 0, "output": str(tmp_path / "crawl"), **elsewhere(web)}
        settings = {"politeness": {"blocked": ["b.test"]}}
        summary = run(Crawl(["http://a.test/"], build(all_options(), given), settings=settings, tables=False))
        asked = {request.host.partition(":")[0] for request in web.requests}
    assert "b.test" not in asked
    assert (summary.outcomes, summary.queued, summary.state) == (
        {"ok": 1, "blocked": 1, "robots_denied": 1},
        0,
        "finished",
    )
    told = [json.loads(line) for line in (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines()]
    errors = {row["error"] for row in told if row.get("outcome") == "robots_denied"}
    assert errors == {"robots.txt redirects to a host that this crawl must not ask"}


def test_ignoring_robots_is_for_this_machine_and_for_hosts_of_ones_own(tmp_path: Path) -> None:
    with FakeWeb({"/robots.txt": robots("User-agent: *\nDisallow: /"), "/": "x"}) as web:
        assert crawl(web, tmp_path, robots="ignore").pages == 1
        assert web.targets() == ["/"]
    options = {"robots": "ignore", "contact": "me@example.org", "output": str(tmp_path / "other")}
    with pytest.raises(UsageError, match="--i-own-these-hosts"):
        run(Crawl(["http://192.0.2.7/"], build(all_options(), options), tables=False))


# -- order and politeness


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("breadth", ["/", "/a", "/b", "/a/1", "/a/2", "/b/1"]),
        ("depth", ["/", "/a", "/a/1", "/a/2", "/b", "/b/1"]),
    ],
)
def test_a_strategy_is_chosen_by_name(strategy: str, order: list[str], tmp_path: Path) -> None:
    links = {"/": ["/a", "/b"], "/a": ["/a/1", "/a/2"], "/b": ["/b/1"], "/a/1": [], "/a/2": [], "/b/1": []}
    with FakeWeb.graph(links) as web:
        crawl(web, tmp_path, strategy=strategy, concurrency=1)
        assert web.targets() == order


def test_a_random_walk_may_come_where_it_was(tmp_path: Path) -> None:
    with FakeWeb.graph({"/": ["/a"], "/a": ["/"]}) as web:
        summary = crawl(web, tmp_path, strategy="random-walk", max_pages=9)
        assert web.targets() == ["/", "/a"] * 4 + ["/"]
    assert (summary.state, summary.pages) == ("limit", 9)


def test_a_host_is_left_alone_for_its_delay_whatever_the_concurrency(tmp_path: Path) -> None:
    arrivals: dict[str, list[float]] = {}
    with FakeWeb({f"http://{name}.test/": html("x", ["/1", "/2", "/3"]) for name in "ab"}) as web:
        note = web.note

        def timed(request: object) -> None:
            arrivals.setdefault(request.host, []).append(time.monotonic())  # type: ignore[attr-defined]
            note(request)  # type: ignore[arg-type]

        web.note = timed  # type: ignore[method-assign]
        crawl(web, tmp_path, ("http://a.test/", "http://b.test/"), **{**elsewhere(web), "delay": 0.15})
    for times in arrivals.values():
        assert len(times) == 5
        assert all(later - earlier >= 0.15 for earlier, later in itertools.pairwise(times))


def test_the_budget_of_a_host_keeps_it_from_filling_the_frontier(tmp_path: Path) -> None:
    with FakeWeb({"/": html("x", [f"/{n}" for n in range(20)])}) as web:
        summary = crawl(web, tmp_path, max_pages_per_host=5)
        assert len(web.requests) == 5
    assert (summary.state, summary.discovered) == ("finished", 5)
    assert summary.cuts == {"budget:host": 16}


def test_a_summary_counts_the_links_that_the_limit_of_a_page_left_out(tmp_path: Path) -> None:
    with FakeWeb({"/": html("x", [f"/{n % 17}" for n in range(40)])}) as web:
        summary = crawl(web, tmp_path, max_links=3)
        assert len(web.requests) == 4
        cut = story_of(tmp_path / "crawl", web.url("/16")).told
        assert cut.endswith(f"; a limit cut links of pages, as of {web.url('/')}, and a link to it may be one")
    assert summary.cuts == {"too_many_links": 14}


def test_a_summary_says_which_cuts_depend_on_the_order_of_events(tmp_path: Path) -> None:
    with FakeWeb.graph({"/": ["/a", "/b"], "/a": ["/c"], "/b": ["/c"]}) as web:
        cut = crawl(web, tmp_path, max_pages=2)
        assert (cut.state, cut.cuts) == ("limit", {"limit:max_pages": cut.queued})
        assert cut.queued
        whole = crawl(web, tmp_path / "whole", depth=1)
    assert (whole.state, whole.pages, whole.cuts) == ("finished", 3, {}), "a depth cuts the same in every order"


# -- racing


def graph_of(seed: int) -> dict[str, list[str]]:
    """A random graph in which short and long ways lead to the same pages, with some redirects' worth of detours."""
    chance = random.Random(seed)
    names = ["/", *(f"/p{number}" for number in range(1, 40))]
    links = {name: chance.sample(names, chance.randrange(1, 4)) for name in names}
    chain = chance.sample(names[1:], 10)
    links["/"] = [*links["/"], chain[0]]
    for one, other in itertools.pairwise(chain):
        links[one] = [*links[one], other]
    return links


def within(links: dict[str, list[str]], depth: int) -> set[str]:
    found, border = {"/"}, ["/"]
    for _ in range(depth):
        border = [target for page in border for target in links[page] if target not in found]
        found.update(border)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_which_pages_a_depth_reaches_does_not_depend_on_timing(seed: int, tmp_path: Path) -> None:
    links = graph_of(seed)
    expected = within(links, 4)
    for round_ in range(2):
        chance = random.Random(f"{seed} {round_}")
        pages = {
            name: FakePage(html(name, targets), latency=chance.choice((0.0, 0.0, 0.03, 0.08)))
            for name, targets in links.items()
        }
        with FakeWeb(pages) as web:
            summary = crawl(web, tmp_path / str(round_), depth=4, per_host=16)
            assert Counter(web.targets()) == Counter(expected)
        assert summary.state == "finished"


# -- going on


def start(*arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-m", "gossamer", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_a_killed_crawl_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    concurrency, kills = 8, 3
    options = ("-o", str(tmp_path / "c"), "--delay", "0", "--per-host", "8", "--concurrency", str(concurrency))
    with FakeWeb.tree(5, 4, latency=0.002) as web:
        process = start("crawl", web.url("/"), *options)
        for part in range(1, kills + 1):
            web.wait_for(part * 250)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            process = start("crawl", "--resume", *options, *(["--json"] if part == kills else []))
        out, err = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0, err
        hits = Counter(map(web.url, web.targets()))
    summary = json.loads(out)
    assert set(hits) == set(web.expected)
    assert sum(hits.values()) - len(hits) <= kills * concurrency
    assert (summary["pages"], summary["queued"]) == (len(web.expected), 0)
    log = (tmp_path / "c" / "logs" / "crawl.jsonl").read_text()
    assert log.count('"event":"page"') == len(web.expected)


def test_a_stopped_crawl_goes_on_with_other_limits_and_one_that_is_running_is_refused(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 3) as web:
        first = crawl(web, tmp_path, max_pages=10)
        assert (first.state, first.pages) == ("limit", 10)
        job = Crawl(
            [],
            build(all_options(), {"resume": True, "output": str(tmp_path / "crawl"), "max_pages": 1_000}),
            tables=False,
        )
        second = run(job)
        assert (second.state, second.pages, second.queued) == ("finished", 40, 0)
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)
    with pytest.raises(UsageError, match="is not a directory"):
        Crawl([], build(all_options(), {"resume": True, "output": str(tmp_path / "nothing")}), tables=False)


def test_sitemaps_that_robots_txt_names_are_fetched_on_request(tmp_path: Path) -> None:
    text = "Sitemap: /map.txt\nSitemap: nonsense://\n"
    pages = {"/robots.txt": robots(text), "/": "x", "/map.txt": FakePage("", type="text/plain")}
    with FakeWeb(pages) as web:
        crawl(web, tmp_path / "without")
        assert "/map.txt" not in web.targets()
        crawl(web, tmp_path / "with", sitemaps=True)
        assert web.targets().count("/map.txt") == 1
