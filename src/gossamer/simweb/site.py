"""One request in, one answer out: the whole web as a function, without any network; and when its pages change.

Place in the flow: `protocol` hands over what it parsed from a connection and writes what comes back; tests may call `SimWeb.answer`
directly. The only state is the count of failures that flaky pages have given; everything else follows from the spec. `render` asks
when a page last changed (its Last-Modified, its revision), the auditor whether a copy fetched then is still fresh now.

A page changes by a Poisson process of its own, looked up at any moment without history. Time is cut into cells as long as the
page's mean interval. In each cell a Poisson number of changes (mean 1) fall at uniform moments, which is exactly a Poisson
process, and the draws of a cell depend on page and cell alone. Looking up the last change means looking into this cell and, if it
is empty, into the ones before it: 1.6 cells on average.
"""

import math
import zlib
from bisect import bisect_right
from enum import StrEnum
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from gossamer.simweb import draws, render
from gossamer.simweb.draws import MASK30
from gossamer.simweb.hosts import ROBOTS, ROBOTS_MOVED, SimHost, SimHosts, robots_text
from gossamer.simweb.page import PageKind, Pages, index_of, path_of
from gossamer.simweb.render import IMAGES, Copy, Realm, Renderer, date_bytes, http_date
from gossamer.simweb.spec import WebSpec
from gossamer.values.hosts import Remembered

REASONS: Final = {
    200: "OK",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    410: "Gone",
    414: "URI Too Long",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}

_REDIRECTS: Final = (301, 302, 303, 307, 308)


class Role(StrEnum):
    """The kind of a URL of this web."""

    PAGE = "page"
    ALIAS = "alias"
    """A page under a second URL (a campaign parameter, /index.html)."""
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    FEED = "feed"
    IMAGE = "image"
    TRAP = "trap"
    MISSING = "missing"


class Conditions(NamedTuple):
    """The parts of a request's header that an answer depends on."""

    if_none_match: str = ""
    if_modified_since: str = ""
    gzip: bool = False


class SiteAnswer(msgspec.Struct, frozen=True, gc=False):
    """One answer: status and all of its bytes, the last `size` of which are the body."""

    status: int
    whole: bytes
    size: int = 0

    @property
    def head(self) -> bytes:
        """The complete header with its empty line."""
        return self.whole[: len(self.whole) - self.size]

    @property
    def body(self) -> bytes:
        return self.whole[len(self.whole) - self.size :]


class Door(msgspec.Struct, frozen=True, eq=False):
    """A host as one value of the Host header names it."""

    host: SimHost
    realm: Realm


class SimWeb:
    """A simulated web: `spec` decides everything. Cheap to make, whatever its size."""

    DOORS: Final = 100_000
    """Values of the Host header remembered; the memory starts again when it is full."""

    def __init__(self, spec: WebSpec | None = None) -> None:
        self.spec = spec or WebSpec()
        self.hosts = SimHosts(self.spec)
        self.pages = Pages(self.spec, self.hosts)
        self.changes = ChangeHistory()
        self.renderer = Renderer(self.pages)
        self._realms: dict[tuple[str, bool, str], Realm] = {}
        self._doors = Remembered(self._find_door, self.DOORS)
        self._failures: dict[int, int] = {}
        self._date = (0, b"")

    def __repr__(self) -> str:
        return f"SimWeb(seed={self.spec.seed}, {self.hosts!r})"

    def door(self, authority: str, scheme: str = "http") -> Door | None:
        """Return the host that a Host header names, or None if this web has no such host.

        Links will name other hosts in the same way: by address if this one is, with its port.
        """
        return self._doors[scheme, authority]

    def _find_door(self, named: tuple[str, str]) -> Door | None:
        scheme, authority = named
        name, colon, port = authority.strip().lower().rpartition(":")
        if not colon:
            name, port = port, ""
        rank = self.hosts.rank_of_name(name.rstrip("."))
        if rank is None or (port and not port.isdecimal()):
            return None
        default = "443" if scheme == "https" else "80"
        suffix = f":{port}" if port and port != default else ""
        key = (scheme, name.startswith("127."), suffix)
        realm = self._realms.setdefault(key, Realm(self.pages, *key))
        return Door(self.hosts.host(rank), realm)

    def locate(self, host: SimHost, target: str) -> tuple[Role, int]:
        """Say what a path with its query is on a host; the number is a page's index, or -1."""
        index = index_of(target)
        if index is not None and index < host.size:
            return Role.PAGE, index
        path, _, query = target.partition("?")
        if path == "/robots.txt" or (path == ROBOTS_MOVED and host.robots == "redirect"):
            return Role.ROBOTS, -1
        index = 0 if path == "/index.html" else index_of(path)
        if index is not None and index < host.size and (not query or query.startswith("utm_")):
            return Role.ALIAS, index
        if host.sitemap and path.startswith("/sitemap"):
            return Role.SITEMAP, -1
        if host.feed and path == "/feed.xml":
            return Role.FEED, -1
        if path.startswith("/img/") and path.endswith(".png"):
            return Role.IMAGE, -1
        if render.is_in_trap(host.trap, target):
            return Role.TRAP, -1
        return Role.MISSING, -1

    def answer(self, door: Door, target: str, when: Conditions, moment: int) -> SiteAnswer:
        """Answer a request for `target` (path and query) at a `moment` of the web's own time, in whole seconds."""
        # Most requests are for pages, and told apart here already.
        page = index_of(target)
        if page is not None and page < door.host.size:
            return self.page(door, page, when, moment)
        role, index = self.locate(door.host, target)
        if role is Role.ALIAS:
            return self.page(door, index, when, moment)
        return self._extra(door, role, target, moment)

    def changed(self, host: SimHost, index: int, kind: PageKind, moment: int) -> int:
        """Return when the bytes of a page last changed; an exact copy changes with its original."""
        shown = self.pages.original(host, index) if kind is PageKind.DUPLICATE else index
        return self.changes.last(self.pages.bits(host, shown), moment)

    def page(self, door: Door, index: int, when: Conditions, moment: int) -> SiteAnswer:
        """Answer a request for a page by its index in its host, at a `moment` of the web's own time."""
        host, pages = door.host, self.pages
        bits = pages.bits(host, index)
        skin = door.realm.skins.get(host.rank) or self.renderer.skin(host, door.realm)
        kind = PageKind.PLAIN if index < skin.inner else pages.kind(host, index, bits)
        shown, shown_bits, history, copy = index, bits, bits, None
        if kind is not PageKind.PLAIN:
            answer = self._no_page(door, index, bits, kind, moment)
            if answer is not None:
                return answer
            if kind is not PageKind.FLAKY:
                shown = (bits >> 20) % skin.inner
                shown_bits = pages.bits(host, shown)
                if kind is PageKind.DUPLICATE:
                    history = shown_bits
                else:
                    copy = Copy(index, bits)
        changed = self.changes.last(history, moment)
        fields, is_current = self._validators(host, index, changed, when)
        if is_current:
            return self._bare(304, moment, fields.removesuffix(b"\r\n"))
        parts = self.renderer.html(skin, door.realm, shown, shown_bits, changed, copy)
        return self._send(200, moment, skin.announced, parts, fields, when.gzip)

    def _no_page(self, door: Door, index: int, bits: int, kind: PageKind, moment: int) -> SiteAnswer | None:
        """Answer for a page that redirects, is gone or fails for now; None for one that shows something."""
        if kind is PageKind.REDIRECT:
            place = path_of(self.pages.original(door.host, index)).encode()
            location = b"Location: " + door.realm.prefix(door.host.rank) + place
            return self._bare(_REDIRECTS[(bits >> 40) % 5], moment, location)
        if kind is PageKind.GONE:
            return self._error(410 if bits >> 40 & 1 else 404, moment)
        if kind is PageKind.FLAKY:
            number, status = door.host.base + index, self.spec.flaky_status
            failures = self._failures.get(number, 0)
            if failures < self.spec.flaky_failures:  # it has not healed yet
                self._failures[number] = failures + 1
                return self._error(status, moment, b"Retry-After: 1\r\n" if status == 503 else b"")
        return None

    @staticmethod
    def _validators(host: SimHost, index: int, changed: int, when: Conditions) -> tuple[bytes, bool]:
        """Return the header fields that tell a page's version (an entity tag, a date, both or none, as its host does), and whether
        the crawler's copy is current, as RFC 9110 section 13.2 puts it."""
        sent, fields, is_current = host.validators, b"", False
        if sent in ("both", "etag"):
            tag = b"%x-%x" % (host.key + index, changed)
            fields = b'ETag: "%b%b"\r\n' % (tag, b"-gz" if when.gzip else b"")
            is_current = tag.decode() in when.if_none_match
        if sent in ("both", "date"):
            date = date_bytes(changed)
            fields += b"Last-Modified: %b\r\n" % date
            # Crawlers send back the very date they got; comparing text spares a date parser, and another date is answered in full,
            # which is always right.
            is_current = is_current or (not when.if_none_match and when.if_modified_since == date.decode())
        return fields, is_current

    def _extra(self, door: Door, role: Role, target: str, moment: int) -> SiteAnswer:
        host = door.host
        prefix = door.realm.prefix(host.rank).decode()
        if role is Role.ROBOTS:
            manner = ROBOTS[host.robots]
            if manner.status == 301 and not target.startswith(ROBOTS_MOVED):
                return self._bare(301, moment, f"Location: {prefix}{ROBOTS_MOVED}".encode())
            if manner.status not in (200, 301):
                return self._error(manner.status, moment, b"Retry-After: 1\r\n" if manner.status == 503 else b"")
            sitemaps = [f"{prefix}/sitemap.xml"] if host.sitemap else []
            return self._full(200, moment, b"text/plain", robots_text(manner, sitemaps))
        if role is Role.TRAP:
            return self._full(200, moment, b"text/html; charset=utf-8", render.trap_page(host.trap, target))
        body: bytes | None = None
        kind = b"application/xml"
        if role is Role.SITEMAP:
            body = render.sitemap(self.pages, host, prefix, target.partition("?")[0])
        elif role is Role.FEED:
            body, kind = render.feed(host, prefix, moment), b"application/rss+xml"
        elif role is Role.IMAGE:
            digits = target.partition("?")[0][5:-4]
            kind = b"image/png"
            if digits.isdecimal() and len(digits) < 4 and int(digits) < IMAGES:
                body = render.image(int(digits))
        return self._error(404, moment) if body is None else self._full(200, moment, kind, body)

    def refusal(self, status: int, moment: int) -> SiteAnswer:
        """Return the answer to a request that names no host of this web, or that is not HTTP."""
        return self._error(status, moment, b"" if status == 421 else b"Connection: close\r\n")

    def _error(self, status: int, moment: int, fields: bytes = b"") -> SiteAnswer:
        reason = REASONS[status]
        body = f"<html><head><title>{status} {reason}</title></head><body></body></html>\n".encode()
        return self._full(status, moment, b"text/html", body, fields)

    def _bare(self, status: int, moment: int, field: bytes) -> SiteAnswer:
        """Return an answer without a body and with one more header field (without line end)."""
        length = b"" if status == 304 else b"Content-Length: 0\r\n"
        separator = b"\r\n" if field else b""
        head = self._start(status, moment) + length + field + separator + b"\r\n"
        return SiteAnswer(status, head)

    def _full(self, status: int, moment: int, kind: bytes, body: bytes, fields: bytes = b"") -> SiteAnswer:
        return self._send(status, moment, b"Content-Type: " + kind + b"\r\nContent-Length: ", [body], fields)

    def _send(
        self, status: int, moment: int, announced: bytes, parts: list[bytes], fields: bytes, gzip: bool = False
    ) -> SiteAnswer:
        """Return an answer whose body is `parts`; `announced` is its header up to the number of its bytes."""
        if gzip and self.spec.compression:
            packer = zlib.compressobj(1, zlib.DEFLATED, 31)
            parts = [packer.compress(b"".join(parts)), packer.flush()]
            fields += b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
        body = b"".join(parts)
        size = len(body)
        head = b"%b%b%d\r\n%b\r\n" % (self._start(status, moment), announced, size, fields)
        return SiteAnswer(status, head + body, size)

    def _start(self, status: int, moment: int) -> bytes:
        """Return status line and Date field; the date is written once a second."""
        if self._date[0] != moment:
            date = f"Date: {http_date(moment)}\r\nServer: gossamer-simweb\r\n"
            self._date = (moment, date.encode())
        return _STATUS_LINES[status] + self._date[1]


_STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {reason}\r\n".encode() for status, reason in REASONS.items()}


DAY: Final = 86_400

INTERVALS: Final = (
    (0.23, DAY / 4, DAY),
    (0.15, DAY, 7 * DAY),
    (0.16, 7 * DAY, 30 * DAY),
    (0.16, 30 * DAY, 120 * DAY),
    (0.30, 120 * DAY, 1200 * DAY),
)
"""Share of pages, and from what to what their mean seconds between changes lie. Shares and inner
bounds: Cho and Garcia-Molina, "The evolution of the Web and implications for an incremental
crawler", VLDB 2000; the outermost bounds, which they could not observe, are our choice."""

ROLL_BITS: Final = 14
MOMENT_BITS: Final = 16
"""Of a cell's 30 bits, those that decide how many changes fall into it, and those that decide when."""


_CHANCES: Final = accumulate(math.exp(-1) / math.factorial(count) for count in range(8))
_ENDS: Final = tuple(round(total * (1 << ROLL_BITS)) for total in _CHANCES)
"""Of 2^ROLL_BITS, the upper ends of 0, 1, 2, ... 7 changes in a cell of mean 1."""

_NONE, _ONE = _ENDS[:2]
_ROLL: Final = (1 << ROLL_BITS) - 1
_MULTIPLIERS: Final = draws.multipliers(0, len(_ENDS))


class ChangeHistory:
    """The change histories of pages. A page is known by its bits (`Pages.bits`)."""

    def __init__(self) -> None:
        found: list[int] = []
        for share, low, high in INTERVALS:
            count = round(share * 256)
            found += (round(low * (high / low) ** ((k + 0.5) / count)) for k in range(count))
        found += [round(INTERVALS[-1][2])] * (256 - len(found))
        self._table = tuple(found[:256])
        """Equally likely mean intervals in seconds, evenly spread by their logarithm."""

    def interval(self, bits: int) -> int:
        """Return the mean seconds between two changes of a page."""
        return self._table[bits & 255]

    def last(self, bits: int, moment: int) -> int:
        """Return when a page last changed, in whole seconds of the web's time, at or before
        `moment`; 0 if it never has."""
        interval = self._table[bits & 255]
        cell = moment // interval
        while cell >= 0:
            events = draws.draw(bits, cell) & MASK30
            roll = events & _ROLL
            if roll >= _NONE:
                # One change in a cell is the usual case.
                when = cell * interval + ((events >> ROLL_BITS) * interval >> MOMENT_BITS)
                latest = when if when <= moment else 0
                if roll >= _ONE:
                    latest = max(latest, _latest_of_more(events, cell * interval, interval, moment))
                if latest:
                    return latest
            cell -= 1
        return 0


def _latest_of_more(events: int, begin: int, interval: int, moment: int) -> int:
    """Return the last change that is not after `moment` in a cell of several, its first apart; 0 if there is none."""
    latest = 0
    for number in range(bisect_right(_ENDS, events & _ROLL) - 1):
        when = begin + ((events * _MULTIPLIERS[number] & MASK30) * interval >> 30)
        if latest < when <= moment:
            latest = when
    return latest
