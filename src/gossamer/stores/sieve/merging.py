"""What a merge decides: which of the waiting entries are new, and which runs become one. Arithmetic, without files of its own."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from gossamer.stores.sieve.fingerprints import SieveKeys
from gossamer.stores.sieve.runs import Highs, Lows, Mask, SieveRun

#: Runs of about one size that become one. Each entry is rewritten once for each factor of so much: twice at 10^8.
FAN = 8

#: Entries of a run of the lowest size; smaller ones count as such.
SMALLEST = 4_096


class Sifted(msgspec.Struct):
    """What came of a buffer."""

    high: Highs
    low: Lows
    """The new fingerprints, sorted: the next run."""
    new: Mask
    """For each entry of the buffer, in the order of the offers: it is the first of its URL, and new."""


def numbers(keys: SieveKeys) -> tuple[Highs, Lows]:
    """The fingerprints put together: host 3 and URL 5 bytes that sort, 4 bytes of the URL that confirm."""
    hosts = np.frombuffer(keys.hosts, ">u4").astype(np.uint64)
    digests = np.frombuffer(keys.digests, ">u8").reshape(-1, 2)
    high: Highs = hosts << np.uint64(40) | digests[:, 0].astype(np.uint64) >> np.uint64(24)
    low: Lows = (digests[:, 1] >> np.uint64(32)).astype(np.uint32)
    return high, low


def sift(keys: SieveKeys, runs: Iterable[SieveRun]) -> Sifted:
    """Which of these fingerprints, in the order of the offers, no run holds; each once."""
    high, low = numbers(keys)
    order = np.argsort(high)
    if _have_neighbours_apart(high[order], low[order]):
        order = np.lexsort((low, high))
    sorted_high, sorted_low = high[order], low[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (sorted_high[1:] != sorted_high[:-1]) | (sorted_low[1:] != sorted_low[:-1])
    # The sort is not stable: the first offer of a URL is the least of its places.
    places = np.minimum.reduceat(order, np.flatnonzero(starts)) if len(order) else order
    sorted_high, sorted_low = sorted_high[starts], sorted_low[starts]
    for run in runs:
        fresh = ~run.holds(sorted_high, sorted_low)
        sorted_high, sorted_low, places = sorted_high[fresh], sorted_low[fresh], places[fresh]
    new: Mask = np.zeros(len(high), np.bool_)
    new[places] = True
    return Sifted(sorted_high, sorted_low, new)


def _have_neighbours_apart(high: Highs, low: Lows) -> bool:
    """Different fingerprints share `high`: they must be sorted by `low` too, so that equal ones meet."""
    return bool(((high[1:] == high[:-1]) & (low[1:] != low[:-1])).any())


def crowded(sizes: Sequence[int]) -> list[int]:
    """Places of runs that are to become one, since :data:`FAN` are of about one size; empty where there are none."""
    tiers: dict[int, list[int]] = {}
    for place, size in enumerate(sizes):
        tiers.setdefault(_tier(size), []).append(place)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= FAN:
            return tiers[tier]
    return []


def _tier(size: int) -> int:
    tier, bound = 0, SMALLEST * FAN
    while size >= bound:
        tier, bound = tier + 1, bound * FAN
    return tier
