"""Who may ask a runtime for anything: decided before a body is read, and before anything else sees the request.

Place in the flow: around the whole application (:mod:`gossamer.operations.hosting.web`). A request without a key learns nothing
here, and costs little: a head within a few seconds, one hash, and two lines of the log a minute for its address. The right key
opens at any time. Behind a proxy all requests have one address, so no number of wrong keys may keep the right one out; and a key
of 32 random bytes needs no lock against guessing.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gossamer.operations.hosting.diary import Diary
from gossamer.operations.hosting.senders import Senders

#: Wrong keys from one address within a minute, after which more of them are told to wait until the minute is over.
WRONG_KEYS, MINUTE = 10, 60.0
#: Addresses that are remembered.
_ADDRESSES = 10_000
#: Requests of one sender at once.
MAX_REQUESTS = 8

#: The key of a scope under which the application finds the sender.
SENDER = "gossamer.sender"


class SenderGuard:
    """The application, guarded."""

    def __init__(self, app: ASGIApp, senders: Senders, diary: Diary, now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._senders = senders
        self._diary = diary
        self._now = now
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Address -> when its minute began, and how many wrong keys came."""
        self._live: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            return
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        sender = self._senders.sender(key.strip()) if scheme.lower() == "bearer" else ""
        if not sender:
            await self._turned_away((scope.get("client") or ("",))[0])(scope, receive, send)
            return
        if self._live.get(sender, 0) >= MAX_REQUESTS:
            await _refused(429, f"you have {MAX_REQUESTS} requests in flight already; wait for an answer")(
                scope, receive, send
            )
            return
        self._live[sender] = self._live.get(sender, 0) + 1
        try:
            await self._app({**scope, SENDER: sender}, receive, send)
        finally:
            self._live[sender] -= 1

    def _turned_away(self, address: str) -> JSONResponse:
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


def _refused(status: int, told: str) -> JSONResponse:
    # The connection is closed: a body that nobody wants is not read.
    return JSONResponse({"reason": "not_authorized", "told": told}, status, {"connection": "close"})
