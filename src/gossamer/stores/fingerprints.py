"""Fingerprints of recent pages in memory, found again when three of their 64 bits differ (Manku, Jain, Das Sarma; WWW 2007).

Two fingerprints that differ in three bits agree in one of four blocks of 16 bits at least, so four tables by block find all
candidates. The paper sorts and compresses eight billion in many tables; here are as many as memory is given for, the oldest
leave, and a look-up costs some ten microseconds. Nothing survives the process: it is for runs over an archive, and for wirings
whose stages are all in other processes than the ledger (:mod:`gossamer.stores.ledger.fingerprints`).
"""

from array import array
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.reading.simhash import THRESHOLD, distance

#: One more block than bits may differ: then one block at least is the same (pigeonhole).
_BLOCKS = THRESHOLD + 1
_BITS = 64 // _BLOCKS
_MASK = (1 << _BITS) - 1

#: Candidates of one block that are kept. Honest ones number `capacity / 65536`; who makes more alike loses the oldest.
MAX_CANDIDATES = 256


class MemoryFingerprintsSheet(Sheet, frozen=True):
    """Settings of :class:`MemoryFingerprints`."""

    capacity: Annotated[
        int,
        setting(
            "Remember at most this many pages; each takes about 330 bytes.",
            unit="pages",
            restart="the table has a fixed size",
            ge=1,
            le=10_000_000,
        ),
    ] = 200_000


class MemoryFingerprints(Provider[MemoryFingerprintsSheet]):
    """Finds near-duplicates among the last pages, in memory. Contract: `seen.FingerprintIndex`."""

    keeps_state = True

    def __init__(self, sheet: MemoryFingerprintsSheet | None = None) -> None:
        super().__init__(sheet)
        self._fingerprints = array("Q")
        self._urls: list[bytes] = []
        self._next = 0
        self._tables: tuple[dict[int, array[int]], ...] = tuple({} for _ in range(_BLOCKS))
        self.metrics.gauge("pages", lambda: len(self._urls))

    def near(self, fingerprint: int, url: str) -> str:
        """Empty if nothing near to `fingerprint` is remembered (it now is, for `url`), otherwise the URL of what is."""
        best, place = THRESHOLD + 1, -1
        for table, block in zip(self._tables, _blocks(fingerprint), strict=True):
            for candidate in table.get(block, ()):
                apart = distance(fingerprint, self._fingerprints[candidate])
                if apart < best:
                    best, place = apart, candidate
        if place >= 0:
            return self._urls[place].decode()
        self._remember(fingerprint, url)
        return ""

    def _remember(self, fingerprint: int, url: str) -> None:
        place = self._next
        self._next = (place + 1) % self.sheet.capacity
        if place < len(self._urls):
            self._forget(place)
            self._fingerprints[place], self._urls[place] = fingerprint, url.encode()
        else:
            self._fingerprints.append(fingerprint)
            self._urls.append(url.encode())
        for table, block in zip(self._tables, _blocks(fingerprint), strict=True):
            places = table.get(block)
            if places is None:
                places = table[block] = array("I")
            elif len(places) >= MAX_CANDIDATES:
                del places[0]
            places.append(place)

    def _forget(self, place: int) -> None:
        for table, block in zip(self._tables, _blocks(self._fingerprints[place]), strict=True):
            places = table.get(block)
            if places is None or place not in places:
                continue  # pushed out before
            places.remove(place)
            if not places:
                del table[block]


def _blocks(fingerprint: int) -> tuple[int, ...]:
    return tuple(fingerprint >> shift & _MASK for shift in range(0, 64, _BITS))
