"""When a crawl ends by itself: the frontier with its ledger and politeness, on a clock of the test's own."""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.limits import FrontierSheet, RetriesWaiting
from gossamer.frontier.order import BreadthFirst
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.frontier.robots.provider import IgnoreRobots
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.storage.ledger.store import RocksStore
from gossamer.storage.seen.memory import MemoryFlights
from gossamer.testing.clock import FakeClock
from gossamer.testing.components import Stand
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Answer, Arrived, Committed, Disposition, Task
from gossamer.values.url import host_of

pytestmark = pytest.mark.stores

HOUR = 3600.0

#: What a host says to its request number so and so (from 0).
Says = Callable[[str, int], Answer]


class Everything:
    """A seen set that has seen nothing, and a resolver that refuses nobody."""

    def offer(self, urls: Sequence[str]) -> list[str]:
        return list(urls)

    def judge(self, host: str, port: int) -> None:
        return None


class SoonCrowded(Frontier):
    """For it, four hosts are very many."""

    crowded = 3


class Ring:
    """Fetches and commits what a frontier hands out: what each host says, after so many seconds."""

    def __init__(
        self,
        folder: Path,
        says: Says,
        linger: Any = "forever",
        step: float = 60.0,
        kind: type[Frontier] = Frontier,
        ledger: RocksLedger | None = None,
        **settings: Any,
    ) -> None:
        self.step = step
        self.clock = FakeClock()
        self.says = says
        self.asked: dict[str, int] = {}
        self.urls: list[str] = []
        self.ledger = ledger or RocksLedger(LedgerSheet(directory=str(folder)))
        self.ledger.open()
        self.politeness = HostPoliteness(PolitenessSheet(delay=0.0, **settings))
        self.frontier = kind(FrontierSheet(proxied=True, linger=linger))
        queues = LedgerFrontier()
        queues.ledger = self.ledger
        given = {"ledger": self.ledger, "queues": queues, "seen": Everything(), "resolver": Everything(), "gates": {}}
        given |= {"politeness": self.politeness, "robots": IgnoreRobots(), "traversal": BreadthFirst()}
        for name, provider in {**given, "flights": MemoryFlights()}.items():
            setattr(self.frontier, name, provider)
        self.frontier.clock = self.politeness.clock = self.clock
        self.unfinished = 0

    async def crawl(self, seeds: Sequence[str | Task], at_most: float) -> float:
        """Seconds until the frontier ends by itself; fails where it has not after so many."""
        under_way: list[tuple[float, int, Task, Answer]] = []
        order = count()
        async with Stand(self.frontier) as stand:
            await stand.give(
                "seeds", *(seed if isinstance(seed, Task) else Task(seed, host_of(seed)) for seed in seeds)
            )
            stand.end("seeds")
            while not self.frontier.finished:
                for task in await stand.made("tasks"):
                    number = self.asked[task.host] = self.asked.get(task.host, -1) + 1
                    self.urls.append(task.url)
                    answer = self.says(task.host, number)
                    answer = Answer(task.url, task.host, answer.outcome, answer.elapsed, is_met=answer.is_met)
                    ends = self.clock.monotonic() + answer.elapsed
                    heapq.heappush(under_way, (ends, next(order), task, answer))
                now = self.clock.monotonic()
                assert now < at_most, f"still at it after {now:g} s: {self.politeness.schedule.crawl.network}"
                await self.clock.advance(max(0.0, min([now + self.step, *(ends for ends, *_ in under_way[:1])]) - now))
                while under_way and under_way[0][0] <= self.clock.monotonic():
                    await self._commit(stand, *heapq.heappop(under_way)[2:])
                await stand.settle()
            stand.end("answers", "committed")
            await stand.wait()
        await asyncio.sleep(0)  # the alarm goes
        self.unfinished = self.ledger.queues.marks.unfinished
        self.ledger.abandon()
        return self.clock.monotonic()

    async def answer(self, stand: Stand, task: Task) -> None:
        """Fetch and commit one task at once."""
        said = self.says(task.host, 0)
        await self._commit(stand, task, Answer(task.url, task.host, said.outcome, said.elapsed, is_met=said.is_met))

    async def _commit(self, stand: Stand, task: Task, answer: Answer) -> None:
        await stand.give("answers", answer)
        ruling = self.politeness.ruling(answer)
        is_kept = ruling.what is Disposition.KEEP
        if not is_kept:
            with self.ledger.group() as group:
                group.done(task.url)
                if ruling.what is Disposition.RETRY:
                    again = msgspec.structs.replace(task, attempt=task.attempt + 1)
                    group.later(again, self.clock.steady() + ruling.wait)
        await stand.give("committed", Committed(task, answer.outcome, is_kept=is_kept))


def well_then(outcome: Outcome, elapsed: float, *, is_met: bool = False) -> Says:
    """A first page that comes; what follows ends like this. `alive.test` always answers."""

    def says(host: str, number: int) -> Answer:
        if host == "alive.test" or number == 0:
            return Answer("", host, Outcome.OK, 0.1, is_met=True)
        return Answer("", host, outcome, elapsed, is_met=is_met)

    return says


def dead(elapsed: float = 10.0, more: float = 0.0) -> Says:
    """Nobody but `alive.test` lets anybody in; each host keeps us waiting by `more` seconds longer than the one before."""

    def says(host: str, number: int) -> Answer:
        if host == "alive.test":
            return Answer("", host, Outcome.OK, 0.1)
        return Answer("", host, Outcome.CONNECT_FAILED, elapsed + more * int(host[1:].partition(".")[0]))

    return says


def pages(hosts: int, of_each: int) -> list[str]:
    return ["http://alive.test/", *(f"http://h{host}.test/{page}" for page in range(of_each) for host in range(hosts))]


def test_a_crawl_ends_whose_hosts_rested_before_they_were_spent(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, dead(), kind=SoonCrowded, retries=(600.0,))
    run(ring.crawl(pages(12, 7), at_most=HOUR))
    assert ring.unfinished == 12 * 7
    assert {ring.asked[f"h{host}.test"] for host in range(12)} == {5}, (
        "six tries of each, from 0: five strikes, one probe"
    )


def test_hosts_that_rest_with_chances_left_are_waited_for(run: Any, tmp_path: Path) -> None:

    def says(host: str, number: int) -> Answer:
        return Answer("", host, Outcome.CONNECT_FAILED if 0 <= number < 5 and host != "alive.test" else Outcome.OK, 1.0)

    ring = Ring(tmp_path, says, kind=SoonCrowded, retries=(600.0,))
    assert run(ring.crawl(pages(12, 7), at_most=HOUR)) > 600.0
    assert ring.unfinished == 0


def test_probes_of_hosts_that_were_given_their_chances_keep_no_crawl_alive(run: Any, tmp_path: Path) -> None:
    # Each takes an hour: of a dozen hosts some are always asked, as some of thousands are that take ten seconds.
    ring = Ring(tmp_path, dead(elapsed=HOUR, more=300.0), retries=(60.0,))
    run(ring.crawl(pages(12, 30), at_most=14 * HOUR))
    assert ring.unfinished == 12 * 30


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.TOO_SLOW, Outcome.CONNECT_FAILED])
def test_a_crawl_of_hosts_that_let_us_in_and_stall_ends(run: Any, tmp_path: Path, outcome: Outcome) -> None:
    ring = Ring(tmp_path, well_then(outcome, 30.0, is_met=True), retries=())
    run(ring.crawl(pages(20, 12), at_most=HOUR))
    assert not ring.politeness.schedule.crawl.network.is_down


def broken_page(host: str, number: int) -> Answer:
    """A site whose page number 3 is broken."""
    return Answer("", host, Outcome.SERVER_ERROR if number == 3 or number >= 39 else Outcome.OK, 0.1, is_met=True)


SITE = [f"http://a.test/{page}" for page in range(39)]


def test_a_site_with_one_broken_page_ends_after_the_first_retry(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, broken_page, linger=30.0, step=1.0)
    seconds = run(ring.crawl(SITE, at_most=HOUR))
    assert seconds < 120.0 and len(ring.urls) == 40 and ring.unfinished == 1
    assert ring.frontier.termination.has_lingered


def test_a_crawl_that_lingers_for_ever_gives_every_retry_its_time(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, broken_page, linger="forever")
    seconds = run(ring.crawl(SITE, at_most=3 * HOUR))
    assert seconds > 4200.0 and len(ring.urls) == 42 and ring.unfinished == 0


def test_linger_0s_does_what_is_due(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, broken_page, linger=0.0, step=0.2)
    run(ring.crawl(SITE, at_most=HOUR))
    assert len(ring.urls) == 39 and ring.unfinished == 1


def test_what_waits_is_told_with_the_next_instant_and_the_reason(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, broken_page, linger=0.0, step=0.2)
    told: list[object] = []
    finish = ring.frontier.finish
    ring.frontier.finish = lambda: (told.append(ring.frontier.termination.waiting()), finish())[1]  # type: ignore[method-assign]
    run(ring.crawl(SITE, at_most=HOUR))
    waiting = told[0]
    assert isinstance(waiting, RetriesWaiting)
    assert waiting.urls == 1 and waiting.hosts == {"http://a.test": "server_error"} and waiting.next.endswith("Z")


def test_a_long_delay_of_a_host_is_no_retry(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, lambda host, number: Answer("", host, Outcome.OK, 0.1, is_met=True), linger=0.0, floor=600.0)
    ring.politeness.pace("a.test", 600.0)
    assert run(ring.crawl(SITE[:4], at_most=HOUR)) > 1800.0
    assert ring.unfinished == 0


def test_a_dead_host_beside_a_live_one_does_not_keep_the_crawl_alive(run: Any, tmp_path: Path) -> None:
    ring = Ring(tmp_path, dead(elapsed=0.1), linger=30.0, step=1.0)
    assert run(ring.crawl(pages(1, 3), at_most=HOUR)) < 200.0
    assert ring.unfinished == 3


def test_one_dead_port_does_not_throw_away_a_good_seed(run: Any, tmp_path: Path) -> None:
    class Ports(Ring):
        async def _commit(self, stand: Stand, task: Task, answer: Answer) -> None:
            is_dead = ":8999" in task.url
            outcome = Outcome.CONNECT_FAILED if is_dead else Outcome.OK
            await super()._commit(stand, task, Answer(task.url, task.host, outcome, 0.1, is_met=not is_dead))

    seeds = [f"http://127.0.0.1:8999/{page}" for page in range(40)] + [f"http://127.0.0.1:8901/{n}" for n in "abc"]
    ring = Ports(tmp_path, lambda host, number: Answer("", host, Outcome.OK, 0.1), linger=30.0, step=1.0)
    assert run(ring.crawl(seeds, at_most=HOUR)) < 300.0
    assert {url for url in ring.urls if ":8901" in url} == set(seeds[40:])
    assert ring.unfinished == 40
    assert len([url for url in ring.urls if ":8999" in url]) < 10, "five strikes and a probe"


@pytest.mark.parametrize("durability", ["kill", "power"])
def test_what_may_not_be_sent_twice_is_synced_once_in_its_round_before_it_leaves(
    durability: Literal["kill", "power"], run: Any, tmp_path: Path
) -> None:
    synced: list[int] = []
    synced_when_asked: list[int] = []

    class CountingStore(RocksStore):
        def sync(self) -> None:
            synced.append(1)
            super().sync()

    class CountingLedger(RocksLedger):
        store_type = CountingStore

    def says(host: str, number: int) -> Answer:
        synced_when_asked.append(len(synced))
        return Answer("", host, Outcome.OK, 0.1, is_met=True)

    ledger = CountingLedger(LedgerSheet(directory=str(tmp_path), durability=durability))
    ring = Ring(tmp_path, says, ledger=ledger)
    hosts = [f"h{number}.test" for number in range(3)]
    posts = [Task(f"http://{host}/", host, request=requested("POST", b"1")) for host in hosts]
    run(ring.crawl(posts, at_most=100.0))
    before = synced_when_asked[0] - 1
    assert synced_when_asked == [before + 1] * len(posts), "all of a round wait for the disk together"


def test_an_agent_does_not_end_while_others_may_bring_urls_but_says_that_it_is_at_rest(
    tmp_path: Path, run: Any
) -> None:
    async def agent() -> None:
        ring = Ring(tmp_path, well_then(Outcome.OK, 0.1))
        frontier = ring.frontier
        async with Stand(frontier, bound=("arrived",)) as stand:
            await stand.give("seeds", Task("http://a.test/", "a.test"))
            assert not frontier.termination.is_at_rest(), "seeds may come"
            stand.end("seeds")
            [task] = await stand.made("tasks")
            assert not frontier.termination.is_at_rest(), "a task is under way"
            await ring.answer(stand, task)
            assert (frontier.termination.is_at_rest(), frontier.finished) == (True, False)
            with ring.ledger.group() as group:
                group.push([Task("http://b.test/", "b.test")])
            await stand.give("arrived", Arrived(1))
            assert not frontier.termination.is_at_rest()
            [task] = await stand.made("tasks")
            assert task.url == "http://b.test/"
            await ring.answer(stand, task)
            stand.end("arrived")
            await stand.settle()
            assert frontier.finished, "nobody brings anything any more"
            stand.end("answers", "committed")
            await stand.wait()
        await asyncio.sleep(0)
        ring.ledger.abandon()

    run(agent())


def test_an_agent_whose_hosts_all_wait_leaves_its_pages_to_others(tmp_path: Path, run: Any) -> None:
    async def agent() -> None:
        ring = Ring(tmp_path, well_then(Outcome.OK, 0.1))
        frontier = ring.frontier
        async with Stand(frontier, bound=("arrived",)) as stand:
            before, frontier.sheet = frontier.sheet, msgspec.structs.replace(frontier.sheet, page_share=2)
            frontier.changed(before)
            ring.politeness.slow("a.test", 60.0)
            await stand.give("seeds", *(Task(f"http://a.test/{number}", "a.test") for number in range(3)))
            [task] = await stand.made("tasks")
            wants = [frontier.wants_pages]  # a host is being asked
            await ring.answer(stand, task)
            wants.append(frontier.wants_pages)  # another agent may use it until the host may be asked again
            await stand.give("seeds", Task("http://b.test/", "b.test"))
            wants.append(frontier.wants_pages)
            await ring.clock.advance(60.0)
            wants.append(frontier.wants_pages)
            assert wants == [True, False, True, True]
            stand.end("seeds")
            for _ in range(2):
                for task in await stand.made("tasks"):
                    await ring.answer(stand, task)
            frontier.drain()
            stand.end("answers", "committed", "arrived")
            await stand.wait()
        await asyncio.sleep(0)  # the alarm goes
        ring.ledger.abandon()

    run(agent())


def test_an_agent_without_a_page_left_of_its_share_waits_for_more_and_is_not_at_rest(tmp_path: Path, run: Any) -> None:
    async def agent() -> None:
        ring = Ring(tmp_path, well_then(Outcome.OK, 0.1))
        frontier = ring.frontier
        async with Stand(frontier, bound=("arrived",)) as stand:
            before, frontier.sheet = frontier.sheet, msgspec.structs.replace(frontier.sheet, page_share=0)
            frontier.changed(before)
            assert not frontier.wants_pages, "there is nothing to fetch"
            await stand.give("seeds", Task("http://a.test/", "a.test"), Task("http://b.test/", "b.test"))
            stand.end("seeds")
            assert await stand.made("tasks") == []
            assert (frontier.wants_pages, frontier.termination.is_at_rest(), frontier.finished) == (True, False, False)
            before, frontier.sheet = frontier.sheet, msgspec.structs.replace(frontier.sheet, page_share=500)
            frontier.changed(before)
            for _ in range(2):
                for task in await stand.made("tasks"):
                    await ring.answer(stand, task)
            assert (frontier.wants_pages, frontier.termination.is_at_rest(), frontier.finished) == (False, True, False)
            frontier.drain()
            stand.end("answers", "committed", "arrived")
            await stand.wait()
        await asyncio.sleep(0)  # the alarm goes
        ring.ledger.abandon()

    run(agent())
