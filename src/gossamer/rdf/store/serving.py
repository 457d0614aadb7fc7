"""The SPARQL 1.1 Protocol over HTTP, read only and on loopback: a token in the path says who may ask.

Place in the flow: `gossamer serve-sparql` runs :class:`SparqlServer`. Requests are read by :mod:`protocol`, questions answered by
:mod:`asking` on a copy of the store that is renewed while the crawl goes on. What people see is made by :mod:`html_answers`.
"""

import asyncio
import contextlib
import hmac
import io
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gossamer.rdf.store.asking import QuestionLimits, TooMuch, ask, current_copy
from gossamer.rdf.store.graphs import write_graph
from gossamer.rdf.store.protocol import (
    HTML_HEADERS,
    RefusedRequest,
    Shown,
    Wanted,
    description,
    description_form,
    page,
    result_headers,
    wanted,
)
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

#: Seconds after which a question has a new copy of the store.
RENEWED = 10.0

#: Questions that are answered at once; others are told to come again.
AT_ONCE = 4

#: Bytes of a query.
_MOST_BYTES = 1 << 20

#: Seconds that a client may take to say what it wants, and to take what it gets.
_PATIENCE = 30.0

#: Names by which a browser on this machine calls it: a name of somebody else's leads here by their tricks alone.
_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})


class Copies:
    """Copies of the store, each shared by those who ask within :data:`RENEWED` seconds."""

    def __init__(self, directory: Path, patience: float) -> None:
        self._directory = directory
        self._patience = patience
        self._lock = threading.Lock()
        self._current: _Copy | None = None

    @contextlib.contextmanager
    def one(self) -> Iterator[Path]:
        """A copy that stays for as long as it is used.

        Raises:
            GossamerError: there is none.
        """
        with self._lock:
            copy = self._current
            if copy is None or time.monotonic() - copy.made > RENEWED:
                fresh = _Copy(self._directory, self._patience)
                if copy is not None:
                    copy.leave()
                self._current = copy = fresh
            copy.users += 1
        try:
            yield copy.path
        finally:
            with self._lock:
                copy.leave()

    def close(self) -> None:
        """Let go of the last."""
        with self._lock:
            if self._current is not None:
                self._current.leave()
                self._current = None


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


class SparqlServer(ThreadingHTTPServer):
    """Answers questions to the triples of one crawl directory."""

    daemon_threads = True

    def __init__(self, directory: Path, port: int, limits: QuestionLimits) -> None:
        """Listen; nothing is answered before `serve_forever`.

        Args:
            directory: the crawl directory.
            port: on loopback; 0 for a free one.
            limits: what a question may take.

        Raises:
            UsageError: the port cannot be used.
        """
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(f"port {port} cannot be used: {getattr(error, 'strerror', None) or error}") from None
        self.path = f"/{secrets.token_urlsafe(16)}/sparql"
        self.limits = limits
        self.copies = Copies(directory, limits.seconds)
        self.places = threading.BoundedSemaphore(AT_ONCE)

    @property
    def url(self) -> str:
        """Where it listens, with the token."""
        return f"http://127.0.0.1:{self.server_address[1]}{self.path}"

    def server_close(self) -> None:
        """Let go of port and store."""
        super().server_close()
        self.copies.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no event."""


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: SparqlServer
    timeout = _PATIENCE
    server_version, sys_version = "gossamer", ""

    def log_message(self, *_: Any) -> None:
        """Questions are nobody's business."""

    def do_GET(self) -> None:
        self._serve("")

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._refuse(411, "a POST needs a Content-Length")
            return
        if not 0 <= length <= _MOST_BYTES:
            self._refuse(413, f"a query may have at most {_MOST_BYTES} bytes")
            return
        self._serve(self.rfile.read(length).decode("utf-8", "replace"))

    def _serve(self, body: str) -> None:
        path, _, query = self.path.partition("?")
        host = self.headers.get("Host", "").lower()
        if (host if host.endswith("]") else host.rpartition(":")[0] or host) not in _HOSTS:
            self._refuse(421, "this server answers only programs on its own machine")
            return
        if not hmac.compare_digest(path.encode("utf-8", "replace"), self.server.path.encode()):
            self._refuse(404, "use the address with the token that `gossamer serve-sparql` printed")
            return
        accept = self.headers.get("Accept", "")
        try:
            asked = wanted(self.command, query, self.headers.get("Content-Type", ""), body, accept)
        except RefusedRequest as error:
            self._refuse(error.status, str(error))
            return
        if asked.question is None:
            self._introduce(asked, accept)
            return
        if not self.server.places.acquire(blocking=False):
            self._refuse(503, "other questions are being answered; ask again", {"Retry-After": "5"})
            return
        try:
            self._answer(asked)
        finally:
            self.server.places.release()

    def _introduce(self, asked: Wanted, accept: str) -> None:
        if asked.is_for_people:
            self._send(200, HTML_HEADERS, page(""))
            return
        form = description_form(accept)
        out = io.StringIO()
        write_graph(description(self.server.url), form, out)
        self._send(200, result_headers(form), out.getvalue())

    def _answer(self, asked: Wanted) -> None:
        question = asked.question
        assert question is not None
        shown = Shown()
        has_begun = False

        async def begin(form: str) -> None:
            nonlocal has_begun
            shown.form = form
            if not asked.is_for_people:
                self._begin(200, result_headers(form))
                has_begun = True

        async def take(piece: bytes) -> None:
            if asked.is_for_people:
                shown.take(piece)
            else:
                self.wfile.write(piece)

        try:
            with self.server.copies.one() as copy:
                asyncio.run(ask(copy, question, self.server.limits, take, begin))
        except GossamerError as error:
            if has_begun:
                self.close_connection = True  # an answer that breaks off: it says no length, and its end is torn
                return
            if asked.is_for_people:
                self._send(_status(error), HTML_HEADERS, page(question.query, error=str(error)))
            else:
                self._refuse(_status(error), str(error))
            return
        if asked.is_for_people:
            self._send(200, HTML_HEADERS, page(question.query, shown))

    def _refuse(self, status: int, text: str, more: dict[str, str] | None = None) -> None:
        self.close_connection = True
        plain = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", **(more or {})}
        self._send(status, plain, f"{text}\n")

    def _send(self, status: int, headers: dict[str, str], text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._begin(status, {**headers, "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _status(error: GossamerError) -> int:
    if isinstance(error, TooMuch):
        return 503
    return 500 if isinstance(error, CrawlDirectoryError) else 400
