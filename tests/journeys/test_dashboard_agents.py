"""The dashboard of a crawl of two agents: every page answers, agents are told apart, and one of them is changed alone."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.journeys.test_dashboard import Browser, crawling, environment, listed

from gossamer.dashboard.crawls import key_of
from gossamer.testing.fakeweb import FakePage, FakeWeb

__all__ = ["environment"]

PAGES = {"/": '<a href="/1">x</a>', "/1": FakePage(status=500)}


def test_two_agents_are_shown_and_steered_together_and_one_by_one(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "c"
    with FakeWeb(PAGES) as web, crawling(environment, web, folder, "--agents", "2", "--dashboard", "0") as crawl:
        assert crawl.stderr is not None
        address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2].strip()
        browser, at = Browser(address), f"/api/crawls/{key_of(folder)}"

        def until(state: str) -> dict[str, Any]:
            deadline = time.monotonic() + 60
            while True:
                status, body = browser.ask(at)
                now: dict[str, Any] = json.loads(body)
                if status == 200 and {one["state"] for one in now["each_agent"]} == {state} and now["errors"]:
                    return now
                assert time.monotonic() < deadline, body
                time.sleep(0.1)

        now = until("running")
        assert [one["name"] for one in now["each_agent"]] == ["agent-00", "agent-01"]
        for name in ("pages", "queued", "in_flight", "concurrency", "hosts", "errors"):
            assert sum(one[name] for one in now["each_agent"]) == now[name], name
        pages = ["samples", "hosts?live=1", "host?name=127.0.0.1", "graph", "traps", "exports", "log", "answerable"]
        pages += ["layout", f"story?url={web.url('/')}", f"document?url={web.url('/')}", "tables?report=errors"]
        for path in pages:
            assert browser.ask(f"{at}/{path}")[0] == 200, path
        assert listed(browser, key_of(folder), "live=1")["now"]["127.0.0.1"]

        def values(setting: str) -> dict[str, Any]:
            found = browser.json(f"{at}/unit?name=frontier")["instances"]
            return {one["agent"]: one["settings"][setting] for one in found}

        assert values("concurrency") == {"agent-00": 32, "agent-01": 32}
        counted = browser.json(f"{at}/unit?name=fetch")["instances"]
        alone = browser.json(f"{at}?units=1&agent=agent-01")
        [fetch] = [one for one in alone["units"] if one["name"] == "fetch"]
        assert [one["metrics"] for one in counted if one["agent"] == "agent-01"] == [fetch["metrics"]]

        def order(word: str, **fields: Any) -> tuple[int, Any]:
            return browser.order(key_of(folder), word, **fields)

        status, told = order("set", values={"frontier.concurrency": "5"}, agent="agent-01")
        assert status == 200 and "agent-01 alone, until it begins again" in told["done"]
        assert values("concurrency") == {"agent-00": 32, "agent-01": 5}
        assert order("set", values={"frontier.concurrency": "5"}, agent="agent-07")[0] == 409
        assert order("set", values={"links.parameters": "/etc/passwd"}, agent="agent-01")[0] == 409
        change = {"components": {"process": {"workers": 2}}}
        status, told = order("rewire", change=change, agent="agent-01")
        assert (status, told["is_done"]) == (200, False), told

        def workers() -> list[int]:
            graphs = [browser.json(f"{at}/graph?agent={name}") for name in ("agent-00", "agent-01")]
            return [one["workers"] for graph in graphs for one in graph["units"] if one["name"] == "process"]

        before = workers()
        assert order("rewire", change=change, agent="agent-01", apply=True)[0] == 200
        assert workers() == [before[0], 2]
        assert order("undo", agent="agent-01")[0] == 200
        assert workers() == before
        assert order("undo", agent="agent-00")[0] == 409, "nothing was changed there"
        line = [sys.executable, "-m", "gossamer", "set", str(folder), "--agent", "agent-00", "frontier.concurrency=6"]
        told = subprocess.check_output(line, text=True, env=environment)
        assert told == "frontier.concurrency = 6 (agent-00 alone, until it begins again)\n"
        assert values("concurrency") == {"agent-00": 6, "agent-01": 5}
        assert order("pause")[0] == 200
        assert until("paused")["state"] == "paused"
        assert order("continue")[0] == 200
        until("running")
    log = [json.loads(line) for line in (folder / "logs/steering.jsonl").read_text().splitlines()]
    assert [(one["do"], one.get("agent", "")) for one in log[:3]] == [
        (do, "agent-01") for do in ("set", "rewire", "undo")
    ]
