"""Everything that shows a page shows the same visit of it: `cat`, `why`, tables and index, of pages that are gone too."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer.analysis.why import story_of
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.engine.unit import SystemClock
from gossamer.query.database import Database
from gossamer.search.asking import Search
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.testing.fakeweb import FakePage, FakeWeb

#: One visit on each of these days of 2026, by the crawl's clock.
DAYS = ("20260301", "20260302", "20260303")

FIRST = 1_772_366_400.0
"""2026-03-01, 12:00 UTC."""

MISSING = FakePage("<p>nobody knows this marmot", status=404)

#: What each page says at each visit.
PAGES: dict[str, tuple[str | FakePage, str | FakePage, str | FakePage]] = {
    "/": ("<a href='/changes'>1</a><a href='/gone'>2</a><a href='/back'>3</a><a href='/never'>4</a>",) * 3,
    "/changes": ("<p>a first marmot", "<p>a second marmot", "<p>a third marmot"),
    "/gone": ("<p>a first marmot", "<p>a second marmot", MISSING),
    "/back": ("<p>a first marmot, and back", MISSING, "<p>a third marmot, and back"),
    "/never": (MISSING, MISSING, MISSING),
}


class DayClock(SystemClock):
    """The machine's clock, set to another day."""

    def __init__(self, day: int) -> None:
        super().__init__()
        self._ahead = FIRST + 86_400 * day - super().now()

    def now(self) -> float:
        return super().now() + self._ahead


class Visited(NamedTuple):
    """A crawl that visited each page on each day."""

    directory: Path
    url: Callable[[str], str]


def visit_again(directory: Path) -> None:
    """Queue every page once more, as a schedule would."""
    [ledger] = ledgers_of(directory)
    ledger.open()
    rows = list(ledger.documents())
    with ledger.group() as group:
        for row in rows:
            group.undo(row)
    ledger.close()


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    directory = tmp_path_factory.mktemp("visited") / "crawl"
    with FakeWeb({}) as web:
        for day in range(len(DAYS)):
            web.pages.update({path: said[day] for path, said in PAGES.items()})
            options = build(all_options(), {"output": str(directory), "delay": 0, "resume": day > 0})
            if day:
                visit_again(directory)
            seeds = [] if day else [web.url("/")]
            assert run(Crawl(seeds, options, clock=DayClock(day))).state == "finished"
        assert main(["index", str(directory)]) == 0
        yield Visited(directory, web.url)


def said(page: str | FakePage) -> tuple[int, str]:
    """Status and words of an answer."""
    return (page.status, str(page.body)) if isinstance(page, FakePage) else (200, page)


def shown_by_cat(visited: Visited, path: str, at: str, capfdbinary: pytest.CaptureFixture[bytes]) -> tuple[int, str]:
    capfdbinary.readouterr()
    shown = []
    for words in (["--headers"], []):
        assert main(["cat", str(visited.directory), visited.url(path), *(["--at", at] if at else []), *words]) == 0
        shown.append(capfdbinary.readouterr().out.decode())
    return int(shown[0].split()[1]), shown[1]


@pytest.mark.parametrize("path", PAGES)
def test_cat_why_and_tables_show_the_same_visit_of_pages_that_are_gone_too(
    path: str, visited: Visited, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    last = said(PAGES[path][-1])
    assert shown_by_cat(visited, path, "", capfdbinary) == last
    story = story_of(visited.directory, visited.url(path))
    assert [visit["status"] for visit in story.visits] == [said(page)[0] for page in PAGES[path]]
    with Database(visited.directory) as database:
        named = f"url = '{visited.url(path)}'"
        [(status, day, file, offset)] = database.ask(
            f"SELECT status, strftime(fetched_at, '%Y%m%d'), warc_file, warc_offset FROM pages WHERE {named}"
        )
        every = list(database.ask(f"SELECT status FROM pages_all WHERE {named} ORDER BY fetched_at"))
        links = list(database.ask(f"SELECT target FROM links WHERE source = '{visited.url(path)}'"))
    assert (status, day) == (last[0], DAYS[-1])
    assert story.record is not None
    assert (story.record["file"], story.record["offset"]) == (file, offset)
    assert [row[0] for row in every] == [said(page)[0] for page in PAGES[path]]
    assert bool(links) == ("<a" in last[1])


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("number", range(len(DAYS)))
def test_cat_shows_what_stood_at_a_time(
    number: int, path: str, visited: Visited, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    shown = shown_by_cat(visited, path, DAYS[number], capfdbinary)
    assert shown == said(PAGES[path][number])


def test_the_index_has_the_last_version_of_what_is_there_and_nothing_of_what_is_gone(visited: Visited) -> None:
    search = Search(visited.directory)
    found = {hit.url: hit for hit in search.ask("marmot").hits}
    assert set(found) == {visited.url("/changes"), visited.url("/back")}
    assert all("third" in hit.snippet for hit in found.values())
