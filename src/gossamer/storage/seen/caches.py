"""Bounded tables in front of a store: recent and popular strings (Hunyadi 2007, section 5.3.1), and values that were used lately.

Links follow Zipf's law, so a small table answers most questions of a seen set. It holds the strings themselves, never
fingerprints. Beside each string stands the depth that it is known at, so that a URL which is met nearer to the seeds is no hit.
A hit sets the string's reference bit. Full tables differ: :class:`SecondChance` replaces one string at a time, by a hand that
clears bits and takes the first entry without one; :class:`SaturatingTable` follows the thesis, erases every string without a
bit, and clears the others.

:class:`RecentlyUsed` has two generations: that is cheaper for each use than an exact order of uses.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

#: The greatest depth that one byte holds: a string that is known only deeper is not held.
DEEPEST = 255


class SecondChance:
    """At most `capacity` strings; 172 bytes each where they have 55 characters."""

    __slots__ = ("_depths", "_hand", "_referenced", "_slots", "_strings")

    def __init__(self, capacity: int) -> None:
        self._slots: dict[str, int] = {}
        self._strings: list[str] = []
        self._referenced = bytearray(capacity)
        self._depths = bytearray(capacity)
        self._hand = 0

    def __len__(self) -> int:
        return len(self._strings)

    def misses(self, strings: Sequence[str], depth: int = 0) -> list[str]:
        """Those that are not in the table, or known only at a greater depth, in order; the others get their reference bit."""
        find, referenced, depths = self._slots.get, self._referenced, self._depths
        rest = []
        for string in strings:
            slot = find(string)
            if slot is None or depths[slot] > depth:
                rest.append(string)
            else:
                referenced[slot] = 1
        return rest

    def insert(self, string: str, depth: int = 0) -> None:
        """Hold this string, in the place of another where the table is full; of two depths the lesser is kept."""
        slot = self._slots.get(string)
        if slot is not None:
            self._depths[slot] = min(self._depths[slot], depth)
            return
        if depth > DEEPEST:
            return
        if len(self._strings) < len(self._referenced):
            slot = len(self._strings)
            self._strings.append(string)
        else:
            slot = self._vacated()
            self._strings[slot] = string
        self._slots[string] = slot
        self._depths[slot] = depth

    def discard(self, string: str) -> None:
        """Hold this string no more; its slot is the next to be vacated that has no reference."""
        slot = self._slots.pop(string, None)
        if slot is not None:
            self._referenced[slot] = 0

    def _vacated(self) -> int:
        """The slot of the first string without a reference, which leaves the table."""
        referenced, hand = self._referenced, self._hand
        while referenced[hand]:
            referenced[hand] = 0
            hand = (hand + 1) % len(self._strings)
        # A string that was discarded may stand in another slot by now.
        if self._slots.get(self._strings[hand]) == hand:
            del self._slots[self._strings[hand]]
        self._hand = (hand + 1) % len(self._strings)
        return hand


class SaturatingTable:
    """At most `capacity` strings."""

    __slots__ = ("_capacity", "_entries")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[str, int] = {}
        """String -> twice the depth, plus the reference bit: a pair would take 56 bytes more for each."""

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


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """At most `capacity` entries: the half that was used last stays, what was not used since is forgotten together."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __contains__(self, key: K) -> bool:
        return key in self._young or key in self._old

    def get(self, key: K) -> V | None:
        """The value of a key, which is now among those used last; None where it is not remembered."""
        value = self._young.get(key)
        if value is None and key in self._old:
            value = self._old[key]
            self.set(key, value)
        return value

    def set(self, key: K, value: V) -> None:
        self._old.pop(key, None)
        self._young[key] = value
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}

    def forget(self, key: K) -> None:
        """Remember a key no more."""
        self._young.pop(key, None)
        self._old.pop(key, None)
