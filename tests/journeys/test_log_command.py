"""`gossamer log`: one log of a whole crawl and all its agents, at rest and while it runs."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journeys.test_agents import HOSTS, PAGES, crawled, options_for, seed_of, web_of_hosts
from tests.journeys.test_agents_steered import asked
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.cli.main import main
from gossamer.crawls.control.messages import Change
from gossamer.engine import processes
from gossamer.testing.clock import HUNG_AFTER


def following(directory: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gossamer", "log", str(directory), "--follow", "--json", "--last", "1000000"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=processes.environment())


def test_the_log_of_several_agents_is_followed_while_they_work_and_ends_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    followers: list[subprocess.Popen[bytes]] = []

    with web_of_hosts(latency=0.1) as web:

        async def meanwhile(job: SupervisedCrawl) -> None:
            await awaited((directory / "logs").exists)
            followers.append(following(directory))
            await asked(directory, Change({"frontier.linger": "7s"}))
            await awaited(lambda: job.working)
            job.several.report("agent-00 says something")

        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), tables=False)
        assert asyncio.run(crawled(job, meanwhile)).pages == HOSTS * PAGES
        told = [json.loads(line) for line in followers[0].communicate(timeout=HUNG_AFTER)[0].splitlines()]
    assert followers[0].returncode == 0, "it ends when the crawl does"
    pages = [entry for entry in told if entry["event"] == "page"]
    assert len({entry["url"] for entry in pages}) == len(pages) == HOSTS * PAGES, "each visit once"
    assert {entry["agent"] for entry in pages} == {"agent-00", "agent-01"}
    assert [entry["values"] for entry in told if entry["event"] == "steering"] == [{"frontier.linger": "7s"}]
    assert "agent-00 says something" in [entry["text"] for entry in told if entry["event"] == "note"]

    assert main(["log", str(directory), "--agent", "agent-01", "--json"]) == 0
    own = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not any("line_sum" in one for one in own), "it is the sum of the line in the file"
    assert {entry["agent"] for entry in own} == {"agent-01"} and 0 < len(own) < len(pages)
    assert main(["log", str(directory), "--host", "h3.test", "--kind", "page", "-n", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(" page ok 200 http://www.h3.test/" in line for line in lines)
    assert main(["log", str(directory), "--kind", "error", "--follow"]) == 0, "a crawl at rest is followed to its end"
    assert capsys.readouterr().out == ""


def test_wrong_uses_of_the_log_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(tmp_path)]) == 2
    (tmp_path / "crawl.toml").write_text("")
    assert main(["log", str(tmp_path), "--agent", "agent-07"]) == 2
    assert "has no agent 'agent-07'" in capsys.readouterr().err
    assert main(["log", str(tmp_path), "--kind", "nothing"]) == 2
    capsys.readouterr()
    (tmp_path / "logs").mkdir()
    bad = b'\xff\n[]\n{"event":"page","url":"http://a.test/\\u001b[2J","at":7}\n{"event":"note","at":"2026'
    (tmp_path / "logs" / "crawl.jsonl").write_bytes(bad)
    assert main(["log", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "\x1b" not in out, "what is damaged is left out, and nothing speaks to the terminal"
