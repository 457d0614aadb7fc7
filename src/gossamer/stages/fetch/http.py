"""The protocol module for http and https: from a task to a response, by libcurl.

Between the fetch component, which chooses a module by scheme, and the resolver, which says where to connect. One
`pycurl.AsyncCurlMulti` on the running loop drives all transfers and keeps connections alive between them; the handles
come from a pool of ours (:mod:`gossamer.stages.fetch.transfer`). libcurl asks no name server, follows no redirect, uses
no proxy, decodes nothing and remembers nothing; the deadlines are kept here, by the unit's clock.
"""

import asyncio
import re
import ssl
from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated

import pycurl

from gossamer._version import __version__
from gossamer.contracts.resolving import Endpoint, Resolver
from gossamer.flow.errors import SettingError
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model import url as urls
from gossamer.model.body import THRESHOLD, Body, beginning
from gossamer.model.errors import AddressRefused, ResolutionFailed
from gossamer.model.outcome import Outcome, of_status
from gossamer.model.task import Task
from gossamer.model.visit import Response
from gossamer.stages.fetch import coding
from gossamer.stages.fetch.endings import ending_of
from gossamer.stages.fetch.head import Head
from gossamer.stages.fetch.keeping import Keeping
from gossamer.stages.fetch.transfer import Limits, Transfer, Verdict, constants, overdue

#: Asked for in this order by browsers and crawlers alike; servers that negotiate then choose HTML.
_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

#: Fields that frame or identify a request: a setting of another name, or nobody's to set.
_RESERVED_FIELDS = frozenset(
    ("host", "user-agent", "accept-encoding", "connection", "content-length", "transfer-encoding", "te", "upgrade")
)
_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\Z")
_VISIBLE = re.compile(r"[\x20-\x7e]*\Z")

#: Further addresses of a host that are tried when the first lets nobody in: one more of each kind is enough.
_SPARE_ADDRESSES = 2

#: Seconds between two looks at the deadlines, at most: they are meant in seconds, and no request pays for a timer.
_TICK = 1.0


class HttpSheet(Sheet, frozen=True):
    """Settings of :class:`HttpModule`. Defaults are DESIGN 9.12's and FAULTS section 2's."""

    user_agent: Annotated[str, setting("Sent as User-Agent; empty: product, version and contact.")] = ""
    contact: Annotated[str, setting("URL or mail address that people who see our requests can turn to.")] = ""
    header: Annotated[tuple[str, ...], setting("Further request fields, each as `Name: value`.")] = ()
    connect: Annotated[float, setting("For the TCP connection.", unit="s", gt=0)] = 10.0
    tls: Annotated[float, setting("For the TLS handshake, after `connect`.", unit="s", gt=0)] = 10.0
    first_byte: Annotated[float, setting("From the request to the end of the answer's head.", unit="s", gt=0)] = 30.0
    deadline: Annotated[float, setting("For a whole fetch.", unit="s", gt=0)] = 120.0
    least_speed: Annotated[float, setting("A body slower than this is given up.", unit="bytes/s", ge=0)] = 100.0
    speed_window: Annotated[float, setting("Over which the least speed is measured.", unit="s", gt=0)] = 30.0
    max_body: Annotated[int, setting("Bytes of a body that are kept, as sent and decoded.", unit="bytes", ge=1)] = (
        16 << 20
    )
    spool_above: Annotated[int, setting("A body larger than this is kept on disk.", unit="bytes", ge=0)] = THRESHOLD
    spool: Annotated[str, setting("Where large bodies lie while they are used; empty: the system's own place.")] = ""
    connections: Annotated[
        int, setting("Open at once, busy and idle.", unit="connections", ge=1, restart="requests under way hold them")
    ] = 256
    verify: Annotated[bool, setting("Refuse servers whose certificate is not valid for their name.")] = True
    ca_file: Annotated[str, setting("Certificates to trust (PEM); empty: the system's.")] = ""


def user_agent(sheet: HttpSheet) -> str:
    """The User-Agent field: `Gossamer/VERSION (+CONTACT)`, unless the sheet says otherwise (DESIGN 8)."""
    text = sheet.user_agent or f"Gossamer/{__version__}" + (f" (+{sheet.contact})" if sheet.contact else "")
    if not _VISIBLE.match(text):
        raise SettingError(f"user agent {text!r}: only visible ASCII characters can be sent")
    return text


def request_fields(sheet: HttpSheet) -> tuple[str, ...]:
    """The constant fields after Host and User-Agent, in the order in which they are sent.

    Raises:
        SettingError: a field of the `header` setting is none, or is not to be set there.
    """
    own: dict[str, str] = {}
    for text in sheet.header:
        field = _FIELD.match(text)
        if field is None:
            raise SettingError(f"header {text!r}: write it as `Name: value`, in visible ASCII characters")
        if field[1].lower() in _RESERVED_FIELDS:
            raise SettingError(f"header {text!r}: {field[1]} is not a field that can be set here")
        own[field[1].lower()] = f"{field[1]}: {field[2]}"
    accept = own.pop("accept", f"Accept: {_ACCEPT}")
    return (accept, f"Accept-Encoding: {coding.ACCEPTED}", *own.values())


class HttpModule(Provider[HttpSheet]):
    """Fetches http and https URLs. Implements `contracts.fetching.ProtocolModule`."""

    resolver: Uses[Resolver]

    _multi: pycurl.AsyncCurlMulti
    _slots: asyncio.Semaphore
    _watch: asyncio.Task[None]

    def __init__(self, sheet: HttpSheet | None = None) -> None:
        super().__init__(sheet)
        self._idle: list[Transfer] = []
        self._live: dict[Transfer, asyncio.Future[object]] = {}
        self._read(self.sheet)
        self.metrics.gauge("in_flight", lambda: len(self._live))

    def _read(self, sheet: HttpSheet) -> None:
        agent, fields = user_agent(sheet), request_fields(sheet)
        ca_file = sheet.ca_file or ssl.get_default_verify_paths().cafile or ""
        self._shared = constants(fields, agent, verify=sheet.verify, ca_file=ca_file)
        self._limits = Limits(
            connect=sheet.connect,
            tls=sheet.tls,
            head=sheet.first_byte,
            whole=sheet.deadline,
            least_speed=sheet.least_speed,
            window=sheet.speed_window,
        )
        self._keeping = Keeping(sheet.max_body, sheet.spool_above, sheet.spool)
        self._tick = min(_TICK, *(x / 4 for x in (sheet.connect, sheet.tls, sheet.first_byte, sheet.deadline)))

    def changed(self, before: HttpSheet) -> None:
        """New requests go by the new sheet; handles made under the old one are not used again."""
        self._read(self.sheet)
        self._drop_idle()

    async def start(self) -> None:
        """Open libcurl's pool of connections and begin to watch the clock."""
        self._multi = pycurl.AsyncCurlMulti()
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, self.sheet.connections)
        self._multi.setopt(pycurl.M_MAXCONNECTS, self.sheet.connections)
        self._slots = asyncio.Semaphore(self.sheet.connections)
        self._watch = asyncio.get_running_loop().create_task(self._watch_clock(), name=f"{self.name} deadlines")

    async def stop(self) -> None:
        """End what is under way and close every connection."""
        self._watch.cancel()
        with suppress(asyncio.CancelledError):
            await self._watch
        await self._multi.aclose()
        self._drop_idle()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def fetch(self, task: Task) -> Response:
        """See the contract."""
        started, url = self.clock.now(), task.url
        if not url.startswith(("http://", "https://")):
            return Response(Outcome.SCHEME_REFUSED, started=started, error="not an http or https URL")
        try:
            endpoint = await self.resolver.resolve(*urls.endpoint_of(url))
        except ResolutionFailed as error:
            return Response(Outcome.DNS_FAILED, started=started, error=str(error))
        except AddressRefused as error:
            return Response(Outcome.ADDRESS_REFUSED, started=started, error=str(error))
        async with self._slots:
            return await self._fetch_from(url, endpoint, started)

    async def _fetch_from(self, url: str, endpoint: Endpoint, started: float) -> Response:
        """Try the host's addresses in turn, as long as they let nobody in."""
        response = await self._attempt(url, endpoint.address, endpoint.port, started)
        for address in endpoint.others[:_SPARE_ADDRESSES]:
            if response.outcome is not Outcome.CONNECT_FAILED or response.address:
                break
            response = await self._attempt(url, address, endpoint.port, started)
        return response

    async def _attempt(self, url: str, address: str, port: int, started: float) -> Response:
        """One request to one address. However it ends, the handle goes back to the pool, clean."""
        transfer = self._idle.pop() if self._idle else Transfer(self._shared)
        code, message, is_out = 0, "", False
        try:
            transfer.begin(url, address, port, self._keeping, self.clock.monotonic())
            future = self._live[transfer] = self._multi.add_handle(transfer.curl)
            try:
                await future
            except pycurl.error as error:
                code, message = error.args
            except _Overdue:
                pass
            is_out = True
            return self._response(transfer, url, address, (code, message), started)
        finally:
            self._live.pop(transfer, None)
            self._release(transfer, is_out)

    def _release(self, transfer: Transfer, is_out: bool) -> None:
        if not is_out:
            # Cancelled, or refused by libcurl: usually the multi has let go of the handle already.
            with suppress(RuntimeError):
                self._multi.remove_handle(transfer.curl)
        transfer.clear()
        if transfer.shared is self._shared and not self._multi.closed:
            self._idle.append(transfer)
        else:
            transfer.close()

    async def _watch_clock(self) -> None:
        while True:
            await self.clock.sleep(self._tick)
            now = self.clock.monotonic()
            for transfer, future in list(self._live.items()):
                if not future.done() and (verdict := overdue(transfer, self._limits, now)):
                    transfer.verdict = verdict
                    # The future's own callback takes the handle out, and libcurl closes the connection.
                    future.set_exception(_Overdue())

    def _response(
        self, transfer: Transfer, url: str, address: str, ending: tuple[int, str], started: float
    ) -> Response:
        """What came of the transfer, once it has ended in one way or another."""
        curl, elapsed = transfer.curl, self.clock.monotonic() - transfer.began
        counters = self.metrics.counters
        counters["requests"] += 1
        counters["body_bytes"] += transfer.size
        if connects := curl.getinfo(pycurl.NUM_CONNECTS):
            counters["connects"] += connects
        peer = curl.getinfo(pycurl.PRIMARY_IP)
        if peer != address and peer and ip_address(peer) != ip_address(address):
            reason = "another peer than the one asked for"
            return Response(Outcome.ADDRESS_REFUSED, started=started, elapsed=elapsed, error=reason)
        if transfer.lines:
            transfer.judge_head()
        head = transfer.head
        verdict = self._verdict(transfer, ending)
        if head is None:
            sent = transfer.is_sent
            return Response(
                verdict.outcome,
                request_head=_request_head(transfer, url) if sent else b"",
                address=address if sent else "",
                started=started,
                elapsed=elapsed,
                error=verdict.reason,
            )
        body, decoded, verdict = self._body(transfer, head, verdict)
        return Response(
            verdict.outcome,
            status=head.status,
            request_head=_request_head(transfer, url),
            response_head=head.raw,
            headers=head.fields,
            body=body,
            decoded=decoded,
            address=address,
            started=started,
            elapsed=elapsed,
            cut=verdict.cut,
            error=verdict.reason,
        )

    def _verdict(self, transfer: Transfer, ending: tuple[int, str]) -> Verdict:
        """How it ended: our own word first, then libcurl's, then the status."""
        code, message = ending
        status = transfer.head.status if transfer.head else 0
        if transfer.verdict:
            return _beside_status(transfer.verdict, status)
        if not code:
            return Verdict(of_status(status), "" if status else "closed before the end of the head")
        message = message or f"libcurl's error {code}"
        meaning = ending_of(code, transfer.curl.getinfo(pycurl.OS_ERRNO), message)
        if not status:
            return Verdict(meaning.early, message)
        return _beside_status(Verdict(meaning.late, message, meaning.cut), status)

    def _body(self, transfer: Transfer, head: Head, verdict: Verdict) -> tuple[Body, Body | None, Verdict]:
        """The body as it came, without its content coding where it has one, and the verdict after that."""
        body: Body
        if transfer.store is not None:
            body, undone = transfer.store.take(whole=not verdict.cut)
        else:
            chunks, undone = transfer.chunks, None
            body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if not head.content_coding or not body or verdict.outcome is Outcome.PROTOCOL_FAILED:
            return body, None, verdict
        applied = coding.codings(head.content_coding)
        if not applied:
            return body, None, verdict
        if refused := coding.refusal(applied):
            return body, None, _decode_failed(verdict, refused, head.status)
        if undone is None:
            undone = coding.decode(beginning(body), applied, self._keeping, whole=not verdict.cut)
        if undone.error:
            return body, None, _decode_failed(verdict, undone.error, head.status)
        if undone.cut and not verdict.cut:
            verdict = _beside_status(Verdict(Outcome.TRUNCATED, undone.cut, "length"), head.status)
        return body, undone.data, verdict


def _request_head(transfer: Transfer, url: str) -> bytes:
    """The request as libcurl sent it, byte for byte: built, since recording it costs a Python call for each part."""
    head = f"GET {urls.path_of(url)} HTTP/1.1\r\nHost: {urls.authority_of(url)}\r\n{transfer.shared.fields}\r\n"
    return head.encode("latin-1", "replace")


def _beside_status(verdict: Verdict, status: int) -> Verdict:
    """A cut body changes the outcome of a success only: a redirect or an error says all it has to say in its head."""
    if verdict.outcome is not Outcome.TRUNCATED or (answered := of_status(status)) is Outcome.OK:
        return verdict
    return Verdict(answered, verdict.reason, verdict.cut)


def _decode_failed(verdict: Verdict, reason: str, status: int) -> Verdict:
    """The same for a body that cannot be decoded; a deadline or a broken protocol weighs more."""
    if of_status(status) is not Outcome.OK or verdict.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return verdict
    return Verdict(Outcome.DECODE_FAILED, reason, verdict.cut)


class _Overdue(Exception):
    """A deadline of ours has passed; the transfer's verdict says which."""
