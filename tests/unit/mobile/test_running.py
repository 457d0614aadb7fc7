"""The runner: what a crawler asks for, what it brings home, where it ends. Pages come out of a table: it does no I/O."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from gossamer.documents.document import Document
from gossamer.mobile.crawler import (
    BringRules,
    BroughtPage,
    CrawlerBatch,
    CrawlerFacts,
    JourneySummary,
    MobileCrawler,
    MobileProgram,
    NamedProcessor,
    TravelLimits,
)
from gossamer.mobile.judging import InstalledProcessor
from gossamer.mobile.reading import parse_crawler
from gossamer.mobile.running import CrawlerRun, run_crawler
from gossamer.mobile.wire import BATCH, from_bytes, to_bytes
from gossamer.values.body import sha1_base32
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome, of_status
from gossamer.values.task import Task
from gossamer.values.visit import Item, Response

Pages = Mapping[str, str | Response]


class Table:
    """A source of pages that stand in a table; it notes what it was asked for."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.asked: list[str] = []

    def __call__(self, task: Task) -> Response:
        self.asked.append(task.url.removeprefix("http://a.test"))
        page = self.pages.get(self.asked[-1], answer("gone", 404))
        return answer(page) if isinstance(page, str) else page


def answer(body: str | bytes, status: int = 200, *headers: tuple[str, str]) -> Response:
    data = body.encode() if isinstance(body, str) else body
    fields = (*headers, ("content-type", "text/html; charset=utf-8"))
    return Response(of_status(status), status, headers=fields, body=data)


def links(*targets: str, text: str = "") -> str:
    return f"<title>t</title><body><p>{text}</p>" + "".join(f'<a href="{one}">x</a>' for one in targets)


def crawler(facts: CrawlerFacts | None = None, **program: Any) -> MobileCrawler:
    return MobileCrawler(MobileProgram(**{"seeds": ("http://a.test/",), **program}), facts or CrawlerFacts())


def journey(one: MobileCrawler, pages: Pages) -> tuple[list[BroughtPage], JourneySummary, list[str]]:
    """The pages that come home, the summary, and what the source was asked for."""
    source = Table(pages)
    batches = list(run_crawler(one, source))
    assert [batch.sequence for batch in batches] == list(range(len(batches)))
    assert [batch.summary is not None for batch in batches] == [False] * (len(batches) - 1) + [True]
    assert from_bytes(to_bytes(msgspec.structs.replace(one, results=tuple(batches)))).results == tuple(batches)
    summary = batches[-1].summary
    assert summary is not None
    return [page for batch in batches for page in batch.pages], summary, source.asked


def urls(pages: list[BroughtPage]) -> list[str]:
    return [page.url.removeprefix("http://a.test") for page in pages]


HEALTH = {
    "/": links("/a", "/b", "http://other.test/x", text="health"),
    "/a": links("/c", "/", text="Health and medicine"),
    "/b": links("/d", text="cars"),
    "/c": links(text="medicine"),
    "/d": links(text="health"),
}


def test_relevant_pages_come_home_and_the_others_are_counted() -> None:
    pages, summary, asked = journey(crawler(store="text(medicine)"), HEALTH)
    assert urls(pages) == ["/a", "/c"]
    assert sorted(asked) == ["/", "/a", "/b", "/c", "/d"]
    assert (summary.pages, summary.relevant, summary.irrelevant) == (5, 2, 3)
    assert pages[0].whole == HEALTH["/a"].encode()
    assert (pages[1].depth, pages[1].source, pages[1].relation) == (2, "http://a.test/a", "a href")


def test_links_are_followed_only_of_pages_that_expand_lets_through() -> None:
    pages, summary, asked = journey(crawler(expand="text(health)"), HEALTH)
    assert "/d" not in asked
    assert urls(pages) == ["/", "/a", "/b", "/c"]
    assert summary.not_expanded == 1
    assert journey(crawler(follow="not path(/b)"), HEALTH)[2] == ["/", "/a", "/c"]


def test_an_external_link_comes_home_once_and_is_not_asked_for() -> None:
    pages = {
        "/": links("/a", "http://x.test/1", "mailto:a@a.test"),
        "/a": links("http://x.test/1", "http://y.test/", "ftp://x.test/"),
        "/b": "",
    }
    pages["/a"] += '<a rel="nofollow" href="http://z.test/">z</a>'
    source = Table(pages)
    (batch,) = run_crawler(crawler(), source)
    assert batch.external == ("http://x.test/1", "http://y.test/")
    assert source.asked == ["/", "/a"]
    (batch,) = run_crawler(crawler(limits=TravelLimits(external=1)), Table(pages))
    assert batch.external == ("http://x.test/1",)
    assert batch.summary is not None and batch.summary.dropped == {"external": 1}


@pytest.mark.parametrize(
    ("traversal", "order"),
    [("breadth", ["/", "/a", "/b", "/a/1", "/a/2", "/b/1"]), ("depth", ["/", "/a", "/a/1", "/a/2", "/b", "/b/1"])],
)
def test_pages_come_in_the_order_of_the_traversal(traversal: str, order: list[str]) -> None:
    pages = {"/": links("/a", "/b"), "/a": links("/a/1", "/a/2"), "/b": links("/b/1")}
    assert journey(crawler(traversal=traversal), {**pages, "/a/1": "", "/a/2": "", "/b/1": ""})[2] == order


def test_a_page_that_is_met_on_a_shorter_way_counts_by_that_one() -> None:
    moved = answer("", 302, ("location", "/deep"))
    pages: dict[str, str | Response] = {
        "/": links("/a", "/moved"),
        "/a": links("/deep"),
        "/moved": moved,
        "/deep": links("/deeper"),
    }
    pages["/deeper"] = "<p>here"
    brought, _, asked = journey(crawler(limits=TravelLimits(depth=2)), pages)
    assert asked.count("/deep") == 1
    assert {page.url[13:]: page.depth for page in brought}["/deep"] == 1
    assert "/deeper" in asked


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (TravelLimits(pages=3), "pages"),
        (TravelLimits(bytes=100), "bytes"),
        (TravelLimits(brought=1000), "brought"),
    ],
)
def test_a_crawler_ends_at_its_limit_and_says_which(limits: TravelLimits, name: str) -> None:
    endless = {f"/{at}": links(f"/{at + 1}", f"/{at + 1}b") for at in range(1, 50)}
    _, summary, asked = journey(crawler(limits=limits), {"/": links("/1"), **endless})
    assert (summary.ended, summary.limit) == ("limit", name)
    assert summary.queued > 0
    assert len(asked) < 10


def test_a_crawler_stays_no_longer_than_its_time() -> None:
    source = Table({f"/{'x' * at}": links(f"/{'x' * (at + 1)}") for at in range(100)})
    run = CrawlerRun(crawler(limits=TravelLimits(seconds=5)), clock=lambda: len(source.asked))
    while (task := run.next()) is not None:
        run.take(task, source(task))
    assert len(source.asked) == 5
    last = run.finish().summary
    assert last is not None and last.limit == "seconds"


def test_urls_beyond_a_limit_are_counted_and_not_kept() -> None:
    many = {"/": links(*(f"/{at}" for at in range(100)))}
    _, summary, asked = journey(crawler(limits=TravelLimits(urls=10)), many)
    assert len(asked) == 10
    assert summary.rejected == {"limit:urls": 91}


def test_what_home_knows_is_not_asked_for_and_what_it_has_is_not_brought() -> None:
    facts = CrawlerFacts(known=("HTTP://A.test:80/x/../b",), fingerprints=(sha1_base32(HEALTH["/c"].encode()),))
    pages, summary, asked = journey(crawler(facts), HEALTH)
    assert "/b" not in asked
    (known,) = [page for page in pages if page.is_known]
    assert (known.url, known.whole, summary.known) == ("http://a.test/c", None, 1)
    assert known.digest == facts.fingerprints[0]


def test_the_same_document_comes_home_once() -> None:
    same = links("/end", text="same")
    pages, summary, asked = journey(crawler(), {"/": links("/1", "/2"), "/1": same, "/2": same, "/end": "end"})
    second = next(page for page in pages if page.url.endswith("/2"))
    assert (second.duplicate_of, second.whole) == ("http://a.test/1", None)
    assert summary.duplicates == 1
    assert asked == ["/", "/1", "/2", "/end"]


def test_the_rules_say_what_of_a_page_comes_home() -> None:
    body = '<title>T</title><h1>One  two</h1><p class=p>3</p><a href="/b" rel=nofollow>b b</a>'
    prose = "<p>" + "A page about kidneys says many words in one long paragraph, as pages do. " * 20
    rules = BringRules(("text", "links", "fingerprint"), ("h1", "p.p"))
    (page,), _, _ = journey(crawler(bring=rules), {"/": body + prose})
    assert page.whole is None
    assert page.text is not None and "about kidneys" in page.text
    assert page.simhash
    assert [(one.selector, one.text) for one in page.elements] == [("h1", "One two"), ("p.p", "3")]
    assert page.elements[1].markup == '<p class="p">3</p>'
    assert [(one.url, one.anchor, one.nofollow) for one in page.links] == [("http://a.test/b", "b b", True)]
    assert (page.title, page.mime, page.size) == ("T", "text/html", len(body + prose))


def test_a_selector_that_finds_a_page_many_times_over_brings_a_bounded_part_of_it() -> None:
    body = "<div>" * 200 + "x" * 200_000
    (page,), summary, _ = journey(crawler(bring=BringRules(("whole",), ("*",))), {"/": body})
    assert sum(len(one.markup) for one in page.elements) <= 4 << 20
    assert summary.dropped == {"elements": 1}


def test_irrelevant_pages_have_rows_where_the_program_asks_for_them() -> None:
    bring = BringRules(irrelevant="rows")
    (batch,) = run_crawler(crawler(bring=bring, store="text(medicine)"), Table(HEALTH))
    assert [row.url[13:] for row in batch.rows] == ["/", "/b", "/d"]
    assert {row.rule for row in batch.rows} == {"filter: text(medicine)"}


class Prices:
    def process(self, document: Document) -> Iterator[Item]:
        for at, node in enumerate(document.css(".price")):
            yield Item("price", document.url, {"at": at, "text": node.text()})
        if document.css(".broken"):
            raise RuntimeError("a mistake")


def test_a_processor_is_installed_in_that_version_or_the_crawler_does_not_start() -> None:
    name = NamedProcessor("prices", "1.2")
    one = crawler(processors=(name,), bring=BringRules(("items",)))
    pages = {"/": '<p class=price>3 EUR</p><a href="/x">x</a>', "/x": "<p class=broken>"}
    installed = {name: InstalledProcessor(("text/html",), Prices())}
    (batch,) = run_crawler(one, Table(pages), installed)
    assert [item.value for page in batch.pages for item in page.items] == ['{"at":0,"text":"3 EUR"}']
    assert batch.pages[1].trouble == "RuntimeError: a mistake"
    with pytest.raises(UsageError, match=r"'prices' 1.2 is not installed here; installed: prices 1.3"):
        CrawlerRun(one, {NamedProcessor("prices", "1.3"): installed[name]})


def test_a_batch_goes_home_when_it_is_full() -> None:
    many = {f"/{at}": answer(bytes([65 + at]) * (1 << 20)) for at in range(20)}
    batches = list(run_crawler(crawler(), Table({"/": links(*many), **many})))
    sizes = [sum(len(page.whole or b"") for page in batch.pages) for batch in batches]
    assert len(batches) == 3
    assert all(BATCH <= size <= BATCH + (1 << 20) for size in sizes[:-1])
    assert len([page for batch in batches for page in batch.pages]) == 21


def test_each_error_has_a_row_where_the_program_asks_for_them() -> None:
    source = {"/": links("/gone", "/down", "/lost", "/moved"), "/down": answer("", 503)}
    source |= {"/lost": Response(Outcome.TIMED_OUT), "/moved": answer("", 301, ("location", "/"))}
    for errors in (False, True):
        *_, batch = run_crawler(crawler(bring=BringRules(errors=errors)), Table(source))
        rows = [(row.url.removeprefix("http://a.test"), row.status, row.rule) for row in batch.rows]
        told = [("/gone", 404, "outcome:client_error"), ("/down", 503, "outcome:server_error")]
        assert rows == ([*told, ("/lost", 0, "outcome:timed_out")] if errors else [])
        assert not batch.redirects


def test_each_redirect_has_a_row_with_its_target_where_both_sides_know_of_these() -> None:
    source = {"/": links("/away", "/moved", "/to", "/loop"), "/to": answer("", 301, ("location", "/gone"))}
    source |= {"/moved": answer("", 302, ("location", "http://b.test/x")), "/loop": answer("", 303)}
    source |= {"/away": answer("", 302, ("location", "ftp://b.test/"))}
    bring = BringRules(errors=True)
    *_, batch = run_crawler(crawler(bring=bring, version=2, limits=TravelLimits(depth=1)), Table(source))
    assert [(row.url.removeprefix("http://a.test"), row.status, row.target, row.depth) for row in batch.redirects] == [
        ("/away", 302, "", 1),
        ("/moved", 302, "http://b.test/x", 1),
        ("/to", 301, "http://a.test/gone", 1),
        ("/loop", 303, "", 1),
    ]
    assert [row.url for row in batch.rows] == ["http://a.test/gone"]


def test_a_batch_that_has_waited_goes_home_and_an_empty_one_does_not() -> None:
    """A second for each page: few are relevant, and the large site would bring nothing home before its end."""
    pages = {f"/{at}": links(f"/{at + 1}", text="health" if at in (3, 5, 40) else "cars") for at in range(100)}
    source = Table({"/": links("/0"), **pages})
    batches = list(run_crawler(crawler(store="text(health)"), source, clock=lambda: len(source.asked)))
    assert [urls(list(batch.pages)) for batch in batches] == [["/3", "/5"], ["/40"], []]


def test_a_run_that_goes_again_makes_the_same_batches_whatever_the_clock_says() -> None:
    pages = {f"/{at}": links(f"/{at + 1}", text="health" if at % 7 == 0 else "cars") for at in range(60)}
    one, cuts = crawler(store="text(health)"), []
    source = Table({"/": links("/0"), **pages})
    first = []
    for batch in run_crawler(one, source, clock=lambda: len(source.asked)):
        first.append(batch)
        cuts.append(len(source.asked))
    assert len(first) > 3
    for known in (1, 3, len(first) - 1):  # with the last batch it has ended, and goes no more
        again = list(run_crawler(one, Table(source.pages), clock=lambda: 0.0, cuts=cuts[:known]))
        assert again[:known] == first[:known]
        assert [page for batch in again for page in batch.pages] == [page for batch in first for page in batch.pages]
    # One whose batches an older version made, by their size alone.
    assert len(list(run_crawler(one, Table(source.pages), clock=iter(range(10_000)).__next__, cuts=[0]))) == 1


def test_batches_of_links_that_lead_away_are_as_small_as_those_of_pages() -> None:
    away = {f"/{page}": links(*(f"http://{page}.{at}.test/{'x' * 1900}" for at in range(1000))) for page in range(10)}
    limits = TravelLimits(external=9_000)
    batches = list(run_crawler(crawler(limits=limits, store="text(nothing)"), Table({"/": links(*away), **away})))
    assert [len(batch.external) for batch in batches] == [5000, 4000]
    assert batches[-1].summary is not None and batches[-1].summary.dropped == {"external": 1000}


def test_refusals_of_a_source_are_counted_by_their_outcome() -> None:
    denied = Response(Outcome.ROBOTS_DENIED)
    pages: dict[str, str | Response] = {"/": links("/secret", "/missing"), "/secret": denied}
    brought, summary, _ = journey(crawler(), pages)
    assert urls(brought) == ["/"]
    assert summary.outcomes == {"ok": 1, "robots_denied": 1, "client_error": 1}


def test_a_document_that_was_cut_says_so() -> None:
    cut = msgspec.structs.replace(answer("<p>half"), outcome=Outcome.TRUNCATED)
    (page,), _, _ = journey(crawler(), {"/": cut})
    assert page.truncated


def test_a_file_becomes_a_journey() -> None:
    text = """
        seeds = ["http://a.test/"]
        store = "keywords($health) >= $least"
        [facts.keywords]
        health = ["medicin*", "health"]
        [facts.parameters]
        least = 2
    """
    pages, _, _ = journey(parse_crawler(text), HEALTH)
    assert urls(pages) == ["/a"]


def test_what_strangers_write_makes_no_summary_too_large() -> None:
    page = "".join(f'<a href="s{at}:x">x</a>' for at in range(1000))
    _, summary, _ = journey(crawler(), {"/": page, **{f"/{at}": page for at in range(3)}})
    assert len(summary.rejected) <= 201


def test_a_batch_is_one_value_of_bounded_types() -> None:
    (batch,) = run_crawler(crawler(), Table(HEALTH))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(batch), type=CrawlerBatch) == batch
