"""Replays of archived documents: a page as it looked, from the archive alone, which can do nothing.

Place in the flow: `GET /api/crawls/KEY/replay` leads who may read to a signed address below :data:`REPLAY`, which :mod:`guarding`
lets in by its signature. What is sent from there has a policy that forbids everything but its own pictures and styles, and a
sandbox, in which there is no script, form, window or origin.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from gossamer.dashboard.children import KilledChildren
from gossamer.dashboard.crawls import Crawls, ShownCrawl
from gossamer.model.errors import GossamerError, UsageError
from gossamer.operations.replay_addresses import LASTS, ReplayAddresses, ReplayAsked

if TYPE_CHECKING:
    from gossamer.operations.replaying import Replayed

#: Seconds and bytes that a page may take, and pages that are made ready at once: a crawl may run beside.
SECONDS, MEMORY, AT_ONCE = 10.0, 2 << 30, 2

#: The advice to a person whose page could not be made ready.
ADVICE = "look at the text of the page instead"

#: Documents that are read at once: a page of pictures must leave threads to whoever watches a crawl.
READ_AT_ONCE = 2

#: Said with every answer. What a page asks for comes from no origin, so that pictures have to be open to every one; nobody
#: can ask for them who was not given their addresses.
SANDBOX = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-DNS-Prefetch-Control": "off",
}


class Replays:
    """All replays of one dashboard."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells seconds since 1970."""
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._addresses = ReplayAddresses(self._secret)
        self._turns = asyncio.Semaphore(READ_AT_ONCE)
        self._children = KilledChildren("gossamer.operations.replaying", SECONDS, AT_ONCE, ADVICE)

    def __repr__(self) -> str:
        return "<Replays>"

    def is_given(self, query: bytes) -> bool:
        """Whether this is the query of an address that was given out and is still good."""
        return self._addresses.read(query, self._clock()) is not None

    async def enter(self, request: Request, crawls: Crawls) -> Response:
        """Lead who may read to the address of a document."""
        shown, asked = await crawls.named(request.path_params["key"]), request.query_params
        if not asked.get("url"):
            raise UsageError("say which URL: ?url=...")
        until = int(self._clock()) + LASTS
        address = self._addresses.of(ReplayAsked(shown.key, asked["url"], asked.get("at", ""), until))
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    async def show(self, request: Request, crawls: Crawls) -> Response:
        """What stands at an address, or in plain words why nothing does."""
        asked = self._addresses.read(request.scope["query_string"], self._clock())
        if asked is None:
            return PlainTextResponse("this address is no longer valid\n", HTTPStatus.FORBIDDEN, SANDBOX)
        is_picture = request.headers.get("sec-fetch-dest") == "image"
        try:
            made = await self._made(await crawls.named(asked.crawl), asked, is_picture=is_picture)
        except GossamerError as error:
            return PlainTextResponse(f"{error}\n", HTTPStatus.NOT_FOUND, SANDBOX)
        if made.target:
            return RedirectResponse(made.target, HTTPStatus.SEE_OTHER, SANDBOX)
        return Response(made.body, headers={**SANDBOX, "Content-Type": made.media_type})

    async def _made(self, shown: ShownCrawl, asked: ReplayAsked, *, is_picture: bool) -> "Replayed":
        from gossamer.operations.replaying import NeedsParsing, Replayed, ReplayQuestion, replayed

        try:
            async with self._turns:
                return await shown.run(
                    lambda: replayed(shown.directory, asked, self._addresses, may_parse=False, is_picture=is_picture)
                )
        except NeedsParsing:
            question = ReplayQuestion(asked, self._secret, MEMORY, int(SECONDS) + 2)
            answer = await self._children.ask(shown.directory, msgspec.msgpack.encode(question))
            return msgspec.msgpack.decode(answer, type=Replayed)
