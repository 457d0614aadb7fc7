"""The application of the dashboard, and its process: the addresses and answers that are not about one crawl, where it listens, and
when it ends.

Place in the flow: `gossamer dashboard` calls :func:`serve`. `gossamer crawl --dashboard` starts this module as a program, with the
crawl's directory and the address. The first line of its output is the address that opens it, or after a `!` the reason why there is
none. It ends when its standard input does, which the crawl holds.

:mod:`guarding` has decided who may ask. Addresses below `/api/` answer with JSON, by the names of `gossamer status --json`;
`/metrics` is for Prometheus; everything else is a file of the front end. Work that waits is done in threads (:mod:`crawls`).
"""

import asyncio
import contextlib
import hashlib
import mimetypes
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from gossamer.analysis.replaying import REPLAY
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.http_server import is_loopback, json_answer, listening_socket, server
from gossamer.dashboard import questions, sites
from gossamer.dashboard.crawls import Crawls, NoSuchCrawl, ShownCrawl, Streams, exposition
from gossamer.dashboard.exporting import Exporter
from gossamer.dashboard.guarding import ACCESS, Access, DashboardGuard, read_keys
from gossamer.dashboard.jobs import NewCrawl, StartedCrawl, StartForm, start, start_form
from gossamer.dashboard.of_crawl import Offered, add_of_crawl, names_offered
from gossamer.dashboard.routes import Addresses
from gossamer.engine.errors import FlowError
from gossamer.engine.files import user_folder
from gossamer.engine.unit import meanwhile
from gossamer.values.errors import GossamerError, UsageError

# The front end. A browser keeps its files and asks whether they are still the same, so loading a page again costs a line for each.

#: Where the files lie.
STATIC = Path(__file__).with_name("static")

#: Kept by a browser, and asked for each time; nothing in them is secret.
_KEPT = "no-cache"


class _File(NamedTuple):
    content: bytes
    media_type: str
    tag: str


class FrontEnd:
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


class ListedCrawl(msgspec.Struct, frozen=True):
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
    can_change: bool


def addresses(crawls: Crawls, streams: Streams, replays: questions.Replays, exporter: Exporter) -> Addresses:
    """Everything that can be asked for."""
    front, at = FrontEnd(), Addresses(crawls)

    async def save_sites(request: Request) -> sites.ListedSites:
        saved = sites.save_sites(sites.sites_file(), await request.body())
        crawls.look_anew()
        return saved

    async def open_site(request: Request) -> Response:
        _check_full(request)
        return RedirectResponse(sites.entrance(sites.sites_file(), request.query_params.get("name", "")), 303)

    async def elsewhere(request: Request) -> list[sites.SiteElsewhere]:
        _check_full(request)
        return await sites.look_elsewhere(sites.sites_file())

    async def begin(request: Request) -> StartedCrawl:
        begun = await crawls.run(start, crawls.folders(), await request.body())
        crawls.look_anew()
        return begun

    async def save_reports(request: Request) -> questions.ReportNames:
        return questions.save_questions(questions.questions_file(), await request.body())

    async def metrics(request: Request) -> Response:
        standings = {one.key: one.standing for one in await _gathered(crawls) if one.standing is not None}
        return PlainTextResponse(exposition(standings), media_type="text/plain; version=0.0.4")

    at.add("/", front.page)
    at.add("/static/{name}", front.file)
    at.add("/api/openapi.json", lambda _: at.openapi())
    at.add("/api/session", lambda request: Permissions(request.scope[ACCESS] is Access.FULL), Permissions)
    at.add("/api/sites", lambda _: sites.list_sites(sites.sites_file()), sites.ListedSites)
    at.add("/api/sites", save_sites, sites.ListedSites, takes=sites.KeptSites)
    at.add("/api/sites/open", open_site, answers={"303": {"description": "the address"}})
    at.add("/api/sites/crawls", elsewhere, list[sites.SiteElsewhere])
    at.add("/api/options", lambda _: start_form(crawls.folders()), StartForm)
    at.add("/api/crawls", lambda _: _gathered(crawls), list[ListedCrawl])
    at.add("/api/crawls", begin, StartedCrawl, takes=NewCrawl)
    at.add("/api/catalog", lambda _: names_offered(), Offered)
    at.add("/api/pages", lambda _: crawls.run(questions.page_names), list[questions.PageName])
    at.add("/api/reports", lambda _: questions.names_of_reports(questions.questions_file()), questions.ReportNames)
    at.add("/api/reports", save_reports, questions.ReportNames, takes=questions.KeptQuestions)
    add_of_crawl(at, questions.Questions(), exporter, streams, replays)
    at.add(
        REPLAY,
        lambda request: replays.show(request, crawls),
        answers={"200": {"description": "the document"}, "403": {"description": "the address is not valid"}},
        is_open=True,
    )
    at.add("/metrics", metrics, answers={"200": {"description": "figures", "content": {"text/plain": {}}}})
    return at


def application(crawls: Crawls, streams: Streams | None = None, replays: questions.Replays | None = None) -> Starlette:
    exporter = Exporter()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        exporter.close()
        crawls.close()

    return Starlette(
        routes=addresses(crawls, streams or Streams(), replays or questions.Replays(), exporter).routes,
        exception_handlers={GossamerError: _refused, FlowError: _refused, HTTPException: _failed},
        lifespan=lifespan,
    )


def _check_full(request: Request) -> None:
    """Dashboards elsewhere are asked, and opened, with their keys: only for who may do everything here."""
    if request.scope[ACCESS] is not Access.FULL:
        raise HTTPException(403, "this token may only read")


async def _gathered(crawls: Crawls) -> list[ListedCrawl]:
    return list(await asyncio.gather(*map(_told, (await crawls.all()).values())))


async def _told(shown: ShownCrawl) -> ListedCrawl:
    try:
        return ListedCrawl(shown.key, str(shown.directory), await shown.standing(), site=shown.site)
    except GossamerError as error:
        return ListedCrawl(shown.key, str(shown.directory), trouble=str(error), site=shown.site)


async def _refused(request: Request, error: Exception) -> Response:
    """A request that cannot be carried out is answered in words."""
    status = 404 if isinstance(error, NoSuchCrawl) else 400 if isinstance(error, UsageError) else 409
    return json_answer({"error": str(error)}, status)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_answer({"error": error.detail}, error.status_code)


class Listening(msgspec.Struct, frozen=True):
    name: str = "127.0.0.1"
    port: int = 0
    """0: a free one."""
    certificate: str = ""
    """A file with the chain of certificates, as PEM; with `key` the dashboard speaks TLS."""
    key: str = ""

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"


def read_address(text: str, certificate: str = "", key: str = "", *, is_open: bool = False) -> Listening:
    """The address to listen at, as a person wrote it: empty, `PORT`, `HOST` or `HOST:PORT`.
    Raises UsageError: it is no address, or one that others can reach, and neither TLS nor a word says that this is meant."""
    name, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon and text.isdigit():
        name, port = "", text
    elif not colon:
        name, port = text, ""
    if port and not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(f"{text!r} is not an address to listen at; write HOST:PORT, as 127.0.0.1:8080")
    if bool(certificate) != bool(key):
        raise UsageError("a certificate and its key belong together; give both")
    found = Listening(name.strip("[]") or "127.0.0.1", int(port or 0), certificate, key)
    if not (is_loopback(found.name) or certificate or is_open):
        raise UsageError(
            f"{found.name} can be reached from other machines, and tokens would travel in the clear; "
            "give --certificate and --key, or use --without-tls"
        )
    return found


#: Connections at once: some browsers, each with several.
MAX_CONNECTIONS = 256

#: Bytes of the head of a request.
MAX_HEAD = 32_768


def serve(
    places: Sequence[Path], listening: Listening, tell: Callable[[str, str], None], *, is_child: bool = False
) -> None:
    """Serve crawls, and folders that hold some, until the process is told to end, by a signal or, as a child, by the end of its
    standard input. `tell` gets the address that opens everything, and the one that only shows, once it listens. Raises
    UsageError: it cannot listen there, or its keys cannot be read."""
    if listening.certificate:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(listening.certificate, listening.key)
        except OSError as error:
            given = f"--certificate {listening.certificate} --key {listening.key}"
            raise UsageError(f"{given}: cannot be read as PEM: {error.strerror or error}") from None
    keys = read_keys(user_folder("state") / "dashboard-keys.json")
    with listening_socket(listening.name, listening.port, MAX_CONNECTIONS) as bound:
        port = bound.getsockname()[1]
        crawls, replays = Crawls(places, lambda: sites.folders(sites.sites_file())), questions.Replays()
        app = application(crawls, replays=replays)
        guard = DashboardGuard(app, keys, port, name=listening.name, scheme=listening.scheme, is_given=replays.is_given)
        serving = server(
            guard,
            most=MAX_CONNECTIONS,
            head=MAX_HEAD,
            certificate=listening.certificate or None,
            key=listening.key or None,
        )
        name = f"[{listening.name}]" if ":" in listening.name else listening.name
        address = f"{listening.scheme}://{name}:{port}/?token="
        tell(address + keys.full, address + keys.read)
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends gracefully, and raises it after
            asyncio.run(_serve(serving, bound, is_child=is_child))


async def _serve(server: uvicorn.Server, bound: socket.socket, *, is_child: bool) -> None:
    async with meanwhile(*([_until_parent_ends(server)] if is_child else ())):
        await server.serve(sockets=[bound])


async def _until_parent_ends(server: uvicorn.Server) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
    server.should_exit = True


def main(directory: str, address: str) -> int:
    """Serve one crawl until standard input ends; the exit status."""
    try:
        serve([Path(directory)], read_address(address), lambda full, read: print(full, flush=True), is_child=True)
    except GossamerError as error:
        print(f"!{error}", flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
