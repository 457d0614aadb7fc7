"""Spiders as people write them: handlers by label, URL and type, what they follow, what they yield, and what goes wrong in them."""

import asyncio
import dataclasses
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]

SHOP = {
    "/": '<a class="p" href="/b1">1</a><a class="p" href="/b2">2</a><a class="n" href="/page2">next</a><a href="/noise">x</a>',
    "/page2": '<a class="p" href="/b3">3</a><a href="/noise">x</a>',
    "/noise": "noise",
    **{f"/b{i}": f'<title>B{i}</title><h1>Book {i}</h1><b class="price">£{i}.50</b><a href="/noise">x</a>' for i in (1, 2, 3)},
}  # fmt: skip


@dataclasses.dataclass
class Book:
    title: str
    price: float | None


def items_of(directory: Path) -> list[Any]:
    """The items of a crawl, sorted by their JSON."""
    with Database(directory) as database:
        rows = list(database.ask("SELECT kind, data FROM items"))
    return sorted(([row[0], json.loads(row[1])] for row in rows), key=json.dumps)


def errors_of(directory: Path) -> list[dict[str, Any]]:
    log = directory / "logs" / "crawl.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return [row for row in rows if row["event"] == "error"]


def shop(seed: str) -> gossamer.Spider:
    spider = gossamer.Spider(seed, delay=0)

    @spider.page()
    async def listing(page: gossamer.Page) -> AsyncIterator[gossamer.Result]:
        yield page.follow_all(".p", label="book", data={"from": page.url})
        yield page.follow("a.n")

    @spider.page("book")
    def book(page: gossamer.Page) -> Iterator[gossamer.Result]:
        yield Book(page.text("h1"), page.number(".price"))

    return spider


def test_a_handler_decides_what_is_followed_on_its_pages_and_what_is_kept_of_them(tmp_path: Path) -> None:
    with FakeWeb(SHOP) as web:
        summary = shop(web.url("/")).run(output=str(tmp_path / "crawl"))
        assert sorted(web.targets()) == ["/", "/b1", "/b2", "/b3", "/page2"]
    assert (summary.state, summary.pages) == ("finished", 5)
    assert items_of(tmp_path / "crawl") == [["Book", {"title": f"Book {i}", "price": i + 0.5}] for i in (1, 2, 3)]


def test_default_links_are_followed_where_no_handler_matches() -> None:
    with FakeWeb(SHOP) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page(url="/page2$")
        def dead_end(page: gossamer.Page) -> None:
            return None

        spider.run()
        assert sorted(web.targets()) == ["/", "/b1", "/b2", "/noise", "/page2"], "/b3 is linked from /page2 alone"


def test_scope_robots_and_filters_hold_for_what_a_handler_asks_for(tmp_path: Path) -> None:
    pages = {
        "/": '<a href="/robbed">1</a>',
        "/robots.txt": FakePage("User-agent: *\nDisallow: /robbed", type="text/plain"),
        "/robbed": "no",
        "/filtered": "no",
        "/ok": "yes",
    }
    with FakeWeb(pages) as web:
        spider = gossamer.Spider(web.url("/"), delay=0, exclude=["/filtered"])
        failures: list[tuple[str, Outcome]] = []

        @spider.page()
        def first(page: gossamer.Page) -> list[gossamer.Result]:
            if page.depth:
                return []
            asked = ["/robbed", "/filtered", "/ok", "http://elsewhere.invalid/"]
            return [gossamer.Request(url, label="any") for url in asked] + [
                gossamer.Request("/robbed", method="POST", label="any")
            ]

        @spider.page("any")
        def any_page(page: gossamer.Page) -> None:
            return None

        @spider.failed
        def failed(page: gossamer.Page) -> None:
            failures.append((page.url, page.outcome))

        spider.run(output=str(tmp_path / "crawl"))
        assert sorted(web.targets()) == ["/", "/ok", "/robots.txt"]
        assert failures == [(web.url("/robbed"), Outcome.ROBOTS_DENIED)] * 2


def test_handlers_are_chosen_by_label_url_and_media_type_the_one_that_says_most() -> None:
    pages = {
        "/": "<a href=/x>",
        "/data": FakePage('{"a": [1]}', type="application/json"),
        "/x": "x",
        "/special/x": "special",
    }
    seen: list[tuple[str, str]] = []
    with FakeWeb(pages) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        def note(name: str) -> Any:
            def handler(page: gossamer.Page) -> None:
                seen.append((name, page.url.removeprefix(web.url("/"))))

            handler.__qualname__ = name
            return handler

        @spider.page()
        def start(page: gossamer.Page) -> Iterator[gossamer.Result]:
            yield page.follow("/x", label="x")
            yield page.follow("/special/x", label="x")
            yield gossamer.Request("/data", label="x")

        spider.page("x")(note("label"))
        spider.page("x", url="/special/")(note("label and url"))
        spider.page("x", mime="application/json")(note("label and type"))
        spider.run()
    assert sorted(seen) == [("label", "x"), ("label and type", "data"), ("label and url", "special/x")]


def test_label_and_data_follow_redirects_and_a_redirect_can_be_taken_for_the_answer() -> None:
    pages = {
        "/": "start",
        "/moved": FakePage(status=302, headers=(("Location", "/target"),)),
        "/target": "here",
        "/kept": FakePage("look there", status=302, headers=(("Location", "/never"),)),
    }
    seen: list[Any] = []
    with FakeWeb(pages) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        def start(page: gossamer.Page) -> Iterator[gossamer.Result]:
            yield gossamer.Request("/moved", label="x", data=[1, {"a": None}])
            yield gossamer.Request("/kept", label="x", redirects="keep")

        @spider.page("x")
        def x(page: gossamer.Page) -> None:
            seen.append((page.url.removeprefix(web.url("/")), page.status, page.data))

        spider.run()
        assert "/never" not in web.targets()
    assert sorted(seen) == [("kept", 302, None), ("target", 200, [1, {"a": None}])]


def forms(request: FakeRequest) -> FakePage:
    return FakePage(f"<p>{request.method} {request.body.decode()} {request.header('x-own')}</p>")


def test_posts_are_answers_of_their_own_each_sent_once_and_nobody_s_duplicate(tmp_path: Path) -> None:
    with FakeWeb({"/": "start", "/form": forms, "/same": "same bytes"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        def start(page: gossamer.Page) -> Iterator[gossamer.Result]:
            for number in (1, 2, 2):
                yield gossamer.Request("/form", body={"n": str(number)}, headers={"X-Own": "yes"}, label="form")
            yield gossamer.Request("/form", label="form")
            yield gossamer.Request("/same", method="POST", label="form")
            yield gossamer.Request("/same", method="POST", label="form", key="another")
            yield gossamer.Request("/same", label="form")
            yield gossamer.Request("/form", json={"a": 1}, label="form")

        @spider.page("form")
        def form(page: gossamer.Page) -> dict[str, str]:
            return {"said": page.body}

        spider.run(output=str(tmp_path / "crawl"))
        sent = sorted((one.method, one.target, one.body) for one in web.requests)
    assert sent == [
        ("GET", "/", b""),
        ("GET", "/form", b""),
        ("GET", "/same", b""),
        ("POST", "/form", b"n=1"),
        ("POST", "/form", b"n=2"),
        ("POST", "/form", b'{"a":1}'),
        ("POST", "/same", b""),
        ("POST", "/same", b""),
    ]
    with Database(tmp_path / "crawl") as database:
        assert list(database.ask("SELECT count(*) FROM pages WHERE duplicate_of IS NOT NULL")) == [(0,)]
        assert list(database.ask("SELECT count(*), count(DISTINCT request) FROM pages")) == [(8, 5)]
        assert list(database.ask("SELECT count(*) FROM items")) == [(7,)], "a later answer to a form hides no other"
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "cat", str(tmp_path / "crawl"), web.url("/form")],
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"<p>GET  </p>", "what the archive has of a URL is what a GET brought"


@pytest.mark.parametrize("options", [{}, {"depth": 1}, {"normalise": ["tracking"]}])
def test_a_seed_may_be_a_request_with_all_that_it_sends_and_is_sent_once_in_all_runs(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with FakeWeb({"/": "<p>hello", "/search": forms}) as web:
        post = gossamer.Request(web.url("/search?utm_source=a"), body={"q": "x"}, label="found", data={"n": 3})
        other = gossamer.Request(web.url("/search?utm_source=a"), body={"q": "y"}, label="found", data={"n": 4})
        spider = gossamer.Spider([web.url("/"), post, other, post], delay=0, **options)

        @spider.page()
        def first(page: gossamer.Page) -> gossamer.Results:
            return {"text": page.text("p")}

        @spider.page("found")
        def found(page: gossamer.Page) -> gossamer.Results:
            return {"n": page.data["n"], "body": page.body}

        spider.run(output=str(tmp_path / "crawl"))
        sent = [request.body for request in web.requests if request.method == "POST"]
        spider.run(output=str(tmp_path / "crawl"), resume=True)
        assert [request.body for request in web.requests if request.method == "POST"] == sent
    assert sorted(sent) == [b"q=x", b"q=y"]
    items = [value for _, value in items_of(tmp_path / "crawl")]
    assert sorted(item["n"] for item in items if "n" in item) == [3, 4] and {"text": "hello"} in items


def test_a_seed_with_a_label_that_nobody_answers_to_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    spider = gossamer.Spider(gossamer.Request("http://a.test/", label="bok"), output=str(tmp_path / "crawl"))
    spider.page("book")(lambda page: None)
    with pytest.raises(
        gossamer.UsageError, match=r"test_spiders\.py:\d+: seed http://a\.test/: .*'bok'; did you mean 'book'"
    ):
        spider.run()
    assert not (tmp_path / "crawl").exists()


def test_a_failure_is_seen_once_when_its_tries_are_spent() -> None:
    pages = {"/": "start", "/gone": FakePage("no", status=404), "/broken": FakePage("no", status=503)}
    seen: list[Any] = []
    with FakeWeb(pages) as web:
        spider = gossamer.Spider(web.url("/"), delay=0, retries=0)

        @spider.page()
        def start(page: gossamer.Page) -> list[gossamer.Result]:
            return [gossamer.Request("/gone", label="x", data=1), gossamer.Request("/broken"), page.follow("/late")]

        @spider.failed("x")
        def of_x(page: gossamer.Page) -> gossamer.Request:
            seen.append(("x", page.status, page.data))
            return gossamer.Request("/instead")

        @spider.failed()
        async def others(page: gossamer.Page) -> None:
            seen.append(("others", page.outcome, page.url.removeprefix(web.url("/"))))

        spider.page("x")(lambda page: None)
        spider.run()
        assert "/instead" in web.targets(), "a handler of failures may ask for something else"
    assert sorted(map(str, seen)) == sorted(
        map(
            str,
            [
                ("x", 404, 1),
                ("others", Outcome.CLIENT_ERROR, "instead"),
                ("others", Outcome.CLIENT_ERROR, "late"),
                ("others", Outcome.GONE_AFTER_RETRIES, "broken"),
            ],
        )
    )


def test_a_handler_has_a_page_fetched_again_and_gives_up_after_some_tries(tmp_path: Path) -> None:
    answers = iter(["busy", "busy", "<b>ready</b>"])
    with FakeWeb({"/": "start", "/slow": lambda request: next(answers), "/never": "busy"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)
        gone: list[tuple[str, Outcome]] = []

        @spider.page()
        def start(page: gossamer.Page) -> list[gossamer.Result]:
            return [gossamer.Request("/slow", label="x"), gossamer.Request("/never", label="x")]

        @spider.page("x")
        def x(page: gossamer.Page) -> Iterator[gossamer.Result]:
            yield {"try": page.attempt}
            if "busy" in page.body:
                raise gossamer.Retry(after=0)

        @spider.failed
        def failed(page: gossamer.Page) -> None:
            gone.append((page.url, page.outcome))

        summary = spider.run(output=str(tmp_path / "crawl"))
        assert gone == [(web.url("/never"), Outcome.GONE_AFTER_RETRIES)]
        assert web.targets().count("/never") == 4
    assert items_of(tmp_path / "crawl") == [["item", {"try": 3}]], "what was yielded before a retry does not count"
    assert summary.pages == 2


def test_what_a_handler_raises_costs_the_rest_of_its_page_and_is_kept_with_its_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeWeb(SHOP) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        def listing(page: gossamer.Page) -> Iterator[gossamer.Result]:
            yield page.follow_all(".p", label="book")
            raise ValueError("no idea")

        @spider.page("book")
        def book(page: gossamer.Page) -> dict[str, object]:
            return {"a": [object()]}

        summary = spider.run(output=str(tmp_path / "crawl"))
    errors = errors_of(tmp_path / "crawl")
    assert [error["error"] for error in errors if "listing" in error["who"]] == ["ValueError: no idea"]
    line = next(error for error in errors if "listing" in error["who"])
    assert line["place"].rpartition(":")[0].endswith("test_spiders.py") and "no idea" in line["traceback"]
    refused = [error for error in errors if "book" in error["who"]]
    assert len(refused) == 2 and all("item.a[0]: a object cannot be written" in error["error"] for error in refused)
    assert summary.raised == 3
    told = [record.getMessage() for record in caplog.records]
    assert len([line for line in told if "no idea" in line]) == 1
    assert len([line for line in told if "item.a[0]" in line]) == 1, "each kind of error is told once"


def test_an_unknown_label_is_told_with_the_line_that_asks_for_it(tmp_path: Path) -> None:
    with FakeWeb(SHOP) as web:
        spider = shop(web.url("/"))

        @spider.page(url="/page2")
        async def wrong(page: gossamer.Page) -> AsyncIterator[gossamer.Result]:
            yield page.follow_all(".p", label="boook")

        spider.run(output=str(tmp_path / "crawl"))
    [error] = errors_of(tmp_path / "crawl")
    assert "no handler of the spider has the label 'boook'; did you mean 'book'?" in error["error"]
    assert "test_spiders.py:" in error["place"]


def test_a_handler_that_never_comes_back_is_named_and_the_crawl_goes_on(tmp_path: Path) -> None:
    released = threading.Event()
    with FakeWeb(SHOP) as web:
        spider = shop(web.url("/"))

        @spider.page("book", url="/b1", deadline=0.2)
        def hangs(page: gossamer.Page) -> None:
            released.wait()

        @spider.page("book", url="/b2", deadline=0.2)
        async def waits(page: gossamer.Page) -> None:
            await asyncio.Event().wait()

        summary = spider.run(output=str(tmp_path / "crawl"))
    released.set()
    assert summary.pages == 5
    told = {error["who"]: error for error in errors_of(tmp_path / "crawl")}
    assert set(told) == {"handler 'hangs'", "handler 'waits'"}
    assert (
        "deadline of 0.2 s" in told["handler 'hangs'"]["error"]
        and "test_spiders.py:" in told["handler 'hangs'"]["error"]
    )


def test_a_handler_that_blocks_the_crawl_is_named_while_it_does(caplog: pytest.LogCaptureFixture) -> None:
    told = threading.Event()

    def is_told() -> bool:
        return any("handler 'blocks' blocks the crawl" in record.getMessage() for record in caplog.records)

    with FakeWeb({"/": "start"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        async def blocks(page: gossamer.Page) -> None:
            for _ in range(600):
                if is_told():
                    break
                told.wait(0.1)

        spider.run()
    assert is_told()


def test_a_handler_runs_in_a_process_of_its_own_where_it_asks_for_one(tmp_path: Path) -> None:
    file = tmp_path / "apart.py"
    with FakeWeb(SHOP) as web:
        file.write_text(
            "import os, gossamer\n"
            f"spider = gossamer.Spider({web.url('/')!r}, delay=0)\n"
            "@spider.page(run='process')\n"
            "def listing(page):\n"
            "    yield page.follow_all('.p', label='book', data=os.getpid())\n"
            "@spider.page('book')\n"
            "def book(page):\n"
            "    yield {'title': page.text('h1'), 'apart': page.data != os.getpid()}\n"
            "@spider.page('book', url='/b3', run='process')\n"
            "def dies(page):\n"
            "    os._exit(1)\n"
            f"summary = spider.run(output={str(tmp_path / 'crawl')!r})\n"
            "assert summary.state == 'finished', summary\n"
        )
        subprocess.run([sys.executable, str(file)], check=True)
    assert items_of(tmp_path / "crawl") == [["item", {"title": f"Book {i}", "apart": True}] for i in (1, 2)]


def test_a_handler_in_a_process_keeps_what_it_yielded_before_it_raised_and_is_killed_at_its_own_deadline(
    tmp_path: Path,
) -> None:
    file = tmp_path / "apart.py"
    with FakeWeb(SHOP) as web:
        file.write_text(
            "import time, gossamer\n"
            f"spider = gossamer.Spider({web.url('/')!r}, delay=0)\n"
            "@spider.page(run='process')\n"
            "def listing(page):\n"
            "    yield page.follow_all('.p', label='book')\n"
            "    raise ValueError('the second half')\n"
            "@spider.page('book', run='process', deadline=0.5)\n"
            "def book(page):\n"
            "    while page.url.endswith('b1'): time.sleep(1)\n"
            "    yield {'title': page.text('h1')}\n"
        )
        command = [sys.executable, "-m", "gossamer", "run", str(file), "-o", str(tmp_path / "crawl"), "--quiet"]
        subprocess.run(command, check=True)
    assert [value["title"] for _, value in items_of(tmp_path / "crawl")] == ["Book 2"]
    told = {error["who"]: error for error in errors_of(tmp_path / "crawl")}
    assert told["handler 'listing'"]["error"] == "ValueError: the second half"
    assert told["handler 'listing'"]["place"].endswith("apart.py:6")
    assert "did not come back within 0.5 s" in told["handler 'book'"]["error"]


def test_methods_are_handlers_too(tmp_path: Path) -> None:
    class Shop(gossamer.Spider):
        """A spider that keeps something of its own."""

        seen = 0

        @gossamer.page()
        async def listing(self, page: gossamer.Page) -> AsyncIterator[gossamer.Result]:
            yield page.follow_all(".p", label="book")
            yield page.follow("/missing")

        @gossamer.page("book")
        def book(self, page: gossamer.Page) -> None:
            self.seen += 1

        @gossamer.failed()
        def lost(self, page: gossamer.Page) -> None:
            self.seen += 10

    with FakeWeb(SHOP) as web:
        spider = Shop(web.url("/"), delay=0, concurrency=1)
        spider.run()
    assert spider.seen == 12


def test_a_file_runs_with_python_and_with_the_command_line_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "spider.py"
    with FakeWeb(SHOP) as web:
        file.write_text(
            "import gossamer\n"
            f"spider = gossamer.Spider({web.url('/')!r}, delay=0)\n"
            "@spider.page()\n"
            "async def listing(page):\n"
            "    yield page.follow_all('.p', label='book')\n"
            "    yield page.follow('a.n')\n"
            "@spider.page('book')\n"
            "def book(page):\n"
            "    yield {'title': page.text('h1')}\n"
            f"spider.run(items={str(tmp_path / 'books.jsonl')!r}, output={str(tmp_path / 'python')!r})\n"
        )
        subprocess.run([sys.executable, str(file)], check=True)
        command = [sys.executable, "-m", "gossamer"]
        mine = str(tmp_path / "mine")
        limited = subprocess.run(
            [
                *command,
                "run",
                str(file),
                "-o",
                mine,
                "--max-pages",
                "2",
                "--items",
                str(tmp_path / "own.jsonl"),
                "--json",
            ],
            capture_output=True,
            check=True,
        )
        assert json.loads(limited.stdout)["state"] == "limit"
        refused = subprocess.run([*command, "resume", mine], capture_output=True, text=True)
        assert refused.returncode == 2 and "gossamer run" in refused.stderr and "--resume" in refused.stderr
        done = subprocess.run(
            [*command, "run", str(file), "-o", mine, "--resume", "--max-pages", "100", "--json"],
            capture_output=True,
            check=True,
        )
        assert json.loads(done.stdout)["state"] == "finished"
    for name in ("books.jsonl", "own.jsonl"):
        rows = [json.loads(line)["title"] for line in (tmp_path / name).read_text().splitlines()]
        assert sorted(rows) == ["Book 1", "Book 2", "Book 3"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1", "has no spider"),
        ("import gossamer\na = gossamer.Spider()\nb = gossamer.Spider()", "has several spiders: a, b"),
        ("def f(:", "file.py:1: invalid syntax"),
        ("import gossamer\n1/0", "file.py:2: ZeroDivisionError"),
        (
            "import gossamer\ns = gossamer.Spider('http://a.test/')\n@s.page()\ndef f():\n  pass",
            "file.py:3: handler 'f' takes (); a handler takes one argument, the page",
        ),
        (
            (
                "import gossamer\ns = gossamer.Spider('http://a.test/')\n"
                "@s.page('a')\ndef f(page): pass\n@s.page('a')\ndef g(page): pass"
            ),
            "file.py:5: handler 'g' is for pages label 'a', and so is handler 'f' of",
        ),
        ("import gossamer\ns = gossamer.Spider('http://a.test/', deepth=1)", "did you mean 'depth'"),
        (
            "import gossamer\ns = gossamer.Spider('http://a.test/')\n@s.page\ndef f(page): pass",
            "file.py:3: write @spider.page() with its brackets",
        ),
        (
            "import gossamer\ns = gossamer.Spider('http://a.test/')\n@s.page('application/pdf')\ndef f(page): pass",
            "write mime='application/pdf'",
        ),
        (
            "import gossamer\ns = gossamer.Spider('http://a.test/')\n@s.page(run='process')\nasync def f(page): pass",
            "is async, so it runs in the loop",
        ),
        (
            "import gossamer\ns = gossamer.Spider('http://a.test/')\n@s.page(url='(')\nasync def f(page): pass",
            "is not an RE2 pattern",
        ),
    ],
)
def test_a_file_that_cannot_be_run_costs_one_line_with_the_line_to_look_at(
    tmp_path: Path, source: str, told: str
) -> None:
    file = tmp_path / "file.py"
    file.write_text(source + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "run", str(file)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert told in done.stderr.splitlines()[-1], done.stderr


def test_the_spider_of_the_documentation_runs(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "spiders.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    pages = {
        "/": '<div class="product"><a href="/1">1</a></div><a class="next" href="/2nd">next</a>',
        "/2nd": '<div class="product"><a href="/2">2</a></div><a href="/never">x</a>',
        "/1": '<h1>One</h1><p class="price">£12.50</p>',
        "/2": '<h1>Two</h1><p class="price">1.234,56 €</p>',
    }
    with FakeWeb(pages) as web:
        (tmp_path / "books.py").write_text(code[1].replace("http://localhost:8000/", web.url("/")))
        command = [
            sys.executable,
            "-m",
            "gossamer",
            "run",
            "books.py",
            "-o",
            "mine",
            "--items",
            "books.csv",
            "--delay",
            "0",
        ]
        subprocess.run([*command, "--quiet"], check=True, cwd=tmp_path)
        assert "/never" not in web.targets()
    text = (tmp_path / "books.csv").read_text()
    assert "One" in text and "12.5" in text and "Two" in text and "1234.56" in text


def test_a_failure_that_is_always_asked_for_again_ends_when_its_tries_are_spent(tmp_path: Path) -> None:
    with FakeWeb({"/": FakePage("no", status=404)}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)
        outcomes = []

        @spider.failed
        def again(page: gossamer.Page) -> None:
            outcomes.append(page.outcome)
            raise gossamer.Retry(after=0)

        spider.run(output=str(tmp_path / "mine"))
        assert web.targets().count("/") == 4
    assert outcomes == [Outcome.CLIENT_ERROR] * 4 + [Outcome.GONE_AFTER_RETRIES]
