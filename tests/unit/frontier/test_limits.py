"""When a crawl stops of itself."""

import pytest

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
