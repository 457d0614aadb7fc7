"""`gossamer new`, `shell` and `about`, and stored pages as fixtures."""

import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import gossamer
from gossamer.cli.main import main
from gossamer.testing import handled, stored_document
from gossamer.testing.fakeweb import FakePage, FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


@pytest.mark.parametrize("part", ["processor", "filter", "spider"])
def test_what_is_begun_passes_its_own_test(part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", part, "my_part", "-o", str(tmp_path)]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_part.py"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCE}:{tmp_path}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    before = (tmp_path / "my_part.py").read_text()
    assert main(["new", part, "my_part", "-o", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err
    assert (tmp_path / "my_part.py").read_text() == before


@pytest.mark.parametrize("name", ["class", "a-b", "../x", "1a", ""])
def test_a_name_that_no_module_can_have_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "processor", "-o", str(tmp_path), "--", name]) == 2
    assert "name of a Python module" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_processor_that_was_begun_crawls(tmp_path: Path) -> None:
    assert main(["new", "processor", "heads", "-o", str(tmp_path)]) == 0
    with FakeWeb({"/": "<h1>Top</h1><a href=/a>a</a>", "/a": "<h1>Low</h1>"}) as web:
        done = subprocess.run(
            [sys.executable, "heads.py", web.url("/")],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in (tmp_path / "heads.csv").read_text().splitlines()] == [
        "heading",
        "Top",
        "Low",
    ]


def own_process(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCE}:{folder}", "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_spider_that_was_begun_crawls_with_python_and_with_the_command_line(tmp_path: Path) -> None:
    assert main(["new", "spider", "heads", "-o", str(tmp_path)]) == 0
    file = tmp_path / "heads.py"
    with FakeWeb({"/": "<h1>Top</h1><a href=/a>a</a><a href=/gone>b</a>", "/a": "<h1>Low</h1>"}) as web:
        done = own_process(
            tmp_path, "-m", "gossamer", "run", "heads.py", web.url("/"), "-o", "mine", "--items", "mine.csv"
        )
        assert done.returncode == 0 and f"client_error {web.url('/gone')}" in done.stdout, done.stderr
        file.write_text(file.read_text().replace("https://example.org/", web.url("/")))
        done = own_process(tmp_path, "heads.py")
        assert done.returncode == 0, done.stderr
    for name in ("mine.csv", "heads.csv"):
        with (tmp_path / name).open(newline="") as written:
            assert [(row["heading"], row["url"]) for row in csv.DictReader(written)] == [("Low", web.url("/a"))]


def test_a_filter_that_was_begun_filters_by_the_steps_that_it_says(tmp_path: Path) -> None:
    assert main(["new", "filter", "no_printers", "-o", str(tmp_path)]) == 0
    wiring = tmp_path / "mine.toml"
    wiring.write_text(own_process(tmp_path, "-m", "gossamer", "topology", "--format", "toml").stdout)
    text = wiring.read_text()
    assert "follow = [" in text
    steps = re.findall(r"^    (.*)$", (tmp_path / "no_printers.py").read_text().split('"""')[1], re.MULTILINE)
    assert steps[0] == '[project.entry-points."gossamer.providers"]'
    info = tmp_path / "own-1.0.dist-info"  # what an installation of that package leaves
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gossamer.providers]\n{steps[1].replace(chr(34), '')}\n")
    wiring.write_text("\n".join((text.replace("follow = [", 'follow = ["no_printers", ', 1), *steps[2:])) + "\n")
    with FakeWeb({"/": "<a href=/a>a</a><a href=/a/print>b</a>", "/a": "a", "/a/print": "b"}) as web:
        done = own_process(tmp_path, "-m", "gossamer", "crawl", web.url("/"), "--wiring", "mine.toml", "-o", "mine")
        assert done.returncode == 0, done.stderr
        assert "/a" in web.targets() and "/a/print" not in web.targets()


def test_a_handler_is_tested_in_one_line_as_the_crawl_would_run_it() -> None:
    spider = gossamer.Spider("http://a.test/")

    @spider.page("book")
    async def book(page: gossamer.Page) -> AsyncIterator[gossamer.Result]:
        yield {"title": page.text("h1"), "n": page.data}
        yield page.follow("a", label="book")

    made = handled(spider, "<h1>One</h1><a href=2>", label="book", data=7)
    assert [item.value for item in made.items] == [{"title": "One", "n": 7}] and [f.href for f in made.found] == ["2"]
    with pytest.raises(gossamer.UsageError, match=r"no handler gets https://example\.test/ of type text/html"):
        handled(spider, "<h1>One</h1>")


def test_a_stored_page_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes("<title>Caf\u00e9</title>".encode("latin-1"))
    document = stored_document(path, url="http://A.test", content_type="text/html; charset=latin-1")
    assert (document.title, document.url, document.mime) == ("Caf\u00e9", "http://a.test/", "text/html")
    assert stored_document("<title>x</title>").title == "x"
    assert stored_document(b"%PDF-1.7", status=404).response.status == 404


def test_the_shell_has_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "url\n[n.text() for n in css('h1')]\nfor n in css('h1'):\n    print(n.text() * 2)\n\n1/0\nresponse.status\n"
    asked += "run(lambda d: [d.title])\n"
    with FakeWeb({"/": "<title>T</title><h1>Top</h1>", "/no": FakePage(raw=b"")}) as web:
        monkeypatch.setattr(sys, "stdin", io.StringIO(asked))
        assert main(["shell", web.url("/")]) == 0
        told = capsys.readouterr()
        assert told.out.splitlines() == [repr(web.url("/")), "['Top']", "TopTop", "200", "['T']"]
        assert "ZeroDivisionError" in told.err
        assert main(["shell", web.url("/no")]) == 4
    assert main(["shell", str(tmp_path / "none.html")]) == 2
    assert "cannot be read" in capsys.readouterr().err


class Words(HTMLParser):
    """The text of a page, and where it links to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.links = "", [""]
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: "list[tuple[str, str | None]]") -> None:
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_the_page_for_site_owners_says_what_the_crawl_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--contact", "me@b.test", "--user-agent", "Mine<b>/1.0", "--delay", "7s", "--per-host", "3"]
    assert main(["about", *options]) == 0
    page = Words(capsys.readouterr().out)
    assert "Mine<b>/1.0" in page.text
    assert "User-agent: Mine<b>\nDisallow: /" in page.text
    assert "7 s" in page.text
    assert "mailto:me@b.test" in page.links
    assert main(["about", "--robots", "ignore", "--i-own-these-hosts"]) == 0
    assert "does not ask for robots.txt" in Words(capsys.readouterr().out).text


def test_the_page_for_site_owners_is_that_of_a_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, file = tmp_path / "crawl", tmp_path / "about.html"
    with FakeWeb({"/": ""}) as web:
        options = ["--contact", "https://b.test/bot", "--delay", "0.25", "--quiet"]
        assert main(["crawl", web.url("/"), "-o", str(directory), *options]) == 0
    assert main(["about", str(directory), "-o", str(file)]) == 0
    page = Words(file.read_text())
    assert "https://b.test/bot" in page.links
    assert "0.25 s" in page.text or "250 ms" in page.text
    assert main(["about", str(tmp_path / "none")]) == 2
    assert main(["about", "-o", str(tmp_path / "no" / "x.html")]) == 2
