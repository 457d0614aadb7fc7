"""Home's link to a runtime elsewhere: the contract over HTTP, to the one runtime whose key is known.

Place in the flow: the manager asks here; :mod:`gossamer.mobile.runtime.serving` is the other end, and says which request is which
call. The runtime is believed nothing: its key is compared before a byte is sent, no redirect is followed, and answers are
bounded and checked.
"""

import base64
import binascii
import re
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import pycurl

from gossamer.mobile.contract import (
    MAX_CRAWLER,
    MAX_FRAME,
    MAX_WAIT,
    CrawlerStanding,
    RefusalReason,
    RuntimeOffer,
    RuntimeRefused,
    RuntimeUnavailable,
)
from gossamer.mobile.wire import checked_identity
from gossamer.values.addresses import is_loopback
from gossamer.values.errors import UsageError

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
        """Connect to nothing yet.

        Args:
            url: of the runtime, as `https://clinic.example:8643`; http only on this machine.
            key: that the runtime's owner gave this sender.
            pin: fingerprint of the runtime's key, as `sha256//...=`; https needs one.

        Raises:
            UsageError: one of them cannot be used; says what to write.
        """
        self._url = checked_runtime_url(url, pin)
        if _KEY.fullmatch(key) is None:
            raise UsageError(f"runtime {url}: the key holds characters that cannot be part of a key; copy it again")
        self._key = key
        self._pin = pin
        self._multi: pycurl.AsyncCurlMulti | None = None

    async def offer(self) -> RuntimeOffer:
        return _read((await self._asked("GET", "/v1/offer"))[1], RuntimeOffer)

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        if len(crawler) > MAX_CRAWLER:
            raise RuntimeRefused(
                "too_large", f"the crawler has {len(crawler)} bytes; at most {MAX_CRAWLER} are accepted"
            )
        return _read(
            (await self._asked("PUT", f"/v1/crawlers/{checked_identity(identity)}", body=crawler))[1], CrawlerStanding
        )

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        wait = min(max(0.0, wait), MAX_WAIT)
        path = f"/v1/crawlers/{checked_identity(identity)}/batches/{sequence:d}?wait={wait:g}"
        status, data = await self._asked("GET", path, wait=wait, most=MAX_FRAME)
        return data if status == 200 else _read(data, CrawlerStanding)

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        path = f"/v1/crawlers/{checked_identity(identity)}/batches/{sequence:d}"
        return _read((await self._asked("DELETE", path))[1], CrawlerStanding)

    async def cancel(self, identity: str) -> CrawlerStanding:
        return _read((await self._asked("DELETE", f"/v1/crawlers/{checked_identity(identity)}"))[1], CrawlerStanding)

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
            self._prepare(curl, method, path, body, wait)
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

    def _prepare(self, curl: pycurl.Curl, method: str, path: str, body: bytes | None, wait: float) -> None:
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


def _read(data: bytes, kind: type[Told]) -> Told:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        raise RuntimeRefused("protocol", f"the answer is not a {kind.__name__}: {data[:80]!r}") from None


_REASONS: tuple[RefusalReason, ...] = (
    *("wrong_key", "not_authorized", "protocol", "invalid", "version", "too_large", "hosts", "processors"),
    "other_crawler",
)


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
