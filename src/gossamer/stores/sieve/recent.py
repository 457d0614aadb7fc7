"""Recent and popular URLs in front of the sieve: two generations, so that many are let in at once for little.

What is met again moves to the young generation; when that is full, the old one is forgotten and the young one grows old.
The popular stay, as in a table with reference bits (:mod:`gossamer.stores.second_chance`), but nothing is done for each entry
that goes: measured a third of its cost where most URLs are new.
"""

from collections.abc import Sequence


class Recent:
    """At most `capacity` strings; 130 bytes each where they have 55 characters."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._half = (capacity + 1) // 2
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __repr__(self) -> str:
        return f"<Recent {len(self)} of {2 * self._half}>"

    def misses(self, strings: Sequence[str]) -> list[str]:
        """Those that are not here, in order; the others are recent again."""
        young, old = self._young, self._old
        rest = [string for string in strings if string not in young]
        if not old or not rest:
            return rest
        fresh = [string for string in rest if string not in old]
        if len(fresh) < len(rest):
            met = old.intersection(rest)
            old -= met
            self.add(met)
        return fresh

    def add(self, strings: "Sequence[str] | set[str]") -> None:
        """These are recent."""
        self._young.update(strings)
        if len(self._young) >= self._half:
            self._old = self._young
            self._young = set()
