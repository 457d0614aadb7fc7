"""Arrays over all pages of a web: their types, the draws of `draws` over whole arrays, and small steps on links.

Place in the flow: `graph` builds the web of these, `expected` and `popularity` go through it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.simweb import draws

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
    start = np.uint64((key + int(fifth) + 8) & draws.MASK64)
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
