"""The contract of a runtime over HTTP: which request is which call, and how answers and refusals travel (docs/runtime.md).

Place in the flow: :class:`SenderGuard` says whose request it is before anything of the body is read.
:mod:`~gossamer.mobile.manager.remote_runtime` is the other end. ::

    GET    /v1/offer                              offer
    PUT    /v1/crawlers/IDENTITY                  send; the body is the crawler
    GET    /v1/crawlers/IDENTITY/batches/N?wait=S batch; 200 with the frame, 202 with the standing
    DELETE /v1/crawlers/IDENTITY/batches/N        acknowledge
    DELETE /v1/crawlers/IDENTITY                  cancel

Promises: a request without a key learns nothing here, and costs little: a head within a few seconds, one hash, and two lines of
the log a minute for its address. The right key opens at any time. Behind a proxy all requests have one address, so no number of
wrong keys may keep the right one out; and a key of 32 random bytes needs no lock against guessing.
"""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from gossamer.crawls.http_server import Guard, json_answer
from gossamer.mobile.contract import MAX_CRAWLER, MAX_WAIT, CrawlerStanding, RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.runtime.host import HostedLink, RuntimeHost
from gossamer.mobile.runtime.senders import Senders
from gossamer.mobile.runtime.standing import Diary

#: Wrong keys from one address within a minute, after which more of them are told to wait until the minute is over.
WRONG_KEYS, MINUTE = 10, 60.0
#: Addresses that are remembered.
_ADDRESSES = 10_000
#: Requests of one sender at once.
MAX_REQUESTS = 8

#: The key of a scope under which the application finds the sender.
SENDER = "gossamer.sender"


class SenderGuard(Guard):
    """Lets in the senders that the owner has admitted, each with some requests at a time."""

    def __init__(self, app: ASGIApp, senders: Senders, diary: Diary, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(app)
        self._senders = senders
        self._diary = diary
        self._now = now
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Address -> when its minute began, and how many wrong keys came."""
        self._live: dict[str, int] = {}

    def refused(self, scope: Scope) -> Response | None:
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        sender = self._senders.sender(key.strip()) if scheme.lower() == "bearer" else ""
        if not sender:
            return self._turned_away((scope.get("client") or ("",))[0])
        if self._live.get(sender, 0) >= MAX_REQUESTS:
            return _refused(429, f"you have {MAX_REQUESTS} requests in flight already; wait for an answer")
        self._live[sender] = self._live.get(sender, 0) + 1
        scope[SENDER] = sender
        return None

    def ended(self, scope: Scope) -> None:
        self._live[scope[SENDER]] -= 1

    def _turned_away(self, address: str) -> Response:
        """The answer to a wrong key from an address."""
        began, count = self._wrong.pop(address, (self._now(), 0))
        if self._now() - began >= MINUTE:
            began, count = self._now(), 0
        if count >= WRONG_KEYS:
            self._wrong[address] = began, count
            return _refused(429, "too many wrong keys; try again in a minute")
        self._wrong[address] = began, count + 1
        while len(self._wrong) > _ADDRESSES:
            self._wrong.popitem(last=False)
        if count + 1 in (1, WRONG_KEYS):  # a guesser must not fill the log
            self._diary.tell("denied", address=address, wrong_keys=count + 1)
        return _refused(401, "the request has no key of a sender; ask the owner of the runtime for one")


def _refused(status: int, told: str) -> Response:
    # The connection is closed, so that a body is not read in vain.
    return json_answer({"reason": "not_authorized", "told": told}, status, {"connection": "close"})


#: Seconds that a crawler's bytes may take to come.
PATIENCE = 300.0

#: A number as it may be read: Python refuses to make one of thousands of digits, and no sequence or length has so many.
_DIGITS = re.compile(r"[0-9]{1,12}")

Call = Callable[[HostedLink, Request], Awaitable[Response]]


def application(host: RuntimeHost) -> Starlette:
    """The application, which has to be guarded."""

    def answering(call: Call) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            try:
                return await call(host.link(request.scope[SENDER]), request)
            except RuntimeRefused as refused:
                return json_answer({"reason": refused.reason, "told": str(refused)}, 422)
            except (RuntimeUnavailable, ClientDisconnect) as error:
                return json_answer({"reason": "later", "told": str(error)}, 503)

        return answered

    crawler = "/v1/crawlers/{identity}"
    return Starlette(
        routes=[
            Route("/v1/offer", answering(_offer), methods=["GET"]),
            Route(crawler, answering(_send), methods=["PUT"]),
            Route(crawler, answering(_cancel), methods=["DELETE"]),
            Route(crawler + "/batches/{sequence}", answering(_batch), methods=["GET"]),
            Route(crawler + "/batches/{sequence}", answering(_acknowledge), methods=["DELETE"]),
        ]
    )


async def _offer(link: HostedLink, request: Request) -> Response:
    return json_answer(await link.offer())


async def _send(link: HostedLink, request: Request) -> Response:
    return json_answer(await link.send(request.path_params["identity"], await _body(request)))


async def _batch(link: HostedLink, request: Request) -> Response:
    try:
        wait = min(max(0.0, float(request.query_params.get("wait", "0"))), MAX_WAIT)
    except ValueError:
        wait = 0.0
    found = await link.batch(request.path_params["identity"], _sequence(request), wait)
    if isinstance(found, CrawlerStanding):
        return json_answer(found, 202)
    return Response(found, media_type="application/octet-stream")


async def _acknowledge(link: HostedLink, request: Request) -> Response:
    return json_answer(await link.acknowledge(request.path_params["identity"], _sequence(request)))


async def _cancel(link: HostedLink, request: Request) -> Response:
    return json_answer(await link.cancel(request.path_params["identity"]))


def _sequence(request: Request) -> int:
    sequence: str = request.path_params["sequence"]
    if not _DIGITS.fullmatch(sequence):
        raise HTTPException(404)  # as for any other address that names nothing
    return int(sequence)


async def _body(request: Request) -> bytes:
    """The body, if it is no longer than a crawler may be and comes in time."""
    told = request.headers.get("content-length", "")
    if told and not (_DIGITS.fullmatch(told) and int(told) <= MAX_CRAWLER):
        raise RuntimeRefused("too_large", f"the crawler has {told[:20]!r} bytes; at most {MAX_CRAWLER} are accepted")
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_CRAWLER:
                    raise RuntimeRefused(
                        "too_large", f"the crawler has more than {MAX_CRAWLER} bytes, and no more are accepted"
                    )
    except TimeoutError:
        raise RuntimeUnavailable(f"the crawler did not come within {PATIENCE:g} s") from None
    return bytes(body)
