"""Every block of the tutorial, of the recipes and of the pages for those who know another crawler runs as it is printed, and
brings what its text says.

Blocks of one section share a folder. A block of another language than `sh` is a file, named in its first line; one that names none
is what another crawler would be told. The server stands on another port than the page says, and waits are left out; nothing else is
changed.
"""

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.test_mcp import Call, served

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
    "/docs/one": "<title>One</title><p>Text that people and models read.",
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


def is_ours(block: tuple[str, str]) -> bool:
    """Whether it is a command of ours, or a file that one of them reads."""
    return block[0] == "sh" or block[1].startswith("# ")


class Shell:
    """A folder in which the blocks of a page run, in this process: a command takes seconds to start, and there are fifty."""

    def __init__(self, folder: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.web = folder, web
        self._capsys = capsys
        #: Without waits, with every host name on the test's server.
        asking = ["--contact", "docs@example.org", "--resolve", web.resolve, "--allow-network", "127.0.0.0/8"]
        crawling = ["--delay", "0", "--quiet", *asking]
        self._also = {"crawl": crawling, "run": crawling, "fetch": asking, "inspect": asking}

    def run(self, blocks: list[tuple[str, str]]) -> str:
        """Run blocks; returns of what the commands print. Each must succeed, but before `||`."""
        printed = ""
        for language, text in blocks:
            if language == "sh":
                printed += "".join(map(self._line, text.splitlines()))
            elif is_ours((language, text)):
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
        status = main([*words[1:], *self._also.get(words[1], ())])
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


def reported(_: Shell, told: str) -> None:
    assert "/lost" in told


def broken(shell: Shell, told: str) -> None:
    reported(shell, told)
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


def told_apart(shell: Shell, told: str) -> None:
    assert "similarity" in told, "nothing has changed within the second of this test"
    assert len(shell.ask("news")) > 3


def compared(shell: Shell, told: str) -> None:
    assert "before" in told
    assert len(shell.ask("watch")) == 3


def as_markdown(shell: Shell, _: str) -> None:
    [page] = (shell.folder / "manual-pages").rglob("*.md")
    assert page.read_text().startswith('---\ntitle: "One"\nurl: "http://localhost:')


def chunked(shell: Shell, _: str) -> None:
    before, changes = ((shell.folder / name).read_text() for name in ("chunks.jsonl", "changes.jsonl"))
    assert '"change":"new"' in before and changes == before


def asked_by_a_model(_: Shell, told: str) -> None:
    assert "/docs/one" in told
    settings = json.loads(sections("recipes.md")["Ask a crawl from a chat program"][-1][1])["mcpServers"]["mycrawl"]

    async def work(call: Call) -> None:
        [hit] = (await call("search", crawl="mycrawl", words="people models"))["hits"]
        assert "people and models read" in (await call("read", crawl="mycrawl", url=hit["url"]))["markdown"]
        assert "reaches no host" in await call("fetch", url=hit["url"])

    assert settings["command"] == "gossamer"
    program, *arguments = [word.removeprefix("/home/me/") for word in settings["args"]]
    assert program == "mcp"
    served(work, *arguments)


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
    "Tell what changed": told_apart,
    "Take a site out as Markdown": as_markdown,
    "Keep a corpus for retrieval fresh": chunked,
    "Ask a crawl from a chat program": asked_by_a_model,
    "Watch prices": compared,
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


# -- for those who know another crawler


def looked_at(shell: Shell, told: str) -> None:
    assert "Home" in told or "http://localhost:8000/docs/a.png" in shell.ask("page")


def crawled(shell: Shell, _: str) -> None:
    assert "http://localhost:8000/docs/one" in shell.ask("site")


def kept_to_a_part(shell: Shell, _: str) -> None:
    assert shell.ask("docs") == ["http://localhost:8000/docs/", "http://localhost:8000/docs/one"]


def slowed(shell: Shell, _: str) -> None:
    assert "http://localhost:8000/docs/one" in shell.ask("slow")


def sent(shell: Shell, _: str) -> None:
    if (shell.folder / "account").exists():
        entered(shell, "")
    else:
        assert "http://localhost:8000/contact" in shell.ask("headers")
        assert any(request.header("X-Purpose") == "archive" for request in shell.web.requests)


def saved(shell: Shell, told: str) -> None:
    if (shell.folder / "archive").exists():
        archived(shell, told)
    else:
        assert "Contact" in told or (shell.folder / "folder" / "index.html").exists()


def told_of_what_came(_: Shell, told: str) -> None:
    assert re.search(r"404 +\d", told)
    assert "a href of http://localhost:8000/" in told


#: What each of the ten jobs brings, by its number.
JOBS = [
    looked_at,
    crawled,
    kept_to_a_part,
    slowed,
    sent,
    priced,
    saved,
    gone_on,
    reported,
    told_of_what_came,
]


OTHERS = sorted(path.stem for path in (DOCS / "coming-from").glob("*.md"))


def jobs() -> Iterator[Any]:
    """Number and blocks of each job; what several pages print is tried once."""
    met: set[tuple[tuple[str, str], ...]] = set()
    for other in OTHERS:
        for number, blocks in enumerate(sections(f"coming-from/{other}.md").values()):
            ours = tuple(filter(is_ours, blocks))
            if ours not in met:
                met.add(ours)
                yield pytest.param(number, blocks, id=f"{other}-{number + 1}")


@pytest.mark.parametrize(("number", "blocks"), [*jobs()])
def test_a_job_of_another_crawler_runs_as_printed_and_brings_the_same(
    number: int, blocks: list[tuple[str, str]], shell: Shell
) -> None:
    JOBS[number](shell, shell.run(blocks))


def test_each_page_for_those_who_know_another_crawler_has_ten_jobs_side_by_side() -> None:
    assert OTHERS == ["browsertrix", "crawlee", "heritrix", "scrapy", "wget"]
    for other in OTHERS:
        told = sections(f"coming-from/{other}.md")
        assert [title.partition(". ")[0] for title in told] == [str(number) for number in range(1, 11)]
        assert all(any(map(is_ours, blocks)) for blocks in told.values())
        assert sum(not all(map(is_ours, blocks)) for blocks in told.values()) >= 9, (
            "what the other is told stands beside"
        )
