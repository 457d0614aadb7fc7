"""A crawl with the sieve, wired as docs/sieve.md says, fetches the same pages as a plain one."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.engine.wiring import ProviderPlan, Wiring, from_plain, with_settings
from gossamer.testing.fakeweb import FakeWeb

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "sieve.md"


def in_bulk() -> Wiring:
    """The shipped wiring with the tables of the document put in."""
    [text] = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    plain = msgspec.to_builtins(shipped("default"))
    plain.pop("source")
    tables = tomllib.loads(text)
    plain["providers"].update(tables["providers"])
    for name, table in tables["components"].items():
        plain["components"][name]["providers"].update(table["providers"])
    return from_plain(plain)


def crawl(web: FakeWeb, folder: Path, **options: object) -> tuple[Summary, Crawl]:
    given = {"output": str(folder / "crawl"), "delay": 0, "per_host": 4, **options}
    wiring = with_settings(in_bulk(), "sieve", {"capacity": 10, "recent": 20})
    job = Crawl([web.url(web.root)], build(all_options(), given), wiring=wiring, tables=False)
    return run(job), job


def test_it_fetches_every_reachable_page_once(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 3) as web:
        summary, job = crawl(web, tmp_path)
        assert summary.state == "finished"
        assert summary.pages == len(web.expected) == 121
        assert sorted(map(web.url, web.targets())) == sorted(web.expected)
    assert (summary.queued, summary.discovered) == (0, 121)
    assert job.running is not None
    assert (tmp_path / "crawl" / "state" / "agent-00" / "sieve" / "manifest.json").exists()


def test_after_a_page_limit_the_rest_is_queued_and_fetched_by_who_goes_on(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4) as web:
        summary, _ = crawl(web, tmp_path, max_pages=17)
        assert (summary.state, summary.pages, len(web.requests)) == ("limit", 17, 17)
        assert summary.queued > 0
        given = {"output": str(tmp_path / "crawl"), "resume": True, "max_pages": 10_000}
        summary = run(Crawl([], build(all_options(), given), tables=False))
        assert (summary.state, summary.queued, summary.pages) == ("finished", 0, 341)
        assert sorted(map(web.url, web.targets())) == sorted(web.expected)


def test_so_does_a_crawl_by_pages_of_few_tasks(tmp_path: Path) -> None:
    """`diverse-queues` in front of the ledger's, with a threshold that every host meets again and again."""
    plain = shipped("default")
    own = plain.providers["queues"]
    paged = ProviderPlan(
        use="diverse-queues",
        providers={"behind": "own-queues", "ledger": "ledger"},
        settings={"page": 10, "threshold": 0.2},
    )
    providers = {**plain.providers, "own-queues": own, "queues": paged}
    pages = {
        f"http://{host}/{n}": "".join(f'<a href="http://{to}/{n + 1}">x</a>' for to in ("a.test", "b.test", "c.test"))
        for host in ("a.test", "b.test", "c.test")
        for n in range(30)
    }
    with FakeWeb(pages) as web:
        given = {"output": str(tmp_path / "crawl"), "delay": 0, "scope": "any", "resolve": [web.resolve]}
        options = build(all_options(), {**given, "allow_network": ["127.0.0.0/8"]})
        job = Crawl(
            ["http://a.test/0"], options, wiring=msgspec.structs.replace(plain, providers=providers), tables=False
        )
        summary = run(job)
    assert (summary.state, summary.outcomes) == ("finished", {"ok": 88, "client_error": 3})


def test_a_crawl_whose_tasks_take_turns_in_a_trie_is_killed_and_goes_on_with_every_page(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    line = [sys.executable, "-P", "-m", "gossamer"]
    options = ["--strategy", "trie", "--delay", "0", "--per-host", "4", "--json", "-o", str(directory)]
    with FakeWeb.tree(4, 4, latency=0.001) as web:
        for number, point in enumerate(("before-commit:5", "after-commit:7", "archive-written:9")):
            what = ["resume", str(directory)] if number else ["crawl", web.url("/"), *options]
            done = subprocess.run([*line, *what], env={**os.environ, "GOSSAMER_CRASH": point}, capture_output=True)
            assert done.returncode == -9, done.stderr
        done = subprocess.run([*line, "resume", str(directory), "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        assert (summary["state"], summary["queued"], summary["pages"]) == ("finished", 0, len(web.expected))
    kept = (directory / "crawl.toml").read_text("utf-8")
    assert 'use = "trie-queues"' in kept
