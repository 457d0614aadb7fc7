"""Contracts of fetching: protocol modules, which are chosen by URL scheme, and resolvers, which turn host names into addresses.
Suites: `gossamer.testing.check_protocol_module`, `check_resolver`.
"""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import msgspec

from gossamer.values.task import Task
from gossamer.values.visit import Response


class ProxyHealth(msgspec.Struct, frozen=True):
    """State of a proxy."""

    proxy: str
    """Host and port; the rest of its address is a secret."""
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


class SendGuard(Protocol):
    """Knows of requests that may not be sent twice whether an earlier process of the crawl may have sent them."""

    async def may_send(self, task: Task) -> bool:
        """Whether a request may be sent; from then on no later process of the crawl sends it."""
        ...


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """The place to connect to for a host name and port: addresses that this crawl may talk to."""

    address: str
    port: int
    others: tuple[str, ...] = ()
    """Further addresses of the same host, judged like the first. They are tried in order if connecting fails."""


class Resolver(Protocol):
    """Finds the address of a host.

    Promises:
        1. It judges every address before it returns it: it never returns an address that the crawl may not talk to.
        2. Equal questions at the same time cost one look-up.
        3. A caller that gives up does not disturb others that ask the same question.
    """

    async def resolve(self, host: str, port: int) -> Endpoint:
        """Return the endpoint for `host` and `port`; an IPv6 host comes without brackets.

        Raises:
            ResolutionFailed: the name has no address now.
            AddressRefused: the name has an address that this crawl must not talk to.
        """
        ...

    def prefetch(self, places: Iterable[tuple[str, int]]) -> None:
        """Begin to look up these hosts and ports, unless a lasting answer is known. The number of look-ups is bounded, and the
        call returns at once."""
        ...

    def judge(self, host: str, port: int) -> None:
        """Refuse a host and port if this can be decided without a look-up. It serves proxies that look up names themselves.

        Raises:
            AddressRefused: the crawl must not ask for this name, address or port.
        """
        ...
