"""Processors run again over what was archived: the tables say what they find now, and nobody was asked anything."""

import asyncio
import json
import pathlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processors import own_processors

import gossamer
from gossamer.analysis.reprocess import Reprocessed, crawl_wiring, reprocess
from gossamer.cli.main import main
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.documents.document import Document
from gossamer.engine.sheet import build
from gossamer.engine.subjects import found_at
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import to_toml, with_settings
from gossamer.query.database import Database
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.tables.places import REPLACED
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.visit import Item

PAGES: dict[str, str | FakePage] = {
    "/": '<title>Root</title><a href="/one">to one</a><a href="/copy">c</a><a href="/secret">s</a><a href="/gone">g</a>',
    "/one": '<title>One</title><p class="price">5</p><a href="http://elsewhere.test/">out</a>',
    "/copy": '<title>One</title><p class="price">5</p><a href="http://elsewhere.test/">out</a>',
    "/secret": FakePage(body='<title>Secret</title><a href="/one">x</a>', headers=(("X-Robots-Tag", "noarchive"),)),
    "/gone": FakePage(status=404),
}


class Prices(Provider[Any]):
    """A processor of the user's."""

    def process(self, document: Document) -> Iterator[Item]:
        """One item for each price."""
        for node in document.css(".price"):
            yield Item("price", document.url, {"amount": node.text()})


def crawled(folder: Path, **settings: Any) -> str:
    """A crawl that kept links."""
    with FakeWeb(PAGES) as web:
        options = build(all_options(), {"output": str(folder / "crawl"), "per_host": 4, "delay": 0})
        settings |= {"log": {"tables": ["pages", "links", "items"]}}
        job = Crawl([web.url("/")], options, settings=settings)
        assert run(job).state == "finished"
    return str(folder / "crawl")


def again(directory: str, **options: Any) -> Reprocessed:
    known = catalog()
    known.add("prices", Prices)
    return asyncio.run(reprocess(directory, catalog=known, **options).run())


def asked(directory: str, sql: str) -> list[tuple[Any, ...]]:
    with Database(Path(directory)) as database:
        return list(database.ask(sql))


STATE = "SELECT * FROM pages ORDER BY url", "SELECT * FROM links ORDER BY ALL", "SELECT * FROM items ORDER BY ALL"


def state(directory: str) -> list[list[tuple[Any, ...]]]:
    return [asked(directory, sql) for sql in STATE]


def test_the_same_processors_find_the_same(tmp_path: Path) -> None:
    directory = crawled(tmp_path)
    before = state(directory)
    done = again(directory)
    assert (done.documents, done.unreadable) == (4, 0)
    assert done.tables == {"pages": 5, "links": len(before[1]), "items": 0, "errors": 0}
    assert state(directory) == before
    again(directory)
    assert state(directory) == before


def test_what_is_set_otherwise_is_found_otherwise(tmp_path: Path) -> None:
    directory = crawled(tmp_path)
    assert asked(directory, "SELECT count(*) FROM links WHERE anchor = 'to one'") == [(0,)]
    wiring = with_settings(crawl_wiring(directory), "html", {"anchors": True})
    again(directory, wiring=wiring)
    assert asked(directory, "SELECT count(*) FROM links WHERE anchor = 'to one'") == [(1,)]
    # The body of the page that must not be kept is not there: what was known of it stays.
    assert asked(directory, "SELECT count(*) FROM links WHERE source LIKE '%/secret'") == [(1,)]
    assert asked(directory, "SELECT title FROM pages WHERE url LIKE '%/secret'") == [("Secret",)]


def test_parts_of_an_archive_that_other_machines_process_make_the_tables_that_one_run_makes(tmp_path: Path) -> None:
    directory, parts = crawled(tmp_path), list[bytes]()
    wiring = with_settings(crawl_wiring(directory), "html", {"anchors": True})
    again(directory, wiring=wiring)
    before = state(directory)
    again(directory)
    assert state(directory) != before

    def mapped(place: str, given: Iterable[bytes]) -> Iterator[bytes]:
        for part in given:
            parts.append(part)
            yield found_at(place)(part)

    run = reprocess(directory, wiring=wiring, mapped=mapped)
    run.part_bytes = 1
    done = asyncio.run(run.run())
    assert (done.documents, done.unreadable, len(parts)) == (4, 0, 4)
    assert state(directory) == before
    full = compile_wiring((), CrawlOptions(analysis="full"), crawl_wiring(directory))
    with pytest.raises(UsageError, match="near-duplicates are sought among all pages; leave --cluster out"):
        reprocess(directory, wiring=full, mapped=mapped)
    (Path(directory) / "crawl.toml").rename(tmp_path / "moved")
    with pytest.raises(CrawlDirectoryError, match="is not on every machine of the cluster"):
        found_at("gossamer.analysis.archive_runs:processed")(parts[0])


TEXT = " ".join(
    f"Paragraph {number} of a long page about bridges, rivers and those who cross them." for number in range(80)
)

LIKES: dict[str, str | FakePage] = {
    "/": '<a href="/one">x</a>',
    "/one": f'<title>One</title><p>{TEXT}<a href="/two">x</a>',
    "/two": f'<title>Two</title><p>{TEXT.replace("Paragraph 40", "Paragraph forty")}<a href="/">x</a>',
}


def named(directory: str) -> list[tuple[Any, ...]]:
    return asked(directory, "SELECT title, right(near_duplicate_of, 4), discarded, language FROM pages ORDER BY url")


def likes(folder: Path, **more: object) -> str:
    with FakeWeb(LIKES) as web:
        options = build(all_options(), {"output": str(folder / "crawl"), "delay": 0, **more})
        run(Crawl([web.url("/")], options, settings={"log": {"tables": ["pages", "links", "items"]}}))
    return str(folder / "crawl")


def test_details_that_the_crawl_did_without_are_found_in_its_archive(tmp_path: Path) -> None:
    directory = likes(tmp_path)
    assert named(directory) == [(None, None, None, None), ("One", None, None, None), ("Two", None, None, None)]
    again(directory, wiring=compile_wiring((), CrawlOptions(analysis="full"), crawl_wiring(directory)))
    assert named(directory) == [(None, None, None, None), ("One", None, None, "en"), ("Two", "/one", None, "en")]
    again(directory)
    assert named(directory)[2] == ("Two", None, None, None), "what the wiring does not look for is not there"


def test_a_page_whose_body_was_not_kept_stays_as_it_was(tmp_path: Path) -> None:
    directory = likes(tmp_path, near_duplicates="skip", filter=("store: not path(/one)",))
    before = state(directory)
    assert [row[2] for row in named(directory)] == [None, None, "near-duplicate"]
    done = again(directory)
    assert (done.documents, done.unreadable) == (1, 0)
    assert state(directory) == before


def test_a_processor_that_is_named_runs_alone_and_replaces_its_items(tmp_path: Path) -> None:
    directory = crawled(tmp_path)
    links = state(directory)[1]
    for _ in range(2):
        done = again(directory, processors=["prices"])
        assert done.tables == {"items": 2}
    found = asked(directory, "SELECT kind, data->>'$.amount', url LIKE '%/copy' FROM items ORDER BY url")
    assert sorted(found) == [("price", "5", False), ("price", "5", True)]
    assert state(directory)[1] == links


def test_what_a_crawl_isolates_may_stay_away_from_a_run(tmp_path: Path) -> None:
    directory = crawled(tmp_path, process={"isolated": ["html"]})
    assert again(directory, processors=["prices"]).tables["items"] == 2


def test_a_run_that_dies_leaves_the_tables_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = crawled(tmp_path)
    before = state(directory)

    replace = Path.replace

    def dying(path: Path, target: Path) -> Path:
        if target.name == REPLACED:  # the switch to the new tables
            raise KeyboardInterrupt
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(pathlib.Path, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            again(directory)
    assert state(directory) == before
    again(directory)
    assert state(directory) == before


def test_a_run_beside_a_crawl_says_how_far_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = crawled(tmp_path)
    [newest] = asked(
        directory, "SELECT strftime(max(fetched_at), '%Y-%m-%dT%H:%M:%S.%fZ') FROM pages WHERE NOT noarchive"
    )
    ledger = RocksLedger(LedgerSheet(directory=directory))
    ledger.open()  # as the crawl has it while it runs
    assert main(["reprocess", directory]) == 0
    ledger.close()
    told = f"running:  the crawl is running; documents fetched until {newest[0]} were read"
    assert told in capsys.readouterr().out
    assert not again(directory).is_at_work


def test_the_command_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = crawled(tmp_path)
    assert main(["reprocess", directory]) == 0
    assert "processed 4 documents" in capsys.readouterr().out
    wiring = tmp_path / "my.toml"
    wiring.write_text(to_toml(crawl_wiring(directory)))
    assert main(["reprocess", directory, "--wiring", str(wiring), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 4
    assert main(["reprocess", directory, "--processor", "htlm-links"]) == 2
    assert "did you mean 'html-links'" in capsys.readouterr().err


def test_a_program_runs_its_own_processors(tmp_path: Path) -> None:
    directory = crawled(tmp_path)
    with own_processors():

        @gossamer.processor("text/html")
        def titles(document: Document) -> Iterator[Item]:
            yield Item("title", document.url, document.title)

        done = asyncio.run(gossamer.reprocess(directory))
    assert done.tables["items"] == 3
    assert asked(directory, "SELECT DISTINCT data FROM items WHERE url LIKE '%/one'") == [('"One"',)]
