"""Whose turn it is, and a simulated crawl whose every gap is audited."""

import heapq
import random
from collections import Counter
from math import inf

import pytest
from tests.polite import Polite

from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.places import Place
from gossamer.frontier.politeness.rules import LayerRules, Share
from gossamer.frontier.politeness.schedule import FrontQueues, Schedule
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer


def answer(host: str, outcome: Outcome = Outcome.OK, elapsed: float = 0.05) -> Answer:
    return Answer(url=f"http://{host}/", host=host, outcome=outcome, elapsed=elapsed)


class CountingSchedule(Schedule):
    """Counts how often it looks at a host."""

    looks = 0

    def blocker(self, host: str, domain: str, address: str) -> tuple[float, Place | None]:
        self.looks += 1
        return super().blocker(host, domain, address)


def fresh(rules: LayerRules | None = None, seed: int = 1) -> Polite:
    return Polite(rules, schedule=CountingSchedule, draw=random.Random(seed).random)


class Crawl:
    """A crawl without a network: every host has so many pages, takes so long to answer, and nothing is skipped."""

    def __init__(self, polite: Polite, pages: dict[str, int], concurrency: int = 64) -> None:
        self.polite = polite
        self.schedule = polite.schedule
        self.pages = pages
        self.concurrency = concurrency
        self.now = 0.0
        self.log: list[tuple[float, float, str, str, str, float]] = []
        """Start, end, host, domain, address, and the delay that was due before the start."""

    @property
    def looks(self) -> int:
        """Looks at a host, `begin` included."""
        assert isinstance(self.schedule, CountingSchedule)
        return self.schedule.looks

    def domain(self, host: str) -> str:
        return host.partition(".")[2]

    def address(self, host: str) -> str:
        return ""

    def latency(self, host: str) -> float:
        return 0.05

    def run(self) -> None:
        for host in self.pages:
            self.schedule.put(host, self.domain(host), self.address(host))
        flights: list[tuple[float, float, str, str, float]] = []
        while True:
            wait = inf
            while len(flights) < self.concurrency:
                turn = self.schedule.pop(self.now)
                if isinstance(turn, float):
                    wait = turn
                    break
                address = self.address(turn)
                self.polite.begin(turn, address, self.now)
                self.pages[turn] -= 1
                due = self.polite.told_delay(turn)[0]
                heapq.heappush(flights, (self.now + self.latency(turn), self.now, turn, address, due))
            if not flights and wait == inf:
                return
            assert wait > self.now, "a wait that is no wait"
            if flights and flights[0][0] <= wait:
                self.land(*heapq.heappop(flights))
            else:
                self.now = wait

    def land(self, ended: float, began: float, host: str, address: str, due: float) -> None:
        self.now = ended
        self.log.append((began, ended, host, self.domain(host), address, due))
        self.polite.end(host, answer(host, elapsed=ended - began), ended, ended)
        self.schedule.ended(host, self.domain(host), address)
        if self.pages[host]:
            self.schedule.put(host, self.domain(host), self.address(host))

    def most_live(self, column: int) -> Counter[str]:
        """Requests that were live at once, by host (2), domain (3) or address (4)."""
        steps = sorted([(row[1], -1, row[column]) for row in self.log] + [(row[0], 1, row[column]) for row in self.log])
        live: Counter[str] = Counter()
        most: Counter[str] = Counter()
        for _, step, key in steps:
            live[key] += step
            most[key] = max(most[key], live[key])
        return most

    def audit(self, *, live: int = 4, gap: float = 0.25) -> None:
        """Every gap of every host, domain and address, one by one."""
        assert not any(self.pages.values()), "a page was never fetched"
        assert max(self.most_live(2).values()) == 1
        ended: dict[str, float] = {}
        for began, end, host, _, _, due in sorted(self.log):
            assert began - ended.get(host, -inf) >= due - 1e-6, f"{host} was asked too early"
            ended[host] = end
        for column in (3, 4):
            keyed = [row for row in self.log if row[column]]
            most = self.most_live(column)
            assert max((most[row[column]] for row in keyed), default=0) <= live
            started: dict[str, float] = {}
            for row in sorted(keyed):
                assert row[0] - started.get(row[column], -inf) >= gap - 1e-6, f"{row[column]} was asked too early"
                started[row[column]] = row[0]


def test_hosts_take_turns_and_wait_for_their_delay() -> None:
    polite = fresh()
    schedule = polite.schedule
    for host in ("a.test", "b.test"):
        schedule.put(host, host, "")
    taken = [schedule.pop(0.0), schedule.pop(0.0)]
    assert taken == ["a.test", "b.test"]
    assert schedule.pop(0.0) == inf
    for host in ("a.test", "b.test"):
        polite.begin(host, "", 0.0)
    polite.end("a.test", answer("a.test"), 1.0, 0.0)
    schedule.ended("a.test", "a.test", "")
    schedule.put("a.test", "a.test", "")
    assert schedule.pop(1.0) == 2.0
    assert schedule.pop(2.0) == "a.test"


def test_a_host_with_a_live_request_comes_back_when_that_has_ended() -> None:
    polite = fresh()
    schedule = polite.schedule
    schedule.put("a.test", "a.test", "")
    assert schedule.pop(0.0) == "a.test"
    polite.begin("a.test", "", 0.0)
    schedule.put("a.test", "a.test", "")
    assert schedule.pop(5.0) == inf
    polite.end("a.test", answer("a.test"), 6.0, 0.0)
    schedule.ended("a.test", "a.test", "")
    assert schedule.pop(6.0) == 7.0
    assert schedule.pop(7.0) == "a.test"


def test_a_blocked_host_leaves_at_once() -> None:
    blocked: set[str] = set()
    schedule = Schedule(LayerRules(), random.Random(1).random, is_blocked=lambda host, now: host in blocked)
    for host in ("a.test", "b.test"):
        schedule.put(host, host, "")
    blocked.add("a.test")
    assert schedule.pop(0.0) == "b.test"
    assert schedule.pop(0.0) == inf
    assert schedule.blocked == ["a.test"] and "a.test" not in schedule


def test_a_dropped_host_does_not_come_up_and_holds_up_nobody() -> None:
    rules = LayerRules(address=Share(live=1))
    polite = fresh(rules)
    schedule = polite.schedule
    for number in range(4):
        schedule.put(f"h{number}.test", f"h{number}.test", "198.51.100.7")
    assert schedule.pop(0.0) == "h0.test"
    polite.begin("h0.test", "198.51.100.7", 0.0)
    assert schedule.pop(0.0) == inf
    schedule.drop("h1.test")
    polite.end("h0.test", answer("h0.test"), 1.0, 0.0)
    schedule.ended("h0.test", "h0.test", "198.51.100.7")
    assert schedule.pop(1.0) == "h2.test"


def test_shorter_delays_hold_for_hosts_that_wait_already() -> None:
    polite = fresh(LayerRules(pace=PaceRules(delay=100.0)))
    schedule = polite.schedule
    schedule.put("a.test", "a.test", "")
    assert schedule.pop(0.0) == "a.test"
    polite.begin("a.test", "", 0.0)
    polite.end("a.test", answer("a.test"), 0.0, 0.0)
    schedule.put("a.test", "a.test", "")
    assert schedule.pop(1.0) == 100.0
    polite.change(LayerRules(pace=PaceRules(delay=2.0)))
    assert schedule.pop(1.0) == 2.0


def test_urgent_levels_are_likelier_and_no_level_starves() -> None:
    queues: FrontQueues[int] = FrontQueues(random.Random(7).random, levels=4)
    taken: Counter[int] = Counter()
    for level in range(4):
        queues.push(level, level)
    for _ in range(15_000):
        level = queues.pop()
        taken[level] += 1
        queues.push(level, level)
    for level, share in enumerate((8, 4, 2, 1)):
        assert taken[level] == pytest.approx(share * 1000, rel=0.1)


def test_without_bias_levels_are_alike_and_with_an_infinite_one_they_are_strict() -> None:
    for bias, shares in ((1.0, (500, 500)), (inf, (1000, 0))):
        queues: FrontQueues[int] = FrontQueues(random.Random(7).random, levels=2, bias=bias)
        taken: Counter[int] = Counter()
        queues.push(0, 0)
        queues.push(1, 1)
        for _ in range(1000):
            level = queues.pop()
            taken[level] += 1
            queues.push(level, level)
        assert (taken[0], taken[1]) == pytest.approx(shares, abs=60)


def test_an_empty_front_queue_says_so() -> None:
    with pytest.raises(IndexError):
        FrontQueues[int](random.Random(1).random).pop()


class CrowdedAddress(Crawl):
    """1,000 hosts of 1,000 domains at one address, whose server slows down under the load."""

    def domain(self, host: str) -> str:
        return host

    def address(self, host: str) -> str:
        return "198.51.100.7"

    def latency(self, host: str) -> float:
        return 0.05 + min(4.0, len(self.log) / 1000)


def test_a_thousand_hosts_at_one_address_share_it_gap_by_gap() -> None:
    crawl = CrowdedAddress(fresh(), {f"h{number}.test": 3 for number in range(1000)})
    crawl.run()
    crawl.audit()
    assert crawl.most_live(4)["198.51.100.7"] == 4
    assert crawl.looks < 8 * len(crawl.log), "each request costs a few looks, however many hosts wait"
    assert crawl.now < 1.2 * 3000 * 4.05 / 4, "four are live nearly always"


class ManyAddresses(Crawl):
    """One host at 50 addresses, in turn."""

    def address(self, host: str) -> str:
        return f"198.51.100.{len(self.log) % 50}"

    def latency(self, host: str) -> float:
        return 0.05 + len(self.log) / 100


def test_one_host_at_fifty_addresses_is_one_host() -> None:
    crawl = ManyAddresses(fresh(), {"www.example.org": 200})
    crawl.run()
    crawl.audit()
    gaps = [row[5] for row in crawl.log]
    assert gaps[0] == 1.0 and gaps[-1] > 8.0, "its delay follows its latency"


class CrowdedDomains(Crawl):
    """Hosts in a few domains at a few addresses, crossed, so that both are in each other's way."""

    def address(self, host: str) -> str:
        return f"198.51.100.{int(host[1:].partition('.')[0]) % 7}"


def test_crowded_domains_at_crowded_addresses_do_not_pass_their_hosts_to_and_fro() -> None:
    crawl = CrowdedDomains(fresh(), {f"h{number}.d{number % 5}.test": 4 for number in range(1000)})
    crawl.run()
    crawl.audit()
    assert crawl.looks < 8 * len(crawl.log)
    assert crawl.now < 1.5 * 4000 / 5 * 0.25, "the domains are busy nearly always"


def test_the_same_seed_gives_the_same_crawl_and_another_seed_another() -> None:
    def order(seed: int) -> list[str]:
        schedule = fresh(LayerRules(pace=PaceRules(delay=0.0)), seed).schedule
        for number in range(100):
            schedule.put(f"h{number}.test", f"h{number}.test", "", number % 8)
        return [str(schedule.pop(0.0)) for _ in range(100)]

    assert order(1) == order(1) != order(2)
