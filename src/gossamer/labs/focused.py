"""The focus of a crawl: scores of pages and links become an order, and a limit to how far it goes through what is irrelevant.

Place in the flow: the commit shows it each visit as a watcher, before it asks which links are followed; asks it at the gate
`schedule` whether they may be, and as prioritizer at which level they wait; then it keeps, as a keeper, how far each page is from
the last relevant one. Links of a relevant page are at distance 0, those of an irrelevant one a step further; beyond the budget they
are not followed, unless they are met again on a better way.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from xxhash import xxh3_64_digest

from gossamer.documents.text import prose
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskGate
from gossamer.frontier.contract import LEVELS, TaskStanding
from gossamer.frontier.seams import JUDGED, MOST_TEXT, RELEVANT, LinkWords, PageWords, Relevance
from gossamer.labs.focus import surroundings
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import HTML_TYPES, Link, Record, Visit

#: How far pages are from the last relevant one, under their host; relevant pages have no entry.
DISTANCES = Space("focus", value_bytes=1, host_bytes=64 << 20)

#: Pages whose links are remembered until they are queued: more than the commit has in hand.
REMEMBERED = 1_024

#: Bytes of a page of which the text is taken.
PAGE_BYTES = 1 << 20

#: What a step through irrelevant pages leaves of a score.
STEP = 0.6

#: The level of what nothing is known of, as a seed.
UNKNOWN = LEVELS // 2


class FocusSheet(Sheet, frozen=True):
    """Settings of :class:`Focus`."""

    relevant: Annotated[float, setting("Call a page relevant if its score is at least this.", ge=0, le=1)] = 0.5
    tunnel: Annotated[
        int,
        setting(
            "Follow links through at most this many irrelevant pages in a row; 0 follows only links of relevant pages.",
            unit="pages",
            ge=0,
            le=200,
        ),
    ] = 2


class JudgedPage(msgspec.Struct, frozen=True):
    """What is known of a page that is being committed."""

    score: float
    distance: int
    """Irrelevant pages in a row that end with it; 0 for a relevant one."""
    links: Mapping[str, float]
    """Scores by URL."""


class Focus(Provider[FocusSheet]):
    """Contracts: `watching.Watcher`, `filtering.TaskFilter`, `prioritizing.Prioritizer`, `keeping.Keeper`."""

    ledger: Uses[Ledger]
    relevance: Uses[Relevance]

    def __init__(self, sheet: FocusSheet | None = None) -> None:
        super().__init__(sheet)
        self._pages: OrderedDict[str, JudgedPage] = OrderedDict()

    async def start(self) -> None:
        """Go on with the distances of the ledger."""
        self.open()

    def open(self) -> None:
        """Open the space of the distances."""
        self.ledger.spaces.open(DISTANCES)

    # -- watcher

    def observe(self, visit: Visit) -> str:
        """Judge a page and its links."""
        if visit.is_robots or not visit.is_answered:
            return ""
        task = visit.task
        if visit.is_page:
            page = _words(visit)
            score = _within(self.relevance.page(page))
            distance = 0 if score >= self.sheet.relevant else self._distance_of(task.source) + 1
            worth = score if not distance else max(score, self._inherited(task.source) * STEP)
            links = self._judged_links(visit, page, worth)
        else:
            # A redirect, or a document without words: its links are worth what led to it.
            score, distance = self._inherited(task.source), self._distance_of(task.source)
            links = dict.fromkeys((link.url for link in visit.links), score)
        self._pages[visit.url] = JudgedPage(score, distance, links)
        self._pages.move_to_end(visit.url)
        if len(self._pages) > REMEMBERED:
            self._pages.popitem(last=False)
        return ""

    def _judged_links(self, visit: Visit, page: PageWords, score: float) -> dict[str, float]:
        links = _distinct(visit.links)
        addresses = {found.href: "" for found in visit.found}
        around = surroundings(visit.response.content[:PAGE_BYTES], list(addresses))
        by_end = {_end(address): text for address, text in around.items()}
        shown = [LinkWords(link.url, link.anchor, by_end.get(_end(link.url), "")) for link in links]
        scores = self.relevance.links(shown, page, score)
        return {link.url: _within(one) for link, one in zip(links, scores, strict=True)}

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
        return [self._level(task) for task in tasks]

    def _level(self, task: Task) -> int:
        page = self._pages.get(task.source)
        score = page.links.get(task.url) if page is not None else None
        return UNKNOWN if score is None else min(LEVELS - 1, int((1 - score) * LEVELS))

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

    def committed(self, ends: Mapping[str, int]) -> None:
        """Nothing lies outside of the group."""

    def take_back(self) -> None:
        """Nothing lies outside of the group."""

    def ends(self) -> Mapping[str, int]:
        return {}

    def files(self) -> Sequence[str]:
        return ()


def _words(visit: Visit) -> PageWords:
    markup = visit.response.content[:PAGE_BYTES].decode(visit.charset or "utf-8", "replace").encode()
    text = prose(markup, MOST_TEXT)[:MOST_TEXT] if visit.media_type in HTML_TYPES else ""
    return PageWords(visit.url, visit.title, text, visit.language)


def _distinct(links: Sequence[Link]) -> list[Link]:
    """Each URL once, with the first text that leads to it."""
    found: dict[str, Link] = {}
    for link in links:
        known = found.get(link.url)
        if known is None or (link.anchor and not known.anchor):
            found[link.url] = link
    return list(found.values())


def _end(address: str) -> str:
    """The last part of an address: the page wrote it as it stands in the URL, whatever it is relative to."""
    return address.partition("#")[0].rstrip("/").rpartition("/")[2]


def _key(url: str) -> bytes:
    return xxh3_64_digest(url.encode())


def _within(score: float) -> float:
    return min(max(score, 0.0), 1.0) if score == score else 0.0
