"""The cost of dividing a crawl, for 1 to 64 agents: exchange, coverage, overlap and quality, as Cho and Garcia-Molina
measured them; and the cost of saying which agent a URL goes to.

By simulation, on one synthetic web, with the designation of a crawl (J. Cho, H. Garcia-Molina, "Parallel crawlers", WWW
2002; Hunyadi 2007, sections 2.4 and 5.3.1). No page is fetched, and every draw comes of a fixed seed: two runs give the same
figures, but for microseconds.

*marshal*: the marshaler between two connectors, with its providers, and a whole master, by the URL.
"""

import asyncio
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np

from gossamer.agents.designations import DesignationSheet, KeptDesignations, LeastLoaded, SharedDesignations
from gossamer.agents.mail import MassCommunicator, MassMail, MassMailSheet
from gossamer.agents.marshaler import GivenHostNames, Marshal, RecentUrlTable
from gossamer.agents.url_exchange import BATCH
from gossamer.bench.harness import Spent, pages_option
from gossamer.bench.report import BenchReport
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import EndOfItems
from gossamer.engine.gate import Receipt, current
from gossamer.engine.local import LocalConnector
from gossamer.engine.runner import Runner
from gossamer.parsing.filters import ConstraintFilter, ConstraintSheet
from gossamer.storage.mailbox.shared_state import CrawlSharedState, SharedStateSheet
from gossamer.storage.seen.memory import SaturatingTable, SecondChance
from gossamer.storage.seen.runs import Recent
from gossamer.values.agents import Designated, agent_name
from gossamer.values.hosts import Division
from gossamer.values.task import Task
from gossamer.values.url import host_of
from tools.bench.dividing import DividedWeb, ExchangeMode, SimulatedCrawl, crawl, owners, quality
from tools.bench.ledger import opened

#: Pages and hosts of the web. Ten links a page: four hundred thousand links for each crawl.
PAGES, HOSTS = 40_000, 2_000

#: Agents of each row.
AGENTS = (1, 2, 4, 8, 16, 64)

#: The name of a row -> the unit by which it is divided.
DIVISIONS: dict[str, Division | None] = {"domain": "domain", "host": "host", "URL": None}

#: Share of the web that a crawl fetches whose quality is measured, as in the paper: 8 of 40 million pages.
FETCHED = 0.2

#: Exchanges during a crawl; None tells every link at once.
EXCHANGES = (0, 1, 2, 5, 10, 50, None)

#: Shares of the web at which the overlap of cross-over mode is read.
COVERED = (0.5, 0.8, 0.9)

#: References and distinct URLs of the load of a recently-seen table, and its sizes: those that the thesis names.
REFERENCES, URLS = 1_000_000, 1_000_000
TABLES = (10_000, 30_000, 100_000)

#: Tells which of a few URLs are not in a table, and puts these in.
Table = Callable[[Sequence[str]], Sequence[str]]


def filled(table: SaturatingTable | SecondChance | Recent) -> Table:
    def offer(urls: Sequence[str]) -> Sequence[str]:
        rest = table.misses(urls)
        if isinstance(table, Recent):
            table.add(rest)
        else:
            for url in rest:
                table.insert(url)
        return rest

    return offer


def zipf(urls: int, references: int, exponent: float, seed: int) -> list[str]:
    """References to URLs by formula 5.1: the k-th most common one has a share in proportion to k to the power of -exponent."""
    upto = np.cumsum(np.arange(1, urls + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(upto, np.random.default_rng(seed).random(references) * upto[-1])
    return [f"http://www.h{rank % 997}.example/{rank}" for rank in ranks.tolist()]


def saved(offer: Table, references: Sequence[str]) -> float:
    """The share of messages that a table saves, one URL at a time."""
    return 1 - sum(len(offer((url,))) for url in references) / len(references)


#: The tables that are compared: that of the thesis, the provider `recently-seen`, whose hand goes round one place at a time, and
#: the one in front of the sieve.
KINDS: dict[str, Callable[[int], SaturatingTable | SecondChance | Recent]] = {
    "thesis: erase at saturation": SaturatingTable,
    "second chance (`recently-seen`)": SecondChance,
    "two generations (the sieve's)": Recent,
}


@pages_option(PAGES, "Simulate a web of this many pages.")
def run(pages: int = PAGES) -> BenchReport:
    """Measure what dividing a crawl costs, by simulation."""
    report = BenchReport("exchange")
    web = DividedWeb(pages, max(64, pages * HOSTS // PAGES), seed=1)
    _exchange(report, web)
    _modes(report, web)
    _quality(report, web)
    _moved(report, web)
    _tables(report, REFERENCES * pages // PAGES)
    return report


def _exchange(report: BenchReport, web: DividedWeb) -> None:
    table = report.table(
        f"Exchange for each page fetched; {len(web):,} pages, {len(web.hosts):,} hosts, a tenth of the links to other hosts",
        *("agents", *(f"links, by {name}" for name in DIVISIONS), *(f"URLs, by {name}" for name in DIVISIONS)),
    )
    for agents in AGENTS:
        crawls = [crawl(web, owners(web, agents, by), ExchangeMode.EXCHANGE) for by in DIVISIONS.values()]
        table.add(
            agents,
            *(f"{one.links_sent / len(one.fetched):.2f}" for one in crawls),
            *(f"{one.urls_sent / len(one.fetched):.2f}" for one in crawls),
        )


def _modes(report: BenchReport, web: DividedWeb) -> None:
    table = report.table(
        f"Coverage without exchange and overlap of cross-over, by domain, from {len(web.seeds)} seeds",
        *("agents", "firewall covers", *(f"overlap at {share:.0%}" for share in COVERED)),
        *("exchange covers", "its overlap"),
    )
    reachable = len(set(crawl(web, owners(web, 1, "domain"), ExchangeMode.EXCHANGE).fetched))
    for agents in AGENTS:
        owner = owners(web, agents, "domain")
        apart = crawl(web, owner, ExchangeMode.FIREWALL)
        told = crawl(web, owner, ExchangeMode.EXCHANGE)
        table.add(
            agents,
            f"{len(set(apart.fetched)) / reachable:.1%}",
            *_overlaps(web, owner, reachable),
            f"{len(set(told.fetched)) / reachable:.1%}",
            f"{told.overlap:.2f}",
        )


def _overlaps(web: DividedWeb, owner: Sequence[int], reachable: int) -> list[str]:
    """The overlap of cross-over at each share of :data:`COVERED`; the crawl ends at the last one."""
    unique, found, at = set[int](), list[str](), 0

    def is_covered(told: SimulatedCrawl) -> bool:
        nonlocal at
        for page in told.fetched[at:]:
            at += 1
            unique.add(page)
            if len(found) < len(COVERED) and len(unique) >= COVERED[len(found)] * reachable:
                found.append(f"{(at - len(unique)) / len(unique):.2f}")
        return len(found) == len(COVERED)

    crawl(web, owner, ExchangeMode.CROSS_OVER, until=is_covered)
    return found


def _quality(report: BenchReport, web: DividedWeb) -> None:
    budget = int(len(web) * FETCHED)
    for name, importance in (("back-references", web.references), ("PageRank", web.ranks)):
        table = report.table(
            f"Quality beside an oracle by {name}: {FETCHED:.0%} of the web, divided by domain, most references first, "
            "by the number of exchanges during the crawl",
            *("agents", *(str(number) for number in EXCHANGES[:-1]), "every link"),
        )
        for agents in AGENTS:
            owner = owners(web, agents, "domain")
            cells = []
            for exchanges in EXCHANGES:
                mode = ExchangeMode.FIREWALL if exchanges == 0 else ExchangeMode.EXCHANGE
                told = crawl(web, owner, mode, budget=budget, exchanges=exchanges or None, best_first=True)
                cells.append(f"{quality(told.fetched, importance, budget):.2f}")
            table.add(agents, *cells)


def _moved(report: BenchReport, web: DividedWeb) -> None:
    table = report.table(
        "Hosts that move when an agent joins (and move back when it leaves), and the load, by domain",
        *("agents", "hosts that move", "of them to the new agent", "at best", "fullest agent / mean, hosts", "pages"),
    )
    first = np.unique(web.host_of, return_index=True)[1].tolist()
    for agents in AGENTS:
        before, after = owners(web, agents, "domain"), owners(web, agents + 1, "domain")
        moved = [after[page] for page in first if before[page] != after[page]]
        hosts, pages = (Counter(before[page] for page in first), Counter(before))
        table.add(
            f"{agents} to {agents + 1}",
            f"{len(moved) / len(first):.1%}",
            f"{moved.count(agents) / len(moved):.0%}" if moved else "",
            f"{1 / (agents + 1):.1%}",
            f"{max(hosts.values()) * agents / len(first):.2f}",
            f"{max(pages.values()) * agents / len(web):.2f}",
        )


def _tables(report: BenchReport, references: int) -> None:
    load = zipf(URLS, references, 1.0, seed=1)
    at_best = 1 - len(set(load)) / len(load)
    table = report.table(
        f"Messages that a recently-seen table saves: {references:,} references to {URLS:,} URLs by formula 5.1, s = 1; "
        f"an endless table saves {at_best:.1%}",
        *("table", *(f"{size:,} URLs" for size in TABLES), "us a URL, largest"),
    )
    for name, kind in KINDS.items():
        shares = [saved(filled(kind(size)), load) for size in TABLES[:-1]]
        with Spent() as spent:
            shares.append(saved(filled(kind(TABLES[-1])), load))
        table.add(name, *(f"{share:.1%}" for share in shares), f"{spent.cpu / references * 1e6:.2f}")


#: URLs of one measurement, and how often each is repeated; the median is told.
MARSHALED, REPEATS = 300_000, 3

#: Hosts of URLs that come once: more than a batch has, fewer than are remembered.
NAMES = 9_973

#: Items between two connectors, as on the way from an agent (:mod:`gossamer.agents.wiring`).
CAPACITY = 4_096

#: URLs of one domain in the load of new domains: a page of a new site is found with some of its own.
OF_ONE_DOMAIN = 10

#: Agents that URLs go to.
MEMBERS = tuple(agent_name(number) for number in range(8))


def marshal(urls: int = MARSHALED, repeats: int = REPEATS) -> BenchReport:
    """Measure so many URLs so often, and make the report."""
    report = BenchReport("marshal")
    table = report.table(
        f"Marshaling {urls:,} URLs to {len(MEMBERS)} agents, median of {repeats} runs of processor time",
        *("load", "us a URL", "URLs/s on one core", "held back", "domains"),
    )
    whole = report.table(
        f"A master with {len(MEMBERS)} agents, without the links between processes, median of {repeats} runs of processor time",
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
        "each URL once": (f"http://www.h{n % NAMES}.example/{n}/page.html" for n in numbers),
        "a new domain in ten URLs": (f"http://www.h{n // OF_ONE_DOMAIN}.example/{n}/page.html" for n in numbers),
        "each with a port": (f"http://www.h{n % NAMES}.example:8080/{n}/page.html" for n in numbers),
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
        table = marshal.designations = KeptDesignations(DesignationSheet(members=MEMBERS))
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
        table = marshal.designations = SharedDesignations(DesignationSheet(members=MEMBERS))
        table.shared, table.policy = shared, LeastLoaded()
        await table.start()
        mail = communicator.mail = MassMail(MassMailSheet(agents=MEMBERS))
        mail.shared, mail.designations = shared, table
        await mail.start()
        inbox, designated = LocalConnector("inbox", Task, CAPACITY), LocalConnector("designated", Designated, CAPACITY)
        marshal.bind({"inbox": In("inbox", inbox)}, {"outbox": Out("outbox", designated)})
        communicator.bind({"inbox": In("inbox", designated)}, {})

        async def send(agent: str) -> None:
            while True:
                mail.delivered(await mail.take(agent, BATCH))

        senders = [asyncio.create_task(send(agent)) for agent in MEMBERS]
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
