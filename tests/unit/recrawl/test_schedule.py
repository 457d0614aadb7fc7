"""The schedule of known pages: no page is forgotten or comes before its time, through kills and groups that fail."""

import itertools
import random
from math import exp, inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.engine.errors import SettingError
from gossamer.recrawl.learning import RATES, SCHEDULE
from gossamer.recrawl.ledger import RevisitLedger, forget_known
from gossamer.recrawl.policies import FixedInterval, FixedIntervalSheet, GreedyPolicy, RevisitSheet
from gossamer.recrawl.schedule import RevisitSchedule
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.clock import FakeClock
from gossamer.values.hosts import DeletionTarget
from gossamer.values.instants import ChangeHint
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import Signals
from gossamer.values.task import REVISIT, Task
from gossamer.values.url import host_of
from gossamer.values.visit import Location, Response, Visit

pytestmark = pytest.mark.stores

EVERY = 1_000.0


class TurnedClock(FakeClock):
    """A clock that a test turns forward."""

    turned = 0.0

    def steady(self) -> float:
        return super().steady() + self.turned

    def turn(self, seconds: float) -> None:
        self.turned += seconds


class Crawl:
    """A ledger with a schedule, crawled as a frontier would, on a clock that stands still."""

    def __init__(self, directory: Path, clock: TurnedClock, *, is_planned: bool = True, rate: float = 1.0) -> None:
        self.clock = clock
        self.store = RocksLedger(LedgerSheet(directory=str(directory)))
        self.store.open()
        self.schedule = RevisitSchedule(RevisitSheet(min_interval=1.0, rate=rate))
        self.schedule.policy = FixedInterval(FixedIntervalSheet(every=EVERY))
        self.schedule.ledger = self.schedule.store = self.store
        self.ledger = RevisitLedger()
        self.ledger.behind, self.ledger.revisits, self.ledger.clock = self.store, self.schedule, clock
        if is_planned:
            self.schedule.open()
        self.into = self.ledger if is_planned else self.store
        self.queues = LedgerFrontier()
        self.queues.ledger = self.store

    def seed(self, *urls: str) -> None:
        with self.into.group() as group:
            group.push(Task(url, host_of(url)) for url in group.offer(urls))

    def wake(self) -> int:
        now = self.clock.steady()
        return self.schedule.wake(now, len(self.queues)) if self.schedule.next_due() <= now else 0

    def pop(self) -> list[Task]:
        found: list[Task] = []
        for state in self.queues.admit(self.clock.steady()):
            while tasks := self.queues.pop(state.host):
                found += tasks
        return found

    def commit(self, task: Task, *, fails: bool = False, digest: str = "D", **more: Any) -> None:
        with self.into.group() as group:
            assert group.visited(Visit(task, Response(Outcome.OK, 200, body=b"x"), digest=digest, **more), None)
            if fails:
                raise RuntimeError("the group fails")


def urls(hosts: int, pages: int) -> list[str]:
    return [f"http://h{host}.test/{page}" for host in range(hosts) for page in range(pages)]


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_page_is_forgotten_and_none_comes_before_its_time_through_kills_and_failures(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance, clock, folder = random.Random(seed), TurnedClock(), tmp_path_factory.mktemp("schedule")
    crawl, all_urls = Crawl(folder, clock), urls(3, 5)
    crawl.seed(*all_urls)
    visited: dict[str, list[float]] = {url: [] for url in all_urls}
    for _ in range(60):
        crawl.wake()
        for task in crawl.pop():
            fate = chance.random()
            if fate < 0.1:
                with pytest.raises(RuntimeError):
                    crawl.commit(task, fails=True)
                crawl.queues.put_back(task)
            elif fate < 0.9:
                crawl.commit(task)
                visited[task.url].append(clock.steady())
            else:
                crawl.queues.put_back(task)
        if chance.random() < 0.2:
            crawl.store.abandon()
            crawl = Crawl(folder, clock)
        clock.turn(chance.choice((0.0, 10.0, 400.0)))
    for _ in range(100):
        crawl.wake()
        for task in crawl.pop():
            crawl.commit(task)
            visited[task.url].append(clock.steady())
        clock.turn(100.0)
    for url, times in visited.items():
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert gaps and min(gaps) >= EVERY, f"{url} came too soon: {gaps}"
        assert times[-1] > clock.steady() - EVERY - 300, f"{url} was forgotten"
    crawl.store.close()


def test_what_waits_for_another_visit_counts_neither_as_queued_nor_as_discovered(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = Crawl(tmp_path, clock)
    crawl.seed(*urls(2, 50))
    for task in crawl.pop():
        crawl.commit(task)
    assert len(crawl.queues) == 0 and crawl.store.counters()["discovered"] == 100
    clock.turn(EVERY)
    assert crawl.wake() == 64, "of each host so many at once"
    assert crawl.store.counters()["discovered"] == 100
    assert all(task.relation == REVISIT for task in crawl.pop())


def test_a_schedule_that_is_not_active_is_kept_and_wakes_nobody(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = Crawl(tmp_path, clock)
    crawl.schedule.sheet = RevisitSheet(is_active=False, min_interval=1.0)
    crawl.seed("http://h0.test/0")
    for task in crawl.pop():
        crawl.commit(task)
    clock.turn(10 * EVERY)
    assert crawl.schedule.next_due() == inf and crawl.schedule.wake(clock.steady(), 0) == 0
    crawl.schedule.sheet = RevisitSheet(min_interval=1.0)
    assert crawl.wake() == 1


def test_pages_that_were_visited_without_a_schedule_are_planned_once(tmp_path: Path) -> None:
    clock = TurnedClock()
    before = Crawl(tmp_path, clock, is_planned=False)
    before.seed(*urls(2, 4))
    for task in before.pop():
        before.commit(task)
    before.store.close()
    for _ in range(2):
        crawl = Crawl(tmp_path, clock)
        while crawl.schedule.next_due() == 0.0:
            crawl.wake()
        assert crawl.store.counters()["revisits:known"] == 8
        crawl.store.close()
    crawl = Crawl(tmp_path, clock)
    assert crawl.schedule.next_due() > 0, "it is known that all are planned"
    crawl.store.close()


def test_new_pages_keep_their_share(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = Crawl(tmp_path, clock, rate=0.25)
    crawl.seed(*urls(1, 20))
    for task in crawl.pop():
        crawl.commit(task)
    crawl.seed(*[f"http://new.test/{n}" for n in range(1_000)])
    clock.turn(EVERY)
    woken = crawl.wake()
    assert 0 < woken <= (20 + 8) * 0.25
    assert crawl.wake() == 0 and crawl.schedule.next_due() > clock.steady(), "nobody asks in vain"


def test_what_is_deleted_is_not_visited_again_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = Crawl(tmp_path, clock)
    crawl.seed(*urls(2, 3))
    for task in crawl.pop():
        crawl.commit(task)
    forget_known(Path(), [crawl.store], DeletionTarget("url", "http://h0.test/1"), [])
    forget_known(Path(), [crawl.store], DeletionTarget("host", "h1.test"), ["h1.test"])
    assert crawl.store.counters()["revisits:known"] == 2
    assert not [key for key, url in crawl.store.spaces.scan(SCHEDULE, "h0.test", b"d") if url.endswith(b"/1")]
    clock.turn(EVERY)
    crawl.wake()
    assert sorted(task.url for task in crawl.pop()) == ["http://h0.test/0", "http://h0.test/2"]


def test_a_page_that_the_crawl_has_lost_is_dropped_when_it_is_due(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = Crawl(tmp_path, clock)
    crawl.seed("http://h0.test/0")
    [task] = crawl.pop()
    with crawl.ledger.group() as group:
        group.visited(Visit(task, Response(Outcome.OK, 200, body=b"x"), digest="D"), None)
    with crawl.store.rewriting() as rewriting:
        rewriting.drop("documents", [rewriting.keys.url(task.url)])
    crawl.schedule.open()
    clock.turn(EVERY)
    while crawl.schedule.next_due() <= clock.steady():
        assert crawl.wake() == 0
    assert crawl.store.counters()["revisits:known"] == 0


def test_what_never_brought_a_document_and_what_is_no_plain_get_is_not_planned(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, TurnedClock())
    crawl.seed("http://h0.test/0")
    [task] = crawl.pop()
    with crawl.ledger.group() as group:
        group.visited(Visit(task, Response(Outcome.CLIENT_ERROR, 404)), None)
    assert crawl.store.counters().get("revisits:known", 0) == 0


def test_bounds_of_a_page_come_before_those_of_its_host_and_these_before_the_crawls(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = Crawl(tmp_path, clock)
    before, crawl.schedule.sheet = (
        crawl.schedule.sheet,
        RevisitSheet(
            min_interval=EVERY,
            max_interval=2 * EVERY,
            intervals=("..100s: path(/0)",),
            min_by_host={"h1.test": 3 * EVERY},
            max_by_host={"*.test": 1.5 * EVERY, "h1.test": 4 * EVERY},
        ),
    )
    crawl.schedule.changed(before)
    crawl.seed(*urls(2, 2))
    for task in crawl.pop():
        crawl.commit(task)
    due = {}
    for step in range(1, 40):
        clock.turn(100.0)
        crawl.wake()
        due |= {task.url: step * 100.0 for task in crawl.pop()}
    assert due == {
        "http://h0.test/0": 100.0,
        "http://h1.test/0": 100.0,
        "http://h0.test/1": EVERY,
        "http://h1.test/1": 3 * EVERY,
    }


def test_bounds_that_cannot_be_read_leave_the_old_ones(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, TurnedClock())
    before, crawl.schedule.sheet = crawl.schedule.sheet, RevisitSheet(intervals=("1h",))
    with pytest.raises(SettingError, match=r"write MIN\.\.MAX: EXPRESSION"):
        crawl.schedule.changed(before)
    crawl.schedule.sheet = before
    crawl.seed(*urls(1, 1))
    for task in crawl.pop():
        crawl.commit(task)
    assert crawl.schedule.next_due() == crawl.clock.steady() + EVERY


def test_the_place_of_the_known_bytes_is_kept_until_other_bytes_come(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, TurnedClock())

    def visit(url: str, offset: int, digest: str, **more: Any) -> Location | None:
        crawl.seed(url)
        task = next(task for task in crawl.pop() if task.url == url)
        with crawl.ledger.group() as group:
            answer = Response(Outcome.NOT_MODIFIED, 304) if not digest else Response(Outcome.OK, 200, body=b"x")
            group.visited(Visit(task, answer, digest=digest, **more), Location("w", offset, 9))
        crawl.clock.turn(EVERY)
        crawl.wake()
        found = crawl.schedule.known(task)
        return found.body_at if found is not None else None

    url, other = urls(2, 1)
    assert [visit(url, *one) for one in ((1, "D"), (2, "D"), (3, ""), (4, "E"))] == [
        *[Location("w", 1, 9)] * 3,
        Location("w", 4, 9),
    ]
    assert visit(other, 5, "E", duplicate_of=url) == Location("w", 4, 9), "the archive keeps the bytes once"


def told(crawl: Crawl, url: str, said: ChangeHint) -> bool:
    with crawl.ledger.group() as group:
        return crawl.schedule.told(group, host_of(url), url, said, crawl.clock.steady())


def adaptive(crawl: Crawl) -> Crawl:
    """The same crawl, with the policy that follows what is learnt."""
    crawl.schedule.policy = GreedyPolicy()
    return crawl


def test_a_page_is_due_at_once_when_a_host_that_is_right_says_that_it_changed(tmp_path: Path) -> None:
    crawl = adaptive(Crawl(tmp_path, TurnedClock()))
    quiet, loud = urls(1, 2)
    crawl.seed(quiet, loud)
    for task in crawl.pop():
        crawl.commit(task)
    with crawl.store.group() as group:
        group.put(RATES, host_of(loud), b"s", msgspec.msgpack.encode(Signals(true=500, false=10, missed=10, worth=9)))
    crawl.clock.turn(2 * 86_400.0)
    assert crawl.wake() == 0
    assert told(crawl, loud, ChangeHint(crawl.clock.steady() - 60))
    assert not told(crawl, loud, ChangeHint(crawl.clock.steady() - 60)), "the same news is no news"
    assert crawl.wake() == 1 and [task.url for task in crawl.pop()] == [loud]


def test_what_is_said_of_the_future_or_of_a_time_before_the_visit_or_of_an_unknown_page_is_no_news(
    tmp_path: Path,
) -> None:
    crawl = adaptive(Crawl(tmp_path, TurnedClock()))
    crawl.clock.turn(1e9)
    [url] = urls(1, 1)
    crawl.seed(url)
    for task in crawl.pop():
        crawl.commit(task)
    now = crawl.clock.steady()
    assert not told(crawl, url, ChangeHint(now - 60)), "it was visited since"
    assert not told(crawl, url, ChangeHint(now + 30 * 86_400.0)), "nobody knows what changes in a month"
    assert not told(crawl, "http://h0.test/unknown", ChangeHint(now + 60))
    assert told(crawl, url, ChangeHint(now + 60)), "clocks may differ a little"


def test_a_host_that_says_all_the_time_that_all_changed_gets_no_more_visits_than_one_that_says_nothing(
    tmp_path: Path,
) -> None:
    crawl = adaptive(Crawl(tmp_path, TurnedClock()))
    all_urls = urls(2, 20)
    crawl.seed(*all_urls)
    visits = {"h0.test": 0, "h1.test": 0}
    for quarter in range(4 * 70):
        crawl.wake()
        for task in crawl.pop():
            crawl.commit(task)
            visits[task.host] += quarter >= 4 * 28  # it has had four weeks to be found out
        for url in all_urls[:20]:
            told(crawl, url, ChangeHint(crawl.clock.steady() - 1))
        crawl.clock.turn(6 * 3_600.0)
    assert visits["h1.test"] > 20 * 4
    assert visits["h0.test"] < 1.5 * visits["h1.test"], visits


def test_the_mean_page_is_visited_once_in_the_mean_interval_and_a_kill_keeps_the_price(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = adaptive(Crawl(tmp_path, clock))
    crawl.seed(*urls(10, 20))
    chance, week = random.Random(1), 7 * 86_400.0
    visits, at = 0, dict[str, float]()
    for step in range(50 * 12):
        crawl.wake()
        for task in crawl.pop():
            rate = (1 + int(task.url.rpartition("/")[2]) ** 2) / 100 / week
            passed, at[task.url] = clock.steady() - at.get(task.url, 0.0), clock.steady()
            is_changed = chance.random() < 1 - exp(-rate * passed)
            crawl.commit(task, digest=f"{step}" if is_changed else "same")
            visits += step >= 50 * 6
        clock.turn(week / 50)
        if step % 97 == 0:
            crawl.store.abandon()
            crawl = adaptive(Crawl(tmp_path, clock))
    assert visits == pytest.approx(200 * 6, rel=0.1)


def test_a_clock_that_jumps_forgets_no_page_and_teaches_nothing(tmp_path: Path) -> None:
    clock = TurnedClock()
    crawl = adaptive(Crawl(tmp_path, clock))
    crawl.seed(*urls(2, 5))
    visited = set[str]()
    for jump in (0.0, 86_400.0, -40 * 86_400.0, 3_650 * 86_400.0, 0.0):
        clock.turn(jump)
        crawl.wake()
        for task in crawl.pop():
            crawl.commit(task)
            visited.add(task.url)
    visited.clear()
    for _ in range(200):
        clock.turn(86_400.0)
        crawl.wake()
        for task in crawl.pop():
            crawl.commit(task)
            visited.add(task.url)
    assert len(visited) == 10, "every page comes within the longest interval"


def test_pages_weigh_by_the_level_at_which_they_waited_and_share_the_visits_of_the_mean_interval(
    tmp_path: Path,
) -> None:
    crawl = adaptive(Crawl(tmp_path, TurnedClock()))
    crawl.schedule.sheet = RevisitSheet(min_interval=1.0, rate=1.0, weighs=True, mean_interval=86_400.0)
    all_urls = urls(2, 20)
    with crawl.into.group() as group:
        group.push(
            Task(url, host_of(url), level=2 if host_of(url) == "h0.test" else 4) for url in group.offer(all_urls)
        )
    visits = {"h0.test": 0, "h1.test": 0}
    for step in range(20 * 10):
        crawl.wake()
        for task in crawl.pop():
            crawl.commit(task, digest=f"{step // 40}")  # all of them change every second day
            visits[task.host] += step >= 20 * 5
        crawl.clock.turn(86_400.0 / 20)
    assert visits["h0.test"] > 1.5 * visits["h1.test"] > 0
    assert sum(visits.values()) == pytest.approx(40 * 5, rel=0.25), "a mean interval of a day"


def test_a_page_whose_visits_bring_new_urls_is_visited_sooner_than_one_that_changes_as_often(tmp_path: Path) -> None:
    crawl = adaptive(Crawl(tmp_path, TurnedClock()))
    all_urls = urls(1, 20)
    crawl.seed(*all_urls)
    visits = dict.fromkeys(all_urls, 0)
    for step in range(4 * 60):
        crawl.wake()
        for task in crawl.pop():
            found = (Task(f"http://h0.test/new/{step}", "h0.test"),) if task.url == all_urls[0] else ()
            crawl.commit(task, digest=f"{step // 8}", new=found * 4)
            visits[task.url] += 1
        crawl.clock.turn(6 * 3_600.0)
    others = [visits[url] for url in all_urls[1:]]
    assert visits[all_urls[0]] > 1.3 * max(others) > 0


def test_a_host_is_not_believed_of_the_pages_of_another(tmp_path: Path) -> None:
    crawl = adaptive(Crawl(tmp_path, TurnedClock()))
    ours, theirs = "http://h0.test/feed", "http://h1.test/0"
    crawl.seed(ours, theirs)
    for task in sorted(crawl.pop(), key=lambda task: task.host, reverse=True):
        crawl.clock.turn(60.0)
        news = ((theirs, ChangeHint(crawl.clock.steady())),) if task.url == ours else ()
        crawl.commit(task, said=news)
    assert crawl.store.counters().get("revisits:signalled", 0) == 0
