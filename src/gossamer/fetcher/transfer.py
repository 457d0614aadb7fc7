"""One libcurl handle, used for many requests, and what the request under way has received.

Making a handle and setting its constant options costs 17 us, so handles are kept; only the URL, its exact request
target and the place to connect change between requests. Nothing else stays: cookies, credentials and redirects are off,
connections belong to the pool behind all handles, and what was received is dropped by :meth:`Transfer.clear`.
A head is judged when the first byte of its body arrives, or at the end: one that lies, and a body beyond its cap, end
the transfer on the spot.
"""

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
import pycurl

from gossamer.documents.content_coding import NOTHING, BodyStore, Keeping
from gossamer.fetcher.fetch_stage import TransferSheet
from gossamer.fetcher.proxies import Proxy
from gossamer.fetcher.request import Constants, HttpSheet, has_body
from gossamer.fetcher.response_head import BrokenHead, Head, IncompleteHead, read
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.url import authority_of, path_of
from gossamer.values.visit import Timings

if TYPE_CHECKING:
    from gossamer.fetcher.driver import Valve

P = TypeVar("P", bound=TransferSheet)

#: A callback returns this to make libcurl end the transfer, and close its connection.
_STOP = -1

#: The callback before a request returns one of these.
_ALLOW: int = pycurl.PREREQFUNC_OK
_REFUSE: int = pycurl.PREREQFUNC_ABORT

#: The callback for sockets returns this to make libcurl give up the connection (CURL_SOCKOPT_ERROR).
_NO_SOCKET = 1

#: The share of a second's bandwidth that may wait in the system for one connection: what the system takes in before it is let
#: through would else be a burst of its own. Above so many bytes the system's own size is no more.
_WAITING = 1 / 16
_MOST_WAITING = 1 << 20

#: The versions of HTTP by libcurl's numbers.
_VERSIONS = {
    pycurl.CURL_HTTP_VERSION_1_0: "HTTP/1.0",
    pycurl.CURL_HTTP_VERSION_1_1: "HTTP/1.1",
    pycurl.CURL_HTTP_VERSION_2_0: "HTTP/2",
}


class Cut(msgspec.Struct, frozen=True):
    """Why we ended a transfer ourselves."""

    outcome: Outcome
    reason: str
    cut: str = ""
    """The WARC-Truncated word, where a part of the body is kept."""
    barred: str = ""
    """The rule that refused the body by its head."""


DROPPED = Cut(Outcome.PROTOCOL_FAILED, "the server closed a connection that was used again, without an answer")

#: Says why a body is not wanted, by its head; None where it is.
Wanted = Callable[[Head], Cut | None]


class Receiving(ABC, Generic[P]):
    """A transfer by libcurl, and how far it has come."""

    curl: pycurl.Curl
    began: float
    size: int
    """Bytes of the body so far."""
    mark: tuple[float, int] | None
    """When its speed was measured last, and its size then."""
    verdict: Cut | None
    """Why we have ended it ourselves."""

    @abstractmethod
    def overdue(self, sheet: P, now: float) -> Cut | None:
        """The verdict on it where it has outlived a deadline; each phase has its own, and its own outcome."""

    def too_long(self, sheet: P, now: float, word: str) -> Cut | None:
        """The same of the deadline for all of it; `word` is the WARC-Truncated word of a part that is kept."""
        if now - self.began <= sheet.deadline:
            return None
        return Cut(Outcome.TIMED_OUT, f"the answer was not complete within {sheet.deadline:g} s", word)

    def too_slow(self, sheet: P, now: float) -> Cut | None:
        """The same of the speed of its body, since the mark of a window ago; the first is set when the body is first seen."""
        since, size = self.mark = self.mark or (now, self.size)
        if now - since < sheet.speed_window:
            return None
        if self.size - size < sheet.least_speed * (now - since):
            return Cut(Outcome.TOO_SLOW, f"the body came at less than {sheet.least_speed:g} bytes/s", "time")
        self.mark = (now, self.size)
        return None

    def misled(self, address: str) -> bool:
        """Whether the connection reached another address than the one that was asked for."""
        peer = self.curl.getinfo(pycurl.PRIMARY_IP)
        return bool(peer) and peer != address and ip_address(peer) != ip_address(address)


MISLED = "the connection reached another address than the one that was asked for"


class Transfer(Receiving[HttpSheet]):
    """A handle of the pool. `begin` makes it ready; afterwards its attributes tell what came."""

    def __init__(self, shared: Constants, valve: "Valve[Transfer] | None" = None) -> None:
        self.shared = shared
        self._valve = valve
        self.lines: list[bytes] = []
        self.curl = pycurl.Curl()
        for option, value in shared.options:
            self.curl.setopt(option, value)
        # Ten lines a page: they are only collected here, and judged together. libcurl stops at 300 KB or 5,000 lines.
        self.curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self.receive if valve is None else self._on_metered_body)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._on_socket)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._on_request)
        self._endpoint: tuple[str, int] | None = None
        self._proxy: Proxy | None = None
        self._fields: tuple[str, ...] = ()
        self._names_target = False
        self._is_single = False
        self._session_pool: pycurl.CurlShare | None = None
        self._stopped: float | None = None
        self._sent: Requested | None = None
        self.clear()

    def clear(self) -> bool:
        """Forget the request: nothing of it may reach the next one, or keep a body in memory. False where the handle is to be
        closed: it has carried another request than a plain GET, or a piece of its body waits."""
        can_go_on = self._sent is None and self._stopped is None
        self.began = 0.0
        self.mark = self.verdict = None
        self.head: Head | None = None
        self.lines.clear()
        self.chunks: list[bytes] = []
        self.store: BodyStore | None = None
        self.size = 0
        self._keeping = NOTHING
        self._quick = 0
        self._credit = 0
        self._held = 0.0
        self._stopped = None
        self._fd = -1
        self.is_asked = False
        """The request was about to go out: from then on a server may have received it."""
        self._wanted: Wanted | None = None
        self._sent = None
        return can_go_on

    def carry(self, request: Requested) -> None:
        """Send this instead of a plain GET. The handle is used up by it: what libcurl was told of it cannot all be taken back."""
        self._sent = request
        if request.method == "HEAD":
            self.curl.setopt(pycurl.NOBODY, 1)
            return
        if has_body(request):
            self.curl.setopt(pycurl.POSTFIELDS, request.body)
        self.curl.setopt(pycurl.CUSTOMREQUEST, request.method)

    def begin(
        self,
        url: str,
        address: str,
        port: int,
        keeping: Keeping,
        now: float,
        fields: tuple[str, ...] = (),
        wanted: "Wanted | None" = None,
        *,
        proxy: Proxy | None = None,
        single: bool = False,
    ) -> None:
        """Make the handle ready to fetch `url` from an address, and to keep so much of the body.

        Args:
            address, port: the server's, or the proxy's where there is one.
            fields: of this request alone.
            wanted: is asked for its verdict on the body when the head is known.
            proxy: to go by.
            single: use a connection of its own, that no other request uses before or after.
        """
        self.began = now
        self._wanted = wanted
        self._keeping = keeping
        self._quick = min(keeping.room, keeping.memory)
        curl = self.curl
        curl.setopt(pycurl.URL, url)
        if self._endpoint != (address, port) or self._proxy is not proxy:
            shown = f"[{address}]" if ":" in address else address
            if proxy is None:
                # Without a host and port in front, the entry stands for every URL: libcurl never asks a name server.
                curl.setopt(pycurl.CONNECT_TO, [f"::{shown}:{port}"])
            else:
                curl.setopt(pycurl.PROXY, f"{proxy.scheme}://{shown}:{port}")
                if proxy.user:
                    curl.setopt(pycurl.PROXYUSERNAME, proxy.user)
                    curl.setopt(pycurl.PROXYPASSWORD, proxy.password)
                elif self._proxy is not None and self._proxy.user:
                    curl.unsetopt(pycurl.PROXYUSERPWD)
            self._endpoint, self._proxy = (address, port), proxy
        if url.startswith("https"):
            pool = self.shared.session_pools[hash(authority_of(url)) % len(self.shared.session_pools)]
            if pool is not self._session_pool:
                curl.unsetopt(pycurl.SHARE)
                curl.setopt(pycurl.SHARE, pool)
                self._session_pool = pool
        if self._fields != fields or self._sent is not None:
            # A cookie goes back octet by octet as it came; fields have one character for each.
            # libcurl would add a field to a large body, and wait a second for an answer that few servers give.
            unsaid = () if self._sent is None else ("Expect:",)
            own = [field if field.isascii() else field.encode("latin-1") for field in fields]
            curl.setopt(pycurl.HTTPHEADER, [*self._constant_fields(self.shared.header), *own, *unsaid])
            self._fields = fields
        if self._is_single != single:
            curl.setopt(pycurl.FRESH_CONNECT, int(single))
            curl.setopt(pycurl.FORBID_REUSE, int(single))
            self._is_single = single
        # libcurl writes %7e as %7E; servers may tell them apart, and the URL of the task is what is asked for.
        # Once set on a handle it cannot be taken back, so from then on every request of the handle names its own.
        if self._names_target or "%" in url:
            curl.setopt(pycurl.REQUEST_TARGET, self._target(url))
            self._names_target = True

    def _constant_fields(self, fields: Sequence[str]) -> Sequence[str]:
        """Those that the request does not name itself."""
        if self._sent is None:
            return fields
        own = {name.lower() for name, _ in self._sent.headers}
        return [field for field in fields if field.partition(":")[0].lower() not in own]

    def _target(self, url: str) -> str:
        """The target of the request line: a proxy for plain http is told the whole URL (RFC 9112, 3.2.2)."""
        proxy = self._proxy
        whole = proxy is not None and proxy.is_http and url.startswith("http:")
        return url if whole else path_of(url)

    def request_head(self, url: str, shown: Sequence[str]) -> bytes:
        """The request as libcurl sent it, byte for byte but for what must not be kept: built, not recorded, since that would
        cost a Python call for each part. `url`: that was asked for; `shown`: the fields of this request alone that may be kept.
        """
        own = "".join([f"{field}\r\n" for field in shown]) if shown else ""
        method, common, sent = "GET", self.shared.fields, self._sent
        if sent is not None:
            method = sent.method
            common = "".join(f"{field}\r\n" for field in self._constant_fields(common.splitlines()))
            own += f"Content-Length: {len(sent.body)}\r\n" if has_body(sent) else ""
        target = path_of(url) if self._proxy is None else self._target(url)
        head = f"{method} {target} HTTP/1.1\r\nHost: {authority_of(url)}\r\n{common}{own}\r\n"
        return head.encode("latin-1", "replace")

    def timings(self, resolved: float, total: float) -> Timings:
        """The ends of the phases of a transfer that has ended, by libcurl's clock."""
        getinfo = self.curl.getinfo
        return Timings(
            dns=resolved,
            connect=getinfo(pycurl.CONNECT_TIME),
            tls=getinfo(pycurl.APPCONNECT_TIME),
            first_byte=getinfo(pycurl.STARTTRANSFER_TIME),
            total=total,
        )

    @property
    def version(self) -> str:
        """The version of HTTP that was spoken, as `HTTP/2`; empty where none was."""
        return _VERSIONS.get(self.curl.getinfo(pycurl.INFO_HTTP_VERSION), "")

    def close(self) -> None:
        """Give the handle back to libcurl."""
        self.curl.close()

    def overdue(self, sheet: HttpSheet, now: float) -> Cut | None:
        """Time that the bandwidth of the crawl has kept it waiting does not count."""
        now -= self.held(now)
        waited = now - self.began
        has_head = self.head is not None or (bool(self.lines) and self.judge_head())
        if self.verdict is not None:
            return self.verdict
        if late := self.too_long(sheet, now, "time" if has_head else ""):
            return late
        if has_head:
            return self.too_slow(sheet, now)
        if waited <= min(sheet.connect, sheet.first_byte):
            return None
        if self.is_sent:
            if waited - self.sent_after > sheet.first_byte:
                reason = f"the head of the answer was not complete within {sheet.first_byte:g} s"
                return Cut(Outcome.TIMED_OUT, reason)
        elif not self.is_connected:
            if waited > sheet.connect:
                return Cut(Outcome.CONNECT_FAILED, f"the server took no connection within {sheet.connect:g} s")
        elif waited > sheet.connect + sheet.tls:
            return Cut(Outcome.TLS_FAILED, f"the server agreed on no TLS session within {sheet.tls:g} s")
        return None

    @property
    def is_sent(self) -> bool:
        """Connected, TLS included, and the request is on its way. Asked only of slow and failed transfers."""
        return bool(self.curl.getinfo(pycurl.REQUEST_SIZE) > 0)

    @property
    def is_new(self) -> bool:
        """It has a connection that no request used before."""
        return bool(self.curl.getinfo(pycurl.NUM_CONNECTS) > 0)

    @property
    def sent_after(self) -> float:
        """Seconds from its beginning until it was sent."""
        return float(self.curl.getinfo(pycurl.PRETRANSFER_TIME))

    @property
    def is_connected(self) -> bool:
        """TCP is connected. libcurl tells only after TLS, so a transfer that is not sent yet asks the socket itself."""
        try:
            with socket.socket(fileno=os.dup(self._fd)) as own:
                own.getpeername()
        except OSError:
            return False
        return True

    def _on_socket(self, fd: int, purpose: int) -> int:
        if self.is_asked:
            self._refuse_repetition()
            return _NO_SOCKET
        self._fd = fd
        if self._valve is not None and self._valve.rate * _WAITING < _MOST_WAITING:
            with socket.socket(fileno=os.dup(fd)) as own:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(self._valve.rate * _WAITING))
        return 0

    def _on_request(self, *ends: object) -> int:
        """The request is about to go out on a connection, new or used before: once, and never again.

        libcurl repeats a request at once, up to five times, if a connection that was used before ends without an answer:
        it takes the server for one that had closed it already. One that has read the request is then asked twice within
        milliseconds, behind the back of delay, retries and log. Whether to ask again is the frontier's matter (decision 19).
        """
        if self.is_asked:
            self._refuse_repetition()
            return _REFUSE
        self.is_asked = True
        return _ALLOW

    def _refuse_repetition(self) -> None:
        if self.verdict is None:
            self.verdict = DROPPED

    def judge_head(self) -> bool:
        """Read the head once it is complete. False while it is not, or cannot be believed: then there is a verdict."""
        if self.head is None and self.verdict is None:
            if self.shared.http2:
                # libcurl writes heads of HTTP/2 like those of 1.1, but for their version. One that comes
                # where another version was agreed, it refuses itself.
                for place, line in enumerate(self.lines):
                    if line.startswith(b"HTTP/2 "):
                        self.lines[place] = b"HTTP/1.1 " + line[7:]
            try:
                self.head = read(self.lines, self.shared.caps)
            except BrokenHead as error:
                self.verdict = Cut(Outcome.PROTOCOL_FAILED, str(error))
            except IncompleteHead:
                pass
        return self.head is not None

    def receive(self, data: bytes) -> int | None:
        """Take a piece of a body; something else than None where nothing more is wanted."""
        if self.head is None and not self.judge_head():
            return _STOP
        if not self.size and self._wanted is not None and self.head is not None:
            self.verdict = self._wanted(self.head)
            if self.verdict is not None:
                return _STOP
        self.size += len(data)
        if self.size <= self._quick:
            self.chunks.append(data)
            return None
        return self._on_large_body(data)

    def _on_metered_body(self, data: bytes) -> int | None:
        """Take a piece of a body when the bandwidth of the crawl allows; until then libcurl keeps it, and reads no more."""
        assert self._valve is not None
        more = len(data) - self._credit
        if more > 0:
            self._credit += more
            if (wait := self._valve.take(more)) > 0.0:
                self._stopped = self._valve.now()
                self._valve.hold(self, wait)
                return int(pycurl.WRITEFUNC_PAUSE)
        self._credit -= len(data)
        return self.receive(data)

    @property
    def is_stopped(self) -> bool:
        """A piece of its body waits until the bandwidth of the crawl allows it."""
        return self._stopped is not None

    def held(self, now: float) -> float:
        """Seconds for which the bandwidth of the crawl has kept it waiting, up to `now`: they are not its server's."""
        return self._held if self._stopped is None else self._held + now - self._stopped

    def go_on(self, now: float) -> None:
        """Take the piece that waits, and read on. Raises pycurl.error: that piece has ended the transfer."""
        self._held, self._stopped = self.held(now), None
        self.curl.pause(pycurl.PAUSE_CONT)

    def _on_large_body(self, data: bytes) -> int | None:
        """A body beyond the cap is cut there; one that outgrows memory goes to disk, and is decoded on the way."""
        room = self._keeping.room
        if self.size > room:
            data = data[: max(0, len(data) - (self.size - room))]
            self.verdict = Cut(Outcome.TRUNCATED, f"body over {room} bytes", "length")
        try:
            if self.store is None:
                assert self.head is not None
                self.store = BodyStore(self._keeping, self.head.content_coding)
                for chunk in self.chunks:
                    self.store.write(chunk)
                self.chunks.clear()
            self.store.write(data)
        except OSError as error:
            self.verdict = Cut(Outcome.TRUNCATED, f"the body cannot be kept: {error.strerror or error}", "unspecified")
        if self.verdict is None and self.store is not None and self.store.cut:
            self.verdict = Cut(Outcome.TRUNCATED, self.store.cut, "length")
        return None if self.verdict is None else _STOP
