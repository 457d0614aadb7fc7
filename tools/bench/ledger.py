"""The cost of the durable heart: pushing and popping at size, knowing URLs, opening again. `bench seen` asks it for seen URLs.

URLs have the locality of real links: popular hosts have most of them (Zipf), a page's links mostly stay on its host, and
most were met before. `size` sets how many URLs are queued and seen at the large end; `GOSSAMER_BENCH_URLS` sets another.
"""

import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gossamer.bench.harness import BenchReport, Spent, apart
from gossamer.engine import processes
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.storage.seen.memory import MemorySeen
from gossamer.values.task import Task

#: Tasks of one push in bulk, of one pop in bulk.
BULK, POP_BULK = 10_000, 64

#: URLs that are queued and seen at the small and the large end; `GOSSAMER_BENCH_URLS` sets another large one.
SMALL, LARGE = 100_000, 1_000_000

#: Pages whose links are asked for together, distinct links of a page, and how many of these are new.
PAGES, LINKS, NEW = 32, 58, 5

#: Links of a page that leave its host, and that all pages of its site have.
OUTWARD, NAVIGATION = 8, 30

#: Pages of a site; sites that are in turn at once.
SITE, ACTIVE = 500, 1_000

#: Pages of one measurement.
VISITS = 4_000


def opened(directory: str) -> tuple[RocksLedger, LedgerFrontier]:
    """A ledger and its queues."""
    ledger = RocksLedger(LedgerSheet(directory=directory))
    ledger.open()
    queues = LedgerFrontier()
    queues.ledger = ledger
    return ledger, queues


def _names(hosts: int) -> list[str]:
    return [f"www{n % 3}.site-{n}.example" for n in range(hosts)]


def _tasks(names: list[str], first: int, count: int, chance: random.Random) -> list[Task]:
    """New tasks, found on pages: each page leaves some on its own host, one or two elsewhere."""
    made: list[Task] = []
    number, hosts = first, len(names)
    while len(made) < count:
        home = names[int(hosts * chance.random() ** 2)]
        source = f"https://{home}/section/{number}/"
        for _ in range(min(20, count - len(made))):
            host = home if chance.random() < 0.85 else names[int(hosts * chance.random())]
            made.append(Task(f"https://{host}/section/page-{number}.html", host, 3, source, "a href"))
            number += 1
    return made


def _fill(ledger: RocksLedger, names: list[str], first: int, count: int, chance: random.Random) -> Spent:
    spent = Spent()
    for start in range(0, count, BULK):
        tasks = _tasks(names, first + start, BULK, chance)
        with spent, ledger.group() as group:
            group.push(tasks)
    return spent


def _pop(ledger: RocksLedger, queues: LedgerFrontier, held: list[str], count: int) -> tuple[Spent, Spent]:
    """Pop so many tasks in bulks of a host, ending their flights in groups; time of popping and of ending.

    `held` are the hosts that are admitted, and stay so.
    """
    popping, ending, popped = Spent(), Spent(), 0
    while popped < count:
        flying: list[Task] = []
        with popping:
            while len(flying) < BULK:
                if not held:
                    held += [state.host for state in queues.admit(time.time(), 4_096)]
                if not held:
                    break
                host = held.pop()
                if tasks := queues.pop(host, POP_BULK):
                    flying += tasks
                    held.insert(0, host)
        popped += len(flying)
        if not flying:
            break
        with ending, ledger.group() as group:
            for task in flying:
                group.done(task.url)
    return popping, ending


def _queues(size: int, hosts: int) -> tuple[str, ...]:
    names, chance = _names(hosts), random.Random(1)
    popped, more, last = min(size // 2, 200_000), min(size, 200_000), min(size // 8, 200_000)
    with tempfile.TemporaryDirectory() as folder:
        ledger, queues = opened(folder)
        before, held = processes.resident() / 1e6, list[str]()
        pushing = _fill(ledger, names, 0, size, chance)
        first, _ = _pop(ledger, queues, held, popped)
        _pop(ledger, queues, held, min(size // 4, 1_000_000))
        later, ending = _pop(ledger, queues, held, last)
        again = _fill(ledger, names, size, more, chance)
        ledger.close()
        with Spent() as reopening:
            ledger, queues = opened(folder)
            while not any(queues.pop(state.host) for state in queues.admit(time.time(), 1)):
                pass
        memory = processes.resident() / 1e6
        ledger.close()

    def rates(spent: Spent, count: int) -> str:
        """Operations a second of wall time, and a second of this thread's CPU time, which a shared machine blurs less."""
        return f"{count / spent.wall / 1e3:,.0f}k ({count / spent.thread / 1e3:,.0f}k)"

    return (
        *(f"{size:,}", f"{hosts:,}", rates(pushing, size), rates(again, more)),
        *(rates(first, popped), rates(later, last), rates(ending, last)),
        *(f"{reopening.wall:.2f}", f"{memory:.0f} (+{memory - before:.0f})"),
    )


def _links(hosts: list[str], count: int, chance: random.Random) -> Iterator[str]:
    """Links of pages: a site's navigation is on each of its pages, some links lead to any page of it, some to
    popular pages elsewhere, some are new. So many sites are in turn at once as a crawl of some hundred pages/s keeps.
    """
    active = chance.sample(hosts, min(ACTIVE, len(hosts)))
    for number in range(count):
        active[number % len(active)] = chance.choice(hosts) if chance.random() < 0.05 else active[number % len(active)]
        home = active[number % len(active)]
        inward = chance.sample(range(NAVIGATION, SITE), LINKS - NEW - NAVIGATION - OUTWARD)
        yield from (f"https://{home}/section/page-{n}.html" for n in (*range(NAVIGATION), *inward))
        popular = {int(len(hosts) * chance.random() ** 6) for _ in range(OUTWARD)}
        yield from (f"https://{hosts[n]}/section/page-0.html" for n in popular)
        yield from (f"https://{home}/new/page-{number}-{n}.html" for n in range(NEW))


def _known(size: int, hosts: int) -> list[tuple[str, ...]]:
    """The cost of an agent that has seen `size` URLs and has half of them queued, at each tenth of them; and that of asking
    for the links of pages, most of which are known."""
    names, chance, rows = _names(hosts), random.Random(3), list[tuple[str, ...]]()
    with tempfile.TemporaryDirectory() as folder:
        ledger, queues = opened(folder)
        filling = Spent()
        for start in range(0, size, BULK):
            tasks = _tasks(names, start, BULK, chance)
            with filling, ledger.group() as group:
                group.offer([task.url for task in tasks])
                group.push(tasks[: BULK // 2])
            if (seen := start + BULK) * 10 % size < BULK * 10:
                asked = list(_links(names, VISITS, chance))
                with Spent() as asking:
                    for first in range(0, len(asked), PAGES * LINKS):
                        ledger.seen.unseen(asked[first : first + PAGES * LINKS])
                kept = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
                cpu = f"{filling.cpu / seen * 1e6:.1f}", f"{asking.thread / len(asked) * 1e6:.2f}"
                rows.append((f"{seen:,}", f"{processes.resident() / 1e6:.0f}", f"{kept / seen:.0f}", *cpu, "", ""))
                print(*rows[-1], file=sys.stderr, flush=True)  # the largest take an hour
        _pop(ledger, queues, [], 100_000)
        popped = processes.resident() / 1e6
        ledger._store.flush()  # a crawl does so beside its groups, see `checkpoint_at_work`
        with Spent() as held:
            ledger.checkpoint("kept")
        ledger.close()
    return [*rows[:-1], (*rows[-1][:-2], f"{popped:.0f}", f"{held.wall * 1e3:.0f} ({held.thread * 1e3:.0f})")]


def run() -> BenchReport:
    """Measure queues and memory of the ledger."""
    large = int(os.environ.get("GOSSAMER_BENCH_URLS", LARGE))
    report = BenchReport("ledger")
    # How slow this machine is at this moment.
    seen, urls = MemorySeen(), [f"https://www.site-{n % 97}.example/section/page-{n}.html" for n in range(100_000)]
    seen.offer(urls)
    with Spent() as spent:
        seen.unseen(urls)
    question = spent.thread / len(urls) * 1e6
    load = f"load {os.getloadavg()[0]:.1f}, a question to the set in memory {question:.2f} us where a quiet machine takes 0.17"
    queues = report.table(
        f"Queues at {load}; per second of wall time and (of CPU time): push >= 500k, pop >= 200k, opening <= 2 s",
        *("queued", "hosts", "push/s", "later", "pop/s", "later", "ended/s", "open s", "MB"),
    )
    for size, hosts in ((SMALL, 10_000), (large, 10_000), (large, 100_000)):
        queues.add(*apart("tools.bench.ledger:part", "queues", size, hosts))
    known = report.table(
        f"{large:,} known URLs on 100,000 hosts, half of them queued (<= 300 MB at 10 M); links of pages are asked for",
        *("seen", "MB", "bytes a URL", "us CPU a new URL", "us CPU a link", "MB after popping 100,000"),
        "a checkpoint holds up, ms (of CPU)",
    )
    for row in apart("tools.bench.ledger:part", "known", large, 100_000):
        known.add(*row)
    return report


def part(name: str, size: int, hosts: int) -> tuple[str, ...] | list[tuple[str, ...]]:
    """A row of the table of queues, or all of the other one, measured in this process."""
    gc.freeze()
    return _queues(size, hosts) if name == "queues" else _known(size, hosts)
