"""Names of addresses by inverse look-ups (PTR), where the names lead back to their addresses.

Place in the flow: :mod:`~gossamer.agents.marshaler` asks, if a person wants hosts that are addresses under their names
(Hunyadi 2007, section 5.3.1, step 3). An inverse name is a claim of the owner of the address, so a name counts only if its own
addresses hold the one that it was found for (RFC 1912, section 2.1).
"""

import asyncio
import ipaddress
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical, host_of, is_machine

if TYPE_CHECKING:
    import aiodns

#: Addresses that are remembered; the oldest goes.
REMEMBERED = 65_536

#: Seconds for which a name, or that there is none, is remembered; and that no server answered.
KEPT, KEPT_FAILURE = 3_600.0, 60.0

#: Look-ups at once: a batch of the marshaler may hold some hundred addresses.
_AT_ONCE = 64

#: Names of one address that are tried: a server of many sites may have hundreds.
_TRIED = 8

#: Seconds that a name server has for its first answer, and how often it is asked.
_TIMEOUT, _TRIES = 1.5, 2


class ReverseNames:
    """Looks names of addresses up, and remembers them."""

    def __init__(self, servers: Sequence[str], now: Callable[[], float]) -> None:
        """`servers` are name servers as ADDRESS[:PORT], none for those of the system; `now` is a monotonic clock."""
        self._servers = list(servers)
        self._now = now
        self._known: dict[str, tuple[str, float]] = {}
        self._resolver: aiodns.DNSResolver | None = None
        self._room = asyncio.Semaphore(_AT_ONCE)

    def name_of(self, host: str) -> str:
        return self._known[host][0] if host in self._known else ""

    async def look_up(self, hosts: Iterable[str]) -> int:
        """Find the names of those hosts that are addresses and not known; how many were looked up."""
        now = self._now()
        asked = {host for host in hosts if _address(host) and self._known.get(host, ("", 0.0))[1] <= now}
        await asyncio.gather(*map(self._find, asked))
        return len(asked)

    async def close(self) -> None:
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    async def _find(self, host: str) -> None:
        import aiodns  # it takes 80 ms, and few crawls need it here

        try:
            async with self._room:
                name, kept = await self._confirmed(_address(host)), KEPT
        except aiodns.error.DNSError as error:
            name, kept = (
                "",
                KEPT if error.args[0] in (aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_ENODATA) else KEPT_FAILURE,
            )
        self._known.pop(host, None)
        self._known[host] = name, self._now() + kept
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]

    async def _confirmed(self, address: str) -> str:
        """The first name in the order of the alphabet that leads back to its address; empty where none does."""
        import aiodns

        if self._resolver is None:
            self._resolver = aiodns.DNSResolver(timeout=_TIMEOUT, tries=_TRIES)
            if self._servers:
                self._resolver.nameservers = self._servers
        found = await self._resolver.query_dns(ipaddress.ip_address(address).reverse_pointer, "PTR")
        names = {_host(str(getattr(record.data, "dname", ""))) for record in found.answer} - {""}
        for name in sorted(names)[:_TRIED]:
            try:
                answer = await self._resolver.getaddrinfo(name)
            except aiodns.error.DNSError:
                continue
            if address in {_text(node.addr[0]) for node in answer.nodes}:
                return name
        return ""


def _address(host: str) -> str:
    """The address that a host of a URL is; empty for a name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return ""


def _host(name: str) -> str:
    """A name as hosts of URLs are written; empty for what cannot be one."""
    try:
        host = host_of(canonical(f"http://{name.rstrip('.')}/"))
    except UnreadableUrl:
        return ""
    return host if is_machine(host) and not _address(host) else ""


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
