"""The SPARQL 1.1 Protocol over HTTP, read only and on loopback: a token in the path says who may ask.

Place in the flow: `gossamer serve-sparql` calls :func:`serve`; :mod:`gossamer.crawls.http_server` is the server, and :mod:`asking`
answers questions on a copy of the store that is renewed while the crawl goes on.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import io
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from html import escape
from pathlib import Path
from urllib.parse import parse_qs

import pyoxigraph as oxigraph
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gossamer.crawls.http_server import Guard, length_of, listening_socket, names_server, parted_host, refusal, server
from gossamer.query.contract import TripleAnswer
from gossamer.rdf.store.asking import Enough, QuestionLimits, ShownAnswer, TooMuch, ask, current_copy
from gossamer.rdf.store.graphs import write_graph
from gossamer.rdf.store.questions import SparqlQuestion
from gossamer.values.errors import CrawlDirectoryError, GossamerError

#: Seconds after which a question has a new copy of the store.
RENEWED = 10.0

#: Questions that are answered at once; others are told to come again.
AT_ONCE = 4

#: Bytes of a query in a body, and of the head of a request, which has it in its address otherwise.
_MOST_BYTES, _MAX_HEAD = 1 << 20, 1 << 17

#: Connections at once.
_MAX_CONNECTIONS = 64


def serve(directory: Path, port: int, limits: QuestionLimits, tell: Callable[[str], None]) -> None:
    """Answer questions to the triples of a crawl on a port of loopback (0: a free one) until a signal says that it is enough;
    `tell` gets the address with its token, once it listens. Raises UsageError: the port cannot be used."""
    path = f"/{secrets.token_urlsafe(16)}/sparql"
    with listening_socket("127.0.0.1", port, _MAX_CONNECTIONS) as bound:
        url = f"http://127.0.0.1:{bound.getsockname()[1]}{path}"
        guard = SparqlGuard(SparqlEndpoint(Copies(directory, limits.seconds), url, limits), path)
        serving = server(guard, most=_MAX_CONNECTIONS, head=_MAX_HEAD)
        tell(url)
        asyncio.run(serving.serve(sockets=[bound]))


class Copies:
    """Copies of the store, each shared by the questions of :data:`RENEWED` seconds."""

    def __init__(self, directory: Path, patience: float) -> None:
        self._directory = directory
        self._patience = patience
        self._renewing = asyncio.Lock()
        self._current: _Copy | None = None

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[Path]:
        """A copy that stays for as long as it is used. Raises GossamerError: there is none."""
        async with self._renewing:
            copy = self._current
            if copy is None or time.monotonic() - copy.made > RENEWED:
                fresh = await asyncio.to_thread(_Copy, self._directory, self._patience)
                self.close()
                self._current = copy = fresh
            copy.users += 1
        try:
            yield copy.path
        finally:
            copy.leave()

    def close(self) -> None:
        copy, self._current = self._current, None
        if copy is not None:
            copy.leave()


class _Copy:
    """One copy; it goes when its last user has left."""

    def __init__(self, directory: Path, patience: float) -> None:
        self._stack = contextlib.ExitStack()
        self.path = self._stack.enter_context(current_copy(directory, patience))
        self.made = time.monotonic()
        self.users = 1

    def leave(self) -> None:
        self.users -= 1
        if not self.users:
            self._stack.close()


class SparqlGuard(Guard):
    """Lets in programs and browsers of this machine that know the path."""

    max_body = _MOST_BYTES

    def __init__(self, app: "SparqlEndpoint", path: str) -> None:
        super().__init__(app)
        self._path = path.encode()

    def refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not names_server(parted_host(headers.get("host", ""))[0]):
            return _refusal(421, "this server answers only programs on its own machine")
        if scope["method"] not in ("GET", "POST"):
            return _refusal(501, "only GET and POST are answered")
        if not hmac.compare_digest(scope["raw_path"], self._path):
            return _refusal(404, "use the address with the token that `gossamer serve-sparql` printed")
        if scope["method"] == "POST":
            length = length_of(headers)
            if length is None:
                return _refusal(411, "a POST needs a Content-Length")
            if length > _MOST_BYTES:
                return _refusal(413, f"a query may have at most {_MOST_BYTES} bytes")
        return None


class SparqlEndpoint:
    """The application: answers requests that the guard has let in."""

    def __init__(self, copies: Copies, url: str, limits: QuestionLimits) -> None:
        self._copies, self._url, self._limits = copies, url, limits
        self._places = AT_ONCE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self._copies.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
        request = Request(scope, receive)
        try:
            body = (await request.body()).decode("utf-8", "replace")
        except ClientDisconnect:
            return
        accept, kind = request.headers.get("accept", ""), request.headers.get("content-type", "")
        try:
            question, is_for_people = wanted(
                request.method, scope["query_string"].decode("latin-1"), kind, body, accept
            )
        except RefusedRequest as error:
            answer = _refusal(error.status, str(error))
        else:
            if question is None:
                answer = self._introduction(accept, is_for_people=is_for_people)
            elif not self._places:
                answer = _refusal(503, "other questions are being answered; ask again", {"Retry-After": "5"})
            else:
                self._places -= 1
                try:
                    await self._answer(question, request, send, is_for_people=is_for_people)
                except ClientDisconnect:
                    pass
                finally:
                    self._places += 1
                return
        await answer(scope, receive, send)

    def _introduction(self, accept: str, *, is_for_people: bool) -> Response:
        if is_for_people:
            return Response(page(""), headers=HTML_HEADERS)
        form, out = next((form for form in preferred(accept) if form in GRAPH_TYPES), "turtle"), io.StringIO()
        write_graph(description(self._url), form, out)
        return Response(out.getvalue(), headers=result_headers(form))

    async def _answer(self, question: SparqlQuestion, request: Request, send: Send, *, is_for_people: bool) -> None:
        beginning, has_begun = ShownAnswer(SHOWN_ROWS), False

        async def begin(form: str) -> None:
            nonlocal has_begun
            if is_for_people:
                await beginning.begin(form)
            else:
                has_begun = True
                headers = Response(headers=result_headers(form)).raw_headers
                started = [(name, value) for name, value in headers if name != b"content-length"]
                await send({"type": "http.response.start", "status": 200, "headers": started})

        async def take(piece: bytes) -> None:
            if await request.is_disconnected():
                raise ClientDisconnect  # others wait for the place of this question
            if is_for_people:
                await beginning.take(piece)
            else:
                await send({"type": "http.response.body", "body": piece, "more_body": True})

        try:
            async with self._copies.one() as copy:
                with contextlib.suppress(Enough):
                    await ask(copy, question, self._limits, take, begin)
        except GossamerError as error:
            if has_begun:
                raise  # the server cuts the connection, so the answer has no end
            if is_for_people:
                answer = Response(page(question.query, error=str(error)), _status(error), HTML_HEADERS)
            else:
                answer = _refusal(_status(error), str(error))
            await answer(request.scope, request.receive, send)
            return
        if is_for_people:
            answer = Response(page(question.query, beginning.answer()), headers=HTML_HEADERS)
            await answer(request.scope, request.receive, send)
        else:
            await send({"type": "http.response.body", "body": b""})


def _refusal(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return refusal(status, text, {"X-Content-Type-Options": "nosniff", **(headers or {})})


def _status(error: GossamerError) -> int:
    if isinstance(error, TooMuch):
        return 503
    return 500 if isinstance(error, CrawlDirectoryError) else 400


# The SPARQL 1.1 Protocol as plain values: what a request asks for, in which form, and what the service says of itself.


#: Media types of answers, by form, and the first of a kind is what holds where a client takes anything.
ROW_TYPES = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}
GRAPH_TYPES = {
    "turtle": "text/turtle",
    "jsonld": "application/ld+json",
    "rdfxml": "application/rdf+xml",
    "nquads": "application/n-quads",
}
TYPES = {**ROW_TYPES, **GRAPH_TYPES}

#: Other names of the same.
_ALIASES = {
    "application/json": "json",
    "application/xml": "xml",
    "application/n-triples": "nquads",
    "text/plain": "nquads",
    "application/x-turtle": "turtle",
}
_FORMS = {**{media_type: form for form, media_type in TYPES.items()}, **_ALIASES}

_HTML = "text/html"

#: Parts of an `Accept` that are read: clients name some ten.
_MOST_TYPES = 100

_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = "http://www.w3.org/ns/formats/"
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class RefusedRequest(ValueError):
    """A request that is no SPARQL query. The text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def wanted(
    method: str, query_string: str, content_type: str, body: str, accept: str
) -> tuple[SparqlQuestion | None, bool]:
    """The wish of a request, by the text behind the `?` of its target, its body, and two of its fields: a question, or None
    where it wants the description of the service, or the form for people; and whether it is for people, who want HTML. Raises
    RefusedRequest: it is none that the protocol knows, or wants to change something."""
    values = _values(query_string)
    if method == "POST":
        kind = content_type.partition(";")[0].strip().lower()
        if kind == "application/x-www-form-urlencoded":
            values = _values(body)
        elif kind == "application/sparql-query":
            values["query"] = [body]
        elif kind == "application/sparql-update":
            raise RefusedRequest(403, "this endpoint is read only")
        else:
            raise RefusedRequest(415, "send a POST with a form, or with a query as application/sparql-query")
    if "update" in values:
        raise RefusedRequest(403, "this endpoint is read only")
    queries = values.get("query", [])
    if len(queries) > 1:
        raise RefusedRequest(400, "send one query at a time")
    forms = preferred(accept)
    is_for_people = next((form for form in forms if form in (_HTML, "any", *TYPES)), "") == _HTML
    if not queries:
        return None, is_for_people
    rows = next((form for form in forms if form in ROW_TYPES), "json")
    graph = next((form for form in forms if form in GRAPH_TYPES), "turtle")
    question = SparqlQuestion(
        queries[0],
        "tsv" if is_for_people else rows,
        "turtle" if is_for_people else graph,
        raw=True,
        default_graphs=tuple(values.get("default-graph-uri", ())),
        named_graphs=tuple(values.get("named-graph-uri", ())),
    )
    return question, is_for_people


def _values(text: str) -> dict[str, list[str]]:
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        raise RefusedRequest(400, "the request has too many fields") from None


def preferred(accept: str) -> list[str]:
    """The forms that a client takes, the best first: names of forms, `text/html`, and `any`."""
    found = []
    for number, part in enumerate(accept.split(",")[:_MOST_TYPES]):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        form = _FORMS.get(name) or (_HTML if name == _HTML else "any" if name in ("*/*", "") else "")
        if form and quality > 0:
            found.append((-quality, number, form))
    return [form for _, _, form in sorted(found)]


def description(endpoint: str) -> Iterable[oxigraph.Quad]:
    """The description of the service, in the vocabulary of SPARQL 1.1 Service Description."""
    service, dataset = oxigraph.BlankNode("service"), oxigraph.BlankNode("dataset")

    def say(subject: oxigraph.BlankNode, predicate: str, value: str | oxigraph.BlankNode) -> oxigraph.Quad:
        term = value if isinstance(value, oxigraph.BlankNode) else oxigraph.NamedNode(value)
        return oxigraph.Quad(subject, oxigraph.NamedNode(predicate), term)

    yield say(service, _RDF_TYPE, f"{_SD}Service")
    yield say(service, f"{_SD}endpoint", endpoint)
    yield say(service, f"{_SD}supportedLanguage", f"{_SD}SPARQL11Query")
    yield say(service, f"{_SD}feature", f"{_SD}UnionDefaultGraph")
    for name in ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV"):
        yield say(service, f"{_SD}resultFormat", _FORMATS + name)
    for name in ("Turtle", "JSON-LD", "RDF_XML", "N-Quads"):
        yield say(service, f"{_SD}resultFormat", _FORMATS + name)
    yield say(service, f"{_SD}defaultDataset", dataset)
    yield say(dataset, _RDF_TYPE, f"{_SD}Dataset")


def result_headers(form: str) -> dict[str, str]:
    """The fields of an answer in a form. A browser must take none of it for anything else."""
    return {
        "Content-Type": f"{TYPES[form]}; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }


# The page on which people ask: a form, and the answer as text. Strangers' text stands in it escaped, and it has no script.

#: Rows of an answer that are shown; programs get all of it.
SHOWN_ROWS = 2_000

_STYLE = (
    "body{font-family:sans-serif;margin:2em}textarea{width:100%;height:10em;font-family:monospace}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left;font-family:monospace}"
    "pre{white-space:pre-wrap}.error{color:#a00}"
)
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

#: Nothing but this page's own style may run, load or be framed, and its form leads nowhere else.
HTML_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_EXAMPLE = (
    "SELECT ?type (count(*) AS ?number)\nWHERE { ?thing a ?type }\nGROUP BY ?type ORDER BY DESC(?number) LIMIT 50"
)


def _shown(answer: TripleAnswer) -> str:
    if not answer.columns:
        return f"<pre>{escape(answer.graph)}</pre>{'<p>The beginning is shown.</p>' if answer.is_more else ''}"

    def row(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in answer.rows)
    note = f"<p>The first {len(answer.rows)} rows are shown.</p>" if answer.is_more else ""
    return f"<table>{row(answer.columns, 'th')}{body}</table>{note}"


def page(query: str, answer: TripleAnswer | None = None, error: str = "") -> str:
    """The page, with what was asked; an example stands in the form where that is empty."""
    told = f'<p class="error">{escape(error)}</p>' if error else ""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>SPARQL</title>"
        f"<style>{_STYLE}</style></head><body><h1>SPARQL</h1>"
        f'<form method="get"><label>Query <textarea name="query">\n{escape(query or _EXAMPLE)}</textarea></label>'
        "<p><button>Ask</button> Every page has a graph, named by its URL. "
        "The prefixes of RDFa need not be declared.</p></form>"
        f"{told}{_shown(answer) if answer is not None else ''}</body></html>\n"
    )
