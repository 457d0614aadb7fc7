"""What it costs to say which agent a URL goes to: the marshaler between two connectors, with its providers, and a whole master, by
the URL."""

import asyncio
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress

from gossamer.agents.designations import DesignationSheet, KeptDesignations, LeastLoaded, SharedDesignations
from gossamer.agents.mail import MassCommunicator, MassMail, MassMailSheet
from gossamer.agents.marshaler import GivenHostNames, Marshal, RecentUrlTable
from gossamer.agents.url_exchange import BATCH
from gossamer.bench.harness import Spent
from gossamer.bench.report import BenchReport
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import EndOfItems
from gossamer.engine.gate import Receipt, current
from gossamer.engine.local import LocalConnector
from gossamer.engine.runner import Runner
from gossamer.parsing.filters import ConstraintFilter, ConstraintSheet
from gossamer.storage.mailbox.shared_state import CrawlSharedState, SharedStateSheet
from gossamer.values.agents import Designated, agent_name
from gossamer.values.task import Task
from gossamer.values.url import host_of
from tools.bench.exchange import zipf
from tools.bench.ledger import opened

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
_MEMBERS = tuple(agent_name(number) for number in range(AGENTS))


def marshal(urls: int = URLS, repeats: int = REPEATS) -> BenchReport:
    """Measure so many URLs so often, and make the report."""
    report = BenchReport("marshal")
    table = report.table(
        f"Marshaling {urls:,} URLs to {AGENTS} agents, median of {repeats} runs of processor time",
        *("load", "us a URL", "URLs/s on one core", "held back", "domains"),
    )
    whole = report.table(
        f"A master with {AGENTS} agents, without the links between processes, median of {repeats} runs of processor time",
        *("load", "us a URL", "URLs/s on one core"),
    )
    for name, load in loads(urls).items():
        runs = [asyncio.run(_marshaled(load)) for _ in range(repeats)]
        _, passed, domains = runs[0]
        times = (
            statistics.median(seconds for seconds, _, _ in runs),
            statistics.median(asyncio.run(_mastered(load)) for _ in range(repeats)),
        )
        marshaled, mastered = ((f"{one / len(load) * 1e6:.2f}", f"{len(load) / one:,.0f}") for one in times)
        table.add(name, *marshaled, f"{1 - passed / len(load):.1%}", f"{domains:,}")
        whole.add(name, *mastered)
    return report


def loads(urls: int) -> dict[str, list[Task]]:
    """The loads that are measured, by name."""
    numbers = range(urls)
    made: dict[str, Iterable[str]] = {
        "links by Zipf's law": zipf(urls, urls, 1.0, seed=1),
        "each URL once": (f"http://www.h{n % HOSTS}.example/{n}/page.html" for n in numbers),
        "a new domain in ten URLs": (f"http://www.h{n // OF_ONE_DOMAIN}.example/{n}/page.html" for n in numbers),
        "each with a port": (f"http://www.h{n % HOSTS}.example:8080/{n}/page.html" for n in numbers),
    }
    return {
        name: [Task(url, host_of(url), 1 + at % 3, "http://a.example/", "a href") for at, url in enumerate(some)]
        for name, some in made.items()
    }


async def _marshaled(load: Sequence[Task]) -> tuple[float, int, int]:
    """Seconds of processor time, the URLs that were passed on, and domains that were given away."""
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        ledger, _ = opened(folder)
        marshal = _marshal()
        table = marshal.designations = KeptDesignations(DesignationSheet(members=_MEMBERS))
        table.ledger, table.policy = ledger, LeastLoaded()
        await table.start()
        inbox, outbox = LocalConnector("inbox", Task, CAPACITY), LocalConnector("outbox", Designated, CAPACITY)
        marshal.bind({"inbox": In("inbox", inbox)}, {"outbox": Out("outbox", outbox)})
        taking = In("outbox", outbox)

        async def take() -> None:
            nonlocal passed
            with suppress(EndOfItems):
                while True:
                    passed += len(await taking.receive_many(CAPACITY))

        with Spent() as spent:
            work = [asyncio.create_task(Runner(marshal).run()), asyncio.create_task(take())]
            feed = Out("inbox", inbox)
            for at in range(0, len(load), CAPACITY):
                await feed.send_many(load[at : at + CAPACITY])
            feed.close()
            await asyncio.gather(*work)
        domains = int(table.metrics.counters["given"])
        ledger.close()
    return spent.cpu, passed, domains


async def _mastered(load: Sequence[Task]) -> float:
    """Seconds of processor time of a whole master, until all that it passes on has been delivered."""
    with tempfile.TemporaryDirectory() as folder:
        shared = CrawlSharedState(SharedStateSheet(directory=folder))
        await shared.start()
        marshal, communicator = _marshal(), MassCommunicator()
        table = marshal.designations = SharedDesignations(DesignationSheet(members=_MEMBERS))
        table.shared, table.policy = shared, LeastLoaded()
        await table.start()
        mail = communicator.mail = MassMail(MassMailSheet(agents=_MEMBERS))
        mail.shared, mail.designations = shared, table
        await mail.start()
        inbox, designated = LocalConnector("inbox", Task, CAPACITY), LocalConnector("designated", Designated, CAPACITY)
        marshal.bind({"inbox": In("inbox", inbox)}, {"outbox": Out("outbox", designated)})
        communicator.bind({"inbox": In("inbox", designated)}, {})

        async def send(agent: str) -> None:
            while True:
                mail.delivered(await mail.take(agent, BATCH))

        senders = [asyncio.create_task(send(agent)) for agent in _MEMBERS]
        with Spent() as spent:
            work = [asyncio.create_task(Runner(one).run()) for one in (marshal, communicator)]
            feed = Out("inbox", inbox)
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
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        await mail.stop()
        await shared.stop()
    return spent.cpu


def _marshal() -> Marshal:
    marshal = Marshal()
    marshal.recent, marshal.hosts = RecentUrlTable(), GivenHostNames()
    marshal.constraints = ConstraintFilter(ConstraintSheet(never=("hu.*",)))
    return marshal
