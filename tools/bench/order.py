"""Which order of pages finds importance early: by breadth, by OPIC as a crawl does it, and by the true PageRank of the pages that
were met; and how much of what a focused crawl fetches is relevant, beside a crawl by breadth (row C8). No order can do better than
the true PageRank, as long as a page has to be met before it is fetched.

The webs are simulated ones of which every page's PageRank is known. One page at a time, no politeness; OPIC's accounts and levels
are those of :mod:`gossamer.labs.opic`. A second table has what moving cash costs a page: the ledger's groups with 37 links a page,
with and without :class:`~gossamer.labs.opic.OpicLedger`.

The focused crawl has a web with topical locality: every page has a topic, more than half of its links lead to pages of the
same topic, and half of their texts name one of its words. Pages are prose of words that all topics share and some of their
own, by Zipf's law. The relevance, the levels and the budget of tunnels are those of a crawl; the pages of one topic among
many count as relevant.
"""

import heapq
import random
import statistics
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gossamer.bench.harness import Spent
from gossamer.bench.report import BenchReport
from gossamer.frontier.contract import LEVELS, LinkWords, PageWords
from gossamer.labs.focus import STEP, WordsRelevance, WordsSheet
from gossamer.labs.opic import Account, AccountState, OpicLedger, given, level_of
from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.graph import WebGraph, importance_of
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Link, Response, Visit
from tools.bench.ledger import opened

#: Pages of a web, and the share of them that is visited.
PAGES, SHARE = 50_000, 0.1

#: Crawls of each web, from seeds drawn at random.
SEEDS = 3

#: Pages of the second table, in groups as the commit makes them.
COMMITTED, GROUP, LINKS = 8_000, 32, 37

Links = Callable[[int], list[int]]


def by_breadth(links: Links, seed: int, budget: int) -> list[int]:
    """The first pages of a crawl by breadth."""
    met, front, order = {seed}, deque([seed]), list[int]()
    while front and len(order) < budget:
        order.append(page := front.popleft())
        for target in links(page):
            if target not in met:
                met.add(target)
                front.append(target)
    return order


def by_opic(links: Links, seed: int, budget: int) -> list[int]:
    """Those of a crawl by OPIC: a page whose level rises waits there behind those that came before."""
    accounts: dict[int, Account] = {seed: Account(state=AccountState.QUEUED)}
    front, order, turns = [(0, 0, seed)], list[int](), 0
    while front and len(order) < budget:
        _, _, page = heapq.heappop(front)
        if accounts[page].state == AccountState.VISITED:
            continue
        order.append(page)
        targets = [target for target in links(page) if target != page]
        given(accounts[page], [accounts.setdefault(target, Account()) for target in targets])
        for target in targets:
            account = accounts[target]
            level = level_of(account.cash)
            if account.state == AccountState.MET or (account.state == AccountState.QUEUED and level < account.level):
                account.state, account.level = AccountState.QUEUED, level
                heapq.heappush(front, (level, turns := turns + 1, target))
    return order


def by_true_rank(links: Links, ranks: NDArray[np.float64], seed: int, budget: int) -> list[int]:
    """Those of a crawl that knows the rank of each page that it has met."""
    met, order = {seed}, list[int]()
    front = [(-float(ranks[seed]), seed)]
    while front and len(order) < budget:
        _, page = heapq.heappop(front)
        order.append(page)
        for target in links(page):
            if target not in met:
                met.add(target)
                heapq.heappush(front, (-float(ranks[target]), target))
    return order


def _cost(*, with_opic: bool) -> float:
    """Microseconds of CPU in which groups commit a page of one site: half of its links are its menu, the others lead anywhere on
    it."""
    choose, visits, spent, host = random.Random(2), list[Visit](), Spent(), "www.site.example"
    for number in range(COMMITTED):
        found = {*range(18), *choose.sample(range(3 * COMMITTED), LINKS - 18)}
        links = tuple(Link(f"https://{host}/{n}") for n in found)
        visits.append(Visit(Task(f"https://{host}/page-{number}", host), Response(Outcome.OK, status=200), links=links))
    with tempfile.TemporaryDirectory() as folder:
        store, queues = opened(folder)
        ledger: Ledger = store
        if with_opic:
            ledger = front = OpicLedger()
            front.behind = store
            front.open()
        with ledger.group() as group:
            group.push(visit.task for visit in visits)
        for start in range(0, len(visits), GROUP):
            store.flush_moves()
            queues.admit(0.0, 10)
            queues.pop(host, GROUP)
            with spent, ledger.group() as group:
                for visit in visits[start : start + GROUP]:
                    new = group.offer([link.url for link in visit.links])
                    group.push(Task(url, host, 1, visit.url, level=9) for url in new)
                    group.visited(visit, None)
        store.abandon()
    return spent.thread / COMMITTED * 1e6


def order() -> BenchReport:
    """Measure which order of pages finds importance early, and what OPIC costs a page."""
    report = BenchReport("order")
    table = report.table(
        f"Share of all PageRank after {SHARE:.0%} of {PAGES:,} pages",
        *("web", "breadth", "OPIC", "by true rank of what was met", "the best pages"),
        *("OPIC / breadth", "true rank / breadth", "the best / breadth"),
    )
    for hosts, number in ((500, 1), (50, 2)):
        graph = WebGraph(SimWeb(WebSpec(pages=PAGES, hosts=hosts, seed=number)))
        ranks = importance_of(graph)
        budget = int(len(ranks) * SHARE)

        def links(page: int, graph: WebGraph = graph) -> list[int]:
            return [*dict.fromkeys(graph.links_of(page))]

        choose, shares = random.Random(1), list[tuple[float, ...]]()
        while len(shares) < SEEDS:
            seed = choose.randrange(len(ranks))
            breadth = by_breadth(links, seed, budget)
            if len(breadth) == budget:
                orders = breadth, by_opic(links, seed, budget), by_true_rank(links, ranks, seed, budget)
                shares.append(tuple(float(ranks[order].sum()) for order in orders))
        means = [*(statistics.mean(of) for of in zip(*shares, strict=True)), float(np.sort(ranks)[-budget:].sum())]
        relative = (f"{mean / means[0]:.2f}" for mean in means[1:])
        table.add(f"simweb, {hosts:,} hosts", *(f"{mean:.3f}" for mean in means), *relative)
    cost = report.table(f"CPU of the ledger's groups, {LINKS} links a page", "groups", "us a page, median of three")
    pairs = [(_cost(with_opic=False), _cost(with_opic=True)) for _ in range(3)]
    cost.add("the ledger's", f"{statistics.median(plain for plain, _ in pairs):.0f}")
    cost.add("with OPIC", f"{statistics.median(opic for _, opic in pairs):.0f}")
    return report


#: Pages of the web, its topics, links of a page, and pages that are fetched.
TOPICAL, TOPICS, LINKS_OF_A_TOPIC, FETCHED = 150_000, 15, 15, 5_000

#: Links that keep to the topic of their page; links whose text names it. Chakrabarti and others (WWW 2002, "The structure of broad
#: topics on the web") found that a link keeps to its topic several times as often as chance has it.
LOCAL, NAMED = 0.6, 0.5

#: Words of a topic of its own, of which a page has some.
VOCABULARY = 40

#: Words that pages of all topics have, and how often words come (Zipf's law).
COMMON = [f"common{n}" for n in range(2_000)]
ZIPF = [1 / rank for rank in range(1, 2_001)]

#: Pages that the topic is shown by.
EXAMPLES = 10

#: From this score on a page is called relevant, and so many irrelevant ones in a row are passed, as a crawl has it by default.
RELEVANT, TUNNEL = 0.5, 2


class TopicalWeb:
    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        self.topic = [choose.randrange(TOPICS) for _ in range(TOPICAL)]
        by_topic: list[list[int]] = [[] for _ in range(TOPICS)]
        for page, topic in enumerate(self.topic):
            by_topic[topic].append(page)
        self.links = [
            list(
                {
                    choose.choice(by_topic[topic]) if choose.random() < LOCAL else choose.randrange(TOPICAL)
                    for _ in range(LINKS_OF_A_TOPIC)
                }
            )
            for topic in self.topic
        ]

    def words(self, topic: int) -> list[str]:
        return [f"topic{topic}word{n}" for n in range(VOCABULARY)]

    def page(self, page: int) -> PageWords:
        """A page's words: a tenth of them are its topic's, the others of all pages, and a few another topic's."""
        choose = random.Random(page)
        own = choose.choices(self.words(self.topic[page]), ZIPF[:VOCABULARY], k=20)
        strange = choose.choices(self.words(choose.randrange(TOPICS)), ZIPF[:VOCABULARY], k=3)
        common = choose.choices(COMMON, ZIPF, k=130)
        return PageWords(f"http://www.site.example/{page}", "", " ".join([*own, *strange, *common]))

    def link(self, source: int, target: int) -> LinkWords:
        """A link's words; half of them say nothing."""
        choose = random.Random(source * TOPICAL + target)
        words = choose.choices(self.words(self.topic[target]), ZIPF[:VOCABULARY])
        named = words[0] if choose.random() < NAMED else "more"
        return LinkWords(f"http://www.site.example/{target}", named)


def focused(web: TopicalWeb, seed: int, relevance: WordsRelevance) -> list[int]:
    """The first pages of a focused crawl."""
    met, order, turns = {seed}, list[int](), 0
    front = [(0, 0, seed, 0, 1.0)]
    while front and len(order) < FETCHED:
        _, _, page, before, inherited = heapq.heappop(front)
        order.append(page)
        shown = web.page(page)
        score = relevance.page(shown)
        distance = 0 if score >= RELEVANT else before + 1
        if distance > TUNNEL:
            continue
        worth = score if not distance else max(score, inherited * STEP)
        targets = web.links[page]
        scores = relevance.links([web.link(page, target) for target in targets], shown, worth)
        for target, one in zip(targets, scores, strict=True):
            if target not in met:
                met.add(target)
                level = min(LEVELS - 1, int((1 - one) * LEVELS))
                heapq.heappush(front, (level, turns := turns + 1, target, distance, score))
    return order


def focus() -> BenchReport:
    """Measure, and make the report."""
    report = BenchReport("focus")
    table = report.table(
        f"Harvest after {FETCHED:,} of {TOPICAL:,} pages of {TOPICS} topics, {LOCAL:.0%} of links local; ten example pages",
        *("web", "fetched", "by breadth", "focused", "times", "CPU ms a page, all of it"),
    )
    for seed in range(1, 4):
        web = TopicalWeb(seed)
        relevant = [page for page, topic in enumerate(web.topic) if topic == 0]
        with tempfile.TemporaryDirectory() as folder:  # example pages, as a person would have saved them
            files = [Path(folder, f"{page}.txt") for page in relevant[-EXAMPLES:]]
            for file in files:
                file.write_text(web.page(int(file.stem)).text, encoding="utf-8")
            relevance = WordsRelevance(WordsSheet(pages=tuple(map(str, files))))
        breadth = by_breadth(web.links.__getitem__, relevant[0], FETCHED)
        with Spent() as spent:
            ours = focused(web, relevant[0], relevance)
        rates = [sum(web.topic[page] == 0 for page in order) / len(order) for order in (breadth, ours)]
        table.add(
            *(seed, f"{len(ours):,}", f"{rates[0]:.1%}", f"{rates[1]:.1%}"),
            *(f"{rates[1] / rates[0]:.1f}", f"{spent.cpu / len(ours) * 1e3:.2f}"),
        )
    return report
