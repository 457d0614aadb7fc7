"""Handlers run again over what a spider archived: by label and with the data of each request, and nobody is asked anything."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import UsageError

SHOP = {
    "/": '<a class="p" href="/b1">1</a><a class="p" href="/b2">2</a><a href="/gone" class="g">x</a>',
    "/b1": "<h1>Book 1</h1><i>first</i>",
    "/b2": "<h1>Book 2</h1><i>second</i>",
    "/gone": FakePage("away", status=404),
    "/moved": FakePage("", status=302, headers=(("Location", "/b1"),)),
}

FILE = """
import gossamer

spider = gossamer.Spider({seed!r}, delay=0)

@spider.page()
def start(page):
    for number, link in enumerate(page.css(".p")):
        yield page.follow(link, label="book", data={{"number": number, "tags": ["a"]}})
    yield page.follow(".g", label="book")
    yield gossamer.Request("/moved", label="book", redirects="keep", data="as it is")
    yield gossamer.Request("/b1", body={{"q": "x"}}, label="book", data=0)

@spider.page("book")
def book(page):
    yield {{"what": page.text({selector!r}), "data": page.data, "status": page.status}}

@spider.failed
def failed(page):
    yield {{"what": "failed " + page.outcome, "data": page.data, "status": page.status}}
"""


def crawled(folder: Path) -> tuple[Path, Path]:
    """The file of a spider, and the directory of its crawl."""
    file = folder / "books.py"
    with FakeWeb(SHOP) as web:
        seed = web.url("/")
        file.write_text(FILE.format(seed=seed, selector="h1"))
        gossamer_command(0, "run", str(file), "-o", str(folder / "mine"), "--items", str(folder / "items.jsonl"))
    file.write_text(FILE.format(seed=seed, selector="i"))
    return file, folder / "mine"


def gossamer_command(code: int, *arguments: str) -> str:
    command = [sys.executable, "-m", "gossamer", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def items_of(directory: Path) -> list[Any]:
    with Database(directory) as database:
        rows = list(database.ask("SELECT data FROM items"))
    return sorted((json.loads(row[0]) for row in rows), key=json.dumps)


EXPECTED = sorted(
    [
        {"what": "first", "data": {"number": 0, "tags": ["a"]}, "status": 200},
        {"what": "second", "data": {"number": 1, "tags": ["a"]}, "status": 200},
        {"what": "", "data": "as it is", "status": 302},
        {"what": "first", "data": 0, "status": 200},
        {"what": "failed client_error", "data": None, "status": 404},
    ],
    key=json.dumps,
)


def test_changed_handlers_get_the_pages_of_the_archive_with_label_and_data_and_ask_nobody(tmp_path: Path) -> None:
    file, directory = crawled(tmp_path)
    before = items_of(directory)
    assert len(before) == len(EXPECTED) and before != EXPECTED
    told = gossamer_command(0, "reprocess", str(directory), "--spider", str(file))
    assert items_of(directory) == EXPECTED, told
    written = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    kept = [{name: one[name] for name in ("what", "data", "status")} for one in written]
    assert sorted(kept, key=json.dumps) == EXPECTED, "item files are made anew"
    with Database(directory) as database:
        rows = list(database.ask("SELECT count(*) FROM pages WHERE label = 'book' AND data->>'$.number' = '1'"))
    assert rows == [(1,)]


def test_a_crawl_with_handlers_is_not_processed_without_them_and_the_command_is_told(tmp_path: Path) -> None:
    file, directory = crawled(tmp_path)
    before = items_of(directory)
    told = gossamer_command(2, "reprocess", str(directory))
    assert f"gossamer reprocess {directory} --spider {file}" in told and "Traceback" not in told
    assert items_of(directory) == before


def test_a_program_runs_its_handlers_over_any_crawl_and_what_they_raise_is_told(tmp_path: Path) -> None:
    with FakeWeb({"/": '<h1>Root</h1><a href="/1">1</a>', "/1": "<h1>One</h1>"}) as web:
        for _ in gossamer.crawl_sync(web.url("/"), output=str(tmp_path / "plain"), delay=0):
            pass
        asked = len(web.requests)
        spider = gossamer.Spider()

        @spider.page()
        async def page(page: gossamer.Page) -> gossamer.Results:
            if page.text("h1") == "One":
                raise ValueError("not this one")
            return {"title": page.text("h1")}

        done = spider.reprocess(str(tmp_path / "plain"))
        assert len(web.requests) == asked
    assert done.documents == 2 and items_of(tmp_path / "plain") == [{"title": "Root"}]
    with Database(tmp_path / "plain") as database:
        [(error, place)] = database.ask("SELECT error, place FROM errors")
    assert error == "ValueError: not this one" and "test_reprocess_spider.py" in place


def test_handlers_and_processors_are_not_run_at_the_same_time(tmp_path: Path) -> None:
    file, directory = crawled(tmp_path)
    told = gossamer_command(
        2, "reprocess", str(directory), "--spider", str(file), "--processor", "text/html=tag-counter"
    )
    assert "not both" in told
    with pytest.raises(UsageError, match="is not a directory"):
        gossamer.Spider().reprocess(str(tmp_path / "nowhere"))
