"""The contract of a runtime over HTTP: which request is which call, and how answers and refusals travel (docs/runtime.md).

Place in the flow: inside the guard (:mod:`gossamer.operations.hosting.guarding`), which says whose request it is.
`services.runtimes` is the other end. ::

    GET    /v1/offer                              offer
    PUT    /v1/crawlers/IDENTITY                  send; the body is the crawler
    GET    /v1/crawlers/IDENTITY/batches/N?wait=S batch; 200 with the frame, 202 with the standing
    DELETE /v1/crawlers/IDENTITY/batches/N        acknowledge
    DELETE /v1/crawlers/IDENTITY                  cancel
"""

import asyncio
import re
from collections.abc import Awaitable, Callable

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer.contracts.runtimes import MAX_CRAWLER, MAX_WAIT, CrawlerStanding, RuntimeRefused, RuntimeUnavailable
from gossamer.operations.hosting.guarding import SENDER
from gossamer.operations.hosting.host import HostedLink, RuntimeHost

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
                return _json({"reason": refused.reason, "told": str(refused)}, 422)
            except (RuntimeUnavailable, ClientDisconnect) as error:
                return _json({"reason": "later", "told": str(error)}, 503)

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
    return _json(await link.offer())


async def _send(link: HostedLink, request: Request) -> Response:
    return _json(await link.send(request.path_params["identity"], await _body(request)))


async def _batch(link: HostedLink, request: Request) -> Response:
    try:
        wait = min(max(0.0, float(request.query_params.get("wait", "0"))), MAX_WAIT)
    except ValueError:
        wait = 0.0
    found = await link.batch(request.path_params["identity"], _sequence(request), wait)
    if isinstance(found, CrawlerStanding):
        return _json(found, 202)
    return Response(found, media_type="application/octet-stream")


async def _acknowledge(link: HostedLink, request: Request) -> Response:
    return _json(await link.acknowledge(request.path_params["identity"], _sequence(request)))


async def _cancel(link: HostedLink, request: Request) -> Response:
    return _json(await link.cancel(request.path_params["identity"]))


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


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
