"""The package of docs/extending.md: installed beside ours, it adds all that our own subjects add."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from gossamer.dashboard.crawls import key_of
from gossamer.storage.contract import Space
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing import FakeWeb, check_politeness_rule
from gossamer.testing.clock import HUNG_AFTER
from tools import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")

COMMAND = """
import click

@click.command()
@click.argument("host")
def tide(host):
    print(f"{host}: high")
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The package as its manual has it, installed."""
    site = tmp_path / "site"
    info = site / "gossamer_tides-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gossamer-tides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        re.sub(r".*entry-points\.\"(.*?)\".*", r"[\1]", block("entry-points")).replace('"', "")
    )
    package = site / "gossamer_tides"
    package.mkdir()
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        name = re.match(r"# gossamer_tides/(\w+\.py)\n", text)
        assert name is not None
        (package / name[1]).write_text(text)
    (package / "commands.py").write_text(COMMAND)
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{site}"}


def block(word: str) -> str:
    """The TOML of the page that has this word."""
    return next(text for text in re.findall(r"```toml\n(.*?)```", PAGE, re.S) if word in text)


def gossamer(environment: dict[str, str], *arguments: str) -> str:
    line = [sys.executable, "-P", "-m", "gossamer", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=HUNG_AFTER)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_adds_a_command_and_options_with_a_heading(environment: dict[str, str]) -> None:
    assert "Show the tide at a host." in gossamer(environment, "--help")
    assert gossamer(environment, "tide", "harbour.example") == "harbour.example: high\n"
    told = gossamer(environment, "crawl", "--help")
    heading, option = told.index("Tides:"), told.index("--tide-rest TIME")
    assert heading < option


@pytest.mark.slow
def test_its_rule_of_politeness_is_in_the_crawl_and_a_deletion_takes_its_notes(
    environment: dict[str, str], tmp_path: Path
) -> None:
    pages = {"/": '<a href="/a">a</a>', "/a": "<title>a</title>"}
    with FakeWeb(pages) as web:
        crawl = str(tmp_path / "crawl")
        options = ["--resolve", f"*={web.url('/').removeprefix('http://').rstrip('/')}", "--delay", "0", "--quiet"]
        gossamer(environment, "crawl", "http://harbour.test/", *options, "-o", crawl, "--tide-rest", "1ms", "--json")
        notes = Path(crawl) / "state" / "tides.json"
        notes.write_text('{"harbour.test": "low", "inland.test": "none"}')
        printed = gossamer(environment, "topology", "http://harbour.test/", "--tide-rest", "5s", "--format", "toml")
    assert "tides" in printed
    assert json.loads(gossamer(environment, "status", crawl, "--json"))["pages"] == 2
    gossamer(environment, "delete", crawl, "harbour.test")
    assert json.loads(notes.read_text()) == {"inland.test": "none"}


@pytest.mark.slow
def test_its_table_keeper_and_page_are_those_of_the_crawl(environment: dict[str, str], tmp_path: Path) -> None:
    """A kill before a commit, and a run that goes on, leave each row and mark there once."""
    directory = tmp_path / "crawl"
    with FakeWeb.tree(3, 2) as web:
        at = web.url("/").removeprefix("http://").rstrip("/")
        options = ["--resolve", f"*={at}", "--delay", "0", "--quiet", "-o", str(directory), "--tide-rest", "1ms"]
        killed = [sys.executable, "-P", "-m", "gossamer", "crawl", "http://harbour.test/", *options]
        crash = {**environment, "GOSSAMER_CRASH": "before-commit:3"}
        assert subprocess.run(killed, env=crash, capture_output=True, timeout=HUNG_AFTER, check=False).returncode == -9
        gossamer(environment, "resume", str(directory))

    def asked(sql: str) -> list[Any]:
        rows = gossamer(environment, "query", str(directory), sql, "--format", "jsonl")
        return [json.loads(line) for line in rows.splitlines()]

    found = asked("SELECT url, is_harbour FROM tides ORDER BY url")
    visited = [row["url"] for row in asked("SELECT url FROM pages_all")]
    assert [row["url"] for row in found] == sorted([*visited, "http://harbour.test/robots.txt"])
    pages = len(found)
    assert len(web.expected) < pages == len({row["url"] for row in found})
    assert all(row["is_harbour"] for row in found)
    with (ledger := RocksLedger(LedgerSheet(directory=str(directory)))).looking():
        space = Space("tides-marks")
        ledger.spaces.open(space)
        assert ledger.spaces.get(space, "harbour.test", b"marks") == b"%d" % pages
    assert f'directory = "{directory}"' in (directory / "crawl.toml").read_text().partition("tide-marks")[2]
    shown = shown_page({**environment, "XDG_STATE_HOME": str(tmp_path)}, directory)
    assert (shown["text"], shown["table"]["columns"]) == ("Pages by tide.", ["is_harbour", "pages"])
    assert (shown["table"]["title"], shown["table"]["rows"]) == ("Tides", [[True, pages]])


def shown_page(environment: dict[str, str], directory: Path) -> Any:
    """The page of the package, as a dashboard of the crawl serves it."""
    line = [sys.executable, "-P", "-m", "gossamer", "dashboard", str(directory)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            address, _, key = process.stdout.readline().strip().partition("?token=")

            def ask(path: str) -> Any:
                asked = Request(f"{address}api/{path}", headers={"Authorization": f"Bearer {key}"})
                with urlopen(asked, timeout=HUNG_AFTER) as answer:
                    return json.load(answer)

            assert ask("pages") == [{"title": "Tides", "subject": "tides"}]
            return ask(f"crawls/{key_of(directory)}/pages/Tides")
        finally:
            process.kill()


def test_the_rule_of_the_manual_keeps_the_promises_of_rules(environment: dict[str, str]) -> None:
    program = (
        "from gossamer.testing import check_politeness_rule as c; from gossamer_tides.rule import Tides; c(Tides())"
    )
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0
    assert callable(check_politeness_rule)
