"""Speed, growth and slow pages of the last seconds, on a clock that is turned by hand."""

import asyncio
from collections.abc import Mapping

import pytest

from gossamer.crawls.figures import SLOW, WATCHED, Counts, Pulse
from gossamer.testing import FakeClock


class Source:
    """What a crawl would tell."""

    def __init__(self) -> None:
        self.pages = 0
        self.flights: list[str] = []
        self.bytes = 0
        self.surveys = 0
        self.cpu = 100.0

    def count(self) -> Counts:
        return Counts(self.pages, 2 * self.pages, self.flights, self.cpu)

    def measure(self) -> Mapping[str, int]:
        return {"archive": self.bytes}

    def survey(self) -> Mapping[str, int]:
        self.surveys += 1
        return {"tables": 7}


def pulse_of(source: Source, clock: FakeClock) -> Pulse:
    return Pulse(source.count, source.measure, source.survey, clock)


async def beats(pulse: Pulse, clock: FakeClock, number: int) -> None:
    for _ in range(number):
        pulse.beat()
        await clock.advance(1.0)


def test_how_busy_a_process_is_is_told_of_the_last_ten_seconds() -> None:
    async def story() -> list[float]:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        found = [pulse.busy]
        for _ in range(30):
            await beats(pulse, clock, 1)
            source.cpu += 0.5
        found.append(pulse.busy)
        await beats(pulse, clock, 12)
        return [*found, pulse.busy]

    before, working, idle = asyncio.run(story())
    assert (before, working) == (0.0, pytest.approx(0.5))
    assert idle == 0.0


def test_the_speed_is_that_of_the_last_ten_seconds_and_not_the_mean() -> None:
    async def story() -> list[tuple[float, float]]:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        found = [pulse.speeds]
        source.pages = 1_000
        for _ in range(30):
            source.pages += 5
            await beats(pulse, clock, 1)
        found.append(pulse.speeds)
        await beats(pulse, clock, 11)
        return [*found, pulse.speeds]

    before, steady, stalled = asyncio.run(story())
    assert before == (0.0, 0.0)
    assert steady == pytest.approx((5.0, 10.0), rel=0.15)
    assert stalled == (0.0, 0.0)


def test_a_page_that_stays_under_way_is_told_as_slow_and_others_are_not() -> None:
    async def story() -> tuple[list[str], list[str], float]:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        for second in range(round(SLOW) + 5):
            source.flights = ["http://a.test/stalls\nGET - rendered", f"http://a.test/{second}"]
            await beats(pulse, clock, 1)
        slow = pulse.slow_pages
        source.flights = []
        await beats(pulse, clock, 1)
        return [page.url for page in slow], [page.url for page in pulse.slow_pages], slow[0].seconds

    slow, after, seconds = asyncio.run(story())
    assert slow == ["http://a.test/stalls"]
    assert SLOW <= seconds <= SLOW + 5
    assert after == []


def test_growth_is_told_in_bytes_a_second() -> None:
    async def story() -> tuple[Mapping[str, float], Mapping[str, float]]:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        await beats(pulse, clock, 1)
        first = pulse.growth
        for _ in range(120):
            source.bytes += 300
            await beats(pulse, clock, 1)
        return first, pulse.growth

    first, later = asyncio.run(story())
    assert first == {}
    assert later == {"archive": 300.0}


def test_a_size_is_that_of_the_moment_it_is_asked_for() -> None:
    async def story() -> Mapping[str, int]:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        await beats(pulse, clock, 1)
        source.bytes = 300
        return pulse.sizes

    assert asyncio.run(story()) == {"archive": 300}


def test_directories_are_looked_at_once_a_minute_whoever_reads_the_sizes() -> None:
    async def story() -> tuple[int, Mapping[str, int]]:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        async with pulse.beating():
            for _ in range(130):
                await clock.advance(1.0)
                while not clock.asleep:
                    await asyncio.sleep(0)
                await asyncio.sleep(0.001)  # the look happens in a thread
                assert pulse.sizes["archive"] == 0
        return source.surveys, pulse.sizes

    surveys, sizes = asyncio.run(story())
    assert surveys in (2, 3)
    assert sizes == {"archive": 0, "tables": 7}


def test_what_is_remembered_does_not_grow_with_the_crawl() -> None:
    async def story() -> str:
        clock, source = FakeClock(), Source()
        pulse = pulse_of(source, clock)
        for second in range(500):
            source.flights = [f"http://a.test/{second}/{number}" for number in range(WATCHED)]
            await beats(pulse, clock, 1)
        return repr(pulse)

    assert asyncio.run(story()) == f"<Pulse of 11 samples, {WATCHED} pages watched>"
