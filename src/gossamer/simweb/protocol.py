"""HTTP/1.1 on one connection: bytes in, requests to the web, answers out, a line in the log.

Place in the flow: `server` makes one `Connection` for each accepted socket; `site` makes the
answers. Built for speed: a request for a page whose header was seen before but for its path (as all
of a crawler's on one host are) is told by one dictionary look-up, and an answer goes out in one
write. Everything else is parsed with care. Requests that arrive together are answered one after
the other, in order.
"""

import asyncio
import time
import zlib
from typing import Final, NamedTuple, cast

from gossamer.simweb.log import RequestLog, before, behind, clean
from gossamer.simweb.page import index_in
from gossamer.simweb.site import Conditions, Door, SimWeb, SiteAnswer
from gossamer.values.hosts import Remembered

HEADER_LIMIT: Final = 65_536
"""Bytes of a request's header; more is answered 431. Twice what crawlers send with many cookies."""

WAITING_LIMIT: Final = 262_144
"""Bytes of further requests that wait their turn before the socket is left unread."""

REMEMBERED: Final = 8_192
"""Headers kept parsed, and routes; each memory starts again when it is full."""

ROUTE_LIMIT: Final = 2_048
"""Bytes of the header fields that a route is kept for."""

VERSION: Final = b" HTTP/1.1\r\n"
"""The bytes between the target of a request and its header fields."""

SLICES: Final = 20
"""Writes a second where bandwidth is limited."""


class Fields(NamedTuple):
    """The header fields of a request that matter here."""

    host: str
    agent: str
    conditions: Conditions
    close: bool
    keep: bool
    body: bool
    """Whether a body follows, which this server never reads."""


class Route(NamedTuple):
    """Where the requests go that are alike but for their path: what `Connection` found out about the first of them."""

    door: Door
    conditions: Conditions
    before: bytes
    behind: bytes
    """The bytes of the log before and behind the target."""


class Shared:
    """The common state of all connections of a server process."""

    def __init__(self, web: SimWeb, log: RequestLog | None, started: float, local_only: bool) -> None:
        self.web, self.log = web, log
        self._epoch, self._started, self._scale = web.spec.epoch, int(started * 1e9), web.spec.time_scale / 1e9
        self.local_only = local_only
        """Refuse connections to addresses outside 127.0.0.0/8."""
        self.fields = Remembered(parse_fields, REMEMBERED)
        """The header fields of a request, by everything after its first line."""
        self.routes: dict[tuple[str, str], dict[bytes, Route]] = {}
        """For each scheme and address that we are reached at: routes by all of a request from `VERSION` to its end."""
        self.connections: set[Connection] = set()
        self.delayed = web.spec.latency > 0 or web.spec.bandwidth > 0

    def moment(self, now: int) -> int:
        """Return the web's own time in whole seconds, at a reading of the monotonic clock in nanoseconds."""
        return self._epoch + int((now - self._started) * self._scale)

    def close(self) -> None:
        for connection in list(self.connections):
            connection.close()

    def routes_of(self, scheme: str, address: str) -> dict[bytes, Route]:
        if len(self.routes) >= REMEMBERED:
            self.routes.clear()
        return self.routes.setdefault((scheme, address), {})


def parse_fields(block: bytes) -> Fields:
    """Parse a request's header fields; a field that is sent twice counts as sent last."""
    found: dict[str, str] = {}
    for line in block.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    connection = found.get("connection", "").lower() + found.get("proxy-connection", "").lower()
    conditions = Conditions(
        found.get("if-none-match", ""),
        found.get("if-modified-since", ""),
        "gzip" in found.get("accept-encoding", "").lower(),
    )
    return Fields(
        found.get("host", ""),
        found.get("user-agent", ""),
        conditions,
        "close" in connection,
        "keep-alive" in connection,
        found.get("content-length", "0") != "0" or "transfer-encoding" in found,
    )


class ServedRequest(NamedTuple):
    """One request on its way to being answered, with what its line in the log needs."""

    start: int
    """Reading of the monotonic clock, in nanoseconds."""
    method: str
    host: str
    target: str
    fields: Fields | None
    close: bool


class Connection(asyncio.Protocol):
    """One connection of a crawler."""

    def __init__(self, shared: Shared, scheme: str) -> None:
        self._shared, self._scheme = shared, scheme
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._address = "-"
        self._routes: dict[bytes, Route] = {}
        self._host: str | None = None
        self._door: Door | None = None
        """The host that the last request named, as it named it, and who that is."""
        self._buffer = b""
        self._arrived = 0
        self._busy = False
        self._choked = False
        self._unread = False
        self._waiting: tuple[ServedRequest, SiteAnswer, int] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the connection, unless it reached us from outside this machine."""
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("sockname")
        self._address = name[0] if name else "-"
        if self._shared.local_only and not self._address.startswith("127."):
            self._transport.abort()
            return
        self._shared.connections.add(self)
        self._routes = self._shared.routes_of(self._scheme, self._address)

    def connection_lost(self, exc: Exception | None) -> None:
        """Log an answer that was still owed as given up."""
        self._shared.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting is not None:
            job, answer, sent = self._waiting
            self._waiting = None
            self._note(job, answer.status, max(0, sent - len(answer.whole) + answer.size), "a")

    def close(self) -> None:
        self._transport.abort()

    def pause_writing(self) -> None:
        """The crawler reads slower than we write: take up no further request."""
        self._choked = True

    def resume_writing(self) -> None:
        """The crawler has caught up."""
        self._choked = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        """Take bytes of one or several requests, or of a part of one."""
        if self._buffer:
            self._buffer += data
        else:
            self._arrived = time.monotonic_ns()
            if not self._busy and not self._choked:
                end = data.find(VERSION, 5)
                route = self._routes.get(data[end:]) if end > 0 else None
                if route is not None and self._quick(data, end, route):
                    return
            self._buffer = data
        if not self._busy and not self._choked:
            self._go_on()
        elif len(self._buffer) > WAITING_LIMIT:
            self._unread = True
            self._transport.pause_reading()

    def _quick(self, data: bytes, end: int, route: Route) -> bool:
        """Answer a whole request that is like one before but for its path; False if it does not ask for a page."""
        if data[:4] != b"GET ":
            return False
        target = data[4:end]
        index = index_in(target)
        if index is None or index >= route.door.host.size:
            return False
        shared, arrived = self._shared, self._arrived
        answer = shared.web.page(route.door, index, route.conditions, shared.moment(arrived))
        if shared.log is not None:
            line = (arrived, time.monotonic_ns(), answer.status, answer.size, route.before, target, route.behind)
            shared.log.add(line)
        self._transport.write(answer.whole)
        return True

    def _go_on(self) -> None:
        """Answer what requests stand complete in the buffer."""
        while self._buffer and not self._busy and not self._choked:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0 or end > HEADER_LIMIT:
                if len(self._buffer) > HEADER_LIMIT:
                    self._refuse(431)
                break
            request = self._buffer[:end]
            self._buffer = self._buffer[end + 4 :].lstrip(b"\r\n")
            self._take(request)
        if self._unread and len(self._buffer) <= WAITING_LIMIT:
            self._unread = False
            self._transport.resume_reading()

    def _take(self, request: bytes) -> None:
        """Answer one request; `request` is its header without the empty line."""
        first, _, block = request.partition(b"\r\n")
        try:
            method, target, version = first.decode("ascii").split(" ")
        except ValueError:
            self._refuse(400)
            return
        if not version.startswith("HTTP/1."):
            self._refuse(505)
            return
        fields = self._shared.fields[block]
        host = fields.host
        if not target.startswith("/"):
            # The form that crawlers use towards a proxy: http://host/path.
            _, separator, rest = target.partition("://")
            host, slash, path = rest.partition("/")
            target = slash + path if slash else "/"
            if not separator:
                self._refuse(400)
                return
        elif method == "GET" and version == "HTTP/1.1":
            self._remember(block, fields)
        close = fields.close or (version == "HTTP/1.0" and not fields.keep)
        self._answer(ServedRequest(self._arrived, method, host, target, fields, close), fields)

    def _remember(self, block: bytes, fields: Fields) -> None:
        when = fields.conditions
        odd = fields.close or fields.body or when.if_none_match or when.if_modified_since or self._shared.delayed
        door = self._shared.web.door(fields.host, self._scheme)
        if odd or door is None or len(block) > ROUTE_LIMIT:
            return
        if len(self._routes) >= REMEMBERED:
            self._routes.clear()
        tail = VERSION + block + b"\r\n\r\n"
        address = self._address
        self._routes[tail] = Route(door, when, before("G", fields.host, address), behind(fields.agent))

    def _answer(self, job: ServedRequest, fields: Fields) -> None:
        shared = self._shared
        web = shared.web
        moment = shared.moment(job.start)
        if job.host is not self._host:
            # The same object comes back as long as header fields repeat: most of a connection's life.
            self._host, self._door = job.host, web.door(job.host, self._scheme)
        door = self._door
        if (job.method != "GET" and job.method != "HEAD") or fields.body:
            self._send(job._replace(close=True), web.refusal(405, moment))
        elif door is None:
            self._send(job, web.refusal(421, moment))
        else:
            answer = web.answer(door, job.target, fields.conditions, moment)
            if job.method == "HEAD":
                answer = SiteAnswer(answer.status, answer.head)
            if shared.delayed:
                # As long as the host takes to answer: its median, give or take a half by URL.
                share = 0.5 + (zlib.crc32(job.target.encode("utf-8", "replace")) & 1023) / 1024
                self._busy, self._waiting = True, (job, answer, 0)
                self._timer = asyncio.get_running_loop().call_later(door.host.latency * share, self._pour)
            else:
                self._send(job, answer)

    def _refuse(self, status: int) -> None:
        answer = self._shared.web.refusal(status, self._shared.moment(self._arrived))
        self._buffer = b""
        self._send(ServedRequest(self._arrived, "-", "-", "-", None, True), answer)

    def _send(self, job: ServedRequest, answer: SiteAnswer, last: bytes | None = None) -> None:
        """Hand an answer to the socket, or the last bytes of one. Its end is noted before: a server that waits for a core then
        would note an end that its reader has long seen."""
        self._note(job, answer.status, answer.size, "")
        self._transport.write(answer.whole if last is None else last)
        self._arrived = time.monotonic_ns()
        if job.close:
            self._buffer = b""
            self._busy = True
            self._transport.close()

    def _pour(self) -> None:
        """Write the next slice of an answer, as large as the bandwidth allows."""
        if self._waiting is None:
            return
        job, answer, sent = self._waiting
        whole = answer.whole
        bandwidth = self._shared.web.spec.bandwidth
        size = max(512, bandwidth // SLICES) if bandwidth else len(whole)
        piece = whole[sent : sent + size]
        sent += len(piece)
        if sent < len(whole):
            self._transport.write(piece)
            self._waiting = (job, answer, sent)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(len(piece) / bandwidth, self._pour)
            return
        self._waiting, self._timer, self._busy = None, None, False
        self._send(job, answer, piece)
        self._go_on()

    def _note(self, job: ServedRequest, status: int, size: int, extra: str) -> None:
        """Add the request's line to the log."""
        log = self._shared.log
        if log is None:
            return
        flags, agent = "G" if job.method == "GET" else "H" if job.method == "HEAD" else "O", "-"
        if job.fields is not None:
            when, agent = job.fields.conditions, job.fields.agent
            if when.if_none_match or when.if_modified_since:
                flags += "c"
        head, target = before(flags + extra, job.host, self._address), clean(job.target).encode("utf-8", "replace")
        log.add((job.start, time.monotonic_ns(), status, size, head, target, behind(agent)))
