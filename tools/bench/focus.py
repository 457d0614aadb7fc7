"""How much of what a focused crawl fetches is relevant, beside a crawl by breadth (row C8).

The web has topical locality: every page has a topic, more than half of its links lead to pages of the same topic, and half
of their texts name one of its words. Pages are prose of words that all topics share and some of their own, by Zipf's law.
The relevance, the levels and the budget of tunnels are those of a crawl; the pages of one topic among many count as relevant.
One page at a time is fetched, no politeness.
"""

import heapq
import random
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from gossamer.bench.harness import BenchReport, Spent
from gossamer.frontier.contract import LEVELS, LinkWords, PageWords
from gossamer.labs.focus import STEP, WordsRelevance, WordsSheet

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


def run() -> BenchReport:
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
