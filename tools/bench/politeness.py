"""The cost of politeness to a request, and its effect on servers that refuse: the pace it finds, and the refusals that
finding it costs.

The cost is that of turn, begin and end, with few hosts and many, spread and crowded. For the pace, a crawl's politeness asks
simulated servers on a simulated clock: when a request begins, in; how it ends and after how long, out.
"""

import heapq
import random
import statistics
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from itertools import product
from statistics import fmean
from typing import NamedTuple

from gossamer.bench.harness import BenchReport, Spent
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.testing.clock import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Disposition, Task


class ServerReply(NamedTuple):
    outcome: Outcome
    elapsed: float
    """Seconds."""
    retry_after: str = ""


Server = Callable[[int, float], ServerReply]
"""Answers one request at a time, for a page, that begins at an instant in seconds."""


def refusing(share: float, retry_after: str = "", latency: float = 0.05, spread: float = 0.0, seed: int = 1) -> Server:
    """Fails on a share of all requests, at random, whatever the pace. The latency spreads as that of web pages does by 0.5."""
    draw = random.Random(seed)

    def ask(page: int, now: float) -> ServerReply:
        elapsed = latency * draw.lognormvariate(0.0, spread) if spread else latency
        if draw.random() < share:
            return ServerReply(Outcome.SERVER_ERROR, elapsed, retry_after)
        return ServerReply(Outcome.OK, elapsed)

    return ask


def flaky(share: float, latency: float = 0.05, seed: int = 1) -> Server:
    """Answers a share of all requests with 503 and `Retry-After: 1`, at random."""
    return refusing(share, "1", latency, 0.5, seed)


class TokenBucket:
    """Lets `rate` requests a second through, and `burst` at once after a rest; answers 429 to all others."""

    def __init__(self, rate: float, burst: float, retry_after: str = "", seed: int = 1) -> None:
        """A full bucket. `retry_after` is sent as it is; `exact` sends the seconds until the next token, rounded up."""
        self.rate = rate
        self._burst, self._tokens, self._at = burst, burst, 0.0
        self._retry_after, self._draw = retry_after, random.Random(seed)

    def __call__(self, page: int, now: float) -> ServerReply:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        elapsed = 0.02 * self._draw.lognormvariate(0.0, 0.3)
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return ServerReply(Outcome.OK, elapsed)
        exact = str(int((1.0 - self._tokens) / self.rate) + 1)
        return ServerReply(Outcome.RATE_LIMITED, elapsed, exact if self._retry_after == "exact" else self._retry_after)


#: Seconds over which an overloaded server feels its load.
SPAN = 5.0


def overloaded(knee: float) -> Server:
    """Slows down as the rate comes near its knee, and fails beyond it in proportion."""
    draw, load, at = random.Random(1), 0.0, 0.0

    def ask(page: int, now: float) -> ServerReply:
        nonlocal load, at
        load = load * 2.0 ** (-(now - at) / SPAN) + 0.6931 / SPAN
        at = now
        elapsed = 0.02 * draw.lognormvariate(0.0, 0.3) / max(0.05, 1.0 - 0.9 * load / knee)
        return ServerReply(Outcome.SERVER_ERROR if draw.random() < load / knee - 1.0 else Outcome.OK, elapsed)

    return ask


def moody(well: float, ill: float) -> Server:
    """Well for a while, then refuses everything for a while, in turns."""
    return lambda _, now: ServerReply(Outcome.OK if now % (well + ill) < well else Outcome.RATE_LIMITED, 0.05)


def broken_pages(one_in: int) -> Server:
    """Answers one page in so many with 503 and `Retry-After`, always, and all others well."""
    broken, well = ServerReply(Outcome.SERVER_ERROR, 0.05, "1"), ServerReply(Outcome.OK, 0.05)
    return lambda page, _: well if page % one_in else broken


#: Seconds.
MINUTE, HOUR = 60.0, 3600.0

#: Runs of each case, each with its own seed: the worst is printed beside the mean.
SEEDS = range(1, 6)

_HOST, _ADDRESS = "host.example", "198.51.100.7"


class ShownClock(FakeClock):
    """A clock that shows the instant that it is set to."""

    shown = 0.0

    def monotonic(self) -> float:
        return self.shown

    now = monotonic


class PaceFigures(NamedTuple):
    """The requests to one server between two instants."""

    pace: float
    """Clean answers a second."""
    asked: float
    """Requests a second."""
    refused: float
    """Part of the requests that were refused or failed."""


class PaceRequest(NamedTuple):
    began: float
    ended: float
    outcome: Outcome


def crawl(server: Server, delay: float | None, until: float, seed: int = 1) -> Iterator[PaceRequest]:
    """Every request that a crawl makes of this server up to an instant, in seconds; `delay` None is `auto`."""
    free = PolitenessSheet("auto" if delay is None else delay, domain_delay=0.0, ip_delay=0.0)
    polite, clock = HostPoliteness(free, seed), ShownClock()
    polite.clock = clock
    later: list[tuple[float, int, int]] = []
    now, fresh = 0.0, 0
    while now < until:
        polite.put(_HOST, _ADDRESS)
        while isinstance(opens := polite.next(now), float):
            now = opens
        if later and later[0][0] <= now:
            _, page, attempt = heapq.heappop(later)
        else:
            page, attempt, fresh = fresh, 1, fresh + 1
        polite.begin(Task(str(page), _HOST, attempt=attempt), _ADDRESS, now)
        reply = server(page, now)
        ended = clock.shown = now + reply.elapsed
        ruling = polite.ruling(Answer(str(page), _HOST, reply.outcome, reply.elapsed, reply.retry_after, is_met=True))
        if ruling.what is Disposition.RETRY:
            heapq.heappush(later, (ended + ruling.wait, page, attempt + 1))
        elif ruling.what in (Disposition.KEEP, Disposition.POSTPONE):
            heapq.heappush(later, (ended + ruling.wait, page, attempt))
        yield PaceRequest(now, ended, reply.outcome)
        now = ended


def obedient(server: Server, delay: float, until: float) -> Iterator[PaceRequest]:
    """The same, asking at a fixed delay, and waiting only as long as the server says."""
    now, page = 0.0, 0
    while now < until:
        reply = server(page, now)
        ended = now + reply.elapsed
        yield PaceRequest(now, ended, reply.outcome)
        page += 1
        now = ended + max(delay, float(reply.retry_after or 0))


def figures(requests: Iterator[PaceRequest], begin: float, end: float) -> PaceFigures:
    """The figures between two instants."""
    outcomes = [asked.outcome for asked in requests if begin <= asked.began < end]
    clean = sum(outcome is Outcome.OK for outcome in outcomes)
    span = end - begin
    return PaceFigures(clean / span, len(outcomes) / span, 1.0 - clean / len(outcomes) if outcomes else 0.0)


def at_random(delay: float, seed: int, latency: float = 0.05) -> PaceFigures:
    """A host that refuses one request in a hundred at random; an hour."""
    return figures(crawl(flaky(0.01, latency, seed), delay, HOUR, seed), 0.0, HOUR)


def bucket(rate: float, burst: float, retry_after: str, seed: int) -> PaceFigures:
    """A rate limit, after ten minutes; below 1/s under `auto` and in the second hour."""
    begin, end = (HOUR, 2 * HOUR) if rate < 1.0 else (10 * MINUTE, 30 * MINUTE)
    server = TokenBucket(rate, burst, retry_after, seed=seed)
    return figures(crawl(server, None if rate < 1.0 else 0.0, end, seed), begin, end)


def pace() -> BenchReport:
    """Measure everything and make the report."""
    report = BenchReport("pace")
    table = report.table(
        "1 % of the answers are 503 with Retry-After: 1, at random; an hour",
        *("delay s", "latency s", "bound %", "beside", "here %", "worst of 5 %"),
    )
    for delay, latency in ((5.0, 0.05), (2.0, 0.05), (1.0, 0.05), (0.25, 0.05), (0.0, 0.05), (0.0, 0.01)):
        without = figures(obedient(flaky(0.0, latency), delay, HOUR), 0.0, HOUR).pace
        alone = figures(obedient(flaky(0.01, latency), delay, HOUR), 0.0, HOUR).pace
        beside, bound, of = ("without refusals", 85, without) if delay >= 1.0 else ("obedience alone", 90, alone)
        found = [at_random(delay, seed, latency) for seed in SEEDS]
        paces = [one.pace / of * 100 for one in found]
        table.add(delay, latency, bound, beside, f"{fmean(paces):.1f}", f"{min(paces):.1f}")

    table = report.table(
        "A token bucket; bounds: 80-100 % used, 2 % refused",
        *("rate 1/s", "burst", "Retry-After", "used %", "least of 5 %", "refused %", "most of 5 %"),
    )
    rates = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 5.0, 10.0, 20.0)
    for rate, burst, field in product(rates, (1.0, 10.0, 60.0), ("", "exact", "1")):
        found = [bucket(rate, burst, field, seed) for seed in SEEDS]
        used, refused = [one.pace / rate * 100 for one in found], [one.refused * 100 for one in found]
        means = f"{fmean(used):.0f}", f"{min(used):.0f}", f"{fmean(refused):.2f}", f"{max(refused):.2f}"
        table.add(rate, burst, field or "none", *means)
    _others(report)
    return report


def _others(report: BenchReport) -> None:
    table = report.table("Other servers", "server", "delay", "what", "bound", "here")
    for knee in (1.0, 5.0, 10.0):
        found = figures(crawl(overloaded(knee), 0.0, 40 * MINUTE), 10 * MINUTE, 40 * MINUTE)
        table.add(f"overloaded beyond {knee:g}/s", "0", "requests a second", f"{knee:g}", f"{found.asked:.2f}")
        table.add("", "", "failed %", "", f"{found.refused * 100:.2f}")
    for delay in (1.0, 0.0):
        usual, found = (figures(crawl(refusing(share), delay, HOUR), 0.0, HOUR) for share in (0.0, 0.5))
        share = f"{found.asked / usual.asked * 100:.1f}"
        table.add("half of the answers are errors", f"{delay:g}", "pace %", "25", share)
    well, ill = 10 * MINUTE, 5 * MINUTE
    requests = list(crawl(moody(well, ill), 1.0, 6 * HOUR))
    back = figures(iter([one for one in requests if 3 * MINUTE <= one.began % (well + ill) < well]), 0.0, 6 * HOUR)
    part = back.pace * 1.05 / (well - 3 * MINUTE) * (well + ill)
    table.add("well 10 min, refuses 5 min", "1", "pace 3 min after, % of usual", "", f"{part * 100:.0f}")
    for one_in in (100, 20, 10):
        requests = list(crawl(broken_pages(one_in), 1.0, HOUR))
        asked = figures(iter(requests), 0.0, HOUR).asked
        table.add(f"one page in {one_in} is always 503", "1", "pace %", "", f"{asked * 1.05 * 100:.1f}")


#: Runs of each measurement, of which the median is printed; requests of one; and those in flight, as by default.
REPEATS, REQUESTS, LIVE = 3, 100_000, 64

#: Microseconds that a request may cost: a sixtieth of what a page costs in all.
BOUND = 15


class Web:
    """Hosts with domain and address."""

    def __init__(self, hosts: int, addresses: int) -> None:
        self.hosts = [f"www.site-{number}.example" for number in range(hosts)]
        self.answers = {host: Answer(url=host, host=host, outcome=Outcome.OK, elapsed=0.05) for host in self.hosts}
        self.addresses = {
            host: f"198.{18 + number % addresses // 65536}.{number % addresses // 256 % 256}.{number % addresses % 256}"
            for number, host in enumerate(self.hosts)
        }


def _asking(web: Web) -> HostPoliteness:
    polite = HostPoliteness(PolitenessSheet(delay=1.0))
    polite.clock = ShownClock()
    for host in web.hosts:
        polite.put(host, web.addresses[host])
    return polite


def _ask(web: Web, polite: HostPoliteness, flights: deque[str], now: float, requests: int) -> float:
    """So many requests, each ended before the next but `LIVE` begins; the time at the end."""
    clock = polite.clock
    assert isinstance(clock, ShownClock)
    while requests:
        clock.shown = now
        turn = polite.next(now) if len(flights) < LIVE else now
        if isinstance(turn, str):
            polite.begin(Task(turn, turn), web.addresses[turn], now)
            flights.append(turn)
            requests -= 1
        elif flights:
            host = flights.popleft()
            polite.ruling(web.answers[host])
            polite.put(host, web.addresses[host])
        else:
            now = turn
    return now


def cost() -> BenchReport:
    """Measure everything and make the report."""
    report = BenchReport("politeness")
    table = report.table("Turn, begin and end of one request", "web", "bound us", "here us of CPU", "here 1/s")
    for name, hosts, addresses in (
        ("1,000 hosts, an address each", 1_000, 1_000),
        ("50,000 hosts, an address each", 50_000, 50_000),
        ("50,000 hosts at 500 addresses", 50_000, 500),
        ("1,000 hosts at one address", 1_000, 1),
    ):
        web = Web(hosts, addresses)
        costs = []
        for _ in range(REPEATS):
            polite, flights, spent = _asking(web), deque[str](), Spent()
            now = _ask(web, polite, flights, 0.0, len(web.hosts))
            with spent:
                _ask(web, polite, flights, now, REQUESTS)
            costs.append(spent.cpu / REQUESTS * 1e6)
        cost = statistics.median(costs)
        table.add(name, BOUND, f"{cost:.1f}", f"{1e6 / cost:,.0f}")
    table = report.table("Memory of a host that was asked and waits", "hosts", "bytes a host")
    web = Web(20_000, 20_000)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    _ask(web, _asking(web), deque(), 0.0, len(web.hosts))
    table.add(f"{len(web.hosts):,}", f"{(tracemalloc.get_traced_memory()[0] - before) / len(web.hosts):.0f}")
    tracemalloc.stop()
    return report
