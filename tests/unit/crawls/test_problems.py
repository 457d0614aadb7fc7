"""Each problem of a crawl is found by its figures, ranked, and told with a command that helps."""

import shlex
from typing import Any

import msgspec
import pytest

from gossamer.cli.main import all_commands
from gossamer.cli.status import lines_of
from gossamer.crawls.control.problems import BUSY, ENOUGH, LITTLE_DISK, RULES, Problem, problems_of
from gossamer.crawls.control.standing import (
    AgentStanding,
    CrawlStanding,
    FailingHost,
    SlowedHost,
    SlowHost,
)
from gossamer.crawls.control.waits import DataSet, Wait

#: A crawl that goes well.
WELL: dict[str, Any] = {
    "crawl": "my crawl",
    "state": "running",
    "process": 7,
    "pages": 900,
    "fetched": 1_000,
    "outcomes": {"ok": 950, "redirect": 30, "client_error": 15, "timed_out": 5},
    "errors": 5,
    "discovered": 5_000,
    "queued": 4_000,
    "in_flight": 30,
    "concurrency": 64,
    "hosts": 10,
    "busy": 0.2,
    "disk_free": 100 * LITTLE_DISK,
}


def standing(**changes: Any) -> CrawlStanding:
    return CrawlStanding(**{**WELL, **changes})


#: What is wrong -> the figures that show it, and the beginning of the command that helps.
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("killed", {"state": "killed", "process": 0}, "gossamer resume"),
    ("unmade", {"failure": "no space left"}, "gossamer resume"),
    ("paused", {"state": "paused"}, "gossamer continue"),
    ("suspended", {"suspended": ["fetch", "process"]}, "gossamer continue 'my crawl' --unit fetch"),
    (
        "silent",
        {"each_agent": [AgentStanding("agent-00", "running"), AgentStanding("agent-01", "silent", silent_seconds=9.0)]},
        "gossamer set 'my crawl' frontier.silence",
    ),
    ("disk_full", {"waits": [Wait("disk_full")], "disk_free": 0}, "gossamer doctor"),
    ("disk_low", {"disk_free": LITTLE_DISK // 2}, "gossamer set 'my crawl' min_free_disk"),
    (
        "disk_low",
        {"disk_free": 3_600 * 10**7, "sizes": [DataSet("archive", 1, 10.0**7), DataSet("seen", 1, 10.0**9)]},
        "gossamer set 'my crawl' min_free_disk",
    ),
    ("network_down", {"waits": [Wait("network_down")]}, "gossamer doctor"),
    ("no_pages", {"pages": 0, "outcomes": {"client_error": ENOUGH}, "errors": 0}, "gossamer report"),
    ("no_pages", {"pages": 0, "process": 0, "state": "finished", "outcomes": {"dns_failed": 1}}, "gossamer report"),
    (
        "failing",
        {"outcomes": {"ok": 80, "server_error": 20}, "errors": 20, "failing": [FailingHost("a.test", 19)]},
        "gossamer report 'my crawl' errors",
    ),
    (
        "failing",
        {
            "outcomes": {"ok": 80, "server_error": 20},
            "errors": 20,
            "failing": [FailingHost(f"{n}.test", 5) for n in range(4)],
        },
        "gossamer report 'my crawl' errors",
    ),
    ("unreachable", {"waits": [Wait("unreachable", hosts=2, names=["a.test"])]}, "gossamer block 'my crawl' a.test"),
    ("dns_failed", {"waits": [Wait("dns_failed", hosts=1, names=["a.test"])]}, "gossamer block 'my crawl' a.test"),
    (
        "robots_unreachable",
        {"waits": [Wait("robots_unreachable", hosts=1, names=["a.test"])]},
        "gossamer report 'my crawl' errors",
    ),
    ("refusals", {"waits": [Wait("refusals", hosts=1, names=["a.test"])]}, "gossamer set 'my crawl' domain_delay=10s"),
    ("given_up", {"outcomes": {**WELL["outcomes"], "gone_after_retries": 3}}, "gossamer report"),
    ("raised", {"raised": 3}, "gossamer query"),
    ("needs_browser", {"needs_browser": 3}, "gossamer query 'my crawl' 'SELECT url FROM pages WHERE needs_browser'"),
    ("unfinished", {"state": "incomplete", "process": 0}, "gossamer resume"),
    (
        "delay",
        {"waits": [Wait("delay", hosts=1, names=["a.test"], seconds=5.0, reason="setting")]},
        "gossamer set 'my crawl' delay=auto",
    ),
    ("delay", {"waits": [Wait("delay", hosts=1, names=["a.test"], seconds=5.0, reason="robots")]}, ""),
    ("slowed", {"slowed": [SlowedHost("a.test", 60.0, "errors")]}, "gossamer report"),
    ("slow_hosts", {"slowest": [SlowHost("a.test", 8.0), SlowHost("b.test", 0.1)]}, "gossamer report 'my crawl' slow"),
    (
        "slow_pages",
        {"waits": [Wait("slow_pages", 2, names=["http://a.test/"], seconds=30.0)]},
        "gossamer report 'my crawl' slow",
    ),
    ("slots", {"in_flight": 64}, "gossamer set 'my crawl' concurrency=128"),
    ("few_hosts", {"in_flight": 1}, "gossamer report 'my crawl' hosts"),
    ("processor", {"busy": BUSY}, "gossamer status"),
    ("set_aside", {"set_aside": 100}, "gossamer traps 'my crawl'"),
    ("robots_denied", {"outcomes": {"ok": 50, "robots_denied": 50}}, "gossamer query"),
]


@pytest.mark.parametrize(("what", "changes", "command"), CASES)
def test_each_problem_is_found_by_its_figures_alone(what: str, changes: dict[str, Any], command: str) -> None:
    [found] = problems_of(standing(**changes))
    assert found.what == what
    assert found.reason and found.evidence
    assert found.command.startswith(command) and bool(found.command) is bool(command)
    assert 0.0 <= found.share <= 1.0


def test_a_crawl_that_goes_well_has_no_problem() -> None:
    assert problems_of(standing()) == []
    assert problems_of(CrawlStanding("c", "running", process=1)) == []
    assert problems_of(CrawlStanding("c", "finished")) == []


def test_every_rule_has_a_case() -> None:
    silent = [rule.__name__ for rule in RULES if not any(list(rule(standing(**changes))) for _, changes, _ in CASES)]
    assert silent == []


def test_the_worst_comes_first_and_among_equals_the_one_that_touches_more() -> None:
    now = standing(
        in_flight=64, set_aside=100, outcomes={"ok": 80, "server_error": 20}, waits=[Wait("network_down")], raised=1
    )
    found = problems_of(now)
    assert [one.what for one in found] == ["network_down", "failing", "raised", "slots", "set_aside"]
    assert found[1].share > found[2].share


def test_a_part_of_the_ledger_is_not_counted_twice_in_the_forecast() -> None:
    sizes = [DataSet("ledger", 1, 10.0**6), DataSet("seen", 1, 10.0**6)]
    [found] = problems_of(standing(disk_free=36 * 10**8, sizes=sizes))
    assert found.reason == "the disk will be full in 1 h 00 min"


@pytest.mark.parametrize("host", ["$(reboot).test", "a.test; reboot", "it's.test"])
def test_a_host_name_is_one_word_of_a_command(host: str) -> None:
    [found] = problems_of(standing(waits=[Wait("unreachable", hosts=1, names=[host])]))
    assert shlex.split(found.command) == ["gossamer", "block", "my crawl", host]


def test_a_host_name_is_no_option_of_a_command() -> None:
    [found] = problems_of(standing(waits=[Wait("unreachable", hosts=1, names=["-f.test"])]))
    assert shlex.split(found.command) == ["gossamer", "block", "my crawl", "--", "-f.test"]


def test_what_is_set_aside_names_the_hosts_with_most_of_it() -> None:
    waits = [Wait("set_aside", 100, names=["trap.test", "*.invented.test"])]
    [found] = problems_of(standing(set_aside=100, waits=waits))
    assert found.evidence.endswith("; most at trap.test, *.invented.test")
    assert found.hosts == ["trap.test"], "a domain has no page of its own"


def test_every_command_that_helps_is_a_command() -> None:
    told = {problem.command for _, changes, _ in CASES for problem in problems_of(standing(**changes))}
    assert {shlex.split(command)[1] for command in told if command} <= {*all_commands()}


def test_status_tells_the_two_worst_and_json_all() -> None:
    now = standing(in_flight=64, set_aside=100, waits=[Wait("network_down")], outcomes={"ok": 80, "server_error": 20})
    now = msgspec.structs.replace(now, problems=problems_of(now))
    text = "\n".join(lines_of(now, 0.0))
    assert "problems: our own network seems to be down (" in text
    assert "gossamer report 'my crawl' errors" in text
    assert "slot" not in text and "traps" not in text.partition("problems")[2]
    assert [one.what for one in msgspec.convert(msgspec.to_builtins(now.problems), list[Problem])] == [
        "network_down",
        "failing",
        "slots",
        "set_aside",
    ]
