"""How many messages a table of recently seen URLs saves (Hunyadi 2007, section 5.3.1).

Place in the flow: :mod:`gossamer.bench.exchange` compares three of them: :mod:`gossamer.storage.seen.caches`,
:mod:`gossamer.storage.seen.caches` and :mod:`gossamer.storage.seen.fingerprints`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.storage.seen.caches import SaturatingTable, SecondChance
from gossamer.storage.seen.fingerprints import Recent

#: Tells which of a few URLs are not in a table, and puts these in.
Table = Callable[[Sequence[str]], Sequence[str]]


def thesis_table(capacity: int) -> Table:
    """The table of the thesis."""
    return _one_by_one(SaturatingTable(capacity))


def second_chance_table(capacity: int) -> Table:
    """The provider `recently-seen`: a hand goes round, one place at a time."""
    return _one_by_one(SecondChance(capacity))


def _one_by_one(table: SaturatingTable | SecondChance) -> Table:
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
