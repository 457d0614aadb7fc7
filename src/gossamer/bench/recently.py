"""The table of recently seen URLs by the thesis' rule, and how many messages a table saves (Hunyadi 2007, section 5.3.1).

Place in the flow: :mod:`gossamer.bench.exchange` compares it with the tables that crawls have, :mod:`gossamer.stores.second_chance`
and :mod:`gossamer.stores.sieve.recent`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.stores.second_chance import SecondChance
from gossamer.stores.sieve.recent import Recent

#: Tells which of a few URLs are not in a table, and puts these in.
Table = Callable[[Sequence[str]], Sequence[str]]


class SaturatingTable:
    """At most `capacity` strings with reference bits. At saturation what was not referenced is erased, the rest cleared."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._referenced: dict[str, bool] = {}

    def __len__(self) -> int:
        return len(self._referenced)

    def __contains__(self, string: object) -> bool:
        """Whether a string is held; this is no reference."""
        return string in self._referenced

    def misses(self, strings: Sequence[str]) -> list[str]:
        """Those that are not here, in order; the others get their reference bit."""
        rest = []
        for string in strings:
            if string in self._referenced:
                self._referenced[string] = True
            else:
                rest.append(string)
        return rest

    def insert(self, string: str) -> None:
        """Hold this string. Where all others were referenced, none of them can stay."""
        while len(self._referenced) >= self._capacity:
            self._referenced = {kept: False for kept, referenced in self._referenced.items() if referenced}
        self._referenced.setdefault(string, False)


def thesis_table(capacity: int) -> Table:
    """The table of the thesis."""
    table = SaturatingTable(capacity)

    def offer(urls: Sequence[str]) -> Sequence[str]:
        rest = table.misses(urls)
        for url in rest:
            table.insert(url)
        return rest

    return offer


def second_chance_table(capacity: int) -> Table:
    """The provider `recently-seen`: a hand goes round, one place at a time."""
    table = SecondChance(capacity)

    def offer(urls: Sequence[str]) -> Sequence[str]:
        rest = table.misses(urls)
        for url in rest:
            table.insert(url)
        return rest

    return offer


def generations_table(capacity: int) -> Table:
    """The one in front of the sieve: two generations."""
    table = Recent(capacity)

    def offer(urls: Sequence[str]) -> Sequence[str]:
        rest = table.misses(urls)
        table.add(rest)
        return rest

    return offer


def zipf(urls: int, references: int, exponent: float, seed: int) -> list[str]:
    """References to URLs by formula 5.1: the k-th most common one has a share in proportion to k to the power of -exponent."""
    upto = np.cumsum(np.arange(1, urls + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(upto, np.random.default_rng(seed).random(references) * upto[-1])
    return [f"http://www.h{rank % 997}.example/{rank}" for rank in ranks.tolist()]


def saved(offer: Table, references: Sequence[str]) -> float:
    """The share of messages that a table saves, one URL at a time."""
    return 1 - sum(len(offer((url,))) for url in references) / len(references)
