"""Names by c-ares: asked without a thread for each, good for as long as the answer says.

The usual source of addresses; :class:`~gossamer.fetcher.dns.SystemResolver` is the other one, for networks whose names come
by other ways than DNS and the hosts file. All judging, caching and looking ahead is the same, and stands there.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import setting
from gossamer.fetcher.dns import FoundAddresses, GuardedResolver, ResolverSheet, split_target
from gossamer.values import addresses as guard
from gossamer.values.errors import NoSuchName, ResolutionFailed

if TYPE_CHECKING:
    import aiodns
    import pycares

#: Aliases (CNAME) on the way to an address.
MAX_ALIASES = 8

#: Seconds that a name server has for its first answer, and how often it is asked: 1.5 and 3 s, within the deadline of 5.
_TIMEOUT = 1.5
_TRIES = 2

#: ARES_AI_NOSORT, which pycares does not name: sorting would open a socket towards every address, before it is judged.
_NO_SORT = 1 << 7


#: Look-ups after which a channel makes room for a new one. c-ares keeps every answer for an hour, without a bound on
#: their number and without a switch that its Python binding knows; some 500 bytes each, this is 2 MB.
RENEWED_AFTER = 4096


class DnsSheet(ResolverSheet, frozen=True):
    servers: Annotated[
        tuple[str, ...], setting("Ask these name servers, as ADDRESS[:PORT]; empty: those of the system.")
    ] = ()
    min_ttl: Annotated[float, setting("Use an answer for at least this long.", unit="s", ge=0)] = 60.0
    max_ttl: Annotated[float, setting("Use an answer for at most this long.", unit="s", ge=0)] = 3600.0


class _Channel:
    """One of c-ares's channels, and what is under way on it."""

    __slots__ = ("asked", "pending", "resolver")

    def __init__(self, resolver: "aiodns.DNSResolver") -> None:
        self.resolver = resolver
        self.asked = self.pending = 0


class DnsResolver(GuardedResolver[DnsSheet]):
    """Asks the `--resolve` table, then the hosts file and name servers. Implements `fetcher.contract.Resolver`."""

    renewed_after: ClassVar[int] = RENEWED_AFTER
    """Look-ups after which a channel makes room for a new one."""

    def read_sheet(self) -> None:
        check_servers(self.sheet.servers)
        super().read_sheet()
        self._channel: _Channel | None = None

    async def stop(self) -> None:
        """Give up what is under way."""
        await super().stop()
        if self._channel is not None:
            await self._channel.resolver.close()
            self._channel = None

    def _open(self) -> "_Channel":
        # Imported with the first name that is looked up: crawls of this machine need none, and it takes 80 ms.
        import aiodns
        import pycares

        # NOSEARCH: a name means what it says, and not a host of the domain that this machine happens to be in.
        channel = aiodns.DNSResolver(
            timeout=_TIMEOUT, tries=_TRIES, flags=pycares.ARES_FLAG_NOSEARCH, loop=asyncio.get_running_loop()
        )
        if self.sheet.servers:
            channel.nameservers = list(self.sheet.servers)
        return _Channel(channel)

    async def _ask(self, host: str) -> "pycares.AddrInfoResult":
        channel = self._channel
        if channel is None or channel.asked >= self.renewed_after:
            channel = self._channel = self._open()
        channel.asked += 1
        channel.pending += 1
        try:
            return await channel.resolver.getaddrinfo(host, flags=_NO_SORT)
        finally:
            channel.pending -= 1
            if channel is not self._channel and not channel.pending:
                await channel.resolver.close()

    async def find(self, host: str) -> FoundAddresses:
        """All addresses of a name, IPv4 first, for as long as the shortest-lived record on the way says."""
        import aiodns

        try:
            result = await self._ask(host)
        except aiodns.error.DNSError as error:
            if error.args[0] == aiodns.error.ARES_ENOTFOUND:
                raise NoSuchName(f"{host}: {error.args[-1]}") from None
            raise ResolutionFailed(f"{host}: {error.args[-1]}") from None
        if len(result.cnames) > MAX_ALIASES:
            raise ResolutionFailed(f"{host}: more than {MAX_ALIASES} aliases")
        addresses = dict.fromkeys(_text(node.addr[0]) for node in result.nodes)
        ttl = min([node.ttl for node in result.nodes] + [alias.ttl for alias in result.cnames], default=0)
        sheet = self.sheet
        return FoundAddresses(
            sorted(addresses, key=lambda address: ":" in address), min(max(ttl, sheet.min_ttl), sheet.max_ttl)
        )


def check_servers(servers: Iterable[str]) -> None:
    """Refuse what is no address of a name server. Raises SettingError."""
    for server in servers:
        address, port = split_target(server)
        if not guard.is_address(address) or (port and not (port.isascii() and port.isdigit() and int(port) < 65536)):
            raise SettingError(f"name server {server!r}: write it as ADDRESS[:PORT], as 127.0.0.1:53")


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
