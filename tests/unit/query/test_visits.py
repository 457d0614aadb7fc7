"""Views show the latest visit of a URL, and under another name every one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.schema import mark_of
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Item, Link, Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]


def again(one: Visit, visit_id: str, seconds: float, outcome: Outcome = Outcome.OK, **changes: Any) -> Visit:
    """Another visit of the same URL, so many seconds later."""
    response = msgspec.structs.replace(one.response, started=one.response.started + seconds, outcome=outcome)
    return msgspec.structs.replace(one, id=visit_id, response=response, **changes)


def asked(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    with Database(directory) as database:
        return list(database.ask(sql))


@pytest.mark.parametrize("ended", [False, True])
def test_every_row_of_a_visit_bears_its_id(kept: Open, page: Make, ended: bool) -> None:
    crawl = kept()
    crawl.commit(page(1, id="a-1"), page(2, id="a-2"))
    if ended:
        convert(crawl.directory, ended=True)
    assert asked(crawl.directory, "SELECT url, visit FROM pages ORDER BY url") == [
        ("http://a.test/1", "a-1"),
        ("http://a.test/2", "a-2"),
    ]
    for question in ("SELECT source, visit FROM links", "SELECT url, visit FROM items"):
        found = asked(crawl.directory, f"SELECT DISTINCT * FROM ({question}) ORDER BY 1")
        assert found == [("http://a.test/1", "a-1"), ("http://a.test/2", "a-2")]


def test_views_show_the_latest_visit_and_all_of_them_under_another_name(kept: Open, page: Make) -> None:
    crawl = kept()
    first = page(1, id="a-1")
    changed = again(first, "b-1", 60, links=(Link("http://a.test/new"),), items=(Item("n", first.url, {"n": 2}),))
    crawl.commit(first, page(2, id="a-2"))
    kept("agent-01").commit(changed)
    convert(crawl.directory, ended=True)
    assert asked(crawl.directory, "SELECT url, visit FROM pages ORDER BY url") == [
        ("http://a.test/1", "b-1"),
        ("http://a.test/2", "a-2"),
    ]
    assert asked(crawl.directory, "SELECT count(*) FROM pages_all") == [(3,)]
    assert asked(crawl.directory, "SELECT target FROM links WHERE source = 'http://a.test/1'") == [
        ("http://a.test/new",)
    ]
    assert asked(crawl.directory, "SELECT count(*) FROM links_all WHERE source = 'http://a.test/1'") == [(3,)]
    assert asked(crawl.directory, "SELECT data->>'$.n' FROM items ORDER BY url") == [("2",), ("2",)]
    assert asked(crawl.directory, "SELECT count(*) FROM items_all") == [(3,)]


@pytest.mark.parametrize("outcome", [Outcome.NOT_MODIFIED, Outcome.TIMED_OUT, Outcome.SERVER_ERROR])
def test_a_visit_that_says_nothing_of_the_document_takes_no_links_away(
    kept: Open, page: Make, outcome: Outcome
) -> None:
    crawl = kept()
    first = page(1, id="a-1")
    crawl.commit(first, again(first, "a-2", 60, outcome, links=(), items=()))
    assert asked(crawl.directory, "SELECT visit, outcome FROM pages") == [("a-2", outcome.value)]
    assert asked(crawl.directory, "SELECT DISTINCT visit FROM links") == [("a-1",)]
    assert asked(crawl.directory, "SELECT visit FROM items") == [("a-1",)]


def test_a_page_that_is_gone_has_no_links_any_more(kept: Open, page: Make) -> None:
    crawl = kept()
    first = page(1, id="a-1")
    crawl.commit(first, again(first, "a-2", 60, Outcome.CLIENT_ERROR, links=(), items=()))
    assert asked(crawl.directory, "SELECT count(*) FROM links") == [(0,)]
    assert asked(crawl.directory, "SELECT count(*) FROM links_all") == [(2,)]


def test_rows_without_an_id_are_shown_until_a_visit_with_one_comes_after_them(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1), again(page(1), "", 60))
    assert asked(crawl.directory, "SELECT visit, epoch(fetched_at) % 100 FROM pages") == [(None, 61.0)]
    assert asked(crawl.directory, "SELECT count(*) FROM links") == [(4,)]
    crawl.commit(again(page(1), "a-3", 120))
    assert asked(crawl.directory, "SELECT visit FROM pages") == [("a-3",)]
    assert asked(crawl.directory, "SELECT DISTINCT visit FROM links") == [("a-3",)]


#: DuckDB gives both of each pair one hash.
ALIKE = (
    "http://host427.example/section/84/page-50427.html",
    "http://host427.example/section/14/page-80427.html",
)


def test_urls_that_have_one_hash_are_two_pages_and_no_visit_of_either_came_after_one_of_the_other(
    kept: Open, page: Make
) -> None:
    crawl = kept()
    visits = [page(number, id=f"a-{number}") for number in range(2)]
    tasks = [msgspec.structs.replace(one.task, url=url) for one, url in zip(visits, ALIKE, strict=True)]
    crawl.commit(*(msgspec.structs.replace(one, task=task) for one, task in zip(visits, tasks, strict=True)))
    convert(crawl.directory, ended=True)
    with Database(crawl.directory) as database:
        assert list(database.ask("SELECT count(DISTINCT hash(url)) FROM pages_all")) == [(1,)]
        assert sorted(database.ask("SELECT url FROM pages")) == sorted((url,) for url in ALIKE)
        assert list(database.ask(f"SELECT count(DISTINCT {mark_of('url')}) FROM pages_all")) == [(2,)]
