"""The cost of dividing a crawl, for 1 to 64 agents: exchange, coverage, overlap and quality, as Cho and Garcia-Molina
measured them.

By simulation, on one synthetic web, with the designation of a crawl (J. Cho, H. Garcia-Molina, "Parallel crawlers", WWW
2002; Hunyadi 2007, sections 2.4 and 5.3.1): each agent fetches one page in turn. Pages and URLs are only counted, and every draw
comes of a fixed seed: two runs give the same figures, but for microseconds.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from itertools import count

import msgspec
import numpy as np
from numpy.typing import NDArray

from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.bench.harness import BenchReport, Spent, pages_option
from gossamer.query.ranking import pagerank
from gossamer.storage.seen.memory import SaturatingTable, SecondChance
from gossamer.storage.seen.runs import Recent
from gossamer.values.agents import agent_name
from gossamer.values.hosts import Division

#: Links of a page on average, and the share that leads to another host: Cho and Garcia-Molina (2002) counted about 10 % of 40
#: million pages.
LINKS, EXTERNAL = 10, 0.1

#: Hosts of one registered domain.
SHARING = 2

#: The share of links that the k-th most popular page has falls as k to the power of 1/POPULAR - 1: then the number of pages with n
#: links falls as n to the power of -2.2. Broder and others (WWW9, 2000, "Graph structure in the Web") counted -2.1.
POPULAR = 6

#: Pages of a host that each page leads to in the host's tree, so that all can be reached from its first page.
CHILDREN = 5


class DividedWeb:
    """Pages on hosts, most of whose links stay on their host; a few pages are linked far more often than others."""

    def __init__(self, pages: int, hosts: int, seed: int) -> None:
        """A web of so many pages. The size of the n-th host falls as one over the square root of n."""
        draw = np.random.default_rng(seed)
        weights = np.arange(1, hosts + 1) ** -0.5
        ends = np.round(np.cumsum(weights) / weights.sum() * pages).astype(np.int64)
        starts = np.concatenate(([0], ends[:-1]))
        self.host_of = np.repeat(np.arange(hosts), ends - starts)
        self.hosts = [f"h{number}.site{number // SHARING}.example" for number in draw.permutation(hosts)]
        degrees = draw.integers(1, 2 * LINKS, pages)
        sources = np.repeat(np.arange(pages), degrees)
        # Low numbers of a host, and of a random order of all pages, are popular.
        at = self.host_of[sources]
        inner = starts[at] + ((ends - starts)[at] * draw.random(len(sources)) ** POPULAR).astype(np.int64)
        outer = draw.permutation(pages)[(pages * draw.random(len(sources)) ** POPULAR).astype(np.int64)]
        targets = np.where(draw.random(len(sources)) < EXTERNAL, outer, inner)
        cuts = np.cumsum(degrees)[:-1]
        self.links: list[list[int]] = [one.tolist() for one in np.split(targets, cuts)]
        for page in range(pages):
            first = int(starts[self.host_of[page]])
            if page > first:
                self.links[first + (page - first - 1) // CHILDREN].append(page)
        self.links = [list(dict.fromkeys(all_of)) for all_of in self.links]
        distinct = np.array([(page, to) for page, all_of in enumerate(self.links) for to in all_of], dtype=np.int32)
        self.references = np.bincount(distinct[:, 1], minlength=pages).astype(np.float64)
        self.ranks, _ = pagerank(distinct[:, 0], distinct[:, 1], pages)
        self.seeds: list[int] = draw.choice(pages, size=min(64, pages), replace=False).tolist()

    def __len__(self) -> int:
        return len(self.links)

    def url(self, page: int) -> str:
        return f"http://{self.hosts[self.host_of[page]]}/{page}"


@lru_cache(maxsize=64)
def owners(web: DividedWeb, agents: int, by: Division | None) -> tuple[int, ...]:
    """The agent of each page by the ring: its domain's, its host's, or, where `by` is None, that of its URL's hash."""
    names = tuple(map(agent_name, range(agents)))
    number = {name: at for at, name in enumerate(names)}
    designation = RingDesignation(RingSheet(members=names, division=by or "host"))
    if by is None:
        # A label of its own for each URL: the ring hashes it as it hashes a host.
        return tuple(number[designation.owner(f"u{page}-{web.hosts[web.host_of[page]]}")] for page in range(len(web)))
    of_host = [number[designation.owner(host)] for host in web.hosts]
    return tuple(of_host[host] for host in web.host_of)


class ExchangeMode(Enum):
    """The ways of an agent with a link to another agent's page (Cho and Garcia-Molina 2002, section 3)."""

    FIREWALL = "firewall"
    """It forgets the link."""
    CROSS_OVER = "cross-over"
    """It keeps the link, and fetches the page itself when it has nothing of its own."""
    EXCHANGE = "exchange"
    """It tells the other agent."""


class SimulatedCrawl(msgspec.Struct):
    """The figures of a simulated crawl."""

    fetched: list[int] = []
    """Pages in the order in which they were fetched; one that two agents fetch stands here twice."""
    links_sent: int = 0
    """Links that lead to another agent, each time that they are met."""
    urls_sent: int = 0
    """URLs told to another agent, each once by each agent that met them."""

    @property
    def overlap(self) -> float:
        """Fetches too many for each page, (N - I) / I."""
        unique = len(set(self.fetched))
        return (len(self.fetched) - unique) / unique if unique else 0.0


class _Agent:
    """The knowledge of one agent: references that it has counted, pages that wait or are fetched, and links that it has to tell."""

    def __init__(self, *, best_first: bool) -> None:
        self._best_first = best_first
        self._turns = count()
        self._counts = Counter[int]()
        self._fronts: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
        """Own and foreign pages that wait: worth, turn, page."""
        self._done: set[int] = set()
        self.met: set[int] = set()
        self.telling = Counter[int]()

    def hear(self, page: int, references: int = 1, *, foreign: bool = False) -> None:
        """So many links more lead to a page."""
        known = self._counts[page]
        self._counts[page] = known + references
        if page not in self._done and (not known or self._best_first):
            worth = -(known + references) if self._best_first else 0
            heapq.heappush(self._fronts[foreign], (worth, next(self._turns), page))

    def next(self) -> int | None:
        """The page that comes next: our own first."""
        for front in self._fronts:
            while front:
                page = heapq.heappop(front)[2]
                if page not in self._done:
                    self._done.add(page)
                    return page
        return None


def crawl(
    web: DividedWeb,
    owner: Sequence[int],
    mode: ExchangeMode,
    *,
    budget: int | None = None,
    exchanges: int | None = None,
    best_first: bool = False,
    until: Callable[[SimulatedCrawl], bool] | None = None,
) -> SimulatedCrawl:
    """Crawl a web: each agent fetches a page in turn, by breadth or by the references that it knows of.

    Args:
        budget: pages after which the crawl ends; without it, it ends when nothing is left.
        exchanges: tell the others so many times, at equal distances of the budget; None tells them at once.
        until: also end when this holds of the crawl; asked after each round.
    """
    told = SimulatedCrawl()
    agents = [_Agent(best_first=best_first) for _ in range(max(owner) + 1)]
    for page in web.seeds:
        agents[owner[page]].hear(page)
    rounds = -(-budget // len(agents)) if budget else 0
    moments = {rounds * number // (exchanges + 1) for number in range(1, exchanges + 1)} if exchanges else set[int]()
    at = 0
    while not rounds or at < rounds:
        if at in moments:
            for agent in agents:
                telling, agent.telling = agent.telling, Counter[int]()
                for page, references in telling.items():
                    agents[owner[page]].hear(page, references)
        at += 1
        left = budget - len(told.fetched) if budget else len(agents)
        turns = [(number, agent.next()) for number, agent in enumerate(agents[:left])]
        for number, taken in turns:
            if taken is not None:
                told.fetched.append(taken)
                for page in web.links[taken]:
                    _follow(page, agents[number], agents[owner[page]], mode, told, at_once=exchanges is None)
        is_dry = all(taken is None for _, taken in turns)
        if (is_dry and at > max(moments, default=0)) or (until is not None and until(told)):
            break
    return told


def _follow(
    page: int, agent: _Agent, owner: _Agent, mode: ExchangeMode, told: SimulatedCrawl, *, at_once: bool
) -> None:
    """Treat a link of an agent to a page of an owner."""
    if owner is agent or mode is ExchangeMode.CROSS_OVER:
        agent.hear(page, foreign=owner is not agent)
    elif mode is ExchangeMode.EXCHANGE:
        told.links_sent += 1
        told.urls_sent += page not in agent.met
        agent.met.add(page)
        if at_once:
            owner.hear(page)
        else:
            agent.telling[page] += 1


def quality(fetched: Sequence[int], importance: NDArray[np.float64], budget: int) -> float:
    """The share of the best pages, as many as the budget has, that a crawl has fetched (Hunyadi 2007, formula 2.1)."""
    best = np.argsort(-importance, kind="stable")[:budget].tolist()
    return len(set(best).intersection(fetched)) / budget


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
