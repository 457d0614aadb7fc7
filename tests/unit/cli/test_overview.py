"""The overview on a terminal: the numbers of `status`, in the width that there is, and nothing that a terminal would obey."""

import pytest
from rich.cells import cell_len

from gossamer.cli.status import BARS, overview
from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.control.standing import (
    AgentStanding,
    CrawlStanding,
    FailingHost,
    MasterStanding,
    SlowedHost,
    SlowHost,
    agent_standing,
)
from gossamer.crawls.control.waits import Wait


def standing(name: str = "mycrawl") -> CrawlStanding:
    now = CrawlStanding(
        name,
        "running",
        pages=1_234,
        fetched=2_000,
        unique_documents=1_200,
        outcomes={"ok": 1_500, "server_error": 500},
        errors=500,
        failing=[FailingHost("bad.test", 499)],
        discovered=9_000,
        queued=7_000,
        in_flight=64,
        concurrency=64,
        links=50_000,
        new_links=9_000,
        hosts=12,
        process=7,
        each_agent=[
            AgentStanding("agent-00", "running", process=8, pages=1_000, queued=7_000),
            agent_standing("agent-01", None),
            AgentStanding("agent-02", "running", node="oslo"),
        ],
        each_master=[
            MasterStanding("master-00", "running", process=9, marshaled=5_000, waiting=20, lag=3.0),
            MasterStanding("master-01", "gone"),
        ],
        recent_pages_per_second=12.5,
        disk_free=10**11,
        waits=[Wait("unreachable", hosts=1, names=["bad.test"])],
        slowest=[SlowHost("slow.test", 9.0)],
        slowed=[SlowedHost("bad.test", 60.0, "errors")],
        blocked=["no.test"],
    )
    return CrawlStanding(**{**{f: getattr(now, f) for f in now.__struct_fields__}, "problems": problems_of(now)})


def shown(now: CrawlStanding, width: int = 200, speeds: tuple[float, ...] = ()) -> list[str]:
    return [line.plain for line in overview(now, speeds, width, 0.0)]


def test_the_overview_has_the_numbers_of_status_and_the_problems_with_what_helps() -> None:
    text = "\n".join(shown(standing()))
    for words in (
        "1,234",
        "12.5 pages/s",
        "7,000 of 9,000 discovered",
        "64 of 64 slots",
        "18% of 50,000 links new",
        "agent-00: running, 1,000 pages, 7,000 queued",
        "agent-01: silent",
        "agent-02 on oslo: running",
        "master-00: running, 5,000 URLs marshaled, 20 waiting, an agent is 3.0 s late",
        "master-01: gone",
        "500 server_error",
        "no.test",
    ):
        assert words in text
    assert text.index("bad.test fails") < text.index("every slot")
    assert "$ gossamer block mycrawl bad.test" in text


@pytest.mark.parametrize("width", [1, 10, 20, 40, 79, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = shown(standing("字" * 40), width, tuple(map(float, range(500))))
    assert lines
    assert max(map(cell_len, lines)) <= width


def test_the_speed_over_time_is_drawn_from_nothing_to_the_most() -> None:
    [plot] = [line for line in shown(standing(), speeds=(0.0, 4.0, 8.0)) if line.startswith("pages/s")]
    assert f"{BARS[0]}{BARS[4]}{BARS[8]} 8.0" in plot


def test_a_crawl_without_problems_says_so() -> None:
    assert "problems  none" in shown(CrawlStanding("c", "finished"))


def test_nothing_that_a_terminal_obeys_is_written() -> None:
    text = "".join(shown(standing("evil\x1b[2J\u202e[bold]name")))
    assert "\x1b" not in text and "\u202e" not in text
    assert "[bold]name" in text
