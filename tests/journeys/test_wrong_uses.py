"""Wrong uses of spiders: each costs one clear line with the file and line of the user's code, never a traceback of ours."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakeWeb

PAGE = '<h1>Hello</h1><a class=n href="/2">next</a><form id=f method=post action=/f><input name=q></form>'


class Use(NamedTuple):
    """A wrong use: code behind `spider = ...`, the line of the file that is named, and words of what is told."""

    code: str
    line: int
    told: str


#: Told before anything is fetched: exit code 2. The spider is made in line 2 where the code does not make it.
REFUSED = {
    "no argument": Use(
        "@spider.page()\ndef f(): pass", 3, "handler 'f' takes (); a handler takes one argument, the page"
    ),
    "two arguments": Use("@spider.page()\ndef f(page, x): pass", 3, "handler 'f' takes (page, x)"),
    "method unbound": Use(
        "class A:\n    @spider.page()\n    def f(self, page): pass", 4, "handler 'A.f' takes (self, page)"
    ),
    "no function": Use("spider.page()(7)", 3, "a handler is a function, not 7"),
    "no brackets": Use("@spider.page\ndef f(page): pass", 3, "write @spider.page() with its brackets"),
    "two for one label": Use(
        "@spider.page('a')\ndef f(page): pass\n@spider.page('a')\ndef g(page): pass",
        5,
        "handler 'g' is for pages label 'a', and so is handler 'f' of",
    ),
    "two for the rest": Use(
        "@spider.page()\ndef f(page): pass\n@spider.page()\ndef g(page): pass", 5, "and so is handler 'f' of"
    ),
    "two for failures": Use(
        "@spider.failed\ndef f(page): pass\n@spider.failed\ndef g(page): pass", 5, "'g' is for failures, and so is"
    ),
    "a type for a label": Use("@spider.page('application/pdf')\ndef f(page): pass", 3, "write mime='application/pdf'"),
    "a label that is no text": Use("@spider.page(7)\ndef f(page): pass", 3, "label=7 is not one line of text"),
    "a pattern that is none": Use("@spider.page(url='(')\ndef f(page): pass", 3, "url='(' is not an RE2 pattern"),
    "a place that is none": Use("@spider.page(run='fiber')\ndef f(page): pass", 3, "run='fiber'; a handler runs in"),
    "async in a process": Use(
        "@spider.page(run='process')\nasync def f(page): pass", 3, "is async, so it runs in the loop"
    ),
    "async in a thread": Use(
        "@spider.page(run='thread')\nasync def f(page): pass", 3, "is async, so it runs in the loop"
    ),
    "failures in a process": Use(
        "@spider.failed(run='process')\ndef f(page): pass", 3, "let it run in a thread or in the loop"
    ),
    "a deadline of 0": Use("@spider.page(deadline=0)\ndef f(page): pass", 3, "deadline=0; give seconds, more than 0"),
    "a deadline in words": Use("@spider.page(deadline='5s')\ndef f(page): pass", 3, "deadline='5s'; give seconds"),
    "an unknown option": Use("spider = gossamer.Spider('http://a.test/', deepth=1)", 3, "did you mean 'depth'"),
    "an option of another type": Use(
        "spider = gossamer.Spider('http://a.test/', concurrency='many')", 3, "concurrency"
    ),
    "an option out of range": Use("spider = gossamer.Spider('http://a.test/', depth=-1)", 3, "depth"),
    "an unknown option of run": Use("spider.run(item='x.csv')", 3, "did you mean 'items'"),
    "a seed without a scheme": Use("spider = gossamer.Spider('a.test/x')", 3, "did you mean http://a.test/x"),
    "a seed that is no text": Use("spider = gossamer.Spider([7])", 3, "a seed is a URL or a gossamer.Request, not 7"),
    "a seed that is a number": Use("spider = gossamer.Spider(7)", 3, "a seed is a URL or a gossamer.Request, not 7"),
    "a seed with an unknown label": Use(
        "spider = gossamer.Spider(gossamer.Request('http://a.test/', label='bok'))\n"
        "@spider.page('book')\ndef f(page): pass",
        3,
        "no handler of the spider has the label 'bok'; did you mean 'book'?",
    ),
    "a request that cannot be sent": Use(
        "spider = gossamer.Spider(gossamer.Request('http://a.test/', method='post'))",
        3,
        "write it in capitals, as POST",
    ),
    "a log-in that is not async": Use(
        "@spider.login('http://a.test/in')\ndef f(session): pass", 3, "a log-in is written with async def"
    ),
    "a log-in without a session": Use(
        "@spider.login('http://a.test/in')\nasync def f(): pass", 3, "a log-in takes one argument, the session"
    ),
    "a log-in without its URL": Use("@spider.login\nasync def f(session): pass", 3, "write @spider.login(URL)"),
    "a log-in elsewhere": Use(
        "@spider.login('ftp://a.test/')\nasync def f(session): pass", 3, "is not an http or https"
    ),
    "two log-ins of a host": Use(
        "@spider.login('http://a.test/1')\nasync def f(s): pass\n@spider.login('http://a.test/2')\nasync def g(s): pass",
        5,
        "a.test has a log-in already",
    ),
    "code that is none": Use("def f(:", 3, "invalid syntax"),
    "code that raises": Use("1 / 0", 3, "ZeroDivisionError"),
    "a module that is not there": Use("import absent_module", 3, "No module named 'absent_module'"),
}

#: Told while the crawl runs, which goes on: the line of the handler, or within it.
RAISED = {
    "an unknown label": Use("@spider.page()\ndef f(page):\n    yield page.follow('a.n', label='bok')", 5, "label 'bok'"),
    "a selector that is none": Use("@spider.page()\ndef f(page):\n    yield page.follow_all('a[')", 5, "is not a CSS selector"),
    "a form that is not there": Use("@spider.page()\ndef f(page):\n    page.form('#g').submit()", 5, "finds nothing on"),
    "a control that is not there": Use(
        "@spider.page()\ndef f(page):\n    yield page.form().submit(r='x')", 5, "the form has no control 'r'"
    ),
    "an item of text": Use("@spider.page()\ndef f(page):\n    yield 'Hello'", 3, "str"),
    "a page for an item": Use("@spider.page()\ndef f(page):\n    yield page", 3, "Page"),
    "an item that cannot be written": Use(
        "@spider.page()\ndef f(page):\n    yield {'a': {'b': object()}}", 3, "a.b"
    ),
    "data that cannot be kept": Use(
        "@spider.page()\ndef f(page):\n    yield page.follow('a.n', data={'x': object()})", 5, "data.x"
    ),
    "a retry that never comes": Use("@spider.page()\ndef f(page):\n    raise gossamer.Retry(after=-1)", 5, "give seconds"),
    "a body too many": Use(
        "@spider.page()\ndef f(page):\n    yield gossamer.Request('/f', body='x', json={})", 5, "a body or json, not both"
    ),
    "a URL that is none": Use(
        "@spider.page()\nasync def f(page):\n    return page.url.nothing", 5, "AttributeError"
    ),
    "a list of lists of lists": Use(
        "@spider.page()\ndef f(page):\n    a = []\n    a.append(a)\n    yield a", 3, "not lists of lists of lists"
    ),
    "a handler that hangs": Use(
        "import threading\n@spider.page(deadline=0.1)\ndef f(page):\n    threading.Event().wait()", 4, "file.py:6"
    ),
    "a handler that waits for ever": Use(
        "import asyncio\n@spider.page(deadline=0.1)\nasync def f(page):\n    await asyncio.Event().wait()",
        4,
        "longer than its deadline of 0.1 s",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    with FakeWeb({"/": PAGE, "/2": PAGE}) as served:
        yield served


def told_by(use: Use, seed: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Exit code, and the lines that are told on standard error."""
    file = folder / "file.py"
    file.write_text(f"import gossamer\nspider = gossamer.Spider({seed!r}, delay=0)\n{use.code}\n")
    code = main(["run", str(file), "-o", str(folder / "crawl"), "--quiet", "--max-pages", "1"])
    lines = capsys.readouterr().err.splitlines()
    assert not [line for line in lines if "Traceback" in line]
    return code, lines


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_use_is_refused_before_anything_is_fetched_in_one_line_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    use = REFUSED[name]
    code, lines = told_by(use, "http://a.test/", tmp_path, capsys)
    assert code == 2, lines
    [line] = lines
    assert f"file.py:{use.line}: " in line and use.told in line, line
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("name", RAISED)
def test_what_a_handler_does_wrong_is_told_in_one_line_with_its_place_and_the_crawl_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], web: FakeWeb, name: str
) -> None:
    use = RAISED[name]
    code, lines = told_by(use, web.url("/"), tmp_path, capsys)
    [line] = [one for one in lines if "handler 'f'" in one]
    assert code == 0 and f"file.py:{use.line}: handler 'f': " in line and use.told in line, lines
