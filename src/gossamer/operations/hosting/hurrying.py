"""Connections that say nothing are closed: each is given some seconds for the head of its first request, and between two.

Place in the flow: uvicorn makes one of these for each connection. It has no such limit of its own, and as many silent
connections as it takes at once would keep every sender out.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class HurriedProtocol(H11Protocol):
    """HTTP/1.1, in time."""

    SECONDS = 10.0

    _hurry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to count."""
        super().connection_made(transport)
        self._hurry = self.loop.call_later(self.SECONDS, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nobody to hurry."""
        if self._hurry is not None:
            self._hurry.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        """Close it unless a request has come; from then on uvicorn counts the pauses between two."""
        has_come: object = self.cycle  # None until a request has, whatever its type says
        if has_come is None and not self.transport.is_closing():
            self.transport.abort()
