"""A bounded table of recent strings by the thesis' rule (Hunyadi 2007, section 5.3.1): it is cleared out when it is full.

A string that is asked for again gets a reference bit. When the table is full, every string without one is erased, and the bits of
the rest are cleared. :mod:`gossamer.stores.second_chance` has the rule that replaces one string at a time.

Beside each string stands the depth that it is known at, so that a URL which is met nearer to the seeds is no hit.
"""

from collections.abc import Sequence


class SaturatingTable:
    """At most `capacity` strings."""

    __slots__ = ("_capacity", "_entries")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[str, int] = {}
        """String -> twice the depth, plus the reference bit: a pair would take 56 bytes more for each."""

    def __repr__(self) -> str:
        return f"<SaturatingTable {len(self)} of {self._capacity}>"

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, string: object) -> bool:
        """Whether a string is held; this is no reference."""
        return string in self._entries

    def misses(self, strings: Sequence[str], depth: int = 0) -> list[str]:
        """Those that are not in the table, or known only at a greater depth, in order; the others get their reference bit."""
        entries = self._entries
        find, bound = entries.get, 2 * depth + 1
        rest = []
        for string in strings:
            entry = find(string)
            if entry is None or entry > bound:
                rest.append(string)
            else:
                entries[string] = entry | 1
        return rest

    def insert(self, string: str, depth: int = 0) -> None:
        """Hold this string; of two depths the lesser is kept. Where all others were referenced, none of them can stay."""
        entry = self._entries.get(string)
        if entry is not None:
            self._entries[string] = min(entry, 2 * depth + (entry & 1))
            return
        while len(self._entries) >= self._capacity:
            self._entries = {kept: known - 1 for kept, known in self._entries.items() if known & 1}
        self._entries[string] = 2 * depth
