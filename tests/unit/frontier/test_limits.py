"""When a crawl stops of itself."""

import pytest

from gossamer.frontier.limits import CrawlLimits, Progress, may_hand_out, reached


@pytest.mark.parametrize(
    ("limits", "below", "at"),
    [
        (CrawlLimits(max_pages=10), Progress(pages=9), Progress(pages=10)),
        (CrawlLimits(max_time=60.0), Progress(elapsed=59.9), Progress(elapsed=60.0)),
        (CrawlLimits(max_bytes=100), Progress(bytes=99), Progress(bytes=100)),
        (CrawlLimits(min_free_disk=100), Progress(free_disk=100), Progress(free_disk=99)),
    ],
)
def test_each_limit_ends_the_crawl_by_its_name(limits: CrawlLimits, below: Progress, at: Progress) -> None:
    assert reached(limits, below) == ""
    assert may_hand_out(limits, below)
    assert getattr(limits, reached(limits, at)) is not None
    assert not may_hand_out(limits, at)


def test_pages_in_flight_are_reserved() -> None:
    limits = CrawlLimits(max_pages=10)
    assert may_hand_out(limits, Progress(pages=7, in_flight=2))
    assert not may_hand_out(limits, Progress(pages=7, in_flight=3))
    assert reached(limits, Progress(pages=7, in_flight=3)) == ""


def test_without_limits_nothing_ends_the_crawl() -> None:
    assert reached(CrawlLimits(), Progress(pages=10**9, elapsed=1e9, bytes=10**15, free_disk=0)) == ""


def test_a_disk_that_cannot_be_asked_does_not_end_the_crawl() -> None:
    assert reached(CrawlLimits(min_free_disk=100), Progress()) == ""


def test_a_share_of_the_pages_holds_back_and_ends_nothing() -> None:
    limits = CrawlLimits(page_share=10)
    assert may_hand_out(limits, Progress(pages=7, in_flight=2))
    assert not may_hand_out(limits, Progress(pages=7, in_flight=3))
    assert reached(limits, Progress(pages=10)) == ""
    assert not may_hand_out(CrawlLimits(page_share=0), Progress())


def test_an_agent_without_a_lender_waits_when_its_share_of_bytes_is_used_up() -> None:
    limits = CrawlLimits(byte_share=1000)
    assert may_hand_out(limits, Progress(bytes=999, in_flight=50))
    assert not may_hand_out(limits, Progress(bytes=1000))
    assert not may_hand_out(CrawlLimits(byte_share=0), Progress())
    assert not reached(limits, Progress(bytes=1000)), "the crawl goes on"
