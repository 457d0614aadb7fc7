"""Protocol modules, chosen by URL scheme (row M1). Suite: `gossamer.testing.check_protocol_module`."""

from typing import Protocol, runtime_checkable

import msgspec

from gossamer.model.task import Task
from gossamer.model.visit import Response


class ProxyHealth(msgspec.Struct, frozen=True):
    """State of a proxy."""

    proxy: str
    """Host and port: what else its address says is a secret."""
    asked: int
    failed: int
    rests: float
    """Seconds until it is tried again; 0 while it is used."""


class ProtocolModule(Protocol):
    """Fetches one URL.

    Promises:
        1. Every fetch ends in a :class:`Response` with a named outcome; no behaviour of a server raises an error.
        2. It ends within its deadlines, and holds no more of the body than its cap.
        3. It requests exactly the URL of the task, and returns a redirect as an answer without following it.
        4. It connects only to addresses that the resolver handed out.
    """

    async def fetch(self, task: Task) -> Response:
        """Fetch `task.url`. Cancelling it closes the connection."""
        ...


@runtime_checkable
class RequestSender(ProtocolModule, Protocol):
    """A module that can send other requests than plain GETs; modules without this contract never get one.

    Promise, beside those of a module: `Response.is_met` is True if a server may have received the request, because an
    unsafe request is sent again only if it is False.
    """

    async def send(self, task: Task) -> Response:
        """Send `task.request` to `task.url`."""
        ...
