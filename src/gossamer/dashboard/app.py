"""The application: what is at which address. Who may ask has been decided before (:mod:`guarding`).

Place in the flow: addresses below `/api/` answer with JSON, by the names of `gossamer status --json`; `/metrics` is for Prometheus;
everything else is a file of the front end. Work that waits is done in threads (:mod:`crawls`).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from gossamer.assembly.control.host_facts import HostNow
from gossamer.assembly.control.standing import CrawlStanding
from gossamer.dashboard import asking, describing, jobs, rewiring
from gossamer.dashboard.crawls import Crawls, ListedHosts, NoSuchCrawl, ShownCrawl
from gossamer.dashboard.guarding import ACCESS
from gossamer.dashboard.keys import Access
from gossamer.dashboard.layouts import Layout, layouts_folder, read_layout, write_layout
from gossamer.dashboard.metrics import exposition
from gossamer.dashboard.replays import Replays
from gossamer.dashboard.sites import ListedSites, entrance, list_sites, save_sites, sites_file
from gossamer.dashboard.streaming import Streams
from gossamer.dashboard.tables import ReportNames, TableConsole, names_of_reports, questions_file, save_questions
from gossamer.dashboard.words import FARTHEST, HITS, MOST_HITS, SearchConsole, TripleConsole, answerable
from gossamer.flow.errors import FlowError
from gossamer.model.errors import GossamerError, UsageError
from gossamer.operations.replay_addresses import REPLAY
from gossamer.operations.word_questions import Answerable
from gossamer.query.host_list import MOST
from gossamer.stores.tables.samples import SampleRow

#: Where the front end lies.
STATIC = Path(__file__).with_name("static")

#: Points of a plot at most: more than a screen has columns for.
POINTS = 1_000

#: Hours of samples that are sent unless asked otherwise, and at most.
HOURS, MOST_HOURS = 1.0, 24.0 * 365

Answer = Callable[[Request, Crawls], Awaitable[Any]]


class ListedCrawl(msgspec.Struct, frozen=True):
    """A crawl in the list of all."""

    key: str
    """What it is called in addresses."""
    directory: str
    standing: CrawlStanding | None = None
    """How it stands; none where nobody can say."""
    trouble: str = ""
    """Why nobody can."""
    site: str = ""
    """The site that it belongs to; empty where the dashboard was started with it."""


class Permissions(msgspec.Struct, frozen=True):
    """What the asker may do."""

    can_change: bool


def application(crawls: Crawls, streams: Streams | None = None, replays: Replays | None = None) -> Starlette:
    """The dashboard of these crawls."""
    told, shown_again = streams or Streams(), replays or Replays()
    console, triples, words = TableConsole(), TripleConsole(), SearchConsole()

    async def tables(request: Request, crawls: Crawls) -> msgspec.Raw:
        shown, asked = await crawls.named(request.path_params["key"]), request.query_params
        return await console.ask(shown.directory, asked.get("sql", ""), asked.get("report", ""))

    async def sparql(request: Request, crawls: Crawls) -> msgspec.Raw:
        shown = await crawls.named(request.path_params["key"])
        return await triples.ask(shown.directory, request.query_params.get("query", ""))

    async def search(request: Request, crawls: Crawls) -> msgspec.Raw:
        shown, asked = await crawls.named(request.path_params["key"]), request.query_params
        start = int(_number(request, "start", 0, FARTHEST, least=0))
        most = int(_number(request, "limit", HITS, MOST_HITS, least=1))
        return await words.ask(shown.directory, asked, start, most)

    async def events(request: Request) -> Response:
        shown = await crawls.named(request.path_params["key"])
        if told.is_full:
            raise HTTPException(503, "too many browsers watch already")
        return StreamingResponse(told.of(shown), media_type="text/event-stream")

    async def enter_replay(request: Request) -> Response:
        return await shown_again.enter(request, crawls)

    async def replay(request: Request) -> Response:
        return await shown_again.show(request, crawls)

    def route(path: str, answer: Answer, method: str = "GET") -> Route:
        async def answered(request: Request) -> Response:
            found = await answer(request, crawls)
            return Response(msgspec.json.encode(found), media_type="application/json")

        return Route(path, answered, methods=[method])

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        crawls.close()

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(await _metrics(crawls), media_type="text/plain; version=0.0.4")

    return Starlette(
        routes=[
            Route("/", _front),
            route("/api/session", _session),
            route("/api/openapi.json", _openapi),
            route("/api/sites", _sites),
            route("/api/sites", _save_sites, "POST"),
            Route("/api/sites/open", _open_site),
            route("/api/crawls", _all),
            route("/api/crawls/{key}", _one),
            route("/api/crawls/{key}/samples", _samples),
            route("/api/crawls/{key}/hosts", _hosts),
            route("/api/crawls/{key}/host", _host),
            route("/api/crawls/{key}/graph", _graph),
            route("/api/crawls/{key}/layout", _layout),
            route("/api/crawls/{key}/layout", _lay_out, "POST"),
            route("/api/crawls/{key}/story", _story),
            route("/api/crawls/{key}/document", _document),
            Route("/api/crawls/{key}/replay", enter_replay),
            Route(REPLAY, replay),
            route("/api/catalog", _catalog),
            route("/api/reports", _reports),
            route("/api/reports", _save_reports, "POST"),
            route("/api/crawls/{key}/tables", tables),
            route("/api/crawls/{key}/answerable", _answerable),
            route("/api/crawls/{key}/sparql", sparql),
            route("/api/crawls/{key}/search", search),
            route("/api/crawls/{key}/rewire", _rewire, "POST"),
            route("/api/crawls/{key}/log", _log),
            route("/api/crawls/{key}/resume", _resume, "POST"),
            route("/api/crawls/{key}/restore", _restore, "POST"),
            Route("/api/crawls/{key}/events", events),
            route("/api/crawls/{key}/{order}", _order, "POST"),
            Route("/metrics", metrics),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={GossamerError: _refused, FlowError: _refused, HTTPException: _failed},
        lifespan=lifespan,
    )


async def _front(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def _session(request: Request, crawls: Crawls) -> Permissions:
    return Permissions(request.scope[ACCESS] is Access.FULL)


async def _openapi(request: Request, crawls: Crawls) -> object:
    return describing.openapi()


async def _sites(request: Request, crawls: Crawls) -> ListedSites:
    return list_sites(sites_file())


async def _save_sites(request: Request, crawls: Crawls) -> ListedSites:
    saved = save_sites(sites_file(), await request.body())
    crawls.look_anew()
    return saved


async def _open_site(request: Request) -> Response:
    """Lead to another dashboard, with its key: only for who may do everything here."""
    if request.scope[ACCESS] is not Access.FULL:
        raise HTTPException(403, "this token only reads")
    return RedirectResponse(entrance(sites_file(), request.query_params.get("name", "")), 303)


async def _all(request: Request, crawls: Crawls) -> list[ListedCrawl]:
    return await _gathered(crawls)


async def _gathered(crawls: Crawls) -> list[ListedCrawl]:
    return list(await asyncio.gather(*map(_told, (await crawls.all()).values())))


async def _told(shown: ShownCrawl) -> ListedCrawl:
    try:
        return ListedCrawl(shown.key, str(shown.directory), await shown.standing(), site=shown.site)
    except GossamerError as error:
        return ListedCrawl(shown.key, str(shown.directory), trouble=str(error), site=shown.site)


async def _one(request: Request, crawls: Crawls) -> CrawlStanding:
    shown = await crawls.named(request.path_params["key"])
    return await shown.standing(units=request.query_params.get("units") == "1")


async def _samples(request: Request, crawls: Crawls) -> dict[str, list[object]]:
    """The samples by column: a plot wants them so, and the names are sent once."""
    shown = await crawls.named(request.path_params["key"])
    hours = _number(request, "hours", HOURS, MOST_HOURS)
    since = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows = _thinned(await shown.samples(since))
    return {name: [getattr(row, name) for row in rows] for name in SampleRow.__struct_fields__}


def _thinned(rows: list[SampleRow]) -> list[SampleRow]:
    """As many as a plot has room for, the last among them."""
    step = -(-len(rows) // POINTS)
    return rows[::-step][::-1] if step > 1 else rows


async def _hosts(request: Request, crawls: Crawls) -> ListedHosts:
    shown, asked = await crawls.named(request.path_params["key"]), request.query_params
    hosts, is_being_made = await crawls.hosts_of(shown)
    page = await shown.run(
        lambda: hosts.page(
            search=asked.get("search", "")[:253],
            sort=asked.get("sort", "host"),
            descending=asked.get("descending") == "1",
            offset=int(_number(request, "offset", 0, 1e9, least=0)),
            limit=int(_number(request, "limit", 100, MOST)),
        )
    )
    now: dict[str, HostNow] = {}
    if asked.get("live") == "1" and page.rows:
        # A crawl that does not answer is told of elsewhere; the list is worth showing without it.
        with contextlib.suppress(GossamerError):
            now = await shown.hosts_now([row["host"] for row in page.rows])
    return ListedHosts(page.made_at, page.total, page.rows, page.left_out, is_being_made, now)


async def _host(request: Request, crawls: Crawls) -> object:
    from gossamer.operations.hosts import picture_of

    shown = await crawls.named(request.path_params["key"])
    name = request.query_params.get("name", "")
    if not name:
        raise UsageError("name a host: ?name=...")
    return await shown.run(picture_of, shown.directory, name[:253])


async def _graph(request: Request, crawls: Crawls) -> object:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(asking.graph_of, shown.directory)


async def _layout(request: Request, crawls: Crawls) -> Layout:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(read_layout, layouts_folder(), shown.key)


async def _lay_out(request: Request, crawls: Crawls) -> Layout:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(write_layout, layouts_folder(), shown.key, await request.body())


async def _reports(request: Request, crawls: Crawls) -> ReportNames:
    return names_of_reports(questions_file())


async def _save_reports(request: Request, crawls: Crawls) -> ReportNames:
    return save_questions(questions_file(), await request.body())


async def _answerable(request: Request, crawls: Crawls) -> Answerable:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(answerable, shown.directory)


async def _log(request: Request, crawls: Crawls) -> jobs.LogTail:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(jobs.log_tail, shown.directory)


async def _resume(request: Request, crawls: Crawls) -> jobs.JobDone:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(jobs.resume, shown.directory)


async def _restore(request: Request, crawls: Crawls) -> jobs.JobDone:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(jobs.restore, shown.directory, await request.body())


async def _catalog(request: Request, crawls: Crawls) -> rewiring.Offered:
    return rewiring.names_offered()


async def _rewire(request: Request, crawls: Crawls) -> rewiring.Rewired:
    shown = await crawls.named(request.path_params["key"])
    return await shown.run(rewiring.rewire, shown.directory, await request.body())


async def _story(request: Request, crawls: Crawls) -> object:
    from gossamer.operations.story import story_of

    shown = await crawls.named(request.path_params["key"])
    url = request.query_params.get("url", "")
    if not url:
        raise UsageError("say which URL: ?url=...")
    return await shown.run(story_of, shown.directory, url)


async def _document(request: Request, crawls: Crawls) -> object:
    from gossamer.operations.showing_archived import view_archived

    shown, asked = await crawls.named(request.path_params["key"]), request.query_params
    if not asked.get("url"):
        raise UsageError("say which URL: ?url=...")
    return await shown.run(view_archived, shown.directory, asked["url"], asked.get("at", ""))


async def _order(request: Request, crawls: Crawls) -> object:
    shown = await crawls.named(request.path_params["key"])
    order = asking.read_order(request.path_params["order"], await request.body())
    return {"done": await shown.run(asking.carry_out, shown.directory, order)}


async def _metrics(crawls: Crawls) -> str:
    told = await _gathered(crawls)
    return exposition({one.key: one.standing for one in told if one.standing is not None})


def _number(request: Request, name: str, usual: float, most: float, least: float = 1e-9) -> float:
    text = request.query_params.get(name, "")
    try:
        number = float(text) if text else usual
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise UsageError(f"{name} has to be a number, {'0 or more' if not least else 'above 0'} and up to {most:g}")
    return number


async def _refused(request: Request, error: Exception) -> Response:
    """What cannot be done is said in words; nothing of ours breaks."""
    status = 404 if isinstance(error, NoSuchCrawl) else 400 if isinstance(error, UsageError) else 409
    return Response(msgspec.json.encode({"error": str(error)}), status, media_type="application/json")


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(msgspec.json.encode({"error": error.detail}), error.status_code, media_type="application/json")
