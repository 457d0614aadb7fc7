"""Ready-made reports and joined views say what the rows say, and no stranger's word breaks what shows them."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.query.printing import page_of
from gossamer.query.reports import SPECS, MadeReport, make_report
from gossamer.values.outcome import Outcome
from gossamer.values.url import host_of
from gossamer.values.visit import Link, Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]

HOSTILE = "</td><script>alert(1)</script>'; DROP TABLE pages; --\x1b[2J\u202e=1+1"


def ended(one: Visit, outcome: Outcome, status: int, **changes: Any) -> Visit:
    response = msgspec.structs.replace(one.response, outcome=outcome, status=status)
    return msgspec.structs.replace(one, response=response, items=(), **changes)


def links_to(*numbers: int, relation: str = "a href", anchor: str = "") -> tuple[Link, ...]:
    return tuple(Link(f"http://a.test/{number}", relation, anchor) for number in numbers)


@pytest.fixture
def crawl(kept: Open, page: Make) -> Path:
    """1 links to 2 (ok), 3 (dead), 4 (redirects by 5 to the dead 3), 6 (redirects to itself by 7); 2 links to 3."""
    stores = kept()
    stores.commit(
        page(1, id="v1", links=links_to(2, 3, 4, 6, anchor=HOSTILE), title=HOSTILE, language="en"),
        page(2, id="v2", links=links_to(3), duplicate_of="http://a.test/1"),
        ended(page(3, id="v3"), Outcome.CLIENT_ERROR, 404, links=()),
        ended(page(4, id="v4"), Outcome.REDIRECT, 301, links=links_to(5, relation="redirect")),
        ended(page(5, id="v5"), Outcome.REDIRECT, 302, links=links_to(3, relation="redirect")),
        ended(page(6, id="v6"), Outcome.REDIRECT, 302, links=links_to(7, relation="redirect")),
        ended(page(7, id="v7"), Outcome.REDIRECT, 302, links=links_to(6, relation="redirect")),
    )
    directory: Path = stores.directory
    return directory


def made(crawl: Path, name: str, most: int | None = None) -> MadeReport:
    with Database(crawl) as database:
        return make_report(database, SPECS[name], most)


def test_a_link_is_broken_where_it_ends_at_nothing_by_way_of_redirects_too(crawl: Path) -> None:
    rows = [
        dict(zip(made(crawl, "broken").sections[0].columns, row, strict=True))
        for row in made(crawl, "broken").sections[0].rows
    ]
    told = [(row["source"][-1], row["target"][-1], row["outcome"], row["status"]) for row in rows]
    assert told == [
        ("1", "3", "client_error", 404),
        ("1", "4", "client_error", 404),
        ("1", "6", "redirect", 302),
        ("2", "3", "client_error", 404),
    ]
    assert [row["redirected_to"] for row in rows[:2]] == [None, "http://a.test/3"]
    assert rows[2]["error"] == "redirects in a loop"


def test_redirects_are_told_with_their_ends_and_loops(crawl: Path) -> None:
    section = made(crawl, "redirects").sections[0]
    told = {row[0][-1]: row[2:7] for row in section.rows}
    assert told["4"] == (2, "http://a.test/3", "client_error", False, 1)
    assert told["5"] == (1, "http://a.test/3", "client_error", False, 0)
    assert told["6"][3] is True and told["7"][3] is True


@pytest.mark.parametrize("name", SPECS)
def test_every_report_answers_for_a_crawl_with_rows_and_without(
    kept: Open, crawl: Path, name: str, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "crawl.toml").touch()
    assert [section.total for section in made(empty, name).sections] == [0] * len(SPECS[name].sections)
    for section in made(crawl, name).sections:
        assert section.plot is None or {section.plot.label, section.plot.value} <= {*section.columns}


def test_a_report_shows_as_many_rows_as_asked_and_says_how_many_there_are(crawl: Path) -> None:
    first = made(crawl, "broken", 1).sections[0]
    assert (len(first.rows), first.total) == (1, 4)


def test_rows_of_earlier_visits_are_in_no_report(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1, id="v1", links=links_to(2)), ended(page(2, id="v2"), Outcome.CLIENT_ERROR, 404, links=()))
    later = page(1, id="v3", links=())
    crawl.commit(msgspec.structs.replace(later, response=msgspec.structs.replace(later.response, started=1.8e9)))
    assert made(crawl.directory, "broken").sections[0].rows == []


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_hostile_words_stay_words_in_html(crawl: Path) -> None:
    text = page_of([made(crawl, name) for name in SPECS], f"crawl {HOSTILE}", "today")
    tags = Tags()
    tags.feed(text)
    assert "script" not in tags.names and "svg" in tags.names
    assert "\x1b" not in text and "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert tags.links and all(link.startswith("http://a.test/") for link in tags.links)


def test_hostile_words_stay_words_in_csv_and_on_a_terminal(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(crawl), "broken"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    target = crawl / "broken.csv"
    assert main(["report", str(crawl), "broken", "-f", "csv", "-o", str(target)]) == 0
    assert target.read_bytes().count(b"\r\n") == 5


def test_a_build_can_fail_on_broken_links(crawl: Path, kept: Open, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(crawl), "--fail-on", "broken"]) == 1
    said = capsys.readouterr()
    assert "broken has 4 rows" in said.err and "http://a.test/3" in said.out
    assert main(["report", str(crawl), "hosts", "--fail-on", "broken"]) == 1
    assert main(["report", str(crawl), "hosts", "--fail-on", "structured-data"]) == 2
    assert main(["report", str(crawl), "brokn"]) == 2
    assert "did you mean 'broken'" in capsys.readouterr().err.lower()


def test_a_build_goes_on_where_nothing_is_broken(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1, links=links_to(2)), page(2, links=()))
    assert main(["report", str(crawl.directory), "--fail-on", "broken"]) == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://a.test/", "https://a.test:8080/x:y/@z", "http://[::1]/", "http://[2001:db8::1]:8080/a", "mailto:a@b.test",
        "echo:x/y//z",
        "file:///etc/passwd", "gopher://a.test:7070/1/x", "foo://h?x=1", "foo://h:9?x", "ftp://a.test/x?y", "data:text/plain,a://b/c",
    ],
)  # fmt: skip
def test_sql_finds_the_host_that_the_crawl_goes_by(tmp_path: Path, url: str) -> None:
    with Database(tmp_path) as database:
        assert [row[0] for row in database.ask("SELECT host(u) FROM (SELECT ? AS u)", [url])] == [host_of(url)]


def test_views_join_links_and_items_with_their_pages(crawl: Path) -> None:
    with Database(crawl) as database:
        sql = "SELECT target, target_status, is_internal FROM page_links WHERE source = 'http://a.test/2'"
        assert list(database.ask(sql)) == [("http://a.test/3", 404, True)]
        assert list(database.ask("SELECT url, host FROM page_items WHERE url LIKE '%/2'")) == [
            ("http://a.test/2", "a.test")
        ]
        assert list(database.ask("SELECT * FROM page_triples")) == []
        assert list(database.ask("SELECT source_host, pages FROM host_links")) == [("a.test", 6)]


def test_a_directory_that_holds_no_crawl_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path), "broken"]) == 2
    assert re.fullmatch(r"gossamer: .* holds no crawl .*\n", capsys.readouterr().err)
    assert main(["report", "broken", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told == f"gossamer: the directory comes first: gossamer report {tmp_path} broken\n"
