"""Random numbers that need no generator, one by one and over whole arrays: every draw is a function of (seed, number).

Place in the flow: the bottom of the simulated web. :mod:`hosts`, :mod:`page` and :mod:`render` ask here what a host or page is
like; :mod:`graph` does the same sums on whole arrays. For the two to agree to the last page, everything here is integer
arithmetic: a floating-point power may differ in its last bit between the scalar and the vector unit, an integer product may not.
"""

import math
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

MASK64 = (1 << 64) - 1
MASK30 = (1 << 30) - 1
# Link draws are products of two 30-bit numbers: Python holds 60 bits in two digits, and NumPy's
# 64-bit integers hold them without overflow.

FRACTION_BITS = 24
"""Fixed-point bits of a logarithm to base 2: enough for webs of 2^39 pages in 64-bit sums."""

EXP2_BITS = 12
"""log2 of the entries in `EXP2`."""

EXP2: tuple[int, ...] = tuple(round(2.0 ** (20 + k / 4096)) for k in range(4096))
"""2^(k/4096) with 20 fraction bits: the one table behind `zipf`."""

JITTER = tuple((1 << max(0, octave - EXP2_BITS)) - 1 for octave in range(40))
"""Per octave, the mask that spreads a draw between two neighbouring entries of `EXP2`."""


def draw(key: int, number: int) -> int:
    """Return 64 random bits for `number` (0 to 2^64-1) under `key`; equal arguments give equal bits everywhere.

    XXH64 of the number's eight bytes (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), seeded with the key: one call
    into C, which is what a page can afford, and a few lines on whole arrays (`graph`).
    """
    return xxh64_intdigest(number.to_bytes(8, "little"), key)


def multipliers(salt: int, count: int) -> tuple[int, ...]:
    """Return `count` odd 30-bit multipliers; a chain's seed times these are the blocks of links in it."""
    return tuple((draw(salt, number) >> 34) | 1 for number in range(count))


def log2_fixed(count: int) -> int:
    """Return log2(`count`) in fixed point, `FRACTION_BITS` after the point; `count` >= 1."""
    return int(math.log2(count) * (1 << FRACTION_BITS))


def zipf(bits: int, log_count: int) -> int:
    """Turn 30 random bits into a rank 1, 2, ... that follows Zipf's law with exponent 1.

    `log_count` is `log2_fixed(count)`. The rank is 2^(u log2 count) for uniform u, which makes the
    chance of rank k fall as 1/k. The jitter may carry a draw a little past `count`: clamp it.
    """
    scaled = bits * log_count >> 30
    octave = scaled >> FRACTION_BITS
    return ((EXP2[scaled >> 12 & 4095] << octave) >> 20) + (bits & JITTER[octave])


def lognormal_table(median: float, sigma: float, entries: int, low: int, high: int) -> list[int]:
    """Return a log-normal distribution as equally likely integers between `low` and `high`."""
    normal = NormalDist()
    raw = (median * math.exp(sigma * normal.inv_cdf((k + 0.5) / entries)) for k in range(entries))
    return [min(high, max(low, round(value))) for value in raw]


def pareto_table(mean: float, exponent: float, entries: int, high: int) -> list[int]:
    """Return a power law of density x^-`exponent` as equally likely integers up to `high`.

    The least value is found so that the mean of the *table* (rounded and capped) comes as near to
    `mean` as its granularity lets it; `exponent` > 2, else there is no mean.
    """

    def table(least: float) -> list[int]:
        tail = -1.0 / (exponent - 1.0)
        return [min(high, int(least * math.pow(1 - (k + 0.5) / entries, tail))) for k in range(entries)]

    low, top = 0.0, mean + 1.0
    for _ in range(40):
        middle = (low + top) / 2
        if sum(table(middle)) < mean * entries:
            low = middle
        else:
            top = middle
    return table(top)


def pick_table(weights: dict[str, float], entries: int) -> tuple[str, ...]:
    """Return the keys of `weights` repeated in proportion, `entries` in all (largest remainder)."""
    total = sum(weights.values())
    exact = {name: weight * entries / total for name, weight in weights.items()}
    counts = {name: int(value) for name, value in exact.items()}
    short = entries - sum(counts.values())
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
    for name in by_remainder[:short]:
        counts[name] += 1
    return tuple(name for name in weights for _ in range(counts[name]))


# Arrays over all pages of a web: their types, the draws of `draws` over whole arrays, and small steps on links. `graph` builds
# the web of these, and goes through it.

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bits = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.float64]

CHUNK: Final = 1 << 20
"""Pages handled at a time where intermediate arrays would otherwise take much memory."""

_PRIMES: Final = tuple(
    np.uint64(prime)
    for prime in (
        *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
        *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
    )
)
"""The constants of XXH64."""


def draw_all(key: int, numbers: Bits) -> Bits:
    """`draws.draw` of many numbers: XXH64 of eight bytes, as its specification has it."""
    first, second, third, fourth, fifth = _PRIMES
    lane = _rotated(numbers * second, 31) * first
    start = np.uint64((key + int(fifth) + 8) & MASK64)
    mixed = _rotated(lane ^ start, 27) * first + fourth
    mixed = (mixed ^ mixed >> np.uint64(33)) * second
    mixed = (mixed ^ mixed >> np.uint64(29)) * third
    return mixed ^ mixed >> np.uint64(32)


def _rotated(numbers: Bits, places: int) -> Bits:
    return (numbers << np.uint64(places)) | (numbers >> np.uint64(64 - places))


def low_bits(bits: Bits, shift: int, mask: int) -> Ints:
    """Return the masked bits above `shift` as signed integers."""
    return ((bits >> np.uint64(shift)) & np.uint64(mask)).astype(np.int64)


def put_rows(targets: Numbers, place: Ints, chosen: Ints, rows: Ints) -> None:
    """Write a row of links for each chosen page, and move its place on."""
    width = rows.shape[1]
    for column in range(width):
        targets[place[chosen] + column] = rows[:, column]
    place[chosen] += width


def first_of_each(numbers: Numbers) -> Numbers:
    """Return the distinct numbers in the order of their first appearance."""
    _, places = np.unique(numbers, return_index=True)
    return numbers[np.sort(places)]
