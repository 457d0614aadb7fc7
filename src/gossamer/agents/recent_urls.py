"""The recently-seen table of the marshaler (Hunyadi 2007, section 5.3.1): it spares agents the URLs that they were just sent.

Place in the flow: the second step of :mod:`gossamer.agents.marshaler`. It lies in memory: an agent that is sent a URL twice
knows it already.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.seen.caches import SaturatingTable, SecondChance

#: How a full table makes room.
RecentRule = Literal["second-chance", "saturation"]

_TABLES: dict[RecentRule, type[SecondChance | SaturatingTable]] = {
    "second-chance": SecondChance,
    "saturation": SaturatingTable,
}


class RecentUrlsSheet(Sheet, frozen=True):
    """Settings of :class:`RecentUrlTable`."""

    capacity: Annotated[
        int,
        setting(
            "Remember at most this many URLs; a URL of 55 characters takes 171 bytes.",
            unit="URLs",
            restart="the table has a fixed size",
            ge=1,
        ),
    ] = 100_000
    rule: Annotated[
        RecentRule,
        setting(
            "When the table is full, erase one URL at a time (`second-chance`), or all URLs at once that were not "
            "met again (`saturation`).",
            restart="the table is made by one rule",
        ),
    ] = "second-chance"


class RecentUrlTable(Provider[RecentUrlsSheet]):
    """Remembers URLs that were passed on a short time ago. Contract: `marshaling.RecentUrls`."""

    def __init__(self, sheet: RecentUrlsSheet | None = None) -> None:
        super().__init__(sheet)
        self._table = _TABLES[self.sheet.rule](self.sheet.capacity)
        self.metrics.gauge("urls", lambda: len(self._table))

    def misses(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those that are not remembered at this depth or a lesser one, in order. Changes nothing but reference bits."""
        rest = self._table.misses(urls, depth)
        self.metrics.count("asked", len(urls))
        self.metrics.count("hits", len(urls) - len(rest))
        return rest

    def insert(self, url: str, depth: int = 0) -> None:
        """Remember a URL that was passed on."""
        self._table.insert(url, depth)
