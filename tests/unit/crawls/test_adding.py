"""Several agents' standings as one."""

from pathlib import Path

from gossamer.crawls.control.at_rest import added_standing
from gossamer.crawls.control.at_work import time_left_of
from gossamer.crawls.control.standing import (
    ConnectorFigures,
    CrawlStanding,
    FailingHost,
    SlowedHost,
    SlowHost,
    UnitFigures,
)
from gossamer.crawls.control.waits import DataSet, Wait
from gossamer.frontier.limits import FrontierSheet, RetriesWaiting

WHERE = Path("crawl")


def test_a_crawl_of_which_no_agent_has_begun_was_killed() -> None:
    assert added_standing(WHERE, []) == CrawlStanding("crawl", "killed")


def test_what_agents_counted_is_added_up_and_what_is_the_crawls_is_taken_once() -> None:
    one = CrawlStanding(
        "x",
        "running",
        pages=3,
        in_flight=2,
        hosts=1,
        busy=0.5,
        seconds=7.0,
        recent_pages_per_second=1.5,
        outcomes={"ok": 3, "redirect": 1},
        failing=[FailingHost("a.test", 4)],
        slowest=[SlowHost("a.test", 0.2)],
        slowed=[SlowedHost("a.test", 2.0, "errors")],
        sizes=[DataSet("seen", 10, 1.0, 5), DataSet("tables", 100)],
        checkpoints=["both", "one"],
        blocked=["x.test"],
        waiting=RetriesWaiting(2, "2026-01-02T00:00:00Z", {"a.test": "timed_out"}),
        units=[UnitFigures("commit", "commit", {"groups": 2.0})],
        connectors=[ConnectorFigures("tasks", 5, 1, 3, 0.5)],
    )
    other = CrawlStanding(
        "x",
        "running",
        pages=4,
        in_flight=1,
        hosts=2,
        busy=0.9,
        seconds=6.0,
        recent_pages_per_second=2.0,
        outcomes={"ok": 4},
        failing=[FailingHost("b.test", 9)],
        slowest=[SlowHost("b.test", 0.9)],
        sizes=[DataSet("seen", 20, 2.0, 6), DataSet("tables", 100)],
        checkpoints=["both"],
        suspended=["fetch"],
        waiting=RetriesWaiting(1, "2026-01-01T00:00:00Z", {"b.test": "dns_failed"}),
        units=[UnitFigures("commit", "commit", {"groups": 3.0, "waits": 1.0})],
        connectors=[ConnectorFigures("tasks", 6, 0, 9, 0.0)],
    )
    now = added_standing(WHERE, [one, other])
    assert (now.crawl, now.pages, now.in_flight, now.hosts, now.busy, now.seconds) == ("crawl", 7, 3, 3, 0.9, 7.0)
    assert now.recent_pages_per_second == 3.5
    assert now.outcomes == {"ok": 7, "redirect": 1}
    assert [one.host for one in now.failing] == ["b.test", "a.test"]
    assert [one.host for one in now.slowest] == ["b.test", "a.test"]
    assert now.slowed == one.slowed
    assert now.sizes == [DataSet("seen", 30, 3.0, 11), DataSet("tables", 100)], "tables are looked at by both"
    assert (now.checkpoints, now.blocked, now.suspended) == (["both"], ["x.test"], ["fetch"])
    assert now.waiting == RetriesWaiting(3, "2026-01-01T00:00:00Z", {"a.test": "timed_out", "b.test": "dns_failed"})
    assert now.units == [UnitFigures("commit", "commit", {"groups": 5.0, "waits": 1.0})]
    assert now.connectors == [ConnectorFigures("tasks", 11, 1, 9, 0.5)]


def test_a_reason_to_wait_is_told_once_for_all_agents() -> None:
    parts = [
        CrawlStanding("x", "running", waits=[Wait("retries", 3, 1, 50.0, ["a.test"]), Wait("set_aside", urls=7)]),
        CrawlStanding("x", "running", waits=[Wait("retries", 2, 1, 40.0, ["b.test"], is_more=True), Wait("paused")]),
    ]
    assert added_standing(WHERE, parts).waits == [
        Wait("retries", 5, 2, 40.0, ["a.test", "b.test"], is_more=True),
        Wait("set_aside", urls=7),
        Wait("paused"),
    ]


def test_the_time_that_is_left_is_counted_from_when_the_crawl_began_not_one_of_its_agents() -> None:
    now = CrawlStanding("c", "running", seconds=160.0, pages=900, pages_per_second=5.0)
    assert time_left_of(FrontierSheet(max_time=170.0), now) == "10.0 s"
    assert time_left_of(FrontierSheet(max_time=170.0, max_pages=910), now) == "2.0 s"
    assert time_left_of(FrontierSheet(max_time=100.0), now) == "0.0 s"
    assert time_left_of(FrontierSheet(), now) == ""
