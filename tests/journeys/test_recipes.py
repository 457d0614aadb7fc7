"""Every block of the tutorial and of the recipes runs as it is printed, and brings what its text says.

Blocks of one section share a folder. A block of another language than `sh` is a file, named in its first line. The server stands on
another port than the page says, and waits are left out; nothing else is changed.
"""

import csv
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

DOCS = Path(__file__).parents[2] / "docs"

SHOP = (
    '<title>Shop</title><div class="product"><a href="/shop/pot">Pot</a></div>'
    '<div class="product"><a href="/shop/pan">Pan</a></div>'
)


def account(request: FakeRequest) -> FakePage:
    return FakePage("<title>Hello</title>" if request.header("Cookie") == "session=42" else "log in", status=200)


PAGES = {
    "/": '<html lang="en"><title>Home</title><a href="/contact">c</a><a href="/docs/">d</a>'
    '<a href="/lost">l</a><a href="/de">de</a>',
    "/contact": '<html lang="en"><title>Contact</title>',
    "/de": '<html lang="de"><title>Deutsch</title>'
    "<p>Dieser Text ist in deutscher Sprache geschrieben, damit man sieht, welche Sprache er hat und welche Seiten bleiben."
    '<a href="/contact">Kontakt</a><a href="/de/mehr">Mehr</a>',
    "/de/mehr": '<html lang="de"><title>Mehr</title><p>Auch diese Seite ist in deutscher Sprache geschrieben und bleibt.',
    "/docs/": '<title>Docs</title><img src="/docs/a.png"><a href="/docs/one">one</a><a href="/contact">c</a>',
    "/docs/one": "<title>One</title>",
    "/docs/a.png": FakePage(b"\x89PNG\r\n\x1a\n", type="image/png"),
    "/shop/": SHOP,
    "/shop/pot": '<h1>Pot</h1><b class="price">£12.50</b>',
    "/shop/pan": '<h1>Pan</h1><b class="price">£8</b>',
    "/account": account,
    "http://www.example.hu/": '<title>Hu</title><a href="http://www.example.org/">o</a><a href="http://a.hu/">a</a>',
    "http://a.hu/": "<title>A</title>",
}


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    with FakeWeb(PAGES) as served:
        yield served


def sections(name: str) -> dict[str, list[tuple[str, str]]]:
    """Heading -> its blocks, each as language and text."""
    text = (DOCS / name).read_text("utf-8")
    return {
        part.partition("\n")[0]: re.findall(r"```(\w+)\n(.*?)```", part, re.DOTALL) for part in text.split("\n## ")[1:]
    }


class Shell:
    """A folder in which the blocks of a page run, in this process: a command takes seconds to start, and there are fifty."""

    def __init__(self, folder: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        #: Without waits, with every host name on the test's server.
        self._also = ["--delay", "0", "--quiet", "--contact", "docs@example.org", "--resolve", web.resolve]
        self._also += ["--allow-network", "127.0.0.0/8"]

    def run(self, blocks: list[tuple[str, str]]) -> str:
        """Run blocks; returns of what the commands print. Each must succeed, but before `||`."""
        printed = ""
        for language, text in blocks:
            if language == "sh":
                printed += "".join(map(self._line, text.splitlines()))
            else:
                (self.folder / text.partition("\n")[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        return printed

    def _line(self, line: str) -> str:
        command, _, otherwise = line.partition(" || ")
        words = shlex.split(command)
        if words[:2] == ["chmod", "600"]:
            (self.folder / words[2]).chmod(0o600)
            return ""
        assert words[0] == "gossamer", line
        self._capsys.readouterr()
        status = main([*words[1:], *(self._also if words[1] in ("crawl", "run") else ())])
        told = self._capsys.readouterr()
        assert (status != 0) == bool(otherwise), f"{line}\n{told.out}\n{told.err}"
        return told.out

    def ask(self, crawl: str, column: str = "url") -> list[str]:
        """A column of the table `pages`, of what was fetched well."""
        return self._line(
            f'gossamer query {crawl} "SELECT {column} FROM pages WHERE status = 200 ORDER BY 1" -f csv'
        ).split()[1:]


@pytest.fixture
def shell(tmp_path: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, web, capsys)


def mirrored(shell: Shell, _: str) -> None:
    assert {"index.html", "a.png"} <= {path.name for path in (shell.folder / "site").rglob("*")}


def broken(shell: Shell, told: str) -> None:
    assert "/lost" in told
    assert any("/lost" in line for line in (shell.folder / "broken.csv").read_text().splitlines())


def archived(shell: Shell, _: str) -> None:
    assert (shell.folder / "site.wacz").read_bytes()[:2] == b"PK"
    assert "http://localhost:8000/docs/a.png" in shell.ask("archive")


def listed(shell: Shell, _: str) -> None:
    assert shell.ask("list") == ["http://localhost:8000/", "http://localhost:8000/contact"]
    assert len((shell.folder / "list.csv").read_text().splitlines()) == 3


def priced(shell: Shell, _: str) -> None:
    with (shell.folder / "prices.csv").open(newline="") as file:
        assert sorted((row["name"], float(row["price"])) for row in csv.DictReader(file)) == [
            ("Pan", 8.0),
            ("Pot", 12.5),
        ]


def gone_on(shell: Shell, told: str) -> None:
    assert "finished" in told
    assert "http://localhost:8000/docs/one" in shell.ask("big")


def entered(shell: Shell, _: str) -> None:
    assert shell.ask("account", "title") == ["Hello"]


def german(shell: Shell, told: str) -> None:
    assert "http://localhost:8000/de/mehr" in told
    assert "http://localhost:8000/contact" not in told


def hungarian(shell: Shell, _: str) -> None:
    assert shell.ask("hungary") == ["http://a.hu/", "http://www.example.hu/"]


def many(shell: Shell, told: str) -> None:
    assert "www.example.org" in told
    assert len(shell.ask("sites")) > 2


def reprocessed(_: Shell, told: str) -> None:
    assert "triples" in told


def watched(_: Shell, told: str) -> None:
    assert re.search(r"ok +\d", told)
    assert "localhost" in told


RECIPES: dict[str, Callable[[Shell, str], None]] = {
    "Mirror a site": mirrored,
    "Find broken links": broken,
    "Archive a site and replay it": archived,
    "Fetch a list of URLs and nothing else": listed,
    "Collect prices in a CSV file": priced,
    "Crawl a big site over days": gone_on,
    "Crawl behind a log-in": entered,
    "Keep pages in one language": german,
    "Stay in one top-level domain": hungarian,
    "Crawl many sites from a file": many,
    "Read the archive again with other processors": reprocessed,
    "Watch a crawl with SQL": watched,
}


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_runs_as_printed_and_brings_what_it_promises(title: str, shell: Shell) -> None:
    blocks = sections("recipes.md")[title]
    assert sum(text.count("\n") for _, text in blocks) <= 20
    RECIPES[title](shell, shell.run(blocks))


def test_every_recipe_is_tried() -> None:
    assert sorted(sections("recipes.md")) == sorted(RECIPES)


def test_the_tutorial_runs_from_its_first_step_to_its_last(shell: Shell) -> None:
    steps = sections("tutorial.md")
    assert len(steps) == 5
    told = "".join(shell.run(blocks) for blocks in steps.values())
    assert "a href of http://localhost:8000/" in told
    assert (shell.folder / "mine.wacz").stat().st_size > 1000
    assert (shell.folder / "site" / "localhost" / "index.html").exists() or list(
        (shell.folder / "site").rglob("index.html")
    )
