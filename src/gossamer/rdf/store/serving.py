"""The SPARQL 1.1 Protocol over HTTP, read only and on loopback: a token in the path says who may ask.

Place in the flow: `gossamer serve-sparql` calls :func:`serve`; :mod:`gossamer.crawls.http_server` is the server. :mod:`protocol`
reads requests and makes the page for people, and :mod:`asking` answers questions on a copy of the store that is renewed while the
crawl goes on.
"""

import asyncio
import contextlib
import hmac
import io
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gossamer.crawls.http_server import Guard, length_of, listening_socket, names_server, parted_host, refusal, server
from gossamer.rdf.store.asking import Enough, QuestionLimits, ShownAnswer, TooMuch, ask, current_copy
from gossamer.rdf.store.graphs import write_graph
from gossamer.rdf.store.protocol import (
    HTML_HEADERS,
    SHOWN_ROWS,
    RefusedRequest,
    Wanted,
    description,
    description_form,
    page,
    result_headers,
    wanted,
)
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
            await self._live(receive, send)
            return
        request = Request(scope, receive)
        try:
            body = (await request.body()).decode("utf-8", "replace")
        except ClientDisconnect:
            return
        accept, kind = request.headers.get("accept", ""), request.headers.get("content-type", "")
        try:
            asked = wanted(request.method, scope["query_string"].decode("latin-1"), kind, body, accept)
        except RefusedRequest as error:
            answer = _refusal(error.status, str(error))
        else:
            if asked.question is None:
                answer = self._introduction(asked, accept)
            elif not self._places:
                answer = _refusal(503, "other questions are being answered; ask again", {"Retry-After": "5"})
            else:
                self._places -= 1
                try:
                    await self._answer(asked, asked.question, request, send)
                except ClientDisconnect:
                    pass
                finally:
                    self._places += 1
                return
        await answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._copies.close()
        await send({"type": "lifespan.shutdown.complete"})

    def _introduction(self, asked: Wanted, accept: str) -> Response:
        if asked.is_for_people:
            return Response(page(""), headers=HTML_HEADERS)
        form, out = description_form(accept), io.StringIO()
        write_graph(description(self._url), form, out)
        return Response(out.getvalue(), headers=result_headers(form))

    async def _answer(self, asked: Wanted, question: SparqlQuestion, request: Request, send: Send) -> None:
        beginning, has_begun = ShownAnswer(SHOWN_ROWS), False

        async def begin(form: str) -> None:
            nonlocal has_begun
            if asked.is_for_people:
                await beginning.begin(form)
            else:
                has_begun = True
                headers = Response(headers=result_headers(form)).raw_headers
                started = [(name, value) for name, value in headers if name != b"content-length"]
                await send({"type": "http.response.start", "status": 200, "headers": started})

        async def take(piece: bytes) -> None:
            if await request.is_disconnected():
                raise ClientDisconnect  # others wait for the place of this question
            if asked.is_for_people:
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
            if asked.is_for_people:
                answer = Response(page(question.query, error=str(error)), _status(error), HTML_HEADERS)
            else:
                answer = _refusal(_status(error), str(error))
            await answer(request.scope, request.receive, send)
            return
        if asked.is_for_people:
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
