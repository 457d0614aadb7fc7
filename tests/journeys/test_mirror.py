"""`crawl --mirror` and `export --to folder`: a site that opens from the file system without a broken link."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.scattered import scattered

from gossamer.analysis.mirror import write_mirror
from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakePage, FakeWeb

CSS = "text/css"
SITE: "dict[str, str | FakePage]" = {
    "/": """<head><base href="/docs/"><link rel=stylesheet href="../style" integrity="sha256-x" crossorigin>
            <style>h1{background:url(pic.png)}</style><meta http-equiv=refresh content="900; url=guide"></head>
            <a href="guide#part">guide</a><a href="guide?b=1&a=2">two</a><a href="#top">top</a><a href="/old">old</a>
            <a href="/a">file</a><a href="/a/b">in folder</a><a href="/A">capital</a><a href="/x.html">x</a>
            <a href="/x.html/y">y</a><a href="http://elsewhere.test/p?q#r">web</a><a href="/dead">dead</a>
            <img srcset="pic.png 1x, /big,pic.png 2x" src="data:image/png;base64,AA"><p style="background:url('pic.png')">
            <a href="/%2e%2e%2f%2e%2e%2fetc%2fpasswd">out</a><a href="/..%5C..%5Cx">out2</a><a href="/CON">device</a>
            <a href="/long/LONG">long</a><a href="javascript:alert(1)">script</a><a href="/caf%C3%A9/">caf\u00e9</a>
            <form action="/search"><input name=q></form>""".replace("LONG", "l" * 900),
    "/docs/guide": '<h1 id=part>Guide</h1><a href="/">home</a><a href="other.php?x=%2F..%2F">o</a><img src="/docs/pic.png">',
    "/docs/guide?b=1&a=2": "<p>two</p>",
    "/docs/other.php?x=%2F..%2F": '<a href="guide">back</a>',
    "/docs/pic.png": FakePage(b"\x89PNG\r\n\x1a\n", type="image/png"),
    "/big,pic.png": FakePage(b"\x89PNG\r\n\x1a\nbig", type="image/png"),
    "/style": FakePage("@import 'more.css'; body{background:url(docs/pic.png)}", type=CSS),
    "/more.css": FakePage("/* url(not) */ i{content:'url(not)'}", type=CSS),
    "/old": FakePage("", status=301, headers=(("Location", "/docs/guide"),)),
    "/a": "<p>a</p>",
    "/a/b": '<a href="../a">up</a>',
    "/A": "<p>capital</p>",
    "/x.html": "<p>x</p>",
    "/x.html/y": '<a href="/x.html">x</a>',
    "/..%2F..%2Fetc%2Fpasswd": "<p>root</p>",
    "/..%5C..%5Cx": "<p>root</p>",
    "/CON": "<p>device</p>",
    "/long/" + "l" * 900: "<p>long</p>",
    "/caf%C3%A9/": FakePage(
        "<p>caf\xe9</p><a href='../'>home</a>".encode("latin-1"), type="text/html; charset=latin-1"
    ),
}


class Links(HTMLParser):
    """What a browser would ask for, of a page that it opened: read by Python's parser, not ours."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: "list[tuple[str, str | None]]") -> None:
        self._in_style = tag == "style"
        for name, value in attrs:
            if value is None:
                continue
            if name in ("href", "src", "action", "background", "poster", "data"):
                self.found.append(value)
            elif name in ("srcset", "imagesrcset"):
                self.found += [one.split()[0] for one in value.split(", ")]
            elif name == "style":
                self.found += of_css(value)
            elif name == "content" and "url=" in value:
                self.found.append(value.partition("url=")[2])

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += of_css(data)


def of_css(text: str) -> list[str]:
    return re.findall(r'(?:url\(|@import )"([^"]*)"', text)


def links_of(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8-sig", "replace")
    return of_css(text) if path.suffix == ".css" else Links(text).found if path.suffix == ".html" else []


def broken(folder: Path, host: str) -> list[str]:
    """Links of a mirror that lead to no file of it, or to the web although the mirror has the page."""
    found = []
    for path in sorted(folder.rglob("*")):
        for link in links_of(path) if path.is_file() else ():
            parts = urlsplit(link)
            if parts.scheme in ("data", "javascript"):
                continue
            if parts.scheme:
                if parts.netloc == host and parts.path not in ("/dead", "/search"):
                    found.append(f"{path}: {link} leads to the web")
                continue
            target = (path.parent / unquote(parts.path)) if parts.path else path
            if not target.is_file() or not target.resolve().is_relative_to(folder.resolve()):
                found.append(f"{path}: {link}")
    return found


def mirrored(web: FakeWeb, directory: Path, folder: Path, *more: str) -> int:
    return main(
        ["crawl", web.url("/"), "-o", str(directory), "--delay", "0", "--quiet", "--mirror", str(folder), *more]
    )


def test_a_mirror_has_no_broken_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "site"
    with FakeWeb(SITE) as web:
        assert mirrored(web, tmp_path / "crawl", folder) == 0
        host = urlsplit(web.url("/")).netloc
    assert not broken(folder, host)
    own = folder / host.replace(":", "+")
    texts = {path.relative_to(own).as_posix(): path.read_bytes() for path in own.rglob("*") if path.is_file()}
    assert b"Guide" in texts["docs/guide.html"]
    assert "caf\u00e9" in texts["caf\u00e9/index.html"].decode("utf-8-sig")
    documents = [page for page in SITE.values() if not (isinstance(page, FakePage) and page.status == 301)]
    assert len(texts) == len(documents), "each document is a file of its own"
    start = texts["index.html"].decode("utf-8-sig")
    assert "integrity" not in start
    assert "docs/guide.html#part" in start
    assert "http://elsewhere.test/p?q#r" in start
    assert 'href="#top"' in start
    assert f"http://{host}/dead" in start, "a link to what is not there leads to the web"
    assert "url=" in (folder / "index.html").read_text()


def test_no_url_leads_out_of_the_folder(tmp_path: Path) -> None:
    with FakeWeb(SITE) as web:
        assert mirrored(web, tmp_path / "crawl", tmp_path / "in" / "site") == 0
    assert {path.name for path in tmp_path.iterdir()} == {"crawl", "in"}
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"site"}


def test_a_mirror_is_written_later_from_the_archive_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, folder = tmp_path / "crawl", tmp_path / "site"
    with FakeWeb(SITE) as web:
        assert main(["crawl", web.url("/"), "-o", str(directory), "--delay", "0", "--quiet", "--page-requisites"]) == 0
        host = urlsplit(web.url("/")).netloc
    for _ in range(2):
        assert main(["export", str(directory), "--to", "folder", "-o", str(folder)]) == 0
        assert not broken(folder, host)
    (folder / "mine.txt").write_text("mine")
    capsys.readouterr()
    assert main(["export", str(directory), "--to", "folder", "-o", str(folder)]) == 2
    assert "mine.txt is not part of the mirror" in capsys.readouterr().err
    assert (folder / "mine.txt").read_text() == "mine"


def test_a_folder_that_is_somebody_elses_is_refused_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a").write_text("mine")
    with FakeWeb({"/": ""}) as web:
        for folder, more, told in (
            (mine, (), "holds no mirror"),
            (tmp_path / "crawl" / "in", (), "cannot lie in each other"),
            (mine / "a", (), "is not a folder"),
            (tmp_path / "new", ("--no-warc",), "leave out --no-warc"),
            (Path("/proc/new/deep"), (), "--mirror: /proc/new/deep cannot be written"),
        ):
            assert mirrored(web, tmp_path / "crawl", folder, *more) == 2
            assert told in capsys.readouterr().err
        assert not web.requests
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mirror_of_a_site_at_random_is_whole_and_has_no_broken_link(seed: int, tmp_path: Path) -> None:
    site, folder = scattered(seed), tmp_path / "site"
    moved = {path: FakePage(status=302, headers=(("Location", target),)) for path, target in site.redirects.items()}
    with FakeWeb({**site.pages, **moved}) as web:
        assert mirrored(web, tmp_path / "crawl", folder) == 0
    assert len(list(folder.rglob("*.html"))) == len(site.expected) + 1, "a file for each page, and one that leads in"
    assert not broken(folder, "no.host")


def test_a_page_that_asks_not_to_be_archived_is_in_no_mirror(tmp_path: Path) -> None:
    site: dict[str, str | FakePage] = {
        "/": '<a href="/not">n</a><a href="/deep">d</a>',
        "/not": "<meta name=robots content=noarchive>secret",
    }
    site["/deep"] = "<div>" * 200_000 + '<a href="/">home</a>'
    with FakeWeb(site) as web:
        assert mirrored(web, tmp_path / "crawl", tmp_path / "site") == 0
        url = web.url("/not")
    texts = [path.read_text("utf-8-sig") for path in (tmp_path / "site").rglob("*.html")]
    assert not any("secret" in text for text in texts)
    assert any(url in text for text in texts), "the link leads to the web"
    assert any(text.startswith("<div><div>") for text in texts), "a page that cannot be parsed is written as it came"


def test_a_crawl_that_goes_on_writes_its_mirror_again(tmp_path: Path) -> None:
    directory, folder = tmp_path / "crawl", tmp_path / "site"
    with FakeWeb.tree(3, 2) as web:
        assert mirrored(web, directory, folder, "--max-pages", "3") == 0
        before = len(json.loads((folder / ".gossamer-mirror.json").read_text())["files"])
        assert main(["resume", str(directory), "--max-pages", "100", "--quiet"]) == 0
        host = urlsplit(web.url("/")).netloc
    after = len(json.loads((folder / ".gossamer-mirror.json").read_text())["files"])
    assert before < after
    assert not broken(folder, host)


def test_two_mirrors_to_one_folder_at_once_leave_a_whole_one_and_nothing_beside_it(tmp_path: Path) -> None:
    directory, folder = tmp_path / "crawl", tmp_path / "sites" / "site"
    with FakeWeb.tree(4, 3) as web:
        assert mirrored(web, directory, tmp_path / "first") == 0
    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(lambda _: write_mirror(directory, folder), range(8)))
    mark = json.loads((folder / ".gossamer-mirror.json").read_text())
    assert {one.files for one in told} == {len(mark["files"])} and all(
        (folder / name).exists() for name in mark["files"]
    )
    assert [path.name for path in folder.parent.iterdir()] == ["site"]


def test_a_crawl_whose_mirror_cannot_be_written_says_so_in_its_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, folder = tmp_path / "crawl", tmp_path / "site"
    with FakeWeb.tree(3, 2) as web:
        assert mirrored(web, directory, folder, "--max-pages", "3") == 0
        (folder / "mine.txt").write_text("kept", encoding="utf-8")
        assert main(["resume", str(directory), "--max-pages", "100", "--quiet"]) == 4
    assert "the mirror could not be written" in capsys.readouterr().err
    assert (folder / "mine.txt").read_text(encoding="utf-8") == "kept"
