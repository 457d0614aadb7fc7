"""Crawls of one user share robots.txt: a server is asked once, and every crawl obeys what it said."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gossamer.analysis.why import story_of
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

RULES = "User-agent: *\nDisallow: /no\n"
PAGES = {"http://a.test/": '<a href="/yes">x</a><a href="/no">x</a>', "http://a.test/yes": "y", "http://a.test/no": "n"}
SETTINGS = {"robots": {"private": True}}  # the web of the test is on this machine


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def web_of(latency: float = 0.0) -> FakeWeb:
    return FakeWeb({**PAGES, "http://a.test/robots.txt": FakePage(RULES, latency=latency)}, root="http://a.test/")


def crawled(web: FakeWeb, directory: Path, cache: str = "shared", **options: Any) -> Summary:
    given = {"output": str(directory), "resolve": [web.resolve], "delay": 0, "robots_cache": cache, **options}
    seeds = [] if options.get("resume") else ["http://a.test/"]
    return run(Crawl(seeds, build(all_options(), given), settings={} if cache == "off" else SETTINGS))


def asked(web: FakeWeb) -> int:
    return web.targets().count("/robots.txt")


def test_a_second_crawl_obeys_without_asking_and_keeps_what_it_was_told(tmp_path: Path) -> None:
    with web_of() as web:
        assert crawled(web, tmp_path / "one").outcomes["robots_denied"] == 1
        assert crawled(web, tmp_path / "two", max_pages=1).state == "limit"
        assert asked(web) == 1
        (tmp_path / "cache" / "gossamer" / "robots" / "answers-1.sqlite").unlink()
        assert crawled(web, tmp_path / "two", max_pages=9, resume=True).outcomes["robots_denied"] == 1
        assert asked(web) == 1, "its ledger has it"
        assert "/no" not in web.targets()
        assert crawled(web, tmp_path / "three", "refresh").pages == 2
        assert asked(web) == 2, "this one had to see the newest"
        crawled(web, tmp_path / "four", "off")
        assert asked(web) == 3, "nothing is shared unless somebody asks for it"
    with Database(tmp_path / "two") as tables:
        assert list(tables.ask("SELECT robots_state FROM hosts WHERE host = 'a.test'")) == [("shared",)]
    told = story_of(tmp_path / "two", "http://a.test/no").robots
    assert told is not None and told.rule == "Disallow: /no"


def test_two_crawls_at_once_ask_once(tmp_path: Path) -> None:
    """Both begin while the server takes its time."""
    with web_of(latency=2.0) as web:
        command = [
            sys.executable,
            "-m",
            "gossamer",
            "crawl",
            "http://a.test/",
            "--resolve",
            web.resolve,
            "--delay",
            "0",
        ]
        command += ["--robots-cache", "shared", "--set", "robots.private=true", "--json", "--quiet", "-o"]
        crawls = [
            subprocess.Popen([*command, str(tmp_path / name)], stdout=subprocess.PIPE, env=processes.environment())
            for name in ("one", "two")
        ]
        told = [json.loads(one.communicate(timeout=HUNG_AFTER)[0]) for one in crawls]
        assert [one["outcomes"]["robots_denied"] for one in told] == [1, 1]
        assert asked(web) == 1 and web.targets().count("/yes") == 2


def test_sitemaps_are_read_though_the_rules_are_known(tmp_path: Path) -> None:
    with web_of() as web:
        crawled(web, tmp_path / "one")
        crawled(web, tmp_path / "two", sitemaps=True)
        assert asked(web) == 2


def test_who_ignores_robots_has_nothing_to_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "crawl",
        "http://127.0.0.1:9/",
        "--robots",
        "ignore",
        "--robots-cache",
        "shared",
        "-o",
        str(tmp_path / "c"),
    ]
    assert main(given) == 2
    assert "--robots ignore never reads it" in capsys.readouterr().err
