"""The list of addresses: what answers at each, and its line in the description of the JSON interface, as OpenAPI 3.1 has it. The
description is made from the values that are sent, so that it cannot differ.

Place in the flow: :mod:`app` and :mod:`of_crawl` add the addresses, and :mod:`app` makes an application of them.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer._version import __version__
from gossamer.crawls.http_server import json_answer
from gossamer.dashboard.crawls import Crawls, ShownCrawl
from gossamer.query.host_list import COLUMNS, MOST
from gossamer.values.errors import UsageError

CrawlAnswer = Callable[[Request, ShownCrawl], Awaitable[Any]]

#: Words of a query that are no texts.
_NUMBERS = {"hours": "number", "offset": "integer", "limit": "integer", "start": "integer"}


#: The description of addresses: the effect of each, and the meaning of the words of its query.
_TOLD = """
GET /api/session
    Say what the asker may do.
GET /api/sites
    List the sites of this user, without their keys.
POST /api/sites
    Keep these sites in the place of all others.
GET /api/sites/open
    Lead to the dashboard of a site, with its key. This needs the full token.
    name: The name of the site.
GET /api/sites/crawls
    Say how the crawls of dashboards elsewhere stand. This needs the full token.
GET /api/options
    Give the form of a new crawl: folders and options.
GET /api/crawls
    List the crawls, and how each stands.
POST /api/crawls
    Start a crawl.
GET /api/catalog
    Give the names that a change of a graph may use.
GET /api/pages
    Name the pages that subjects add, those of installed packages among them.
GET /api/reports
    Name the reports that ship, and the questions that this user has saved.
POST /api/reports
    Save these questions in the place of all others.
GET /replay
    Show an archived document in a sandbox, by an address that the request above gave out.
    crawl: As given out.
    url: As given out.
    at: As given out.
    until: As given out.
    depth: As given out.
    sign: As given out.
GET /metrics
    Give the figures of all crawls for Prometheus.
GET /api/crawls/{key}
    Say how a crawl stands, as `gossamer status --json` does.
    units: Also say what every unit has counted, if it is 1.
    agent: Ask this agent alone, of several that are at work.
GET /api/crawls/{key}/samples
    Give the samples of the last hours by column, as the table `samples` has them.
    hours: Go back this many hours.
GET /api/crawls/{key}/hosts
    Give some hosts of the table `hosts`, as of ten seconds ago at most, or say that such a list is being made.
    search: Give hosts whose names hold this.
    sort: Sort by COLUMNS.
    descending: Give the greatest first, if it is 1.
    offset: Leave out this many.
    limit: Give this many, MOST at most.
    live: Also say how these hosts stand at this moment, if it is 1 and the crawl runs.
GET /api/crawls/{key}/host
    Say what is known of a host: state, delay, robots.txt with its versions, failed URLs, the head of its queue.
    name: The name of the host.
GET /api/crawls/{key}/graph
    Give the graph: units with every setting, its value, bounds and text, and connectors with their ends.
    agent: Ask this agent alone, of several that are at work.
GET /api/crawls/{key}/unit
    Give every instance of a unit, in all agents, with what it has counted and its settings.
    name: The name of the unit.
GET /api/crawls/{key}/traps
    List what was set aside as parts of traps, and why.
GET /api/crawls/{key}/layout
    Give the places of units in the picture of the graph, as this user left them.
POST /api/crawls/{key}/layout
    Keep them.
GET /api/crawls/{key}/story
    Tell the story of a URL, as `gossamer why --json` does.
    url: The URL.
GET /api/crawls/{key}/document
    Give the archived document of a URL as text, with header fields and record.
    url: The URL.
    at: Give the version that stood at this time, as 20260301 (UTC).
GET /api/crawls/{key}/replay
    Lead to an address that shows the archived document as it looked, for an hour, without a key.
    url: The URL.
    at: Show the version of this time.
GET /api/crawls/{key}/tables
    Ask the tables of a crawl: a list of tables with columns, types and rows.
    sql: A question in DuckDB's SQL.
    report: The name of a report, in its place.
GET /api/crawls/{key}/answerable
    Say whether a crawl keeps triples and an index; a text that is not empty says why it does not.
GET /api/crawls/{key}/sparql
    Ask the triples of a crawl one question: rows, or a graph as Turtle.
    query: A question in SPARQL.
GET /api/crawls/{key}/search
    Search the documents of a crawl, as `gossamer search --json` does; filters can be given several times.
    words: Words, phrases in quotes, AND, OR, NOT; none for every document.
    host: Only on this host or below it.
    language: Only in this language, as `en`.
    type: Only with a thing of this type, as `schema:Product`.
    start: Leave out this many.
    limit: Give so many.
GET /api/crawls/{key}/pages/{name}
    Give the page of this title, as its subject makes it of a crawl.
POST /api/crawls/{key}/rewire
    Change the graph of a running crawl by names of the catalog, or say what that would change.
GET /api/crawls/{key}/log
    Give the last visits of the log, and what a resumed crawl said.
POST /api/crawls/{key}/resume
    Let a crawl at rest go on.
POST /api/crawls/{key}/restore
    Let a crawl at rest go back to a checkpoint.
GET /api/crawls/{key}/exports
    List the exports of a crawl, and the forms in which it can be exported.
POST /api/crawls/{key}/exports
    Have an export made.
POST /api/crawls/{key}/remove-export
    Remove an export, or give it up.
GET /api/crawls/{key}/exports/{name}
    Download an export.
GET /api/crawls/{key}/events
    Send how a crawl stands whenever it has changed, as server-sent events.
"""


class _Described(NamedTuple):
    path: str
    text: str
    asked: Mapping[str, str]
    kind: Any
    takes: Any
    answers: Mapping[str, Any]
    is_open: bool


class Addresses:
    def __init__(self, crawls: Crawls) -> None:
        self.crawls = crawls
        self.routes: list[Route] = []
        self._described: list[_Described] = []
        self._told = dict(_told())

    def add(
        self,
        path: str,
        answer: Callable[[Request], Any],
        kind: Any = dict,
        *,
        takes: Any = None,
        answers: Mapping[str, Any] = {},
        is_open: bool = False,
    ) -> None:
        """Answer at an address.

        Args:
            path: as Starlette has it.
            answer: makes the answer, at once or when it is awaited; anything but a response is sent as JSON.
            kind: the type of the answer, or its JSON schema.
            takes: the type of the body; with it, the method is POST.
            answers: the answers by their status, as OpenAPI has them, where the answer is not JSON.
            is_open: no key is needed.
        """

        async def answered(request: Request) -> Response:
            found = answer(request)
            if inspect.isawaitable(found):
                found = await found
            return found if isinstance(found, Response) else json_answer(found)

        method = "GET" if takes is None else "POST"
        self.routes.append(Route(path, answered, methods=[method]))
        said = self._told.get(f"{method} {path.replace(':path', '')}")
        if said is not None:
            self._described.append(_Described(path, *said, kind, takes, answers, is_open))

    def of_one(self, path: str, answer: CrawlAnswer, kind: Any = dict, **more: Any) -> None:
        """Answer at an address below that of each crawl; `more` is as of :meth:`add`."""

        async def answered(request: Request) -> Any:
            return await answer(request, await self.crawls.named(request.path_params["key"]))

        self.add(f"/api/crawls/{{key}}{path}", answered, kind, **more)

    def describe(self, path: str, text: str, kind: Any, takes: Any) -> None:
        """Describe an address that another one stands for."""
        self._described.append(_Described(path, text, {}, kind, takes, {}, is_open=False))

    def openapi(self) -> dict[str, Any]:
        named = [one for told in self._described for one in (told.kind, told.takes)]
        kinds = {one: None for one in named if one is not None and not isinstance(one, dict)}
        schemas, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
        known = dict(zip(kinds, schemas, strict=True))
        paths: dict[str, Any] = {}
        for told in self._described:
            path, method = told.path.replace(":path", ""), "get" if told.takes is None else "post"
            paths.setdefault(path, {})[method] = _operation(told, path, known)
        return {
            "openapi": "3.1.0",
            "info": {"title": "Gossamer dashboard", "version": __version__},
            "paths": paths,
            "components": {"schemas": parts, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
            "security": [{"key": []}],
        }


def _told() -> Iterator[tuple[str, tuple[str, dict[str, str]]]]:
    text = _TOLD.replace("COLUMNS", ", ".join(COLUMNS)).replace("MOST", str(MOST))
    for entry in re.split(r"\n(?=\S)", text.strip()):
        address, does, *asked = map(str.strip, entry.split("\n"))
        yield address, (does, dict(line.split(": ", 1) for line in asked))


def _operation(told: _Described, path: str, known: Mapping[Any, Any]) -> dict[str, Any]:
    def content(kind: Any) -> dict[str, Any]:
        return {"application/json": {"schema": kind if isinstance(kind, dict) else known[kind]}}

    text = {"type": "string"}
    return {
        "summary": told.text,
        **({"security": []} if told.is_open else {}),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": text} for name in re.findall(r"{(\w+)}", path)),
            *(
                {"name": name, "in": "query", "description": said, "schema": {"type": _NUMBERS.get(name, "string")}}
                for name, said in told.asked.items()
            ),
        ],
        **({} if told.takes is None else {"requestBody": {"content": content(told.takes)}}),
        "responses": told.answers or {"200": {"description": "the answer", "content": content(told.kind)}},
    }


def number_in(asked: QueryParams, name: str, usual: float, most: float, least: float = 1e-9) -> float:
    """A number of the query. Raises UsageError: it is none, or out of bounds."""
    text = asked.get(name, "")
    try:
        number = float(text) if text else usual
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise UsageError(f"{name} has to be a number, {'0 or more' if not least else 'above 0'} and up to {most:g}")
    return number
