"""Type checkers know the API: they accept what the documentation shows, and refuse wrong uses of it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SOURCES = sorted((ROOT / "src").rglob("*.py"))


def test_bytes_that_are_no_utf8_are_caught_with_what_is_ill_formed() -> None:
    """Msgspec raises UnicodeDecodeError for them, which is no `DecodeError` of its own: both are ValueErrors."""
    caught = re.compile(r"(?:except |suppress\()[^\n]*msgspec\.(?:DecodeError|MsgspecError)")
    assert [path.name for path in SOURCES if caught.search(path.read_text(encoding="utf-8"))] == []


def test_an_error_of_the_system_without_a_number_is_told_by_its_text() -> None:
    """`strerror` of an OSError that was made of a text alone is None, and a person would read that."""
    alone = re.compile(r"(?<!os)\.strerror\b(?!\s+or\b)")
    assert [path.name for path in SOURCES if alone.search(path.read_text(encoding="utf-8"))] == []


GOOD = """
import dataclasses
from collections.abc import AsyncIterator, Iterator

import msgspec

import gossamer


@dataclasses.dataclass
class Book:
    title: str


class Film(msgspec.Struct):
    title: str


spider = gossamer.Spider(["http://a.test/"], depth=2, delay="auto", max_time="10m", scope="host", exclude=["/x"])


@spider.page()
async def listing(page: gossamer.Page) -> AsyncIterator[gossamer.Result]:
    yield page.follow_all("a", label="book", data={"a": [1]})
    yield page.follow("a.next", priority=1)
    yield gossamer.Request("/form", body={"a": "b"}, safe=True, redirects="keep")


@spider.page("book", url="/b", mime="text/html", run="thread", deadline=5)
def book(page: gossamer.Page) -> Iterator[gossamer.Result]:
    yield Book(page.text("h1"))
    yield Film(title=page.attr("a", "href"))
    yield {"price": page.number(".price")}
    raise gossamer.Retry(after=30)


patient = gossamer.Spider("http://a.test/", sessions=gossamer.Sessions(5, blocked=(403,)), proxy=["http://b.test:1"])


@patient.page()
def taking_turns(page: gossamer.Page) -> Iterator[gossamer.Result]:
    if page.css(".puzzle"):
        page.session.retire()
        raise gossamer.Retry(after=0)
    yield gossamer.Request("/basket", session=page.session)
    yield page.follow("a", session="anna")
    for part in page.each(".product"):
        yield {"title": part.text("h2"), "price": part.number(".price"), "url": part.attr("a", "href")}
        yield page.follow(part, label="book")


@spider.page("one")
async def one(page: gossamer.Page) -> Book:
    return Book(page.title)


@spider.failed
async def failed(page: gossamer.Page) -> None:
    print(page.outcome, page.error, page.data)


@spider.failed("book", deadline=3)
def lost(page: gossamer.Page) -> gossamer.Request | None:
    return gossamer.Request(page.url, key="again") if page.outcome is gossamer.Outcome.INTERRUPTED else None


class Shop(gossamer.Spider):
    @gossamer.page("book")
    def book(self, page: gossamer.Page) -> Iterator[gossamer.Result]:
        yield {"title": page.text("h1")}

    @gossamer.failed()
    def lost(self, page: gossamer.Page) -> None:
        print(page.url)


async def main() -> None:
    run = gossamer.crawl("http://a.test/", depth=2, yields="outcomes")
    async for page in run:
        print(page.url, page.status, page.title)
    summary = spider.run(items="books.csv", output="mine", resume=True)
    print(summary.pages, run.summary)


@gossamer.processor("text/html")
def prices(document: gossamer.Document) -> Iterator[gossamer.Item]:
    for node in document.css(".price"):
        yield gossamer.Item(kind="price", url=document.url, value=node.text())
"""

WRONG = """
from collections.abc import AsyncIterator, Iterator

import gossamer

gossamer.Spider("http://a.test/", deepth=2)  # wrong
gossamer.Spider("http://a.test/", depth="two")  # wrong
gossamer.crawl("http://a.test/", scope="everything")  # wrong
gossamer.crawl("http://a.test/", yields="all")  # wrong
gossamer.crawl_sync(5)  # wrong
gossamer.Request("http://a.test/", redirects="never")  # wrong
gossamer.Request("http://a.test/", body=5)  # wrong
gossamer.Request(url=5)  # wrong
gossamer.Retry(after="soon")  # wrong
gossamer.Spider("http://a.test/", sessions="ten")  # wrong
gossamer.Request("http://a.test/", session=5)  # wrong

spider = gossamer.Spider("http://a.test/")
spider.run(itmes="books.csv")  # wrong


@spider.page(5)  # wrong
def labelled(page: gossamer.Page) -> None: ...


@spider.page(run="cloud")  # wrong
def somewhere(page: gossamer.Page) -> None: ...


@spider.page("none")  # wrong
def takes_nothing() -> None: ...


@spider.page("text")  # wrong
def takes_text(page: str) -> None: ...


@spider.page("number")  # wrong
def yields_numbers(page: gossamer.Page) -> Iterator[int]:
    yield 5


@spider.page("async")  # wrong
async def yields_objects(page: gossamer.Page) -> AsyncIterator[object]:
    yield object()


@spider.page("book")
def book(page: gossamer.Page) -> Iterator[gossamer.Result]:
    yield page.follow("a", lable="x")  # wrong
    yield page.folow("a")  # wrong
    yield [part.txt() for part in page.each("a")][0]  # wrong
    yield {"length": page.text("h1") + 1}  # wrong
    yield page.number(".price") + 1  # wrong
"""


def written(folder: Path) -> list[str]:
    """The files that checkers are given: what is right, what the documentation shows, and what is wrong."""
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "spiders.md").read_text("utf-8"), re.DOTALL)
    (folder / "good.py").write_text(GOOD)
    for number, code in enumerate(shown):
        (folder / f"shown_{number}.py").write_text(code)
    (folder / "wrong.py").write_text(WRONG)
    return sorted(map(str, folder.glob("*.py")))


#: The lines that a checker is to refuse.
MEANT = {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}


def test_mypy_accepts_the_examples_and_refuses_wrong_uses(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--config-file=",
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [*command, f"--cache-dir={ROOT / '.mypy_cache' / 'examples'}", *written(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(ROOT / "src"), "PATH": ""}, check=False,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in told if not line.startswith("wrong.py:")] == [], done.stdout + done.stderr
    refused = {int(line.split(":")[1]) for line in told}
    assert refused == MEANT, done.stdout


def test_pyright_accepts_the_examples_and_refuses_wrong_uses(tmp_path: Path) -> None:
    """Basedpyright is pyright with its interpreter in a wheel; `strict` is pyright's own set of rules."""
    pytest.importorskip("basedpyright", reason="basedpyright has no wheel for this system")
    written(tmp_path)
    site_packages = [path for path in sys.path if path.endswith("site-packages")]
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(ROOT / "src"), *site_packages]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    told = [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"])
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    ]
    assert [one for one in told if one[0] != "wrong.py"] == [], done.stderr
    assert {line for _, line, _ in told} == MEANT, told
