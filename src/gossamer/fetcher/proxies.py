"""The proxies of a crawl: each request goes out by the one whose turn it is.

Place in the flow: the protocol module for http asks here by which proxy a request goes, and tells what came of it. A proxy
that fails rests for a while and is then tried again; a session of a spider stays with its proxy while that one is well.
A proxy looks names up. Its own address is the person's word, so it is not judged; requests through it are judged by name,
address and port before.
"""

import asyncio
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pycurl

from gossamer.engine.errors import SettingError, refusing
from gossamer.fetcher.authentication import REFERENCE, secret_of
from gossamer.fetcher.contract import Endpoint, ProxyHealth
from gossamer.values.errors import ResolutionFailed
from gossamer.values.patterns import lazy_pattern

if TYPE_CHECKING:
    from gossamer.fetcher.transfer import Transfer

#: `socks5h`: like `http`, it leaves the look-up to the proxy. Plain `socks5` would have libcurl ask a name server.
_WRITTEN = lazy_pattern(
    r"(?P<scheme>http|socks5h)://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[0-9a-fA-F:]+\]|[^:@/\[\]]+):(?P<port>[0-9]{1,5})/?\Z"
)

#: Proxies in a list, as some thousand are sold together, and bytes of a file with them.
MOST = 10_000
_LARGEST_FILE = 2 << 20

#: Seconds that a proxy rests after its first failure in a row; twice as many after each further one, up to the longest rest.
FIRST_REST, LONGEST_REST = 10.0, 600.0

#: The status by which a proxy says that it does not know us (RFC 9110, 15.5.8).
PROXY_REFUSES = 407

#: CURLE_PROXY, which pycurl does not name: what a SOCKS proxy says.
_E_PROXY = 97

#: Sessions whose proxy is remembered; then the one that was not used for longest is given another.
_MOST_SESSIONS = 1000


class Proxy:
    """One proxy: where it is, and how it does."""

    def __init__(self, url: str) -> None:
        """Read a setting. Raises SettingError: it cannot be read; says how it is written, and nothing of a password."""
        written = _WRITTEN.match(url)
        if written is None or not 0 < int(written["port"]) < 65536:
            raise SettingError("proxy: write it as http://[USER:PASSWORD@]HOST:PORT or socks5h://...")
        self.url = url
        self.scheme = written["scheme"]
        self.user = unquote(written["user"] or "")
        self.password = unquote(written["password"] or "")
        self._host = written["host"].strip("[]")
        self._port = int(written["port"])
        self._known: Endpoint | None = None
        self.asked = self.failed = 0
        self.in_row = 0
        """Failures since it last worked."""
        self.until = 0.0
        """Monotonic instant until which it rests."""

    @property
    def place(self) -> str:
        """Host and port, which are no secret."""
        return f"{self._host}:{self._port}"

    @property
    def is_http(self) -> bool:
        """It speaks HTTP: requests for plain http name the whole URL."""
        return self.scheme == "http"

    async def endpoint(self) -> Endpoint:
        """Its addresses, asked of the operating system once. Raises ResolutionFailed: it has none."""
        if self._known is None:
            loop = asyncio.get_running_loop()
            with refusing(ResolutionFailed, f"proxy {self._host}"):
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            first, *others = dict.fromkeys(str(address[0]) for *_, address in found)
            self._known = Endpoint(first, self._port, tuple(others))
        return self._known


class Proxies:
    """All proxies, which take turns."""

    def __init__(self, entries: Sequence[str], now: Callable[[], float]) -> None:
        """Read a setting. `entries`: addresses, or where they stand: see :func:`addresses`; `now`: monotonic seconds. Raises
        SettingError: one cannot be read, or there is none; says nothing of a password."""
        self.entries = tuple(entries)
        self._now = now
        self.members = [Proxy(url) for url in dict.fromkeys(addresses(entries))]
        self._turn = -1
        self._of_session: OrderedDict[str, Proxy] = OrderedDict()
        places = Counter(member.place for member in self.members)
        self._shared = frozenset(place for place, count in places.items() if count > 1)

    def __len__(self) -> int:
        return len(self.members)

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
        return member

    def _next(self, now: float) -> Proxy:
        count = len(self.members)
        for step in range(1, count + 1):
            turn = (self._turn + step) % count
            if self.members[turn].until <= now:
                self._turn = turn
                return self.members[turn]
        return min(self.members, key=lambda member: member.until)

    def renew(self, session: str) -> None:
        """A session begins anew: by whichever proxy's turn it is."""
        self._of_session.pop(session, None)

    def failed(self, proxy: Proxy) -> None:
        """A proxy did not carry a request: it rests."""
        proxy.failed += 1
        proxy.until = self._now() + min(FIRST_REST * 2 ** min(proxy.in_row, 10), LONGEST_REST)
        proxy.in_row += 1

    def worked(self, proxy: Proxy) -> None:
        """A proxy brought an answer."""
        proxy.in_row, proxy.until = 0, 0.0

    def judge(self, proxy: Proxy, transfer: "Transfer", ending: tuple[int, str]) -> None:
        """Note how a transfer by a proxy has ended, as far as that says something of the proxy."""
        if _is_its_fault(transfer, ending):
            self.failed(proxy)
        elif transfer.lines:
            self.worked(proxy)

    def rests(self, proxy: Proxy) -> bool:
        """Whether it has failed a short while ago."""
        return proxy.until > self._now()

    def is_shared(self, proxy: Proxy) -> bool:
        """Whether others stand at the same place, told apart by their users alone: connections to it are not shared."""
        return proxy.place in self._shared

    def health(self) -> list[ProxyHealth]:
        """How each does, in the order of the setting."""
        now = self._now()
        return [
            ProxyHealth(one.place, one.asked, one.failed, round(max(0.0, one.until - now), 1)) for one in self.members
        ]


def _is_its_fault(transfer: "Transfer", ending: tuple[int, str]) -> bool:
    """Whether the proxy did not do its part: it took no connection, or not ours. A server that it could not reach is the server's
    fault.
    """
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


def addresses(entries: Sequence[str]) -> list[str]:
    """The addresses of proxies: each entry is one, or `$NAME` or `@FILE` where several stand, in the file one a line. Raises
    SettingError: the file or variable referred to is not there, others can read the file, or it names none."""
    found: list[str] = []
    for entry in entries:
        if not REFERENCE.fullmatch(entry):
            found.append(entry)
            continue
        lines = [line.strip() for line in secret_of(entry, "proxy", _LARGEST_FILE).splitlines()]
        named = [word for line in lines if not line.startswith("#") for word in line.split()]
        if not named:
            raise SettingError(f"proxy: {entry} names no proxy")
        found += named
    if len(found) > MOST:
        raise SettingError(f"proxy: {len(found):,} proxies are named; {MOST:,} can be used")
    return found


def absolute(entries: Sequence[str]) -> tuple[str, ...]:
    """The entries with their files named so that they are found wherever a crawl goes on."""
    return tuple(
        f"@{Path(entry[1:]).absolute()}" if entry.startswith("@") and REFERENCE.fullmatch(entry) else entry
        for entry in entries
    )
