"""Names to addresses (row M8). Suite: `gossamer.testing.check_resolver`."""

from collections.abc import Iterable
from typing import Protocol

import msgspec


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """Where to connect for a host name and port: addresses that this crawl may talk to."""

    address: str
    port: int
    others: tuple[str, ...] = ()
    """Further addresses of the same host, judged like the first, to be tried in order where connecting fails."""


class Resolver(Protocol):
    """Finds the address of a host.

    Promises:
        1. What it returns has been judged: an address outside what the crawl may reach is never handed out.
        2. Equal questions at once cost one look-up.
        3. An asker that gives up takes nothing from others who ask the same.
    """

    async def resolve(self, host: str, port: int) -> Endpoint:
        """The endpoint for `host` and `port`; an IPv6 host comes without brackets.

        Raises:
            ResolutionFailed: the name has no address now.
            AddressRefused: it has one that this crawl must not talk to.
        """
        ...

    def prefetch(self, places: Iterable[tuple[str, int]]) -> None:
        """Look these hosts and ports up ahead of need, where no answer is known that lasts; bounded, returns at once."""
        ...

    def judge(self, host: str, port: int) -> None:
        """Refuse what can be refused without a look-up, for a proxy that looks names up itself.

        Raises:
            AddressRefused: the name, the address that it is, or the port is not to be asked for.
        """
        ...
