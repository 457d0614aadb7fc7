"""The proxies of a crawl: by whose turn it is and how they do, each request goes out by one of them.

Place in the flow: the protocol module for http asks here by which proxy a request goes, and tells what came of it. A proxy
that fails rests for a while and is then tried again; a session of a spider stays with its proxy while that one is well.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import pycurl

from gossamer.fetcher.contract import ProxyHealth
from gossamer.fetcher.proxy import Proxy, addresses
from gossamer.fetcher.transfer import Transfer

#: Seconds that a proxy rests after its first failure in a row; twice as many after each further one, up to the longest rest.
FIRST_REST, LONGEST_REST = 10.0, 600.0

#: The status by which a proxy says that it does not know us (RFC 9110, 15.5.8).
PROXY_REFUSES = 407

#: CURLE_PROXY, which pycurl does not name: what a SOCKS proxy says.
_E_PROXY = 97

#: Sessions whose proxy is remembered; then the one that was not used for longest is given another.
_MOST_SESSIONS = 1000


class _Member:
    __slots__ = ("asked", "failed", "in_row", "proxy", "until")

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.asked = 0
        self.failed = 0
        self.in_row = 0
        """Failures since it last worked."""
        self.until = 0.0
        """Monotonic instant until which it rests."""


class Proxies:
    """Proxies in turn."""

    def __init__(self, entries: Sequence[str], now: Callable[[], float]) -> None:
        """Read a setting.

        Args:
            entries: addresses, or where they stand: see :func:`~gossamer.fetcher.proxy.addresses`.
            now: monotonic seconds.

        Raises:
            SettingError: one cannot be read, or there is none; says nothing of a password.
        """
        self.entries = tuple(entries)
        self._now = now
        self._members = [_Member(Proxy(url)) for url in dict.fromkeys(addresses(entries))]
        self._by_proxy = {member.proxy: member for member in self._members}
        self._turn = -1
        self._of_session: OrderedDict[str, _Member] = OrderedDict()
        places: dict[str, int] = {}
        for member in self._members:
            places[member.proxy.place] = places.get(member.proxy.place, 0) + 1
        self._shared = frozenset(place for place, count in places.items() if count > 1)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Proxy]:
        return iter(self._by_proxy)

    def __repr__(self) -> str:
        return f"<Proxies {', '.join(member.proxy.place for member in self._members[:3])}>"

    def choose(self, session: str = "") -> Proxy:
        """The proxy by which a session asks now, or whose turn it is. Where all of them rest, the one that may soonest be tried."""
        now = self._now()
        member = self._of_session.get(session) if session else None
        if member is None or member.until > now:
            member = self._next(now)
        if session:
            self._of_session[session] = member
            self._of_session.move_to_end(session)
            if len(self._of_session) > _MOST_SESSIONS:
                self._of_session.popitem(last=False)
        member.asked += 1
        return member.proxy

    def _next(self, now: float) -> _Member:
        count = len(self._members)
        for step in range(1, count + 1):
            turn = (self._turn + step) % count
            if self._members[turn].until <= now:
                self._turn = turn
                return self._members[turn]
        return min(self._members, key=lambda member: member.until)

    def renew(self, session: str) -> None:
        """A session begins anew: by whichever proxy's turn it is."""
        self._of_session.pop(session, None)

    def failed(self, proxy: Proxy) -> None:
        """A proxy did not carry a request: it rests."""
        member = self._by_proxy.get(proxy)
        if member is None:  # the setting has changed since
            return
        member.failed += 1
        member.until = self._now() + min(FIRST_REST * 2 ** min(member.in_row, 10), LONGEST_REST)
        member.in_row += 1

    def worked(self, proxy: Proxy) -> None:
        """A proxy brought an answer."""
        member = self._by_proxy.get(proxy)
        if member is not None:
            member.in_row, member.until = 0, 0.0

    def judge(self, proxy: Proxy, transfer: Transfer, ending: tuple[int, str]) -> None:
        """Note how a transfer by a proxy has ended, as far as that says something of the proxy."""
        if _is_its_fault(transfer, ending):
            self.failed(proxy)
        elif transfer.lines:
            self.worked(proxy)

    def rests(self, proxy: Proxy) -> bool:
        """Whether it has failed a short while ago."""
        member = self._by_proxy.get(proxy)
        return member is not None and member.until > self._now()

    def is_shared(self, proxy: Proxy) -> bool:
        """Whether others stand at the same place, told apart by their users alone: connections to it are nobody else's."""
        return proxy.place in self._shared

    @property
    def resting(self) -> int:
        """How many rest."""
        now = self._now()
        return sum(member.until > now for member in self._members)

    def health(self) -> list[ProxyHealth]:
        """How each does, in the order of the setting."""
        now = self._now()
        return [
            ProxyHealth(one.proxy.place, one.asked, one.failed, round(max(0.0, one.until - now), 1))
            for one in self._members
        ]


def _is_its_fault(transfer: Transfer, ending: tuple[int, str]) -> bool:
    """Whether the proxy did not do its part: it let nobody in, or not us. That it reached no server is the server's matter."""
    code, message = ending
    if "CONNECT tunnel failed" in message:
        return str(PROXY_REFUSES) in message
    if code == _E_PROXY:
        return "complete SOCKS5 connection" not in message
    if transfer.head is not None:
        return transfer.head.status == PROXY_REFUSES
    if transfer.lines:
        return False
    if transfer.verdict is not None:
        return not transfer.is_sent and not transfer.is_connected
    return code in (pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_PROXY)
