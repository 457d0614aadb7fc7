"""How evenly hosts come out of the task queues: the ledger's own, and by pages with a diversity threshold (Ridgway 2010, table 2).

So many tasks of a thousand hosts, popped by a frontier that stays with a host as long as it gives something (the worst
case), and by one that takes hosts in turn, as politeness does. No network, no delays. A page's *diversity* is the share of
its most common host, as in the seed. A second table is the seed's own: the threshold tuned to five rates of requests, and the share
of the most common host in any second.
"""

import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator

from gossamer.bench.report import BenchReport
from gossamer.engine.clock import SystemClock
from gossamer.labs.diverse import DiverseQueues, DiverseQueuesSheet
from gossamer.storage.ledger.contract import TaskQueues
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.values.task import Task

HOSTS = 1_000

#: Tasks of a page, and the share that a host may have of it.
PAGE, THRESHOLD = 1_000, 0.01

#: Tasks that are in flight before they are committed together.
FLYING = 320

#: URLs and requests a second of the seed's table 2.
RATES = ((100, 10), (1_000, 50), (10_000, 100), (100_000, 1_000), (1_000_000, 1_000))


class _SteadyPace(SystemClock):
    """So many requests a second, whatever time it takes to find them."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def _pushed(ledger: RocksLedger, tasks: int, among: int = HOSTS) -> None:
    """As many tasks of each host, in no order."""
    chance = random.Random(1)
    numbers = [number % among for number in range(tasks)]
    chance.shuffle(numbers)
    for start in range(0, tasks, 10_000):
        hosts = [f"www.site-{number}.example" for number in numbers[start : start + 10_000]]
        with ledger.group() as group:
            group.push(Task(f"https://{host}/{start + n}", host) for n, host in enumerate(hosts))


def _popped(ledger: RocksLedger, queues: TaskQueues, *, in_turn: bool) -> Iterator[str]:
    """The host of each task, in the order in which they come."""
    ready: deque[str] = deque()
    flying: list[str] = []
    while len(queues):
        if not ready:
            ready.extend(state.host for state in queues.admit(0.0))
        while ready:
            tasks = queues.pop(ready[0])
            if not tasks:
                ready.popleft()
                continue
            yield tasks[0].host
            flying.append(tasks[0].url)
            if in_turn:
                ready.rotate(-1)
            if len(flying) >= FLYING:
                break
        with ledger.group() as group:
            for url in flying:
                group.done(url)
        flying.clear()


def _at_a_rate(tasks: int, rate: int) -> tuple[str, ...]:
    """A row of the seed's table: as many domains as are asked in a second, so that each can come once."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = RocksLedger(LedgerSheet(directory=folder))
        ledger.open()
        _pushed(ledger, tasks, rate)
        behind, queues, clock = LedgerFrontier(), DiverseQueues(DiverseQueuesSheet(page=PAGE)), _SteadyPace()
        behind.ledger = ledger
        queues.behind, queues.ledger, queues.clock = behind, ledger, clock
        second: Counter[str] = Counter()
        peak = out = 0
        for host in _popped(ledger, queues, in_turn=False):
            out += 1
            clock.seconds = out / rate
            second[host] += 1
            if out % rate == 0:
                peak = max(peak, *second.values())
                second.clear()
        ledger.abandon()
    return f"{tasks:,}", f"{out:,}", f"{rate:,}", f"{1 / rate:g}", f"{peak / rate:g}"


def _row(name: str, tasks: int, *, in_turn: bool) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        ledger = RocksLedger(LedgerSheet(directory=folder))
        ledger.open()
        _pushed(ledger, tasks)
        own = LedgerFrontier()
        own.ledger = ledger
        queues: TaskQueues = own
        if name == "by pages":
            diverse = DiverseQueues(DiverseQueuesSheet(page=PAGE, threshold=THRESHOLD))
            diverse.behind, diverse.ledger = own, ledger
            queues = diverse
        began = time.thread_time()
        hosts = list(_popped(ledger, queues, in_turn=in_turn))
        seconds = time.thread_time() - began
        ledger.abandon()
    pages = [Counter(hosts[at : at + PAGE]) for at in range(0, len(hosts) - PAGE + 1, PAGE)]
    shares = sorted(max(page.values()) / PAGE for page in pages)
    return (
        name,
        "in turn" if in_turn else "host by host",
        f"{tasks:,}",
        f"{len(hosts):,}",
        f"{shares[len(shares) // 2]:.3f}",
        f"{shares[-1]:.3f}",
        f"{seconds / len(hosts) * 1e6:.1f}",
    )


def run() -> BenchReport:
    """Measure both, and make the report."""
    report = BenchReport("diversity")
    table = report.table(
        f"Pages of {PAGE:,} tasks of {HOSTS:,} hosts; threshold {THRESHOLD}",
        *("queues", "frontier", "tasks in", "out", "diversity, median", "peak", "us a task"),
    )
    seed = report.table(
        "Threshold tuned to the pace, as in the seed's table 2",
        *("URLs in", "URLs out", "requests a second", "expected diversity", "peak diversity of a second"),
    )
    seed.rows += [_at_a_rate(tasks, rate) for tasks, rate in RATES]
    for tasks in (10_000, 100_000):
        for in_turn in (False, True):
            table.rows += [_row(name, tasks, in_turn=in_turn) for name in ("the ledger's", "by pages")]
    return report
