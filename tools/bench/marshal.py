"""What it costs to say which agent a URL goes to, and what it saves to say it well.

*marshal*: the marshaler between two connectors, with its providers, by the URL.

*places*: agents at several places of a simulated world fetch each host from near by, or not. The world: places on a circle,
and registered domains whose hosts stand near the place of their country, or anywhere. A round trip takes 5 ms, and up to 145
ms more by distance; what is measured strays from that by a quarter. In a first crawl the ring knows no places, so each
domain is measured by the one agent that has it. The rules that follow from this divide the same domains again.
"""

import asyncio
import random
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from gossamer.agents.designations import DesignationSheet, KeptDesignations, LeastLoaded, SharedDesignations
from gossamer.agents.mail import MassCommunicator, MassMail, MassMailSheet
from gossamer.agents.marshaler import GivenHostNames, Marshal, RecentUrlTable
from gossamer.agents.ring import MeasuredLatency, PlaceTable, Ring, rules_of
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
from gossamer.values.agents import Designated, Member, agent_name
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
    return {
        "links by Zipf's law": _tasks(zipf(urls, urls, 1.0, seed=1)),
        "each URL once": _tasks(f"http://www.h{n % HOSTS}.example/{n}/page.html" for n in range(urls)),
        "a new domain in ten URLs": _tasks(
            f"http://www.h{n // OF_ONE_DOMAIN}.example/{n}/page.html" for n in range(urls)
        ),
        "each with a port": _tasks(f"http://www.h{n % HOSTS}.example:8080/{n}/page.html" for n in range(urls)),
    }


def _tasks(urls: Iterable[str]) -> list[Task]:
    return [Task(url, host_of(url), 1 + number % 3, "http://a.example/", "a href") for number, url in enumerate(urls)]


async def _marshaled(load: Sequence[Task]) -> tuple[float, int, int]:
    """Seconds of processor time, the URLs that were passed on, and domains that were given away."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, _ = opened(folder)
        marshal = _marshal()
        table = marshal.designations = KeptDesignations(DesignationSheet(members=_MEMBERS))
        table.ledger, table.policy = ledger, LeastLoaded()
        await table.start()
        inbox, outbox = LocalConnector("inbox", Task, CAPACITY), LocalConnector("outbox", Designated, CAPACITY)
        marshal.bind({"inbox": In("inbox", inbox)}, {"outbox": Out("outbox", outbox)})
        with Spent() as spent:
            work = asyncio.create_task(Runner(marshal).run())
            took = asyncio.create_task(_taken(In("outbox", outbox)))
            feed = Out("inbox", inbox)
            for at in range(0, len(load), CAPACITY):
                await feed.send_many(load[at : at + CAPACITY])
            feed.close()
            await work
            passed = await took
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
        senders = [asyncio.create_task(_sent(mail, agent)) for agent in _MEMBERS]
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
    with suppress(EndOfItems):
        while True:
            number += len(await outbox.receive_many(CAPACITY))
    return number


#: Domains, their countries, and the share of them whose hosts stand anywhere.
DOMAINS, COUNTRIES, ANYWHERE = 20_000, 60, 0.25

#: Places with two agents each.
PLACES = ("amsterdam", "oregon", "singapore", "sao-paulo")

#: Milliseconds of the shortest round trip, and of what the other side of the world adds.
NEAR, FAR = 5.0, 145.0

#: Part by which a measurement strays.
NOISE = 0.25


class World(NamedTuple):
    """Where things are, as parts of a circle."""

    places: Mapping[str, float]
    domains: Mapping[str, float]

    def round_trip(self, place: str, domain: str) -> float:
        apart = abs(self.places[place] - self.domains[domain])
        return NEAR + FAR * 2 * min(apart, 1 - apart)


def world(domains: int = DOMAINS, seed: int = 1) -> World:
    """A world; the same for the same numbers."""
    chance = random.Random(seed)
    places = {place: number / len(PLACES) for number, place in enumerate(PLACES)}
    homes = [chance.random() for _ in range(COUNTRIES)]
    found = {}
    for number in range(domains):
        country = chance.randrange(COUNTRIES)
        is_home = chance.random() >= ANYWHERE
        at = (homes[country] + chance.gauss(0, 0.02)) % 1 if is_home else chance.random()
        found[f"site{number}.c{country}"] = at
    return World(places, found)


def places(domains: int = DOMAINS) -> BenchReport:
    """Measure what it saves to fetch each host from near by."""
    report = BenchReport("places")
    found = world(domains)
    members = [
        Member(f"agent-{2 * number + twin:02d}", place=place) for number, place in enumerate(PLACES) for twin in (0, 1)
    ]
    at = {one.agent: one.place for one in members}
    alone = Ring(members)
    chance = random.Random(2)
    measured = [
        MeasuredLatency(place, domain, found.round_trip(place, domain) * (1 + chance.gauss(0, NOISE)))
        for domain in found.domains
        for place in [at[alone.owner(domain)]]
    ]
    rules = rules_of(measured)
    nearest = {domain: min(PLACES, key=lambda place: found.round_trip(place, domain)) for domain in found.domains}
    table = report.table(
        f"{domains:,} domains of {COUNTRIES} countries, 8 agents at {len(PLACES)} places",
        *("what", "rules", "mean round trip, ms", "at the nearest place", "most loaded agent, of the mean"),
    )
    every = [f"{domain}={place}" for domain, place in nearest.items()]
    for name, given in (("no places", []), ("by measured latencies", rules), ("by the true places of all", every)):
        table.add(name, f"{len(given):,}", *_figures(found, Ring(members, PlaceTable(given)), at, nearest))
    return report


def _figures(found: World, ring: Ring, at: Mapping[str, str], nearest: Mapping[str, str]) -> tuple[str, str, str]:
    owners = {domain: ring.owner(domain) for domain in found.domains}
    trips: Sequence[float] = [found.round_trip(at[owner], domain) for domain, owner in owners.items()]
    loads = Counter(owners.values())
    hits = sum(at[owner] == nearest[domain] for domain, owner in owners.items())
    fullest = max(loads.values()) / (len(owners) / len(at))
    return f"{statistics.mean(trips):.1f}", f"{hits / len(owners):.0%}", f"{fullest:.2f}"
