"""When a crawl stops of itself."""

import subprocess
import sys

import pytest

from gossamer.engine.processes import resident_with_children
from gossamer.frontier.limits import CrawlTotals, FrontierSheet


def asked(
    limits: FrontierSheet, pages: int = 0, in_flight: int = 0, elapsed: float = 0.0, size: int = 0
) -> tuple[bool, str]:
    """Whether one more request may begin, and the limit that ends the crawl."""
    totals = CrawlTotals(limits)
    totals.begin({"pages": pages, "bytes": size}, 100.0)
    return totals.allows(in_flight, has_work=True, now=100.0 + elapsed), totals.reached


@pytest.mark.parametrize(
    ("limits", "below", "at"),
    [
        (FrontierSheet(max_pages=10), {"pages": 9}, {"pages": 10}),
        (FrontierSheet(max_time=60.0), {"elapsed": 59.9}, {"elapsed": 60.0}),
        (FrontierSheet(total_time=60.0), {"elapsed": 59.9}, {"elapsed": 60.0}),
        (FrontierSheet(max_bytes=100), {"size": 99}, {"size": 100}),
    ],
)
def test_each_limit_ends_the_crawl_by_its_name(
    limits: FrontierSheet, below: dict[str, int], at: dict[str, int]
) -> None:
    assert asked(limits, **below) == (True, "")
    may, reached = asked(limits, **at)
    assert not may and getattr(limits, reached) is not None


def test_a_disk_without_room_ends_the_crawl() -> None:
    assert asked(FrontierSheet(min_free_disk=0)) == (True, "")
    assert asked(FrontierSheet(min_free_disk=1 << 80)) == (False, "min_free_disk")


def test_close_to_the_limit_of_memory_one_page_is_asked_for_at_a_time() -> None:
    used = [290_000_000]
    totals = CrawlTotals(FrontierSheet(memory=300_000_000), used=lambda: used[0])
    totals.begin({}, 0.0)
    assert totals.allows(0, True, 1.0), "a crawl that waited for memory might wait for ever"
    assert not totals.allows(1, True, 1.0) and totals.is_over_memory
    used[0] = 200_000_000
    assert not totals.allows(1, True, 1.1), "memory is not looked at for each page"
    assert totals.allows(1, True, 2.0) and not totals.is_over_memory


def test_memory_of_processes_that_are_begun_counts() -> None:
    child = [sys.executable, "-c", "held = b'x' * 50_000_000; print(flush=True); input()"]
    before = resident_with_children()
    with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        if sys.platform.startswith("linux"):
            assert resident_with_children() - before > 50_000_000
        process.kill()


def test_pages_in_flight_are_reserved() -> None:
    limits = FrontierSheet(max_pages=10)
    assert asked(limits, pages=7, in_flight=2) == (True, "")
    assert asked(limits, pages=7, in_flight=3) == (False, "")


def test_without_limits_nothing_ends_the_crawl() -> None:
    assert asked(FrontierSheet(), pages=10**9, elapsed=1e9, size=10**15) == (True, "")


def test_a_share_of_the_pages_holds_back_and_ends_nothing() -> None:
    limits = FrontierSheet(page_share=10)
    assert asked(limits, pages=7, in_flight=2) == (True, "")
    assert asked(limits, pages=7, in_flight=3) == (False, "")
    assert asked(limits, pages=10) == (False, "")
    assert asked(FrontierSheet(page_share=0)) == (False, "")


def test_an_agent_without_a_lender_waits_when_its_share_of_bytes_is_used_up() -> None:
    limits = FrontierSheet(byte_share=1000)
    assert asked(limits, size=999, in_flight=50) == (True, "")
    assert asked(limits, size=1000) == (False, ""), "the crawl goes on"
    assert asked(FrontierSheet(byte_share=0)) == (False, "")
