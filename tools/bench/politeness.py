"""What politeness costs a request, and what it makes of servers that refuse: the pace it finds, and the refusals that
finding it costs.

The cost is that of turn, begin and end, with few hosts and many, spread and crowded. For the pace, the gates of a crawl ask
simulated servers on a simulated clock: when a request begins, in; how it ends and after how long, out.
"""

import heapq
import random
import statistics
import time
import tracemalloc
from collections import deque
from collections.abc import Iterator
from math import inf
from statistics import fmean
from typing import NamedTuple, Protocol

from gossamer.bench.report import BenchReport
from gossamer.frontier.politeness.gates import Gates
from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.rules import GateRules, Share
from gossamer.frontier.politeness.schedule import Schedule
from gossamer.values.hosts import registered_domain
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Disposition


class ServerReply(NamedTuple):
    """How one request ends."""

    outcome: Outcome
    elapsed: float
    """Seconds."""
    retry_after: str = ""


class Server(Protocol):
    """Answers one request at a time."""

    def ask(self, page: int, now: float) -> ServerReply:
        """The reply to a request for this page that begins at `now`, in seconds."""
        ...


class Flaky:
    """Answers a share of all requests with 503 and `Retry-After`, at random, whatever the pace."""

    def __init__(self, share: float, retry_after: str = "1", latency: float = 0.05, seed: int = 1) -> None:
        self._share, self._retry_after, self._latency = share, retry_after, latency
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        """See :class:`Server`. The latency spreads as that of web pages does."""
        elapsed = self._latency * self._draw.lognormvariate(0.0, 0.5)
        if self._draw.random() < self._share:
            return ServerReply(Outcome.SERVER_ERROR, elapsed, self._retry_after)
        return ServerReply(Outcome.OK, elapsed)


class TokenBucket:
    """Lets `rate` requests a second through, and `burst` at once after a rest; answers 429 to all others."""

    def __init__(self, rate: float, burst: float, retry_after: str = "", latency: float = 0.02, seed: int = 1) -> None:
        """A full bucket. `retry_after` is sent as it is; `exact` sends the seconds until the next token, rounded up."""
        self.rate = rate
        self._burst, self._tokens, self._at = burst, burst, 0.0
        self._retry_after, self._latency = retry_after, latency
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        elapsed = self._latency * self._draw.lognormvariate(0.0, 0.3)
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return ServerReply(Outcome.OK, elapsed)
        field = self._retry_after
        if field == "exact":
            field = str(int((1.0 - self._tokens) / self.rate) + 1)
        return ServerReply(Outcome.RATE_LIMITED, elapsed, field)


class Overloaded:
    """Slows down as the rate comes near its knee, and fails beyond it in proportion."""

    #: Seconds over which the server feels its load.
    SPAN = 5.0

    def __init__(self, knee: float, latency: float = 0.02, seed: int = 1) -> None:
        self.knee = knee
        self._latency, self._load, self._at = latency, 0.0, 0.0
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        self._load *= 2.0 ** (-(now - self._at) / self.SPAN)
        self._load += 0.6931 / self.SPAN
        self._at = now
        part = self._load / self.knee
        elapsed = self._latency * self._draw.lognormvariate(0.0, 0.3) / max(0.05, 1.0 - 0.9 * part)
        is_lost = self._draw.random() < part - 1.0
        return ServerReply(Outcome.SERVER_ERROR if is_lost else Outcome.OK, elapsed)


class FailsAtRandom:
    """Fails on a share of all requests, at random, whatever the pace."""

    def __init__(self, share: float, latency: float = 0.05, seed: int = 1) -> None:
        self._share, self._latency = share, latency
        self._draw = random.Random(seed)

    def ask(self, page: int, now: float) -> ServerReply:
        is_lost = self._draw.random() < self._share
        return ServerReply(Outcome.SERVER_ERROR if is_lost else Outcome.OK, self._latency)


class Moody:
    """Well for a while, then refuses everything for a while, in turns."""

    def __init__(self, well: float, ill: float, retry_after: str = "", latency: float = 0.05) -> None:
        self.well, self.ill = well, ill
        self._retry_after, self._latency = retry_after, latency

    def ask(self, page: int, now: float) -> ServerReply:
        if now % (self.well + self.ill) < self.well:
            return ServerReply(Outcome.OK, self._latency)
        return ServerReply(Outcome.RATE_LIMITED, self._latency, self._retry_after)


class BrokenPages:
    """Answers one page in so many with 503 and `Retry-After`, always, and all others well."""

    def __init__(self, one_in: int, latency: float = 0.05) -> None:
        self._one_in, self._latency = one_in, latency

    def ask(self, page: int, now: float) -> ServerReply:
        if page % self._one_in == 0:
            return ServerReply(Outcome.SERVER_ERROR, self._latency, "1")
        return ServerReply(Outcome.OK, self._latency)


#: Seconds.
MINUTE, HOUR = 60.0, 3600.0

#: Runs of each case, each with its own seed: the worst is printed beside the mean.
SEEDS = range(1, 6)

_HOST, _ADDRESS = "host.example", "198.51.100.7"
_FREE = Share(live=inf, gap=0.0)


class PaceFigures(NamedTuple):
    """What one server was asked between two instants."""

    pace: float
    """Clean answers a second."""
    asked: float
    """Requests a second."""
    refused: float
    """Part of the requests that were refused or failed."""


class PaceRequest(NamedTuple):
    """One request."""

    began: float
    ended: float
    outcome: Outcome


def crawl(server: Server, delay: float | None, until: float, seed: int = 1) -> Iterator[PaceRequest]:
    """Every request that a crawl makes of this server up to an instant, in seconds; `delay` None is `auto`."""
    gates = Gates(GateRules(pace=PaceRules(delay=delay), domain=_FREE, address=_FREE), draw=random.Random(seed).random)
    later: list[tuple[float, int, int]] = []
    now, fresh = 0.0, 0
    while now < until:
        now = gates.ready_at(_HOST, _HOST, _ADDRESS, now)
        if later and later[0][0] <= now:
            _, page, attempt = heapq.heappop(later)
        else:
            page, attempt, fresh = fresh, 1, fresh + 1
        gates.begin(_HOST, _HOST, _ADDRESS, now)
        reply = server.ask(page, now)
        ended = now + reply.elapsed
        answer = Answer(str(page), _HOST, reply.outcome, reply.elapsed, reply.retry_after, is_met=True)
        ruling = gates.end(_HOST, _HOST, _ADDRESS, answer, ended, ended, attempt)
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
        reply = server.ask(page, now)
        ended = now + reply.elapsed
        yield PaceRequest(now, ended, reply.outcome)
        page += 1
        now = ended + max(delay, float(reply.retry_after or 0))


def figures(requests: Iterator[PaceRequest], begin: float, end: float) -> PaceFigures:
    """What lies between two instants."""
    outcomes = [asked.outcome for asked in requests if begin <= asked.began < end]
    clean = sum(outcome is Outcome.OK for outcome in outcomes)
    span = end - begin
    return PaceFigures(clean / span, len(outcomes) / span, 1.0 - clean / len(outcomes) if outcomes else 0.0)


def flaky(delay: float, seed: int, *, share: float = 0.01, latency: float = 0.05) -> PaceFigures:
    """A host that refuses at random; an hour."""
    return figures(crawl(Flaky(share, latency=latency, seed=seed), delay, HOUR, seed), 0.0, HOUR)


def bucket(rate: float, burst: float, retry_after: str, seed: int) -> PaceFigures:
    """A rate limit, after ten minutes; below 1/s under `auto` and in the second hour."""
    begin, end = (HOUR, 2 * HOUR) if rate < 1.0 else (10 * MINUTE, 30 * MINUTE)
    server = TokenBucket(rate, burst, retry_after, seed=seed)
    return figures(crawl(server, None if rate < 1.0 else 0.0, end, seed), begin, end)


def pace() -> BenchReport:
    """Measure everything and make the report."""
    report = BenchReport("pace")
    _flaky_table(report)
    _bucket_table(report)
    _other_table(report)
    return report


def _flaky_table(report: BenchReport) -> None:
    table = report.table(
        "1 % of the answers are 503 with Retry-After: 1, at random; an hour",
        "delay s", "latency s", "bound %", "beside", "here %", "worst of 5 %",
    )  # fmt: skip
    for delay, latency in ((5.0, 0.05), (2.0, 0.05), (1.0, 0.05), (0.25, 0.05), (0.0, 0.05), (0.0, 0.01)):
        without = figures(obedient(Flaky(0.0, latency=latency), delay, HOUR), 0.0, HOUR).pace
        alone = figures(obedient(Flaky(0.01, latency=latency), delay, HOUR), 0.0, HOUR).pace
        beside, bound, of = ("without refusals", 85, without) if delay >= 1.0 else ("obedience alone", 90, alone)
        found = [flaky(delay, seed, latency=latency) for seed in SEEDS]
        paces = [one.pace / of * 100 for one in found]
        table.add(delay, latency, bound, beside, f"{fmean(paces):.1f}", f"{min(paces):.1f}")


def _bucket_table(report: BenchReport) -> None:
    table = report.table(
        "A token bucket; bounds: 80-100 % used, 2 % refused",
        "rate 1/s", "burst", "Retry-After", "used %", "least of 5 %", "refused %", "most of 5 %",
    )  # fmt: skip
    for rate in (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 5.0, 10.0, 20.0):
        for burst in (1.0, 10.0, 60.0):
            for field in ("", "exact", "1"):
                found = [bucket(rate, burst, field, seed) for seed in SEEDS]
                used, refused = [one.pace / rate * 100 for one in found], [one.refused * 100 for one in found]
                table.add(
                    rate, burst, field or "none",
                    f"{fmean(used):.0f}", f"{min(used):.0f}", f"{fmean(refused):.2f}", f"{max(refused):.2f}",
                )  # fmt: skip


def _other_table(report: BenchReport) -> None:
    table = report.table("Other servers", "server", "delay", "what", "bound", "here")
    for knee in (1.0, 5.0, 10.0):
        found = figures(crawl(Overloaded(knee), 0.0, 40 * MINUTE), 10 * MINUTE, 40 * MINUTE)
        table.add(f"overloaded beyond {knee:g}/s", "0", "requests a second", f"{knee:g}", f"{found.asked:.2f}")
        table.add("", "", "failed %", "", f"{found.refused * 100:.2f}")
    for delay in (1.0, 0.0):
        well = figures(crawl(FailsAtRandom(0.0), delay, HOUR), 0.0, HOUR)
        found = figures(crawl(FailsAtRandom(0.5), delay, HOUR), 0.0, HOUR)
        table.add(
            "half of the answers are errors", f"{delay:g}", "pace %", "25", f"{found.asked / well.asked * 100:.1f}"
        )
    server = Moody(10 * MINUTE, 5 * MINUTE)
    requests = list(crawl(server, 1.0, 6 * HOUR))
    turn = server.well + server.ill
    back = figures(iter([one for one in requests if 3 * MINUTE <= one.began % turn < server.well]), 0.0, 6 * HOUR)
    open_part = (server.well - 3 * MINUTE) / turn
    table.add(
        "well 10 min, refuses 5 min",
        "1",
        "pace 3 min after, % of usual",
        "",
        f"{back.pace * 1.05 / open_part * 100:.0f}",
    )
    for one_in in (100, 20, 10):
        requests = list(crawl(BrokenPages(one_in), 1.0, HOUR))
        asked = figures(iter(requests), 0.0, HOUR).asked
        table.add(f"one page in {one_in} is always 503", "1", "pace %", "", f"{asked * 1.05 * 100:.1f}")


#: Runs of each measurement; the median is printed, because a shared machine has bad moments.
REPEATS = 3

#: Requests of one measurement.
REQUESTS = 100_000

#: Requests in flight, as the default of `--concurrency`.
LIVE = 64

#: Microseconds that a request may cost: a sixtieth of what a page costs in all.
BOUND = 15


class Web:
    """Hosts with domain and address."""

    def __init__(self, hosts: int, addresses: int) -> None:
        self.hosts = [f"www.site-{number}.example" for number in range(hosts)]
        self.answers = {host: Answer(url="", host=host, outcome=Outcome.OK, elapsed=0.05) for host in self.hosts}
        self.addresses = {
            host: f"198.{18 + number % addresses // 65536}.{number % addresses // 256 % 256}.{number % addresses % 256}"
            for number, host in enumerate(self.hosts)
        }


def _cost_of(web: Web, requests: int) -> float:
    """Microseconds of CPU a request, over so many requests after every host was asked for once."""
    gates = Gates(GateRules(pace=PaceRules(delay=1.0)))
    schedule = Schedule(gates, random.Random(1).random)
    for host in web.hosts:
        schedule.put(host, registered_domain(host), web.addresses[host])
    flights: deque[str] = deque()
    now = _ask(web, gates, schedule, flights, 0.0, len(web.hosts))
    began = time.process_time()
    _ask(web, gates, schedule, flights, now, requests)
    return (time.process_time() - began) / requests * 1e6


def _ask(web: Web, gates: Gates, schedule: Schedule, flights: deque[str], now: float, requests: int) -> float:
    """So many requests, each ended before the next but `LIVE` begins; the time at the end."""
    while requests:
        turn = schedule.pop(now) if len(flights) < LIVE else now
        if isinstance(turn, str):
            gates.begin(turn, registered_domain(turn), web.addresses[turn], now)
            flights.append(turn)
            requests -= 1
        elif flights:
            host = flights.popleft()
            gates.end(host, registered_domain(host), web.addresses[host], web.answers[host], now, now)
            schedule.ended(host, registered_domain(host), web.addresses[host])
            schedule.put(host, registered_domain(host), web.addresses[host])
        else:
            now = turn
    return now


def _memory(web: Web) -> float:
    """Bytes for each host that was asked and waits."""
    tracemalloc.start()
    gates = Gates(GateRules(pace=PaceRules(delay=1.0)))
    schedule = Schedule(gates, random.Random(1).random)
    before = tracemalloc.get_traced_memory()[0]
    for host in web.hosts:
        schedule.put(host, host, web.addresses[host])
    _ask(web, gates, schedule, deque(), 0.0, len(web.hosts))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / len(web.hosts)


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
        cost = statistics.median(_cost_of(web, REQUESTS) for _ in range(REPEATS))
        table.add(name, BOUND, f"{cost:.1f}", f"{1e6 / cost:,.0f}")
    table = report.table("Memory of a host that was asked and waits", "hosts", "bytes a host")
    table.add("20,000", f"{_memory(Web(20_000, 20_000)):.0f}")
    return report
