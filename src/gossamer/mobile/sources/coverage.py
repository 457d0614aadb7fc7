"""The pages that a mobile crawler without any wishes would reach at a runtime: home pages, sitemaps, and all that they link to.

Place in the flow: `gossamer runtime check` shows it to an owner before a crawler comes. The crawler here is one like any
other, with the same runner and the same gate, so the answer is not a guess. Nothing is listed.
"""

import msgspec

from gossamer.frontier.robots.contract import RobotsRuling
from gossamer.mobile.crawler import BringRules, JourneySummary, MobileCrawler, MobileProgram, TravelLimits
from gossamer.mobile.running import run_crawler
from gossamer.mobile.sources.gate import REASONS, GatedPages
from gossamer.mobile.sources.opened import Runtime
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import DOCUMENTS
from gossamer.values.task import Task
from gossamer.values.url import canonical, site_of
from gossamer.values.visit import Response

#: First URLs of each kind that are told.
_EXAMPLES = 5


class RefusedExample(msgspec.Struct, frozen=True):
    """One URL that was refused."""

    url: str
    told: str
    """The obstacle; empty where the reason says it all."""


class RefusedKind(msgspec.Struct, frozen=True):
    """All that was refused for one reason."""

    count: int
    reason: str
    """In plain words."""
    examples: list[RefusedExample]


class RobotsReach(msgspec.Struct, frozen=True):
    """The effect of the robots.txt of one site."""

    state: str
    """The result of reading it, in one word: `whole`, `missing`, ..."""
    sitemaps: list[str]


class Reach(msgspec.Struct, frozen=True):
    """The answer."""

    seeds: list[str]
    robots: dict[str, RobotsReach]
    """By site."""
    reachable: int
    """Documents that a crawler would get."""
    pages: int
    """Those of them that are HTML."""
    bytes: int
    examples: list[str]
    """First URLs with a document."""
    outcomes: dict[str, int]
    """URLs by how they were answered."""
    refused: dict[str, RefusedKind]
    """By name."""
    left: int
    """URLs that a limit left unasked."""
    limit: str
    """The name of that limit; empty where there was none."""


class _Watched:
    """The gate, with the first documents that it let out."""

    def __init__(self, pages: GatedPages) -> None:
        self._pages = pages
        self.examples: list[str] = []

    def __call__(self, task: Task) -> Response:
        response = self._pages(task)
        if response.outcome in DOCUMENTS and len(self.examples) < _EXAMPLES:
            self.examples.append(task.url)
        return response


def reach(runtime: Runtime, seeds: tuple[str, ...] = (), urls: int = 100_000) -> Reach:
    """Walk all that can be reached from the home pages, the sitemaps that robots.txt names, and `seeds`.

    Args:
        seeds: further URLs to start from, as a sender's crawler may have them.
        urls: URLs that are looked at, at most.

    Raises:
        UsageError: a seed cannot be read, or there is none.
    """
    gate = runtime.pages()
    homes = [host.home for host in runtime.hosts if host.host]
    given = [_seed(text) for text in seeds]
    if not homes and not given:
        raise UsageError("an archive has no home page; say where crawlers would start, with --seed URL")
    starts = list(dict.fromkeys((*homes, *given)))
    listed = [
        url for site in dict.fromkeys(map(site_of, starts)) for url in _sitemaps(gate, site) if runtime.serves(url)
    ]
    starts = list(dict.fromkeys((*starts, *listed)))
    limits = TravelLimits(pages=urls, urls=urls, external=0)
    crawler = MobileCrawler(MobileProgram(seeds=tuple(starts), limits=limits, bring=BringRules(parts=())))
    watched = _Watched(gate)
    summary = JourneySummary()
    for batch in run_crawler(crawler, watched):
        summary = batch.summary or summary
    return _reach(starts, gate, watched.examples, summary)


def _seed(text: str) -> str:
    try:
        return canonical(text)
    except UnreadableUrl as error:
        raise UsageError(f"--seed: {error}") from None


def _sitemaps(gate: GatedPages, site: str) -> list[str]:
    """The sitemaps that a site's robots.txt names, as far as they are URLs."""
    if gate.verdict(f"{site}/").ruling is RobotsRuling.WAIT or site not in gate.robots:
        return []
    found: list[str] = []
    for text in gate.robots[site].sitemaps:
        try:
            found.append(canonical(text, f"{site}/"))
        except UnreadableUrl:
            continue
    return found


def _reach(seeds: list[str], gate: GatedPages, examples: list[str], summary: JourneySummary) -> Reach:
    refused = {
        name: RefusedKind(tally.count, REASONS.get(name, name), [RefusedExample(*one) for one in tally.examples])
        for name, tally in sorted(gate.refused.items(), key=lambda item: -item[1].count)
    }
    skipped = summary.rejected.get("limit:urls", 0)
    return Reach(
        seeds=seeds,
        robots={site: RobotsReach(note.state, list(note.sitemaps)) for site, note in gate.robots.items()},
        reachable=sum(number for name, number in summary.outcomes.items() if name in DOCUMENTS),
        pages=summary.pages,
        bytes=summary.bytes,
        examples=examples,
        outcomes=dict(sorted(summary.outcomes.items(), key=lambda item: -item[1])),
        refused=refused,
        left=summary.queued + skipped,
        limit=summary.limit or ("urls" if skipped else ""),
    )
