"""The focus of a crawl: scores of pages and links become an order, and a limit to how far it goes through what is irrelevant.

Place in the flow: the commit shows it each visit as a watcher, before it asks which links are followed; asks it at the gate
`schedule` whether they may be, and as prioritizer at which level they wait; then it keeps, as a keeper, how far each page is from
the last relevant one. Links of a relevant page are at distance 0, those of an irrelevant one a step further; beyond the budget they
are not followed, unless they are met again on a better way.

:class:`WordsRelevance` judges pages and links from words and example pages (row C8).
"""

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from xxhash import xxh3_64_digest

from gossamer.documents.terms import terms_of
from gossamer.documents.text import prose
from gossamer.engine.ends import Uses
from gossamer.engine.errors import SettingError, refusing
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskGate
from gossamer.frontier.contract import (
    JUDGED,
    LEVELS,
    MOST_AROUND,
    MOST_TEXT,
    RELEVANT,
    LinkWords,
    PageWords,
    Relevance,
    TaskStanding,
)
from gossamer.labs.options import IrrelevantHops, Topic, TopicPages
from gossamer.storage.archive.contract import GroupKeeper
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.values.body import beginning
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Link, Record, Visit

#: How far pages are from the last relevant one, under their host; relevant pages have no entry.
DISTANCES = Space("focus", value_bytes=1, host_bytes=64 << 20)

#: Pages whose links are remembered until they are queued: more than the commit has in hand.
REMEMBERED = 1_024

#: Bytes of a page of which the text is taken.
PAGE_BYTES = 1 << 20

#: The part of a score that a step through irrelevant pages leaves.
STEP = 0.6

#: The level of what nothing is known of, as a seed.
UNKNOWN = LEVELS // 2


class FocusSheet(Sheet, frozen=True):
    relevant: Annotated[float, setting("Call a page relevant if its score is at least this.", ge=0, le=1)] = 0.5
    tunnel: IrrelevantHops = 2


class JudgedPage(msgspec.Struct, frozen=True):
    """The facts of a page that is being committed."""

    score: float
    distance: int
    """Irrelevant pages in a row that end with it; 0 for a relevant one."""
    links: Mapping[str, float]
    """Scores by URL."""


class Focus(Provider[FocusSheet], GroupKeeper):
    """Contracts: `Watcher` of `frontier.traps.contract`, `TaskFilter` of `expressions.contract`, `Prioritizer` of
    `frontier.contract`, `Keeper` of `storage.archive.contract`."""

    ledger: Uses[Ledger]
    relevance: Uses[Relevance]

    def __init__(self, sheet: FocusSheet | None = None) -> None:
        super().__init__(sheet)
        self._pages: OrderedDict[str, JudgedPage] = OrderedDict()

    async def start(self) -> None:
        self.ledger.spaces.open(DISTANCES)

    # -- watcher

    def observe(self, visit: Visit) -> str:
        """Judge a page and its links."""
        if visit.is_robots or not visit.is_answered:
            return ""
        task = visit.task
        if visit.is_page:
            markup = beginning(visit.shown, PAGE_BYTES)[:PAGE_BYTES]
            text = ""
            if visit.media_type in HTML_TYPES:
                text = prose(markup.decode(visit.charset or "utf-8", "replace").encode(), MOST_TEXT)[:MOST_TEXT]
            page = PageWords(visit.url, visit.title, text, visit.language)
            score = _within(self.relevance.page(page))
            distance = 0 if score >= self.sheet.relevant else self._distance_of(task.source) + 1
            worth = score if not distance else max(score, self._inherited(task.source) * STEP)
            links = self._judged_links(visit, page, markup, worth)
        else:
            # A redirect, or a document without words: its links are worth what led to it.
            score, distance = self._inherited(task.source), self._distance_of(task.source)
            links = dict.fromkeys((link.url for link in visit.links), score)
        self._pages[visit.url] = JudgedPage(score, distance, links)
        self._pages.move_to_end(visit.url)
        if len(self._pages) > REMEMBERED:
            self._pages.popitem(last=False)
        return ""

    def _judged_links(self, visit: Visit, page: PageWords, markup: bytes, score: float) -> dict[str, float]:
        distinct: dict[str, Link] = {}  # each URL once, with the first text that leads to it
        for link in visit.links:
            known = distinct.get(link.url)
            if known is None or (link.anchor and not known.anchor):
                distinct[link.url] = link
        addresses = {found.href: "" for found in visit.found}
        around = surroundings(markup, list(addresses))
        by_end = {_end(address): text for address, text in around.items()}
        shown = [LinkWords(link.url, link.anchor, by_end.get(_end(link.url), "")) for link in distinct.values()]
        scores = self.relevance.links(shown, page, score)
        return {url: _within(one) for url, one in zip(distinct, scores, strict=True)}

    def _distance_of(self, url: str) -> int:
        """How far a page is from the last relevant one; 0 for no page, as before a seed."""
        known = self._pages.get(url)
        if known is not None:
            return known.distance
        value = self.ledger.spaces.get(DISTANCES, host_of(url), _key(url)) if url else None
        return value[0] if value else 0

    def _inherited(self, url: str) -> float:
        known = self._pages.get(url)
        return known.score if known is not None else self.sheet.relevant

    # -- filter of tasks

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """Refuse links that are further from the last relevant page than the budget goes."""
        allowed: dict[str, str] = {}
        for source in {task.source for task in tasks}:
            allowed[source] = "tunnel" if self._distance_of(source) > self.sheet.tunnel else ""
        return [allowed[task.source] for task in tasks]

    # -- prioritizer

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """By the scores of links, the best first."""
        found = []
        for task in tasks:
            page = self._pages.get(task.source)
            score = page.links.get(task.url) if page is not None else None
            found.append(UNKNOWN if score is None else min(LEVELS - 1, int((1 - score) * LEVELS)))
        return found

    # -- keeper

    def stage(self, records: Sequence[Record], group: Group) -> None:
        """Keep distances, and count what was relevant."""
        for record in records:
            visit = record.visit
            known = self._pages.get(visit.url)
            if known is None or visit.is_robots:
                continue
            if visit.is_page:
                group.count(JUDGED)
                group.count(RELEVANT, int(known.distance == 0))
            if known.distance:
                group.put(DISTANCES, visit.task.host, _key(visit.url), bytes([min(known.distance, 255)]))


def _end(address: str) -> str:
    """The last part of an address: the page wrote it as it stands in the URL, whatever it is relative to."""
    return address.partition("#")[0].rstrip("/").rpartition("/")[2]


def _key(url: str) -> bytes:
    return xxh3_64_digest(url.encode())


def _within(score: float) -> float:
    return min(max(score, 0.0), 1.0) if score == score else 0.0


# The markup around the links of a page. Pure code, linear in the page.

#: Bytes of markup before and behind a link that are looked at.
REACH = 400

#: Links of a page whose surroundings are looked for: those behind them are judged by their address and text.
MOST_LINKS = 300

_HREF = re.compile(rb"""href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>|<[^<>]*$|^[^<>]*>")
_SPACE = re.compile(r"\s+")


def surroundings(markup: bytes, addresses: Sequence[str]) -> dict[str, str]:
    """The text around the first link to each address, in markup that is UTF-8 or something near to it."""
    wanted = {address.encode("utf-8", "replace"): address for address in addresses[:MOST_LINKS]}
    found: dict[str, str] = {}
    for match in _HREF.finditer(markup):
        address = wanted.pop(match[1].replace(b"&amp;", b"&"), None)
        if address is not None:
            near = markup[max(0, match.start() - REACH) : match.end() + REACH]
            text = _SPACE.sub(" ", _TAG.sub(b" ", near).decode("utf-8", "replace")).strip()
            middle = len(text) // 2
            found[address] = text[max(0, middle - MOST_AROUND // 2) : middle + MOST_AROUND // 2]
            if not wanted:
                break
    return found


# Relevance from words and example pages, without a training run: the shipped :class:`~gossamer.frontier.contract.Relevance`.
# :class:`Focus` asks it. A *profile* has the terms that a person named, and those that stand out on the example pages
# (tf-idf). How rare a term is, is learnt from the pages of the crawl as they come, for the terms of the profile alone; so a word
# that every page has soon counts for nothing.


#: Terms that are taken of example pages, the weightiest.
MOST_TERMS = 120

#: A page is wholly relevant that has so many of the weightiest terms once, and this share of the weight of all: of a long profile
#: no page has all terms.
MOST_NEEDED, ENOUGH = 3, 0.25

#: A link has few words: one of these many weightiest terms, as they are in the middle, makes it wholly relevant.
TELLING = 10

#: Pages that were seen before rarity is believed: the first ones are the seeds, which are on topic.
BELIEVED = 20

#: Bytes of an example page that are read.
EXAMPLE_BYTES = 4 << 20


class WordsSheet(Sheet, frozen=True):
    words: Topic = ()
    pages: TopicPages = ()


class WordsRelevance(Provider[WordsSheet]):
    """Judges pages by the words of a topic. Contract: `frontier.contract.Relevance`.
    Raises SettingError: there is neither a word nor an example, or a file cannot be read."""

    def __init__(self, sheet: WordsSheet | None = None) -> None:
        super().__init__(sheet)
        examples = [terms_of(_read(name)) for name in self.sheet.pages]
        self._profile = profile(self.sheet.words, examples)
        if not self._profile:
            raise SettingError("a topic has no words: name some with --topic, or example pages with --topic-page")
        self._seen: Counter[str] = Counter()
        self._pages = 0

    def page(self, page: PageWords) -> float:
        """By how many terms of the profile it has, the rarer ones more; a term that comes often counts up to twice as much."""
        found = terms_of(f"{page.title}\n{page.text}")
        present = [term for term in self._profile if term in found]
        weights = self._weights()
        self._pages += 1
        self._seen.update(present)
        have = sum(weights[term] * 2 * found[term] / (found[term] + 1) for term in present)
        most = sum(sorted(weights.values(), reverse=True)[:MOST_NEEDED])
        return min(1.0, have / max(most, ENOUGH * sum(weights.values())))

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """By its own words, or by what stands around it; half of it is what its page is worth."""
        weights = self._weights()
        telling = sorted(weights.values(), reverse=True)[:TELLING]
        enough = telling[len(telling) // 2]
        made = []
        for link in links:
            own = self._share(f"{link.anchor} {link.url}", weights, enough)
            near = self._share(link.around, weights, enough)
            made.append(min(1.0, 0.5 * max(own, 0.6 * near) + 0.5 * score))
        return made

    def _share(self, text: str, weights: dict[str, float], enough: float) -> float:
        found = terms_of(text)
        return min(1.0, sum(weights[term] for term in self._profile if term in found) / enough)

    def _weights(self) -> dict[str, float]:
        """The profile, less what nearly every page has."""
        if self._pages < BELIEVED:
            return self._profile
        pages = self._pages + 1
        return {
            term: weight * (0.05 + math.log(pages / (self._seen[term] + 1)) / math.log(pages))
            for term, weight in self._profile.items()
        }


def profile(words: Iterable[str], examples: Sequence[Counter[str]]) -> dict[str, float]:
    """Terms and their weights, which add up to 1 for named words, and to 1 for those of examples.

    A term of examples weighs the more, the more of them have it, the more often it comes and the longer it is: short words are
    mostly those that every text has.
    """
    named = sorted({term for text in words for term in terms_of(text)})
    weights = {term: 1 / len(named) for term in named}
    found: dict[str, float] = {}
    for example in examples:
        for term, count in example.items():
            found[term] = found.get(term, 0.0) + (1 + math.log(count)) * min(len(term), 8) / len(examples)
    best = sorted(found, key=lambda term: (-found[term], term))[:MOST_TERMS]
    total = sum(found[term] for term in best)
    for term in best:
        weights[term] = weights.get(term, 0.0) + found[term] / total
    return weights


def _read(name: str) -> str:
    with refusing(SettingError, f"--topic-page {name}"), Path(name).open("rb") as file:
        data = file.read(EXAMPLE_BYTES)
    markup = data.decode("utf-8", "replace")
    return prose(markup.encode(), len(markup)) if "<" in markup[:2_000] else markup
