"""What politeness costs a request: whose turn is it, begin, end; with few hosts and many, spread and crowded.

No network and no clock: time is a number, and jumps to where the schedule wants to go on. The driver's own loop is
counted with it.
"""

import random
import statistics
import time
import tracemalloc
from collections import deque

from gossamer.bench.report import BenchReport
from gossamer.frontier.politeness.gates import Gates
from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.rules import GateRules
from gossamer.frontier.politeness.schedule import Schedule
from gossamer.values.hosts import registered_domain
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer

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


def crawl(web: Web, requests: int) -> float:
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


def memory(web: Web) -> float:
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


def run() -> BenchReport:
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
        cost = statistics.median(crawl(web, REQUESTS) for _ in range(REPEATS))
        table.add(name, BOUND, f"{cost:.1f}", f"{1e6 / cost:,.0f}")
    table = report.table("Memory of a host that was asked and waits", "hosts", "bytes a host")
    table.add("20,000", f"{memory(Web(20_000, 20_000)):.0f}")
    return report
