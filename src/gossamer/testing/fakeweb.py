"""A small web with a known graph, served on loopback: for unit tests, for journeys, and for users' own tests.

::

    async with FakeWeb({"/": '<a href="/a">a</a>', "/a": Page("gone", status=410)}) as web:
        ...                                  # web.url("/") is http://127.0.0.1:PORT/
        assert [r.target for r in web.requests] == ["/", "/a"]

A key is a path, which every host name has, or a whole URL without port (`http://a.test/x`), which only that host has;
`web.resolve` is the `--resolve` entry that brings all names to this one port. A :class:`FakePage` can misbehave in an exact
way: it can be slow, chunked, cut, silent, or any bytes at all. A test compares a crawl with the log of requests.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from http.client import responses
from typing import Self
from urllib.parse import urlsplit

import msgspec

from gossamer.engine.errors import FlowError
from gossamer.engine.remote.addresses import stop_listening

#: Requests of a client that never ends are cut off here: the fake web is a server, too. A body may have a mebibyte.
_MOST_BUFFERED = (1 << 20) + 256 * 1024


class FakePage(msgspec.Struct, frozen=True):
    """One answer, and the way in which it misbehaves."""

    body: str | bytes = b""
    status: int = 200
    type: str = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    """Further header fields, which are sent unchanged. `Content-Type` and framing are added unless they are among them."""
    latency: float = 0.0
    """Seconds until the answer begins."""
    chunked: bool = False
    close: bool = False
    """Close the connection after the answer, and say so."""
    cut: int = -1
    """Close the connection after this many bytes of the body, as a dying server does; -1 sends all."""
    silent: bool = False
    """Accept the request and never answer."""
    raw: bytes | None = None
    """Send these bytes instead of an answer, then close; everything else is ignored."""
    stay: bool = False
    """Leave the connection open after `raw` or `cut`."""


class FakeRequest(msgspec.Struct, frozen=True):
    """One request as it was received."""

    method: str
    target: str
    """Path and query, as in the request line."""
    host: str
    """The Host field, port included."""
    head: bytes
    """All bytes up to and including the empty line."""
    connection: int
    """Number of the connection that it came by, counted from 0."""
    body: bytes = b""
    """The body, as long as `Content-Length` says."""

    def header(self, name: str) -> str:
        """Return the first field of this name, or an empty string."""
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            field, _, value = line.partition(":")
            if field.lower() == name.lower():
                return value.strip()
        return ""


Answer = FakePage | str | bytes
Source = Answer | Callable[[FakeRequest], Answer]

_NOT_FOUND = FakePage("not found", status=404, type="text/plain")


class FakeWeb:
    """Serves pages on a free loopback port: `async with` on the running loop, plain `with` on a thread of its own."""

    def __init__(
        self,
        pages: Mapping[str, Source],
        *,
        root: str = "/",
        reachable: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        otherwise: Source | None = None,
    ) -> None:
        self.pages = dict(pages)
        self.otherwise = _NOT_FOUND if otherwise is None else otherwise
        """The answer for every other URL, as a trap gives it."""
        self.requests: list[FakeRequest] = []
        """Every other request, in order of arrival."""
        self.errands: list[FakeRequest] = []
        """Requests for robots.txt if the web has none. A polite crawler sends them, and a test of pages does not count them."""
        self.connections = 0
        """Number of connections that have been accepted."""
        self.root = root
        self._reachable = tuple(reachable)
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        self._thread: threading.Thread | None = None
        self._arrival = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.port = 0

    def __repr__(self) -> str:
        return f"<FakeWeb :{self.port} {len(self.pages)} pages, {len(self.requests)} requests>"

    @classmethod
    def graph(cls, links: Mapping[str, Iterable[str]], *, latency: float = 0.0) -> Self:
        """Make pages that link to each other as `links` says; the first is the root. A target that is not a key is a 404."""
        pages = {source: FakePage(html(source, targets), latency=latency) for source, targets in links.items()}
        root = next(iter(links))
        return cls(pages, root=root, reachable=_reachable(links, root))

    @classmethod
    def tree(cls, depth: int, fanout: int, *, latency: float = 0.0) -> Self:
        """Make a tree of pages: `/` is the root and `/0/2` the third child of its first. Depth 0 is the root alone."""
        links: dict[str, list[str]] = {}
        level = ["/"]
        for below in range(depth, -1, -1):
            for page in level:
                links[page] = [f"{page.rstrip('/')}/{n}" for n in range(fanout)] if below else []
            level = [child for page in level for child in links[page]]
        return cls.graph(links, latency=latency)

    @property
    def expected(self) -> frozenset[str]:
        """Return the URLs of all pages that links from the root lead to."""
        return frozenset(map(self.url, self._reachable))

    @property
    def resolve(self) -> str:
        """The `--resolve` entry that leads every host name here."""
        return f"*=127.0.0.1:{self.port}"

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, key: str = "/") -> str:
        """Return the URL of a path on this server; a whole URL is returned unchanged."""
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{self.authority}{key}" if key.startswith("/") else key

    def note(self, request: FakeRequest) -> None:
        """Log a request that came in, and wake threads that wait for it."""
        is_errand = request.target == "/robots.txt" and self.answer(request) is _NOT_FOUND
        with self._arrival:
            (self.errands if is_errand else self.requests).append(request)
            self._arrival.notify_all()

    def wait_for(self, requests: int, timeout: float = 30.0) -> None:
        """Block until this many requests have come in, so that a test on another thread knows that a crawler is busy.

        Raises:
            FlowError: they have not come within `timeout` seconds.
        """
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self.requests) >= requests, timeout):
                raise FlowError(f"only {len(self.requests)} of {requests} requests came in within {timeout} s")

    def targets(self) -> list[str]:
        """Return the paths and queries of the requests, in order."""
        return [request.target for request in self.requests]

    def answer(self, request: FakeRequest) -> FakePage:
        """Return the answer to a request: the page of its host or path, with or without the query; else a 404."""
        name = urlsplit(f"//{request.host}").hostname or ""
        bare = request.target.partition("?")[0]
        keys = (f"http://{name}{request.target}", f"http://{name}{bare}", request.target, bare)
        source = next((self.pages[key] for key in keys if key in self.pages), self.otherwise)
        answer = source(request) if callable(source) else source
        return answer if isinstance(answer, FakePage) else FakePage(answer)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            await stop_listening(self._server)
            for connection in list(self._open):
                connection.abort()
            await self._server.wait_closed()

    def __enter__(self) -> Self:
        ready = threading.Event()

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            async with self:
                ready.set()
                await self._stop.wait()

        self._thread = threading.Thread(target=asyncio.run, args=(serve(),), name="fakeweb", daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise FlowError("the fake web did not start within 10 s")
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)


def html(title: str, targets: Iterable[str]) -> str:
    """Return a small page that links to `targets`."""
    links = "".join(f'<li><a href="{target}">{target}</a>' for target in targets)
    return f"<!doctype html><title>{title}</title><ul>{links}</ul>"


def _reachable(links: Mapping[str, Iterable[str]], root: str) -> list[str]:
    found, todo = {root: None}, [root]
    while todo:
        for target in links[todo.pop()]:
            if target in links and target not in found:
                found[target] = None
                todo.append(target)
    return list(found)


class _Connection(asyncio.Protocol):
    """Serves one connection, and answers each request before it reads the next."""

    def __init__(self, web: FakeWeb) -> None:
        self._web = web
        self._buffer = b""
        self._busy = False
        self._number = web.connections
        self._transport: asyncio.Transport
        web.connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._web._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._web._open.discard(self)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _MOST_BUFFERED:
            self._transport.abort()
        else:
            self._next()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if self._busy or end < 0:
            return
        head = self._buffer[: end + 4]
        method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        request = FakeRequest(method, rest.rpartition(" ")[0], "", head, self._number)
        length = int(request.header("content-length") or 0)
        if len(self._buffer) < len(head) + length:
            return
        body, self._buffer = self._buffer[len(head) : len(head) + length], self._buffer[len(head) + length :]
        request = msgspec.structs.replace(request, host=request.header("host"), body=body)
        self._web.note(request)
        page = self._web.answer(request)
        if page.silent:
            return
        self._busy = True
        if page.latency:
            asyncio.get_running_loop().call_later(page.latency, self._answer, page, request)
        else:
            self._answer(page, request)

    def _answer(self, page: FakePage, request: FakeRequest) -> None:
        if self._transport.is_closing():
            return
        data, whole = _rendered(page, request)
        self._transport.write(data)
        self._busy = False
        if whole and not page.close and request.header("connection").lower() != "close":
            self._next()
        elif not page.stay:
            self._transport.close()


def _rendered(page: FakePage, request: FakeRequest) -> tuple[bytes, bool]:
    """Return the bytes of an answer, and whether the connection stays open after them."""
    if page.raw is not None:
        return page.raw, False
    body = page.body.encode() if isinstance(page.body, str) else page.body
    given = {name.lower() for name, _ in page.headers}
    fields = list(page.headers)
    if "content-type" not in given and page.type:
        fields.append(("Content-Type", page.type))
    if page.chunked:
        fields.append(("Transfer-Encoding", "chunked"))
    elif "content-length" not in given:
        fields.append(("Content-Length", str(len(body))))
    if page.close:
        fields.append(("Connection", "close"))
    head = f"HTTP/1.1 {page.status} {responses.get(page.status, 'Status')}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    if page.cut >= 0:
        body = body[: page.cut]
    if page.chunked:
        parts = (body[start : start + 4096] for start in range(0, len(body), 4096))
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n" * (page.cut < 0)
    if request.method == "HEAD" or page.status in (204, 304):
        body = b""
    return head.encode("latin-1") + body, page.cut < 0
