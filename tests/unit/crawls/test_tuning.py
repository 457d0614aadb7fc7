"""The collector of a program looks seldom while a crawl of it runs, and as before when it has ended."""

import gc
from collections.abc import Iterator

import pytest

import gossamer
from gossamer.crawls.machine import COLLECT_AFTER, collecting_seldom
from gossamer.testing.fakeweb import FakeWeb


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_the_collector_looks_seldom_while_any_crawl_runs_and_then_as_before() -> None:
    gc.set_threshold(700, 10, 10)
    with collecting_seldom():
        with collecting_seldom():
            assert gc.get_threshold()[0] == COLLECT_AFTER
        assert gc.get_threshold()[0] == COLLECT_AFTER
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (10 * COLLECT_AFTER, 5, 5)])
def test_a_program_that_looks_more_seldom_or_never_keeps_that(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with collecting_seldom():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_a_program_says_while_a_crawl_runs_holds() -> None:
    gc.set_threshold(700, 10, 10)
    with collecting_seldom():
        gc.set_threshold(1000, 9, 9)
    assert gc.get_threshold() == (1000, 9, 9)


def test_a_spider_and_a_loop_over_pages_look_seldom_and_leave_it_as_it_was() -> None:
    gc.set_threshold(700, 10, 10)
    seen = []
    with FakeWeb({"/": "x"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)
        spider.page()(lambda page: seen.append(gc.get_threshold()[0]))
        spider.run()
        assert gc.get_threshold() == (700, 10, 10)
        seen.extend(gc.get_threshold()[0] for _ in gossamer.crawl_sync(web.url("/"), delay=0))
    assert seen == [COLLECT_AFTER, COLLECT_AFTER] and gc.get_threshold() == (700, 10, 10)
