"""Names to addresses (MISSION M8). Suite: `gossamer.testing.check_resolver`."""

from typing import Protocol

import msgspec


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """Where to connect for a host name and port: an address that this crawl may talk to."""

    address: str
    port: int


class Resolver(Protocol):
    """Finds the address of a host.

    Promises:
        1. What it returns has been judged: an address outside what the crawl may reach is never handed out.
        2. Equal questions at once cost one look-up.
    """

    async def resolve(self, host: str, port: int) -> Endpoint:
        """The endpoint for `host` and `port`.

        Raises:
            ResolutionFailed: the name has no address now.
            AddressRefused: it has one that this crawl must not talk to.
        """
        ...
