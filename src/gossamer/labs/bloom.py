"""A Bloom filter as the seen set of a crawl (Bloom 1970): a byte or two a URL in memory, and some new URLs taken for seen.

Place in the flow: in the place of the ledger's seen set, by configuration. It never lets a seen URL pass. A new one is held back
with a chance that grows as the filter fills up to `capacity`, where it is `error`; such a page is lost, and those that only it
links to with it. The gauge `lost` says how many that were by expectation, `false_positives` the chance now.

Bits of k places by double hashing (Kirsch and Mitzenmacher 2006) of a keyed 128-bit hash, so that no server can choose URLs that
fill it.
"""

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from xxhash import xxh3_128_intdigest

from gossamer.engine.files import replace_file
from gossamer.engine.sheet import setting
from gossamer.storage.seen.logged import LoggedSeen, LoggedSeenSheet
from gossamer.values.errors import CrawlDirectoryError, UsageError

_HALF = (1 << 64) - 1


class BloomState(msgspec.Struct):
    """The file beside the bits."""

    secret: int
    bits: int
    hashes: int
    set_bits: int = 0
    urls: int = 0
    lost: float = 0.0
    log: int = 0
    file: int = 0


class BloomSeenSheet(LoggedSeenSheet, frozen=True):
    capacity: Annotated[
        int,
        setting("Make the filter for this many URLs.", unit="URLs", restart="a filter has a fixed size", ge=1),
    ] = 10_000_000
    error: Annotated[
        float,
        setting(
            "Accept that this share of new URLs is taken for seen when the filter holds `capacity` URLs; a URL takes "
            "9.6 bits at 0.01, and 14.4 at 0.001.",
            restart="a filter has a fixed size",
            gt=0,
            lt=1,
        ),
    ] = 0.001


class BloomSeen(LoggedSeen[BloomSeenSheet]):
    """Keeps seen URLs in a Bloom filter, which rarely takes a new URL for a seen one.

    Contract: `storage.seen.contract.SeenSet`, except for these new URLs.
    """

    kind = "bloom"

    def opened(self) -> int:
        """Open the filter, or begin one. Raises UsageError: it was made for another capacity or error."""
        sheet = self.sheet
        bits = max(8, math.ceil(-sheet.capacity * math.log(sheet.error) / math.log(2) ** 2))
        hashes = max(1, round(bits / sheet.capacity * math.log(2)))
        path = self.home / "filter.json"
        if path.exists():
            try:
                self.state = msgspec.json.decode(path.read_bytes(), type=BloomState)
                self._bits = bytearray(self._file.read_bytes())
            except (OSError, ValueError) as error:
                raise CrawlDirectoryError(f"{path} is damaged: {error}; begin a new crawl") from None
            if (self.state.bits, self.state.hashes) != (bits, hashes):
                raise UsageError(
                    f"the filter in {self.home} has another size; leave `capacity` and `error` as they were"
                )
        else:
            self.state = BloomState(int.from_bytes(os.urandom(8)), bits, hashes)
            self._bits = bytearray(-(-bits // 8))
        self.metrics.gauge("urls", lambda: self.state.urls)
        self.metrics.gauge("false_positives", lambda: self.false_positives)
        self.metrics.gauge("lost", lambda: self.state.lost)
        return self.state.log

    @property
    def _file(self) -> Path:
        return self.home / f"bits-{self.state.file}"

    @property
    def false_positives(self) -> float:
        """The chance that a new URL is held back now."""
        return float((self.state.set_bits / self.state.bits) ** self.state.hashes)

    def _places(self, url: str) -> Iterator[int]:
        both = xxh3_128_intdigest(url.encode(), self.state.secret)
        first, step, bits = both >> 64, both & _HALF | 1, self.state.bits
        return ((first + number * step) % bits for number in range(self.state.hashes))

    def has(self, url: str) -> bool:
        bits = self._bits
        return all(bits[place >> 3] >> (place & 7) & 1 for place in self._places(url))

    def add(self, urls: Iterable[str]) -> None:
        """Hold these. Of new URLs as many came as were let through: how many were not follows from the chance."""
        bits, state = self._bits, self.state
        for url in urls:
            chance = self.false_positives
            state.lost += chance / (1 - chance) if chance < 1 else 1.0
            state.urls += 1
            for place in self._places(url):
                byte, bit = place >> 3, 1 << (place & 7)
                if not bits[byte] & bit:
                    bits[byte] |= bit
                    state.set_bits += 1

    def write(self, log: int) -> None:
        """Write the bits, then what says which bits hold."""
        old = self._file
        self.state.file += 1
        self.state.log = log
        replace_file(self._file, self._bits, sync=self.sheet.sync)
        replace_file(self.home / "filter.json", msgspec.json.encode(self.state), sync=self.sheet.sync)
        old.unlink(missing_ok=True)
