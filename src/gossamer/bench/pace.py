"""What politeness makes of servers that refuse: the pace it finds, and the refusals that finding it costs.

The gates of a crawl ask simulated servers (:mod:`gossamer.bench.servers`) on a simulated clock; nothing else is
simulated. The bounds are those of the issue that this was built for, and the tests hold a smaller version to them.
"""

import heapq
import random
from collections.abc import Iterator
from math import inf
from statistics import fmean
from typing import NamedTuple

from gossamer.bench.report import BenchReport
from gossamer.bench.servers import BrokenPages, FailsAtRandom, Flaky, Moody, Overloaded, Server, TokenBucket
from gossamer.frontier.politeness.gates import Gates
from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.rate_slots import Share
from gossamer.frontier.politeness.rules import GateRules
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Disposition

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


def run() -> BenchReport:
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
