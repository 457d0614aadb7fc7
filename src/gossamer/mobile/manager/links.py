"""Links to the runtimes that a person configured, one for each address, and the runtime at home.

Place in the flow: the crawler manager asks here. An address of http or https is a runtime elsewhere; any other is a folder of this
machine, which a runtime at home serves: the home host always has one (Agarwal and others, 3.1). There a crawler runs in a thread of
this process, by the same calls as elsewhere, and only while its next batch is wanted, so that no more than :data:`MAX_HELD` batches
of each wait in memory. To a runtime elsewhere the contract goes over HTTP (:mod:`gossamer.mobile.runtime.serving` is the other end,
and says which request is which call). It is believed nothing: its key is compared before a byte is sent, no redirect is followed,
and answers are bounded and checked.
"""

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec
import pycurl

from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.robots.provider import ObeyRobots
from gossamer.mobile.contract import (
    MAX_CRAWLER,
    MAX_FRAME,
    MAX_WAIT,
    CrawlerStanding,
    FailureReason,
    OfferedHost,
    OfferedProcessor,
    RefusalReason,
    RuntimeLink,
    RuntimeOffer,
    RuntimeRefused,
    RuntimeUnavailable,
)
from gossamer.mobile.crawler import VERSIONS, CrawlerBatch, MobileCrawler
from gossamer.mobile.judging import Installed
from gossamer.mobile.manager.making import runtime_key
from gossamer.mobile.options import RuntimeKeys
from gossamer.mobile.running import Fetch, run_crawler
from gossamer.mobile.sources.files import FileSource
from gossamer.mobile.sources.owner import GatedPages, OwnerLimits, ServedSite
from gossamer.mobile.wire import checked_identity, frame_of, received
from gossamer.values.addresses import is_loopback
from gossamer.values.errors import UsageError
from gossamer.values.task import Task
from gossamer.values.visit import Response


class RuntimesSheet(Sheet, frozen=True):
    addresses: Annotated[
        tuple[str, ...], setting("Start only if the runtimes at these addresses can be used.", restart="links are open")
    ] = ()
    keys: Annotated[RuntimeKeys, setting(restart="links are open")] = ""


class ConfiguredRuntimes(Provider[RuntimesSheet]):
    """Opens each link to a runtime when it is first needed."""

    def __init__(self, sheet: RuntimesSheet | None = None) -> None:
        super().__init__(sheet)
        self._links: dict[str, HomeRuntime | RemoteRuntime] = {}

    async def start(self) -> None:
        """Refuse what can never be reached before anything is sent.
        Raises UsageError: a key is not known, or an address is none."""
        for address in self.sheet.addresses:
            self.link(address, "")

    def link(self, address: str, host: str) -> RuntimeLink:
        """The link to the runtime at an address; `host` is one that it is asked for. Raises UsageError: there can be none."""
        # A folder is one site: another host is another one.
        name = address if "://" in address else f"{host}={address}"
        if name not in self._links and "://" not in address:
            served = ServedSite(FileSource(Path(address), limit=OwnerLimits().max_page_size))  # on every port
            pages = partial(
                GatedPages,
                lambda name: served if host in (name, name.rpartition(":")[0]) else None,
                *(ObeyRobots(), self.clock),
            )
            self._links[name] = HomeRuntime(pages, (OfferedHost(host, ("http", "https")),))
        elif name not in self._links:
            known = runtime_key(address, self.sheet.keys)
            self._links[name] = RemoteRuntime(address, known.key, known.pin)
        return self._links[name]

    async def stop(self) -> None:
        """End the crawlers that run here. Files hold nothing between two answers."""
        for link in self._links.values():
            await link.close()


#: Batches of one crawler that wait to be acknowledged, about 8 MB each before they are packed; it goes on when one is.
MAX_HELD = 4


class HomeRuntime:
    """Runs crawlers in this process. Contract: :class:`~gossamer.mobile.contract.RuntimeLink`; use it in one event loop."""

    def __init__(
        self, pages: Callable[[], Fetch], hosts: Sequence[OfferedHost] = (), installed: Installed | None = None
    ) -> None:
        """Begin without crawlers. `pages` makes the source of one crawler, which is asked in a thread and refuses what may not
        be read; `hosts` are for the offer alone."""
        self._pages = pages
        self._hosts = tuple(hosts)
        self._installed = installed or {}
        self._journeys: dict[str, _HomeJourney] = {}

    async def offer(self) -> RuntimeOffer:
        processors = tuple(OfferedProcessor(one.name, one.version) for one in self._installed)
        return RuntimeOffer(VERSIONS, self._hosts, processors, crawlers=1_000, software="home")

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        digest = hashlib.sha256(crawler).digest()
        journey = self._journeys.get(checked_identity(identity))
        if journey is None:
            program = received(crawler, self._installed)
            journey = self._journeys[identity] = _HomeJourney(digest, program, self._pages(), self._installed)
        elif journey.digest != digest:
            raise RuntimeRefused("other_crawler", f"another crawler was sent as {identity}")
        return journey.standing()

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        journey = self._journeys.get(identity)
        return CrawlerStanding("unknown") if journey is None else await journey.batch(sequence, min(wait, MAX_WAIT))

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        return self._changed(identity, lambda journey: journey.acknowledge(sequence))

    async def cancel(self, identity: str) -> CrawlerStanding:
        return self._changed(identity, _HomeJourney.cancel)

    def _changed(self, identity: str, change: "Callable[[_HomeJourney], None]") -> CrawlerStanding:
        journey = self._journeys.get(identity)
        if journey is None:
            return CrawlerStanding("unknown")
        change(journey)
        return journey.standing()

    async def close(self) -> None:
        for journey in self._journeys.values():
            journey.cancel()
            await journey.ended()
        self._journeys.clear()


class _Cancelled(Exception):
    """Home does not want the crawler any more."""


class _HomeJourney:
    """One crawler, its batches that wait, and the thread that makes the next one."""

    def __init__(self, digest: bytes, crawler: MobileCrawler, fetch: Fetch, installed: Installed) -> None:
        self.digest = digest
        self._fetch = fetch
        self._crawler = crawler
        self._installed = installed
        self._running: Iterator[CrawlerBatch] | None = None
        self._making: asyncio.Task[None] | None = None
        self._frames: dict[int, bytes] = {}
        self._made = self._acknowledged = self._fetched = 0
        self._is_finished = self._is_cancelled = False
        self._failed: tuple[FailureReason, str] | None = None

    def standing(self) -> CrawlerStanding:
        counts = (self._made, self._acknowledged, self._fetched)
        if self._is_finished:
            return CrawlerStanding("finished", "", "", *counts)
        if self._failed is not None:
            return CrawlerStanding("failed", *self._failed, *counts)
        return CrawlerStanding("waiting" if self._is_full() else "running", "", "", *counts)

    def acknowledge(self, sequence: int) -> None:
        while self._acknowledged <= min(sequence, self._made - 1):
            self._frames.pop(self._acknowledged, None)
            self._acknowledged += 1

    def cancel(self) -> None:
        self._is_cancelled = True
        self._frames.clear()
        self._acknowledged = self._made
        if not self._is_finished and self._failed is None:
            self._failed = "cancelled", "home cancelled it"

    async def ended(self) -> None:
        if self._making is not None:
            await asyncio.wait({self._making})

    async def batch(self, sequence: int, wait: float) -> bytes | CrawlerStanding:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while sequence >= self._made and not self._has_ended() and not self._is_full():
            if self._making is None or self._making.done():
                self._making = loop.create_task(self._make())
            done, _ = await asyncio.wait({self._making}, timeout=max(0.0, until - loop.time()))
            if not done:
                break
        return self._frames.get(sequence) or self.standing()

    def _has_ended(self) -> bool:
        return self._is_finished or self._failed is not None

    def _is_full(self) -> bool:
        return not self._has_ended() and len(self._frames) >= MAX_HELD

    async def _make(self) -> None:
        """Let the crawler run until its next batch; nothing raises."""
        try:
            frame, is_last = await asyncio.to_thread(self._next)
        except _Cancelled:
            return
        except UsageError as error:
            self._failed = "processors", str(error)
        except Exception as error:
            self._failed = "crashed", f"{type(error).__name__}: {error}"[:300]
        else:
            if not self._is_cancelled:
                self._frames[self._made] = frame
                self._made += 1
                self._is_finished = is_last

    def _next(self) -> tuple[bytes, bool]:
        if self._running is None:
            self._running = run_crawler(self._crawler, self._watched, self._installed)
        batch = next(self._running)
        return frame_of(batch), batch.summary is not None

    def _watched(self, task: Task) -> Response:
        if self._is_cancelled:
            raise _Cancelled
        self._fetched += 1
        return self._fetch(task)


# A runtime elsewhere.

#: Seconds until a connection stands.
CONNECT = 10
#: Seconds beyond the time that a call may wait until an answer begins, or goes on when it has stopped.
PATIENCE = 60
#: Bytes a second that count as an answer which goes on.
_CREEP = 100
#: Bytes of an answer that is no frame: an offer of some thousand hosts.
_MAX_TOLD = 1 << 20
_MAX_WORDS = 500

_PIN = "sha256//"
_KEY = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}")

_LATER = (408, 425, 429)
#: libcurl's `CURLE_WEIRD_SERVER_REPLY`, which pycurl has no name for: the answer is no HTTP.
_WEIRD_REPLY = 8

Told = TypeVar("Told")


class _Refusal(msgspec.Struct):
    reason: str = ""
    told: str = ""


class RemoteRuntime:
    """A runtime elsewhere. Contract: :class:`~gossamer.mobile.contract.RuntimeLink`; use it in one event loop."""

    def __init__(self, url: str, key: str, pin: str = "") -> None:
        """Connect to nothing yet. The URL is as `https://clinic.example:8643`, http only on this machine; the key is the one that
        the runtime's owner gave this sender; the pin is the fingerprint of the runtime's key, as `sha256//...=`, which https
        needs. Raises UsageError: one of them cannot be used; says what to write."""
        self._url = checked_runtime_url(url, pin)
        if _KEY.fullmatch(key) is None:
            raise UsageError(f"runtime {url}: the key holds characters that cannot be part of a key; copy it again")
        self._key = key
        self._pin = pin
        self._multi: pycurl.AsyncCurlMulti | None = None

    async def offer(self) -> RuntimeOffer:
        return _told((await self._asked("GET", "/v1/offer"))[1], RuntimeOffer)

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        if (size := len(crawler)) > MAX_CRAWLER:
            raise RuntimeRefused("too_large", f"the crawler has {size} bytes; at most {MAX_CRAWLER} are accepted")
        return await self._standing("PUT", identity, body=crawler)

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        wait = min(max(0.0, wait), MAX_WAIT)
        path = f"/v1/crawlers/{checked_identity(identity)}/batches/{sequence:d}?wait={wait:g}"
        status, data = await self._asked("GET", path, wait=wait, most=MAX_FRAME)
        return data if status == 200 else _told(data, CrawlerStanding)

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        return await self._standing("DELETE", identity, f"/batches/{sequence:d}")

    async def cancel(self, identity: str) -> CrawlerStanding:
        return await self._standing("DELETE", identity)

    async def _standing(self, method: str, identity: str, rest: str = "", body: bytes | None = None) -> CrawlerStanding:
        path = f"/v1/crawlers/{checked_identity(identity)}{rest}"
        return _told((await self._asked(method, path, body=body))[1], CrawlerStanding)

    async def close(self) -> None:
        """Close its connections. Safe to call twice."""
        multi, self._multi = self._multi, None
        if multi is not None:
            await multi.aclose()

    async def _asked(
        self, method: str, path: str, *, body: bytes | None = None, wait: float = 0.0, most: int = _MAX_TOLD
    ) -> tuple[int, bytes]:
        """Status and body of an answer that is no refusal.
        Raises RuntimeUnavailable, RuntimeRefused: as the contract says."""
        if self._multi is None:
            self._multi = pycurl.AsyncCurlMulti()
        curl, answer = pycurl.Curl(), bytearray()

        def write(piece: bytes) -> int:
            if len(answer) + len(piece) > most:
                return 0
            answer.extend(piece)
            return len(piece)

        try:
            options: dict[int, object] = {
                pycurl.URL: self._url + path,
                pycurl.CUSTOMREQUEST: method,
                pycurl.HTTPHEADER: [f"Authorization: Bearer {self._key}", "Accept:", "Expect:"],
                pycurl.PROTOCOLS: pycurl.PROTO_HTTPS if self._pin else pycurl.PROTO_HTTP,
                pycurl.FOLLOWLOCATION: 0,
                pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
                pycurl.NOPROXY: "*",
                pycurl.NOSIGNAL: 1,
                pycurl.CONNECTTIMEOUT: CONNECT,
                pycurl.LOW_SPEED_LIMIT: _CREEP,
                pycurl.LOW_SPEED_TIME: int(wait) + PATIENCE,
            }
            if self._pin:
                # The key stands for the runtime: no authority vouches for its name, and its certificate says none.
                options |= {pycurl.PINNEDPUBLICKEY: self._pin, pycurl.SSL_VERIFYPEER: 0, pycurl.SSL_VERIFYHOST: 0}
            if body is not None:
                options |= {pycurl.POST: 1, pycurl.POSTFIELDSIZE_LARGE: len(body), pycurl.POSTFIELDS: body}
            for option, value in options.items():
                curl.setopt(option, value)
            curl.setopt(pycurl.WRITEFUNCTION, write)
            await self._multi.perform(curl)
            status: int = curl.getinfo(pycurl.RESPONSE_CODE)
        except pycurl.error as error:
            raise _failed(error) from None
        finally:
            curl.close()
        if status in (200, 202):
            return status, bytes(answer)
        raise _refused(status, bytes(answer))


def checked_runtime_url(url: str, pin: str) -> str:
    """The URL of a runtime without a slash at its end.
    Raises UsageError: no crawler may be sent there; says what to write."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # one that is no number raises
    except ValueError as error:
        raise UsageError(f"runtime {url!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise UsageError(f"runtime {url!r}: write it as https://clinic.example:8643")
    if parts.username is not None:
        raise UsageError("runtime: write the key beside the URL, not into it")
    if parts.scheme == "http" and not (parts.hostname == "localhost" or is_loopback(parts.hostname)):
        raise UsageError(f"runtime {url}: http only on this machine; write https, and the pin of the runtime's key")
    if parts.scheme == "http" and pin:
        raise UsageError(f"runtime {url}: a pin needs https")
    if parts.scheme == "https" and not _is_pin(pin):
        raise UsageError(f"runtime {url}: its pin is missing or not valid; the runtime prints it as sha256//...=")
    return f"{parts.scheme}://{parts.netloc}"


def _is_pin(pin: str) -> bool:
    try:
        return pin.startswith(_PIN) and len(base64.b64decode(pin.removeprefix(_PIN), validate=True)) == 32
    except binascii.Error:
        return False


def _told(data: bytes, kind: type[Told]) -> Told:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        raise RuntimeRefused("protocol", f"the answer is not a {kind.__name__}: {data[:80]!r}") from None


_REASONS: tuple[RefusalReason, ...] = get_args(RefusalReason)


def _refused(status: int, data: bytes) -> Exception:
    try:
        refusal = msgspec.json.decode(data, type=_Refusal)
    except (ValueError, RecursionError):
        refusal = _Refusal()
    told = " ".join(refusal.told[:_MAX_WORDS].split())
    told = "".join(character if character.isprintable() else "?" for character in told)
    if status in _LATER or status >= 500:
        return RuntimeUnavailable(told or f"the runtime answered {status}")
    if status == 401:
        return RuntimeRefused("not_authorized", told or "the runtime does not know this key")
    for reason in _REASONS:
        if status == 422 and reason == refusal.reason:
            return RuntimeRefused(reason, told)
    return RuntimeRefused("protocol", f"the server there is not a runtime of crawlers: it answered {status}")


def _failed(error: pycurl.error) -> Exception:
    code, message = error.args[0], str(error.args[1])
    if code == pycurl.E_SSL_PINNEDPUBKEYNOTMATCH:
        return RuntimeRefused(
            "wrong_key", "the server there has another key than the pinned one; ask the owner for the pin"
        )
    if code in (pycurl.E_WRITE_ERROR, pycurl.E_UNSUPPORTED_PROTOCOL, _WEIRD_REPLY):
        return RuntimeRefused("protocol", f"the answer is not one of a runtime: {message}")
    return RuntimeUnavailable(message)
