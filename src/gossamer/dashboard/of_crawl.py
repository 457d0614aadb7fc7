"""Answers about one crawl: everything at the addresses below `/api/crawls/KEY`.

Place in the flow: :mod:`app` has the list of addresses. Work that waits is done in threads (:mod:`crawls`); answers to questions,
pages that subjects add, and exports are made by processes of their own (:mod:`questions`, :mod:`exporting`).
"""

import contextlib
from datetime import UTC, datetime, timedelta

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from gossamer.crawls.control.host_facts import HostNow
from gossamer.crawls.control.instances import UnitInstances
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.trap_review import Suspicions, suspicions_of
from gossamer.dashboard import asking, jobs, rewiring
from gossamer.dashboard.crawls import Crawls, ListedHosts, ShownCrawl
from gossamer.dashboard.exporting import Exporter, Exports
from gossamer.dashboard.questions import (
    FARTHEST,
    HITS,
    MOST_HITS,
    AddedPages,
    SearchConsole,
    TableConsole,
    TripleConsole,
    answerable,
)
from gossamer.dashboard.sites import Layout, layouts_folder, read_layout, write_layout
from gossamer.query.contract import Answerable
from gossamer.query.host_list import MOST
from gossamer.storage.tables.row_tables import SampleRow
from gossamer.values.errors import GossamerError, UsageError

#: Points of a plot at most: more than a screen has columns for.
POINTS = 1_000

#: Hours of samples that are sent unless asked otherwise, and at most.
HOURS, MOST_HOURS = 1.0, 24.0 * 365


async def tell_standing(request: Request, shown: ShownCrawl) -> CrawlStanding:
    """How it, or one of its agents, stands."""
    asked = request.query_params
    return await shown.standing(units=asked.get("units") == "1", agent=asked.get("agent", ""))


async def tell_samples(request: Request, shown: ShownCrawl) -> dict[str, list[object]]:
    """The samples by column: a plot wants them so, and the names are sent once."""
    hours = number_in(request, "hours", HOURS, MOST_HOURS)
    since = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows = _thinned(await shown.samples(since))
    return {name: [getattr(row, name) for row in rows] for name in SampleRow.__struct_fields__}


def _thinned(rows: list[SampleRow]) -> list[SampleRow]:
    step = -(-len(rows) // POINTS)  # the last row stays
    return rows[::-step][::-1] if step > 1 else rows


async def tell_hosts(request: Request, crawls: Crawls) -> ListedHosts:
    """A part of the list of its hosts."""
    shown, asked = await crawls.named(request.path_params["key"]), request.query_params
    listed, is_being_made = await crawls.hosts_of(shown)
    page = await shown.run(
        lambda: listed.page(
            search=asked.get("search", "")[:253],
            sort=asked.get("sort", "host"),
            descending=asked.get("descending") == "1",
            offset=int(number_in(request, "offset", 0, 1e9, least=0)),
            limit=int(number_in(request, "limit", 100, MOST)),
        )
    )
    now: dict[str, HostNow] = {}
    if asked.get("live") == "1" and page.rows:
        # A crawl that does not answer is told of elsewhere; the list is worth showing without it.
        with contextlib.suppress(GossamerError):
            now = await shown.hosts_now([row["host"] for row in page.rows])
    return ListedHosts(page.made_at, page.total, page.rows, page.left_out, is_being_made, now)


async def tell_host(request: Request, shown: ShownCrawl) -> object:
    from gossamer.analysis.hosts import picture_of

    name = request.query_params.get("name", "")
    if not name:
        raise UsageError("say which host: ?name=...")
    return await shown.run(picture_of, shown.directory, name[:253])


async def tell_graph(request: Request, shown: ShownCrawl) -> object:
    """Its graph, or that of one agent."""
    return await shown.run(asking.graph_of, shown.directory, request.query_params.get("agent", ""))


async def tell_unit(request: Request, shown: ShownCrawl) -> UnitInstances:
    """The instances of a unit, in all agents."""
    name = request.query_params.get("name", "")
    if not name:
        raise UsageError("say which unit: ?name=...")
    return await shown.run(asking.instances_of, shown.directory, name[:253])


async def tell_traps(request: Request, shown: ShownCrawl) -> Suspicions:
    """The URLs that it has set aside, and the reasons."""
    return await shown.run(suspicions_of, shown.directory)


async def tell_layout(request: Request, shown: ShownCrawl) -> Layout:
    """The places of its units in the picture."""
    return await shown.run(read_layout, layouts_folder(), shown.key)


async def keep_layout(request: Request, shown: ShownCrawl) -> Layout:
    return await shown.run(write_layout, layouts_folder(), shown.key, await request.body())


async def tell_answerable(request: Request, shown: ShownCrawl) -> Answerable:
    """Which questions it can answer."""
    return await shown.run(answerable, shown.directory)


async def tell_log(request: Request, shown: ShownCrawl) -> jobs.LogTail:
    """The end of its logs."""
    return await shown.run(jobs.log_tail, shown.directory)


async def do_resume(request: Request, shown: ShownCrawl) -> jobs.JobDone:
    return await shown.run(jobs.resume, shown.directory)


async def do_restore(request: Request, shown: ShownCrawl) -> jobs.JobDone:
    """Let it go back to a checkpoint."""
    return await shown.run(jobs.restore, shown.directory, await request.body())


async def do_rewire(request: Request, shown: ShownCrawl) -> rewiring.Rewired:
    return await shown.run(rewiring.rewire, shown.directory, await request.body())


async def tell_story(request: Request, shown: ShownCrawl) -> object:
    """The story of a URL."""
    from gossamer.analysis.why import story_of

    url = request.query_params.get("url", "")
    if not url:
        raise UsageError("say which URL: ?url=...")
    return await shown.run(story_of, shown.directory, url)


async def tell_document(request: Request, shown: ShownCrawl) -> object:
    """The archived document of a URL."""
    from gossamer.query.archived import view_archived

    asked = request.query_params
    if not asked.get("url"):
        raise UsageError("say which URL: ?url=...")
    return await shown.run(view_archived, shown.directory, asked["url"], asked.get("at", ""))


async def do_order(request: Request, shown: ShownCrawl) -> object:
    """Do what an address says."""
    order = asking.read_order(request.path_params["order"], await request.body())
    return {"done": await shown.run(asking.carry_out, shown.directory, order)}


def number_in(request: Request, name: str, usual: float, most: float, least: float = 1e-9) -> float:
    """A number of the query. Raises UsageError: it is none, or out of bounds."""
    text = request.query_params.get(name, "")
    try:
        number = float(text) if text else usual
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise UsageError(f"{name} has to be a number, {'0 or more' if not least else 'above 0'} and up to {most:g}")
    return number


# Answers that processes of their own make.


class QuestionAnswers:
    """Answers to questions in SQL, SPARQL and words, and pages that subjects add."""

    def __init__(self) -> None:
        self._console, self._triples, self._words = TableConsole(), TripleConsole(), SearchConsole()
        self._pages = AddedPages()

    async def tell_tables(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        """Tables that answer a question in SQL, or those of a report."""
        asked = request.query_params
        return await self._console.ask(shown.directory, asked.get("sql", ""), asked.get("report", ""))

    async def tell_triples(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        """The answer to a question in SPARQL."""
        return await self._triples.ask(shown.directory, request.query_params.get("query", ""))

    async def tell_words(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        asked = request.query_params
        start = int(number_in(request, "start", 0, FARTHEST, least=0))
        most = int(number_in(request, "limit", HITS, MOST_HITS, least=1))
        return await self._words.ask(shown.directory, asked, start, most)

    async def tell_page(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        """A page that a subject adds."""
        return await self._pages.ask(shown.directory, request.path_params["name"])


class ExportAnswers:
    """Exports that are made, told of, downloaded and removed."""

    def __init__(self) -> None:
        self.exporter = Exporter()

    async def tell_exports(self, request: Request, shown: ShownCrawl) -> Exports:
        """Its exports, and what can be made."""
        return await shown.run(self.exporter.listed, shown.directory)

    async def begin_export(self, request: Request, shown: ShownCrawl) -> Exports:
        return await shown.run(self.exporter.begin, shown.directory, await request.body())

    async def remove_export(self, request: Request, shown: ShownCrawl) -> Exports:
        return await shown.run(self.exporter.remove, shown.directory, await request.body())

    async def download(self, request: Request, shown: ShownCrawl) -> Response:
        """The file of an export."""
        path = await shown.run(self.exporter.file, shown.directory, request.path_params["name"])
        # Never shown by a browser, whatever a web site wrote into it.
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)
