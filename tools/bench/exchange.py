"""What dividing a crawl costs, for 1 to 64 agents: exchange, coverage, overlap and quality, as Cho and Garcia-Molina
measured them.

By simulation, on one synthetic web, with the designation of a crawl (J. Cho, H. Garcia-Molina, "Parallel crawlers", WWW
2002; Hunyadi 2007, sections 2.4 and 5.3.1). No page is fetched, and every draw comes of a fixed seed: two runs give the same
figures, but for microseconds.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from gossamer.bench.harness import Spent, pages_option
from gossamer.bench.report import BenchReport
from gossamer.storage.seen.memory import SaturatingTable, SecondChance
from gossamer.storage.seen.runs import Recent
from gossamer.values.hosts import Division
from tools.bench.dividing import DividedWeb, ExchangeMode, SimulatedCrawl, crawl, owners, quality

#: Pages and hosts of the web. Ten links a page: four hundred thousand links for each crawl.
PAGES, HOSTS = 40_000, 2_000

#: Agents of each row.
AGENTS = (1, 2, 4, 8, 16, 64)

#: What a row is divided by, and what it is called.
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


def thesis_table(capacity: int) -> Table:
    return _filled(SaturatingTable(capacity))


def second_chance_table(capacity: int) -> Table:
    """The provider `recently-seen`: a hand goes round, one place at a time."""
    return _filled(SecondChance(capacity))


def generations_table(capacity: int) -> Table:
    """The one in front of the sieve: two generations."""
    return _filled(Recent(capacity))


def _filled(table: SaturatingTable | SecondChance | Recent) -> Table:
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


#: The tables that are compared.
KINDS = {
    "thesis: erase at saturation": thesis_table,
    "second chance (`recently-seen`)": second_chance_table,
    "two generations (the sieve's)": generations_table,
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
        shares = [saved(kind(size), load) for size in TABLES[:-1]]
        with Spent() as spent:
            shares.append(saved(kind(TABLES[-1]), load))
        table.add(name, *(f"{share:.1%}" for share in shares), f"{spent.cpu / references * 1e6:.2f}")
