"""One job as each kind of filter: the addresses of the hosts that URLs name (Hunyadi 2007, figures 4.5 to 4.7).

    python examples/10-host-addresses/addresses.py filter http://localhost/ http://127.0.0.1/x
    python examples/10-host-addresses/addresses.py asynchronous http://localhost/

The first word says which kind does the job: `filter`, `synchronous`, `semi-synchronous` or `asynchronous`. The class behind the
name `addresses` of the wiring differs, and with it the moment at which items are taken:

- a **filter** has one input, and returns what each item becomes;
- a **synchronous** filter waits until every input has an item, so each URL is paired with a wish for a kind of address;
- a **semi-synchronous** filter takes an item of any input as it comes, and sends what it makes before the next one;
- an **asynchronous** filter takes items in any order, and is asked for addresses when there is room for them.
"""

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from gossamer.engine.component import (
    AsynchronousFilter,
    Consumer,
    Filter,
    Producer,
    SemiSynchronousFilter,
    SynchronousFilter,
)
from gossamer.engine.ends import In, Out
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Unit
from gossamer.engine.wiring import read, with_settings

HERE = Path(__file__).parent


class Url(msgspec.Struct, frozen=True):
    """Where a person wants to go."""

    text: str


class Wish(msgspec.Struct, frozen=True):
    """Which kind of address is wanted: 4, 6, or 0 for either."""

    version: int


class Address(msgspec.Struct, frozen=True):
    """One address of the host that a URL names."""

    url: str
    text: str


FAMILIES = {0: socket.AF_UNSPEC, 4: socket.AF_INET, 6: socket.AF_INET6}


async def look_up(url: Url, version: int = 0) -> list[Address]:
    """The addresses of the URL's host; none where the name has none."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            urlsplit(url.text).hostname, None, family=FAMILIES[version], type=socket.SOCK_STREAM
        )
    except socket.gaierror:
        return []
    return [Address(url.text, str(place[0])) for *_, place in found]


class AsFilter(Filter[NoSettings]):
    """One input, one output: what the method returns goes on."""

    url: In[Url]
    address: Out[Address]

    async def filter(self, item: Url) -> list[Address]:
        """All addresses of one host."""
        return await look_up(item)


class AsSynchronous(SynchronousFilter[NoSettings]):
    """Called with one item of each input."""

    url: In[Url]
    wish: In[Wish]
    address: Out[Address]

    async def filter(self, url: Url, wish: Wish) -> list[Address]:
        """The addresses of this URL that were wished for with it."""
        return await look_up(url, wish.version)


class AsSemiSynchronous(SemiSynchronousFilter[NoSettings]):
    """Called for an item of any input, as it comes; more inputs would have a method each."""

    url: In[Url]
    address: Out[Address]

    async def on_url(self, item: Url) -> list[Address]:
        """All addresses of one host."""
        return await look_up(item)


class AsAsynchronous(AsynchronousFilter[NoSettings]):
    """Inputs and output know nothing of each other."""

    url: In[Url]
    address: Out[Address]

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._found: deque[Address] = deque()

    async def on_url(self, item: Url) -> None:
        """Find the addresses, and say that there are some."""
        self._found.extend(await look_up(item))
        self.signal("address")

    def take_address(self, free: int) -> list[Address]:
        """As many as there is room for."""
        return [self._found.popleft() for _ in range(min(free, len(self._found)))]


class Words(Sheet, frozen=True):
    """What a producer makes items of."""

    words: Annotated[tuple[str, ...], setting("Make an item of each of these.")] = ()


class Urls(Producer[Words]):
    """The URLs of the command line."""

    outbox: Out[Url]

    def produce(self) -> Iterator[Url]:
        """One for each word."""
        yield from map(Url, self.sheet.words)


class Wishes(Producer[Words]):
    """A wish for each URL: IPv4."""

    outbox: Out[Wish]

    def produce(self) -> Iterator[Wish]:
        """As many as there are URLs."""
        for _ in self.sheet.words:
            yield Wish(4)


class Show(Consumer[NoSettings]):
    """Prints."""

    inbox: In[Address]

    def consume(self, item: Address) -> None:
        """One line for each address."""
        print(item.url, item.text)


KINDS: dict[str, type[Unit[NoSettings]]] = {
    "filter": AsFilter,
    "synchronous": AsSynchronous,
    "semi-synchronous": AsSemiSynchronous,
    "asynchronous": AsAsynchronous,
}


async def main(kind: str, urls: list[str]) -> None:
    """Run the wiring beside this file with this kind of filter."""
    catalog = Catalog({"urls": Urls, "wishes": Wishes, "addresses": KINDS[kind], "show": Show})
    is_paired = kind == "synchronous"
    wiring = with_settings(read(HERE / ("pairs.toml" if is_paired else "wiring.toml")), "urls", {"words": urls})
    if is_paired:
        wiring = with_settings(wiring, "wishes", {"words": urls})
    await RunningGraph(plan(wiring, catalog)).run()


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: addresses.py {'|'.join(KINDS)} URL...")
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
