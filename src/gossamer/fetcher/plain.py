"""The protocol modules for ftp and gopher: one stream of bytes from one place, by libcurl, within the same deadlines and caps.

Place in the flow: beside :mod:`~gossamer.fetcher.http`, for URLs of other schemes. A module says what libcurl is asked for and
what the end of a transfer means; :class:`PlainModule` does the rest. The address comes from the resolver and stands in the URL
that libcurl gets, so that it asks no name server. Directories and menus are documents of types of their own, which a processor
reads (:mod:`gossamer.parsing.other_links`).
"""

import mimetypes
from abc import abstractmethod
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
import pycurl

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import setting
from gossamer.fetcher.answer import ending_of
from gossamer.fetcher.contract import Endpoint, Resolver
from gossamer.fetcher.driver import CurlModule
from gossamer.fetcher.fetch_stage import TransferSheet
from gossamer.fetcher.transfer import MISLED, Cut, Receiving
from gossamer.values import url as urls
from gossamer.values.body import BodyWriter
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import path_of
from gossamer.values.visit import Response, Timings

#: A callback returns this to make libcurl end the transfer.
_STOP = -1


P = TypeVar("P", bound=TransferSheet)


class Ask(msgspec.Struct, frozen=True):
    path: str
    """Path and query of the URL as libcurl gets it."""
    mime: str
    """The type of the document."""
    options: tuple[tuple[int, Any], ...] = ()


class _Stream(Receiving[TransferSheet]):
    """One transfer, and what it has received."""

    def __init__(self, sheet: TransferSheet, now: float) -> None:
        self.began = now
        self.body = BodyWriter(sheet.spool_above, sheet.spool, digest=True)
        self.curl = pycurl.Curl()
        self.lines: list[bytes] = []
        self.mark = self.verdict = None
        self.room = sheet.max_body
        self.size = 0

    def on_body(self, data: bytes) -> int | None:
        self.size += len(data)
        try:
            self.body.write(data[: max(0, len(data) - max(0, self.size - self.room))])
        except OSError as error:
            self.verdict = Cut(Outcome.TRUNCATED, f"the body cannot be kept: {error.strerror or error}", "unspecified")
        if self.size > self.room:
            self.verdict = Cut(Outcome.TRUNCATED, f"body over {self.room} bytes", "length")
        return None if self.verdict is None else _STOP

    def overdue(self, sheet: TransferSheet, now: float) -> Cut | None:
        if late := self.too_long(sheet, now, "time" if self.size else ""):
            return late
        if self.size:
            return self.too_slow(sheet, now)
        waited = now - self.began
        if waited > sheet.connect and not self.curl.getinfo(pycurl.CONNECT_TIME):
            return Cut(Outcome.CONNECT_FAILED, f"the server took no connection within {sheet.connect:g} s")
        if waited > sheet.connect + sheet.first_byte:
            return Cut(Outcome.TIMED_OUT, f"the server sent no answer within {sheet.first_byte:g} s")
        return None


class PlainModule(CurlModule[P, _Stream]):
    """Fetches one URL as one stream; a scheme says the rest."""

    resolver: Uses[Resolver]

    #: The protocol that libcurl may speak, and the scheme's name.
    protocol: int
    scheme: str

    @abstractmethod
    def ask(self, url: str) -> Ask | str:
        """The request to libcurl, or why this URL is not to be asked for."""

    @abstractmethod
    def verdict(self, url: str, status: int, code: int, message: str) -> Cut:
        """The verdict at the end of a transfer: the scheme's own status where it has one, and libcurl's error, 0 for none."""

    def location(self, task: Task, status: int) -> str:
        """The URL of the document instead, if the answer says so; the outcome is then `redirect`."""
        return ""

    async def fetch(self, task: Task) -> Response:
        started, url = self.clock.now(), task.url
        if not url.startswith(f"{self.scheme}://"):
            return Response(Outcome.SCHEME_REFUSED, started=started, error=f"not a {self.scheme} URL")
        ask = self.ask(url)
        if isinstance(ask, str):
            return Response(Outcome.ADDRESS_REFUSED, started=started, error=ask)
        began = self.clock.monotonic()
        try:
            endpoint = await self.resolver.resolve(*urls.endpoint_of(url))
        except ResolutionFailed as error:
            return Response(Outcome.DNS_FAILED, started=started, error=str(error))
        except AddressRefused as error:
            return Response(Outcome.ADDRESS_REFUSED, started=started, error=str(error))
        return await self._transfer(task, ask, endpoint, started, self.clock.monotonic() - began)

    async def _transfer(self, task: Task, ask: Ask, endpoint: Endpoint, started: float, resolved: float) -> Response:
        stream = _Stream(self.sheet, self.clock.monotonic())
        curl = stream.curl
        shown = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.PROTOCOLS, self.protocol),
            (pycurl.PROXY, ""),
            (pycurl.NOPROXY, "*"),
            (pycurl.NETRC, pycurl.NETRC_IGNORED),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.FORBID_REUSE, 1),
            (pycurl.URL, f"{self.scheme}://{shown}:{endpoint.port}{ask.path}"),
            (pycurl.HEADERFUNCTION, stream.lines.append),
            (pycurl.WRITEFUNCTION, stream.on_body),
            *ask.options,
        ):
            curl.setopt(option, value)
        try:
            ending = await self.ended(stream)
            elapsed, getinfo = self.clock.monotonic() - stream.began, curl.getinfo
            self.metrics.counters["requests"] += 1
            self.metrics.counters["body_bytes"] += stream.size
            if stream.misled(endpoint.address):
                return Response(Outcome.ADDRESS_REFUSED, started=started, elapsed=elapsed, error=MISLED)
            status, connected, timings = getinfo(pycurl.RESPONSE_CODE), getinfo(pycurl.CONNECT_TIME), None
            verdict = stream.verdict or self.verdict(task.url, status, *ending)
            headers: tuple[tuple[str, str], ...] = ()
            if target := self.location(task, status) if verdict.outcome is Outcome.CLIENT_ERROR else "":
                verdict, headers = Cut(Outcome.REDIRECT, verdict.reason), (("location", target),)
            elif verdict.outcome is Outcome.OK or stream.size:
                headers = (("content-type", ask.mime),)
            if self.sheet.timings:
                timings = Timings(resolved, connected, 0.0, getinfo(pycurl.STARTTRANSFER_TIME), elapsed)
            return Response(
                verdict.outcome,
                status=status,
                headers=headers,
                body=stream.body.take(),
                address=endpoint.address if getinfo(pycurl.PRIMARY_IP) else "",
                started=started,
                elapsed=elapsed,
                cut=verdict.cut,
                error=verdict.reason,
                timings=timings,
                is_met=bool(stream.size or stream.lines or connected),
            )
        finally:
            self.driver().discard(curl)
            curl.close()


def by_code(code: int, message: str) -> Cut:
    """The verdict by libcurl's own error where the scheme has nothing to add."""
    return Cut(ending_of(code, 0, message).early, message or f"libcurl's error {code}")


# ftp: a URL that ends in `/` is a directory; a name that turns out to be one redirects to itself with the slash.

#: The type of a directory's listing: the server's own lines, in whatever form it has them.
LISTING = "text/x-ftp-listing"

#: The reply to a request for something that is no plain file (RFC 959, 4.2).
_NO_FILE = 550

#: Errors behind which a reply of the server stands, rather than the network.
_REPLIED = frozenset(
    {
        pycurl.E_REMOTE_ACCESS_DENIED,
        pycurl.E_REMOTE_FILE_NOT_FOUND,
        pycurl.E_FTP_COULDNT_RETR_FILE,
        pycurl.E_LOGIN_DENIED,
        pycurl.E_FTP_COULDNT_SET_TYPE,
        pycurl.E_FTP_WEIRD_PASS_REPLY,
        pycurl.E_FTP_WEIRD_SERVER_REPLY,
    }
)


class FtpSheet(TransferSheet, frozen=True):
    address: Annotated[str, setting("Give this as the password of `anonymous`; by custom it is a mail address.")] = (
        "gossamer@"
    )


class FtpModule(PlainModule[FtpSheet]):
    """Fetches ftp URLs as `anonymous`, in passive mode, and takes data only from the host that it asked."""

    protocol = pycurl.PROTO_FTP
    scheme = "ftp"

    def ask(self, url: str) -> Ask | str:
        """A listing for a directory, otherwise a file."""
        path = path_of(url).partition("?")[0]
        if min(unquote_to_bytes(path), default=32) < 32:
            return "a control character in the path"
        options: list[tuple[int, object]] = [
            (pycurl.USERNAME, "anonymous"),
            (pycurl.PASSWORD, self.sheet.address),
            (pycurl.FTP_FILEMETHOD, pycurl.FTPMETHOD_SINGLECWD),
            # Data comes from the host that was asked, whatever address its reply names.
            (pycurl.FTP_SKIP_PASV_IP, 1),
        ]
        mime = LISTING if path.endswith("/") else mimetypes.guess_type(path)[0] or "application/octet-stream"
        # `;type=a` would be an order to libcurl, where it is a part of the name.
        return Ask(path.replace(";", "%3B"), mime, tuple(options))

    def location(self, task: Task, status: int) -> str:
        """A name without a slash may be that of a directory: whether it is, asking for that tells. A robots.txt is none."""
        url = task.url
        if status != _NO_FILE or task.relation == ROBOTS or url.endswith("/") or "?" in url:
            return ""
        return f"{url}/"

    def verdict(self, url: str, status: int, code: int, message: str) -> Cut:
        """By the reply where there is one: 4yz may pass, 5yz will not (RFC 959, 4.2.1)."""
        if not code:
            return Cut(Outcome.OK, "")
        if code in _REPLIED and 400 <= status < 600:
            return Cut(Outcome.SERVER_ERROR if status < 500 else Outcome.CLIENT_ERROR, f"reply {status}")
        return by_code(code, message)


# gopher (RFC 1436, RFC 4266): the first letter of the path is the type of what is there.

#: The type of a menu.
MENU = "application/gopher-menu"

#: The types of letters that are documents; of the others (telnet, errors, printers) nothing can be fetched.
_TYPES = {
    "0": "text/plain", "1": MENU, "4": "application/mac-binhex40", "6": "text/plain", "7": MENU,
    "g": "image/gif", "h": "text/html", "p": "image/png", **dict.fromkeys("59Is;d", ""),
}  # fmt: skip


class GopherModule(PlainModule[TransferSheet]):
    """Fetches gopher URLs."""

    protocol = pycurl.PROTO_GOPHER
    scheme = "gopher"

    def ask(self, url: str) -> Ask | str:
        """The selector, which must not be able to say more than a selector: lines would be orders to other servers."""
        path = path_of(url)
        path = path if len(path) > 1 else "/1"
        letter, selector = path[1], unquote_to_bytes(path[2:])
        search = letter == "7"
        if any(byte < 32 and not (search and byte == 9) for byte in selector) or len(selector) > 1024:
            return "the selector holds control characters"
        if letter not in _TYPES:
            return f"gopher type {letter!r} is not a document"
        guessed = mimetypes.guess_type(path.partition("?")[0])[0]
        return Ask(path, _TYPES[letter] or guessed or "application/octet-stream")

    def verdict(self, url: str, status: int, code: int, message: str) -> Cut:
        """Gopher has no status: the bytes until the connection was closed are the document."""
        return by_code(code, message) if code else Cut(Outcome.OK, "")
