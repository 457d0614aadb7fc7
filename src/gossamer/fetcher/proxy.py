"""A proxy that a person configured: requests go to it, and it looks names up.

Used by the protocol modules that speak through libcurl. Its address is the person's word, so the guard is not asked for it;
what is asked of it is judged by name, address and port before.
"""

import asyncio
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from gossamer.engine.errors import SettingError
from gossamer.fetcher.contract import Endpoint
from gossamer.fetcher.secrets import REFERENCE, secret_of
from gossamer.values.errors import ResolutionFailed

#: `socks5h`: like `http`, it leaves the look-up to the proxy. Plain `socks5` would have libcurl ask a name server.
_WRITTEN = re.compile(
    r"(?P<scheme>http|socks5h)://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[0-9a-fA-F:]+\]|[^:@/\[\]]+):(?P<port>[0-9]{1,5})/?\Z"
)

#: Proxies in a list, as some thousand are sold together, and bytes of a file with them.
MOST = 10_000
_LARGEST_FILE = 2 << 20


class Proxy:
    """One proxy, and where it is."""

    def __init__(self, url: str) -> None:
        """Read a setting.

        Raises:
            SettingError: it cannot be read; says how it is written, and nothing of a password.
        """
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

    def __repr__(self) -> str:
        return f"<Proxy {self.scheme}://{self.place}>"

    @property
    def place(self) -> str:
        """Host and port, which are no secret."""
        return f"{self._host}:{self._port}"

    @property
    def is_http(self) -> bool:
        """It speaks HTTP: requests for plain http name the whole URL."""
        return self.scheme == "http"

    async def endpoint(self) -> Endpoint:
        """Its addresses, asked of the operating system once.

        Raises:
            ResolutionFailed: it has none.
        """
        if self._known is None:
            loop = asyncio.get_running_loop()
            try:
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            except OSError as error:
                raise ResolutionFailed(f"proxy {self._host}: {error.strerror or error}") from None
            first, *others = dict.fromkeys(str(address[0]) for *_, address in found)
            self._known = Endpoint(first, self._port, tuple(others))
        return self._known


def addresses(entries: Sequence[str]) -> list[str]:
    """The addresses of proxies: each entry is one, or `$NAME` or `@FILE` where several stand, in the file one a line.

    Raises:
        SettingError: what is referred to is not there, others can read the file, or it names none.
    """
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
