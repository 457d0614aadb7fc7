"""Whole crawls that come back to known pages (`--recrawl`): when, with which requests, and what they say of changes.

Questions are answered from the logs of rows: tables would take half a second of each run.
"""

import gzip
import itertools
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.engine.unit import SystemClock
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb, html
from gossamer.values.errors import UsageError

#: Words enough for a fingerprint of the text that one more word hardly changes.
PROSE = " ".join(f"word{n} of{n % 7} a{n % 11} text{n % 13}" for n in range(400))


class LaterClock(SystemClock):
    """The machine's clock, days ahead."""

    def __init__(self, days: float) -> None:
        super().__init__()
        self._ahead = 86_400 * days

    def now(self) -> float:
        return super().now() + self._ahead

    def steady(self) -> float:
        return super().steady() + self._ahead


def crawl(web: FakeWeb, folder: Path, **options: object) -> Summary:
    """Visit all pages on a first day; each is due again after half a day."""
    given = {"delay": 0, "output": str(folder), "recrawl": "every=12h", "linger": 0.0, **options}
    return run(Crawl([web.url("/")], build(all_options(), given), tables=False))


def again(folder: Path, day: float, **options: object) -> Summary:
    """Visit what is due on a later day."""
    given = {"resume": True, "output": str(folder), **options}
    return run(Crawl([], build(all_options(), given), clock=LaterClock(day), tables=False))


def asked(folder: Path, question: str) -> list[tuple[Any, ...]]:
    with Database(folder) as database:
        return list(database.ask(question))


def rows(folder: Path, columns: str, where: str = "true") -> list[tuple[Any, ...]]:
    return asked(folder, f"SELECT {columns} FROM pages_all WHERE {where} ORDER BY fetched_at, url")


@pytest.fixture
def site() -> dict[str, Any]:
    return {"/": html("hub", ["/a", "/b"]), "/a": html("a", []), "/b": html("b", [])}


def test_a_crawl_comes_back_after_the_interval_and_a_known_page_is_no_further_page(
    site: dict[str, Any], tmp_path: Path
) -> None:
    with FakeWeb(site) as web:
        summary = crawl(web, tmp_path / "c", recrawl="every=400ms", linger=30.0, max_time=3.0)
        times = Counter(web.targets())
    assert summary.state == "limit", "due times keep it alive"
    assert all(2 <= times[name] <= 8 for name in site), times
    assert summary.pages == summary.discovered == 3 and summary.fetched == sum(times.values())
    assert summary.queued < 3, "what is due later is not queued"


def test_a_crawl_sees_what_changes_while_it_runs_and_an_interval_below_politeness_gives_way(tmp_path: Path) -> None:
    times: list[float] = []
    asked_for = Counter[str]()

    def answer(request: FakeRequest) -> FakePage:
        times.append(time.monotonic())
        asked_for[request.target] += 1
        is_first = asked_for[request.target] == 1
        if request.target == "/gone" and not is_first:
            return FakePage(status=404)
        return FakePage(html("first" if is_first else "then", ["/gone"]))

    with FakeWeb({"/": answer, "/gone": answer}) as web:
        crawl(web, tmp_path / "c", recrawl="every=10ms", delay=0.25, linger=30.0, max_time=4.0)
    assert min(later - one for one, later in itertools.pairwise(times)) > 0.24
    told = rows(tmp_path / "c", "url, change")
    assert (web.url("/"), "changed") in told
    assert {(web.url("/gone"), "missing"), (web.url("/gone"), "gone")} <= set(told)


def test_dates_of_the_future_are_sent_back_and_do_no_harm(tmp_path: Path) -> None:
    future = "Fri, 01 Jan 2100 00:00:00 GMT"
    since: list[str] = []

    def answer(request: FakeRequest) -> FakePage:
        since.append(request.header("if-modified-since"))
        return FakePage(
            html(f"visit {len(since)}", []), headers=(("Last-Modified", future), ("Date", future), ("Expires", future))
        )

    with FakeWeb({"/": answer}) as web:
        crawl(web, tmp_path / "c")
        for day in (1, 2):
            again(tmp_path / "c", day)
    assert since == ["", future, future]
    assert [change for (change,) in rows(tmp_path / "c", "change")] == [None, "changed", "changed"]


def test_a_limit_of_time_ends_a_crawl_that_only_waits_for_known_pages(
    site: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeWeb(site) as web:
        summary = crawl(web, tmp_path / "c", recrawl="every=1h", linger=30.0, max_time=1.0)
    assert summary.state == "limit" and summary.limit == "max_time"
    assert "were cut" not in capsys.readouterr().err, "nothing is in flight when the time is up"


def test_sitemaps_are_believed_when_they_say_that_a_page_changed(tmp_path: Path) -> None:
    days = {"/a": 1, "/b": 1}

    def sitemap(request: FakeRequest) -> FakePage:
        entries = "".join(
            f"<url><loc>{web.url(path)}</loc><lastmod>{datetime.fromtimestamp(day, UTC).isoformat()}</lastmod></url>"
            for path, day in days.items()
        )
        return FakePage(f"<urlset>{entries}</urlset>", headers=(("Content-Type", "application/xml"),))

    pages: dict[str, Any] = {"/": html("hub", ["/a", "/b", "/sitemap.xml"]), "/sitemap.xml": sitemap}
    pages |= {"/a": html("a", []), "/b": html("b", [])}
    with FakeWeb(pages) as web:
        crawl(web, tmp_path / "c", recrawl="adaptive=6d")
        clock = LaterClock(0)
        for day in range(3, 39, 4):
            days["/a"] = int(clock.now() + (day - 1) * 86_400)
            web.pages["/a"] = html(f"a on day {day} {PROSE[day * 99 :]}", [])
            again(tmp_path / "c", day)
        times = Counter(web.targets())
    assert times["/sitemap.xml"] == 10, "a sitemap that tells is read each day"
    assert times["/a"] > times["/b"], times


def test_a_list_that_robots_txt_names_is_read_as_one_each_time(tmp_path: Path) -> None:
    def listed(*paths: str) -> FakePage:
        return FakePage("".join(f"{web.url(path)}\n" for path in paths), headers=(("Content-Type", "text/html"),))

    robots = FakePage("Sitemap: /urls", headers=(("Content-Type", "text/plain"),))
    pages: dict[str, Any] = {"/robots.txt": robots, "/": html("hub", [])} | {
        path: html(path, []) for path in ("/a", "/b")
    }
    with FakeWeb(pages) as web:
        web.pages["/urls"] = listed("/a")
        crawl(web, tmp_path / "c", recrawl="every=1d", sitemaps=True)
        assert "/b" not in web.targets()
        web.pages["/urls"] = listed("/a", "/b")
        again(tmp_path / "c", 3)
        assert web.targets().count("/urls") == 2 and "/b" in web.targets()


def test_linger_0_does_what_is_due_and_ends_with_0(site: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(site) as web:
        first = crawl(web, tmp_path / "c", recrawl="every=1h", linger=0.0)
        once = Counter(web.targets())
        second = again(tmp_path / "c", 0.0)
        assert Counter(web.targets()) == once, "nothing is due"
    assert (first.exit_code, second.exit_code) == (0, 0) and (first.state, second.state) == ("finished", "finished")
    assert set(once.values()) == {1}


def test_a_finished_crawl_that_kept_no_schedule_is_visited_again_from_its_rows(
    site: dict[str, Any], tmp_path: Path
) -> None:
    with FakeWeb(site) as web:
        crawl(web, tmp_path / "c", recrawl="")
        web.pages["/a"] = html("another", [])
        summary = again(tmp_path / "c", 8, recrawl="every=7d", linger=0.0)
    told = dict(rows(tmp_path / "c", "url, change", "relation = 'revisit'"))
    assert {url.rpartition("/")[2]: change for url, change in told.items()} == {
        "": "unchanged",
        "a": "changed",
        "b": "unchanged",
    }
    assert summary.exit_code == 0 and summary.pages == 3


def test_validators_are_sent_back_and_a_304_is_archived_and_takes_nothing_away(tmp_path: Path) -> None:
    def answer(request: FakeRequest) -> FakePage:
        if request.header("if-none-match") == '"v1"' and request.header("if-modified-since"):
            return FakePage(status=304)
        fields = (("ETag", '"v1"'), ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"))
        return FakePage(html("a", ["/"]), headers=fields)

    with FakeWeb({"/": answer}) as web:
        crawl(web, tmp_path / "c")
        again(tmp_path / "c", 1)
    assert rows(tmp_path / "c", "outcome, change, judged_by")[1:] == [("not_modified", "unchanged", "server")]
    assert asked(tmp_path / "c", "SELECT target FROM links") != []
    records = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*.warc.gz"))
    assert b"server-not-modified" in _unzipped(records)


def test_an_etag_that_changes_at_every_answer_is_no_change(tmp_path: Path) -> None:
    asked_with: list[str] = []

    def answer(request: FakeRequest) -> FakePage:
        asked_with.append(request.header("if-none-match"))
        return FakePage(html("a", []), headers=(("ETag", f'"{len(asked_with)}"'),))

    with FakeWeb({"/": answer}) as web:
        crawl(web, tmp_path / "c")
        for day in (1, 2):
            again(tmp_path / "c", day)
    assert asked_with == ["", '"1"', '"2"'], "each visit asks with the newest"
    assert rows(tmp_path / "c", "change, judged_by")[1:] == [("unchanged", "digest")] * 2


def test_a_304_that_nobody_asked_for_says_nothing(tmp_path: Path) -> None:
    with FakeWeb({"/": html("a", [])}) as web:
        crawl(web, tmp_path / "c")
        web.pages["/"] = FakePage(status=304)
        again(tmp_path / "c", 1)
        web.pages["/"] = html("a", [])
        again(tmp_path / "c", 2)
    assert rows(tmp_path / "c", "change") == [(None,), (None,), ("unchanged",)]


def test_other_bytes_with_the_same_text_are_unchanged_and_what_decided_is_kept(tmp_path: Path) -> None:
    times: list[str] = []

    def answer(request: FakeRequest) -> str:
        times.append(request.target)
        return f"<html><head><meta name=token content=t{len(times)}></head><body><p>{PROSE}</p></body></html>"

    with FakeWeb({"/": answer}) as web:
        crawl(web, tmp_path / "c")
        again(tmp_path / "c", 1)
        web.pages["/"] = f"<html><body><p>{PROSE[::-1]}</p></body></html>"
        again(tmp_path / "c", 2)
    told = rows(tmp_path / "c", "change, judged_by, changed_bits")
    assert told[1] == ("unchanged", "text", 0)
    assert told[2][:2] == ("changed", "text") and told[2][2] > 3


def test_a_page_is_gone_when_it_is_gone_twice_and_may_come_back(tmp_path: Path) -> None:
    there = html("it", ["/b"])
    with FakeWeb({"/": html("hub", ["/a"]), "/a": there, "/b": html("b", [])}) as web:
        crawl(web, tmp_path / "c")
        links = [_links_of(tmp_path / "c", "/a")]
        for day, page in enumerate((None, None, there), 1):
            web.pages.update({"/a": page or FakePage(status=404)})
            again(tmp_path / "c", day if day < 3 else 200)
            links.append(_links_of(tmp_path / "c", "/a"))
    told = [change for (change,) in rows(tmp_path / "c", "change", "url LIKE '%/a'")]
    assert told == [None, "missing", "gone", "back"]
    assert links == [1, 1, 0, 1], "missing for the first time, it takes nothing away"


def test_a_page_that_is_gone_is_asked_for_rarely(site: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(site) as web:
        crawl(web, tmp_path / "c", max_interval=30 * 86_400.0)
        del web.pages["/a"]
        for day in (1, 2, 3, 20, 40):
            again(tmp_path / "c", day)
        assert web.targets().count("/a") == 4, "on the days 0, 1 (missing), 2 (gone), 40"


def test_redirects_that_appear_and_end_are_changes(tmp_path: Path) -> None:
    with FakeWeb({"/": html("a", []), "/b": html("b", [])}) as web:
        crawl(web, tmp_path / "c")
        web.pages["/"] = FakePage(status=301, headers=(("Location", "/b"),))
        again(tmp_path / "c", 1)
        web.pages["/"] = html("a", [])
        again(tmp_path / "c", 2)
    assert rows(tmp_path / "c", "change, judged_by", "url NOT LIKE '%/b'") == [
        (None, None),
        ("redirected", "status"),
        ("changed", "status"),
    ]


def test_adaptive_visits_a_page_that_changes_more_often_than_one_that_never_does(tmp_path: Path) -> None:
    def news(request: FakeRequest) -> FakePage:
        return html(f"news {len(web.requests)} " + PROSE[: 400 + 40 * len(web.requests)], [])

    pages: dict[str, Any] = {"/": html("hub", ["/news", *(f"/{n}" for n in range(9))]), "/news": news}
    pages |= {f"/{n}": html(f"page {n}", []) for n in range(9)}
    with FakeWeb(pages) as web:
        crawl(web, tmp_path / "c", recrawl="adaptive=3d")
        for day in range(2, 20, 2):
            again(tmp_path / "c", day)
        times = Counter(web.targets())
    never = [times[f"/{n}"] for n in range(9)]
    assert times["/news"] > max(never), times
    assert min(never) >= 3, "none is forgotten"
    assert sum(times.values()) <= 11 * (1 + 18 / 3) * 1.5, "the mean page is visited once in three days"


def test_a_page_that_an_expression_is_true_of_has_bounds_of_its_own(site: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(site) as web:
        crawl(web, tmp_path / "c", recrawl="every=7d", interval=("..1d: path(/a)",))
        again(tmp_path / "c", 2)
        assert web.targets()[3:] == ["/a"]
        again(tmp_path / "c", 5, hosts={"127.0.0.1": {"max-interval": 60.0}}, recrawl="every=7d")
        assert web.targets()[4:] == ["/a"], "what is planned stays until its next visit is judged"


@pytest.mark.parametrize("policy", ["proportional", "nutch", "stormcrawler"])
def test_the_rules_of_others_are_policies_by_name(policy: str, site: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(site) as web:
        crawl(web, tmp_path / "c", recrawl=policy)
        again(tmp_path / "c", 0.1)
        assert len(web.requests) == 3, "nothing is due after two hours"
        again(tmp_path / "c", 40)
        assert len(web.requests) == 6


def test_new_pages_keep_their_share_of_the_requests(tmp_path: Path) -> None:
    names = [f"/p{n}" for n in range(60)]
    with FakeWeb({"/": html("hub", names), **{name: html(name, []) for name in names}}) as web:
        crawl(web, tmp_path / "c", recrawl="every=10ms", recrawl_rate="20%", concurrency=1, max_pages=61)
        order = web.targets()
    last_new = max(order.index(name) for name in names)
    known = last_new + 1 - len(names) - 1
    assert 3 <= known <= 0.3 * (last_new + 1), "known pages have their share and no more while there are new ones"


def test_without_recrawl_there_is_no_schedule(site: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(site) as web:
        job = Crawl([web.url("/")], build(all_options(), {"delay": 0, "output": str(tmp_path / "c")}))
        assert not {"revisits", "revisit-ledger", "revisit-policy"} & job.graph.providers.keys()
        assert "changes" not in job.graph.components


def test_never_stops_what_an_earlier_run_began(site: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(site) as web:
        crawl(web, tmp_path / "c")
        summary = again(tmp_path / "c", 1, recrawl="never")
        assert len(web.requests) == 3 and summary.exit_code == 0
        again(tmp_path / "c", 2, recrawl="every=1d")
        assert len(web.requests) == 6


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"recrawl": "sometimes"}, "every=TIME"),
        ({"recrawl": "every=soon"}, "quantity"),
        ({"recrawl": "every=0s"}, "above 0"),
        ({"recrawl": "adaptive=soon"}, "quantity"),
        ({"recrawl": "adaptive=1m", "min_interval": 3_600.0}, "--min-interval"),
        ({"recrawl": "nutch=1d"}, "adaptive=TIME"),
        ({"recrawl": "every=7d", "recrawl_rate": "120%"}, "at most 100%"),
        ({"recrawl": "every=7d", "recrawl_rate": "much"}, "as 20%"),
        ({"recrawl": "every=1m", "min_interval": 3_600.0}, "--min-interval"),
        ({"recrawl": "every=7d", "min_interval": 9e9, "max_interval": 1.0}, "--min-interval"),
        ({"recrawl": "", "recrawl_rate": "20%"}, "give --recrawl as well"),
        ({"recrawl": "every=7d", "strategy": "random-walk"}, "random walk"),
        ({"interval": ("1h..1d: path(/x)",)}, "give --recrawl as well"),
        ({"recrawl": "every=7d", "interval": ("2d..1d: path(/x)",)}, "longer than the second"),
        ({"hosts": {"a.test": {"max-interval": "1h"}}}, "give --recrawl as well"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_touched(
    options: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=why):
        Crawl(["http://127.0.0.1:1/"], build(all_options(), {"output": str(tmp_path / "c"), **options}))
    assert not (tmp_path / "c").exists()


def _links_of(folder: Path, path: str) -> int:
    """How many links the tables show of a page: what processing found goes with a page that is gone."""
    return len(asked(folder, f"SELECT target FROM links WHERE source LIKE '%{path}'"))


def _unzipped(data: bytes) -> bytes:
    return gzip.decompress(data)
