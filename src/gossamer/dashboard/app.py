"""The application of the dashboard: the list of its addresses, and the answers that are not about one crawl.

Place in the flow: :mod:`guarding` has decided who may ask. Addresses below `/api/` answer with JSON, by the names of `gossamer
status --json`; `/metrics` is for Prometheus; everything else is a file of the front end. Work that waits is done in threads
(:mod:`crawls`).
"""

import asyncio
import contextlib
import hashlib
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from gossamer.analysis.replaying import REPLAY
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.http_server import json_answer
from gossamer.dashboard import describing, of_crawl, rewiring
from gossamer.dashboard.added_pages import PageName, page_names
from gossamer.dashboard.crawls import Crawls, NoSuchCrawl, ShownCrawl
from gossamer.dashboard.guarding import ACCESS, Access
from gossamer.dashboard.jobs import StartedCrawl, StartForm, start, start_form
from gossamer.dashboard.of_crawl import ExportAnswers, QuestionAnswers
from gossamer.dashboard.questions import Replays, ReportNames, names_of_reports, questions_file, save_questions
from gossamer.dashboard.sites import (
    ListedSites,
    SiteElsewhere,
    entrance,
    list_sites,
    look_elsewhere,
    save_sites,
    sites_file,
)
from gossamer.dashboard.streaming import Streams, exposition
from gossamer.engine.errors import FlowError
from gossamer.values.errors import GossamerError, UsageError

# The front end. A browser keeps its files and asks whether they are still the same, so loading a page again costs a line for each.

#: Where the files lie.
STATIC = Path(__file__).with_name("static")

#: Kept by a browser, and asked for each time; nothing in them is anybody's secret.
_KEPT = "no-cache"


class _File(NamedTuple):
    content: bytes
    media_type: str
    tag: str


class FrontEnd:
    """All of the files."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._files = {path.name: _read(path) for path in folder.iterdir() if path.is_file()}

    async def page(self, request: Request) -> Response:
        """The page that all others are shown in."""
        return self._answer(request, "index.html")

    async def file(self, request: Request) -> Response:
        return self._answer(request, request.path_params["name"])

    def _answer(self, request: Request, name: str) -> Response:
        found = self._files.get(name)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such file")
        headers = {"ETag": found.tag, "Cache-Control": _KEPT}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(found.content, media_type=found.media_type, headers=headers)


def _read(path: Path) -> _File:
    content = path.read_bytes()
    media_type = "text/javascript" if path.suffix == ".js" else mimetypes.guess_type(path.name)[0]
    return _File(content, media_type or "application/octet-stream", f'"{hashlib.sha256(content).hexdigest()[:16]}"')


Answer = Callable[[Request, Crawls], Awaitable[Any]]
CrawlAnswer = Callable[[Request, ShownCrawl], Awaitable[Any]]


class ListedCrawl(msgspec.Struct, frozen=True):
    """A crawl in the list of all."""

    key: str
    """Its key in addresses."""
    directory: str
    standing: CrawlStanding | None = None
    """How it stands; None where that cannot be told."""
    trouble: str = ""
    """The reason, where it cannot."""
    site: str = ""
    """The site that it belongs to; empty where the dashboard was started with it."""


class Permissions(msgspec.Struct, frozen=True):
    """The rights of the asker."""

    can_change: bool


def application(crawls: Crawls, streams: Streams | None = None, replays: Replays | None = None) -> Starlette:
    """The dashboard of these crawls."""
    told, shown_again = streams or Streams(), replays or Replays()
    front, questions, exports = FrontEnd(), QuestionAnswers(), ExportAnswers()

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
            if isinstance(found, Response):
                return found
            return json_answer(found)

        return Route(path, answered, methods=[method])

    def of_one(path: str, answer: CrawlAnswer, method: str = "GET") -> Route:
        async def answered(request: Request, crawls: Crawls) -> Any:
            return await answer(request, await crawls.named(request.path_params["key"]))

        return route(f"/api/crawls/{{key}}{path}", answered, method)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        exports.exporter.close()
        crawls.close()

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(await _metrics(crawls), media_type="text/plain; version=0.0.4")

    return Starlette(
        routes=[
            Route("/", front.page),
            route("/api/session", _session),
            route("/api/openapi.json", _openapi),
            route("/api/sites", _sites),
            route("/api/sites", _save_sites, "POST"),
            Route("/api/sites/open", _open_site),
            route("/api/sites/crawls", _elsewhere),
            route("/api/crawls", _all),
            route("/api/crawls", _start, "POST"),
            route("/api/options", _options),
            of_one("", of_crawl.tell_standing),
            of_one("/samples", of_crawl.tell_samples),
            route("/api/crawls/{key}/hosts", of_crawl.tell_hosts),
            of_one("/host", of_crawl.tell_host),
            of_one("/graph", of_crawl.tell_graph),
            of_one("/unit", of_crawl.tell_unit),
            of_one("/traps", of_crawl.tell_traps),
            of_one("/layout", of_crawl.tell_layout),
            of_one("/layout", of_crawl.keep_layout, "POST"),
            of_one("/story", of_crawl.tell_story),
            of_one("/document", of_crawl.tell_document),
            Route("/api/crawls/{key}/replay", enter_replay),
            Route(REPLAY, replay),
            route("/api/catalog", _catalog),
            route("/api/reports", _reports),
            route("/api/reports", _save_reports, "POST"),
            of_one("/tables", questions.tell_tables),
            of_one("/answerable", of_crawl.tell_answerable),
            of_one("/sparql", questions.tell_triples),
            of_one("/search", questions.tell_words),
            route("/api/pages", _pages),
            of_one("/pages/{name:path}", questions.tell_page),
            of_one("/rewire", of_crawl.do_rewire, "POST"),
            of_one("/log", of_crawl.tell_log),
            of_one("/resume", of_crawl.do_resume, "POST"),
            of_one("/restore", of_crawl.do_restore, "POST"),
            of_one("/exports", exports.tell_exports),
            of_one("/exports", exports.begin_export, "POST"),
            of_one("/remove-export", exports.remove_export, "POST"),
            of_one("/exports/{name}", exports.download),
            Route("/api/crawls/{key}/events", events),
            of_one("/{order}", of_crawl.do_order, "POST"),
            Route("/metrics", metrics),
            Route("/static/{name}", front.file),
        ],
        exception_handlers={GossamerError: _refused, FlowError: _refused, HTTPException: _failed},
        lifespan=lifespan,
    )


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


async def _elsewhere(request: Request, crawls: Crawls) -> list[SiteElsewhere]:
    """Ask other dashboards, with their keys: only for who may do everything here."""
    if request.scope[ACCESS] is not Access.FULL:
        raise HTTPException(403, "this token may only read")
    return await look_elsewhere(sites_file())


async def _open_site(request: Request) -> Response:
    """Lead to another dashboard, with its key: only for who may do everything here."""
    if request.scope[ACCESS] is not Access.FULL:
        raise HTTPException(403, "this token may only read")
    return RedirectResponse(entrance(sites_file(), request.query_params.get("name", "")), 303)


async def _all(request: Request, crawls: Crawls) -> list[ListedCrawl]:
    return await _gathered(crawls)


async def _options(request: Request, crawls: Crawls) -> StartForm:
    return start_form(crawls.folders())


async def _start(request: Request, crawls: Crawls) -> StartedCrawl:
    begun = await crawls.run(start, crawls.folders(), await request.body())
    crawls.look_anew()
    return begun


async def _gathered(crawls: Crawls) -> list[ListedCrawl]:
    return list(await asyncio.gather(*map(_told, (await crawls.all()).values())))


async def _told(shown: ShownCrawl) -> ListedCrawl:
    try:
        return ListedCrawl(shown.key, str(shown.directory), await shown.standing(), site=shown.site)
    except GossamerError as error:
        return ListedCrawl(shown.key, str(shown.directory), trouble=str(error), site=shown.site)


async def _reports(request: Request, crawls: Crawls) -> ReportNames:
    return names_of_reports(questions_file())


async def _save_reports(request: Request, crawls: Crawls) -> ReportNames:
    return save_questions(questions_file(), await request.body())


async def _pages(request: Request, crawls: Crawls) -> list[PageName]:
    return await crawls.run(page_names)


async def _catalog(request: Request, crawls: Crawls) -> rewiring.Offered:
    return rewiring.names_offered()


async def _metrics(crawls: Crawls) -> str:
    told = await _gathered(crawls)
    return exposition({one.key: one.standing for one in told if one.standing is not None})


async def _refused(request: Request, error: Exception) -> Response:
    """A request that cannot be carried out is answered in words."""
    status = 404 if isinstance(error, NoSuchCrawl) else 400 if isinstance(error, UsageError) else 409
    return json_answer({"error": str(error)}, status)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_answer({"error": error.detail}, error.status_code)
