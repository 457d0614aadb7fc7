"""What it costs to say which agent a URL goes to: the marshaler between two connectors, with its providers, by the URL.

The first load is that of the recently-seen tables: references to URLs by Zipf's law (Hunyadi 2007, formula 5.1), as links of pages
are. The second has only URLs that come once, on hosts that come again, so that nothing is held back. The third has a new domain in
every tenth URL, as at the beginning of a crawl. In the fourth, which is the second otherwise, each URL names a port, so that only
the parser can tell whether it is canonical. The second table is a whole master: the table of designations that masters share, and
the mass communicator with its mail, from which a sender for each agent takes. Processor time of the whole process counts, with what
the ledger does in threads.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence

from gossamer.agents.designations import DesignationSheet, KeptDesignations, SharedDesignations, SharedDesignationSheet
from gossamer.agents.mail import MassCommunicator, MassMail, MassMailSheet
from gossamer.agents.marshaler import GivenHostNames, Marshal, RecentUrlTable
from gossamer.agents.policies import LeastLoaded
from gossamer.agents.shared_state import CrawlSharedState, SharedStateSheet
from gossamer.agents.url_exchange import BATCH
from gossamer.bench.recently import zipf
from gossamer.bench.report import BenchReport
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import EndOfItems
from gossamer.engine.gate import Receipt, current
from gossamer.engine.local import LocalConnector
from gossamer.engine.runner import Runner
from gossamer.parsing.filters import ConstraintFilter, ConstraintSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.agents import Designated, agent_name
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: URLs of one measurement, and how often each is repeated; the median is told.
URLS, REPEATS = 300_000, 3

#: Hosts of URLs that come once: more than a batch has, fewer than are remembered.
HOSTS = 9_973

#: Items between two connectors, as on the way from an agent (:mod:`gossamer.agents.wiring`).
CAPACITY = 4_096

#: URLs of one domain in the load of new domains: a page of a new site is found with some of its own.
OF_ONE_DOMAIN = 10

#: Agents that URLs go to.
AGENTS = 8


def run(urls: int = URLS, repeats: int = REPEATS) -> BenchReport:
    """Measure so many URLs so often, and make the report."""
    report = BenchReport("marshal")
    table = report.table(
        f"Marshaling {urls:,} URLs to {AGENTS} agents, median of {repeats} runs of processor time",
        *("load", "us a URL", "URLs/s on one core", "held back", "domains"),
    )
    for name, load in loads(urls).items():
        runs = [asyncio.run(_marshaled(load)) for _ in range(repeats)]
        seconds = statistics.median(run[0] for run in runs)
        _, passed, domains = runs[0]
        table.add(
            name,
            f"{seconds / len(load) * 1e6:.2f}",
            f"{len(load) / seconds:,.0f}",
            f"{1 - passed / len(load):.1%}",
            f"{domains:,}",
        )
    whole = report.table(
        f"A master with {AGENTS} agents, without the links between processes, median of {repeats} runs of processor time",
        *("load", "us a URL", "URLs/s on one core"),
    )
    for name, load in loads(urls).items():
        seconds = statistics.median(asyncio.run(_mastered(load)) for _ in range(repeats))
        whole.add(name, f"{seconds / len(load) * 1e6:.2f}", f"{len(load) / seconds:,.0f}")
    return report


def loads(urls: int) -> dict[str, list[Task]]:
    """The loads that are measured, by name."""
    return {
        "links by Zipf's law": _tasks(zipf(urls, urls, 1.0, seed=1)),
        "each URL once": _tasks(f"http://www.h{number % HOSTS}.example/{number}/page.html" for number in range(urls)),
        "a new domain in ten URLs": _tasks(
            f"http://www.h{number // OF_ONE_DOMAIN}.example/{number}/page.html" for number in range(urls)
        ),
        "each with a port": _tasks(
            f"http://www.h{number % HOSTS}.example:8080/{number}/page.html" for number in range(urls)
        ),
    }


def _tasks(urls: Iterable[str]) -> list[Task]:
    return [Task(url, host_of(url), 1 + number % 3, "http://a.example/", "a href") for number, url in enumerate(urls)]


async def _marshaled(load: Sequence[Task]) -> tuple[float, int, int]:
    """Seconds of processor time, the URLs that were passed on, and domains that were given away."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = RocksLedger(LedgerSheet(directory=folder))
        await ledger.start()
        marshal = _marshal()
        members = tuple(agent_name(number) for number in range(AGENTS))
        table = marshal.designations = KeptDesignations(DesignationSheet(members=members))
        table.ledger, table.policy = ledger, LeastLoaded()
        await table.start()
        inbox = LocalConnector("inbox", Task, CAPACITY)
        outbox = LocalConnector("outbox", Designated, CAPACITY)
        marshal.bind({"inbox": In("inbox", inbox)}, {"outbox": Out("outbox", outbox)})
        work = asyncio.create_task(Runner(marshal).run())
        took = asyncio.create_task(_taken(In("outbox", outbox)))
        feed = Out("inbox", inbox)
        began = time.process_time()
        for at in range(0, len(load), CAPACITY):
            await feed.send_many(load[at : at + CAPACITY])
        feed.close()
        await work
        passed = await took
        seconds = time.process_time() - began
        domains = int(table.metrics.counters["given"])
        await ledger.stop()
    return seconds, passed, domains


async def _mastered(load: Sequence[Task]) -> float:
    """Seconds of processor time of a whole master, until all that it passes on has been delivered."""
    with tempfile.TemporaryDirectory() as folder:
        shared = CrawlSharedState(SharedStateSheet(directory=folder))
        await shared.start()
        members = tuple(agent_name(number) for number in range(AGENTS))
        marshal, communicator = _marshal(), MassCommunicator()
        table = marshal.designations = SharedDesignations(SharedDesignationSheet(members=members))
        table.shared, table.policy = shared, LeastLoaded()
        await table.start()
        mail = communicator.mail = MassMail(MassMailSheet(agents=members))
        mail.shared, mail.designations = shared, table
        await mail.start()
        inbox = LocalConnector("inbox", Task, CAPACITY)
        designated = LocalConnector("designated", Designated, CAPACITY)
        marshal.bind({"inbox": In("inbox", inbox)}, {"outbox": Out("outbox", designated)})
        communicator.bind({"inbox": In("inbox", designated)}, {})
        work = [asyncio.create_task(Runner(one).run()) for one in (marshal, communicator)]
        senders = [asyncio.create_task(_sent(mail, agent)) for agent in members]
        feed = Out("inbox", inbox)
        began = time.process_time()
        for at in range(0, len(load), CAPACITY):
            # As a frame from an agent: a receipt holds until all that it causes is safe.
            receipt = Receipt(lambda: None)
            token = current.set(receipt)
            await feed.send_many(load[at : at + CAPACITY])
            current.reset(token)
            receipt.release()
        feed.close()
        await asyncio.gather(*work)
        while not mail.is_empty:
            await asyncio.sleep(0)
        seconds = time.process_time() - began
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        await mail.stop()
        await shared.stop()
    return seconds


async def _sent(mail: MassMail, agent: str) -> None:
    while True:
        mail.delivered(await mail.take(agent, BATCH))


def _marshal() -> Marshal:
    marshal = Marshal()
    marshal.recent, marshal.hosts = RecentUrlTable(), GivenHostNames()
    marshal.constraints = ConstraintFilter(ConstraintSheet(never=("hu.*",)))
    return marshal


async def _taken(outbox: In[Designated]) -> int:
    """How many come, until no more do."""
    number = 0
    while True:
        try:
            number += len(await outbox.receive_many(CAPACITY))
        except EndOfItems:
            return number
