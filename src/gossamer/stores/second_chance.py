"""A bounded table of recent and popular strings: the memory in front of a seen set (seed 000, section 5.3.1).

Links follow Zipf's law, so a small table answers most questions. It holds the strings themselves, never fingerprints.
Full, it replaces by second chance: a hit sets the entry's reference bit; the hand that looks for a place clears bits
and takes the first entry without one.
"""

from collections.abc import Sequence


class SecondChance:
    """At most `capacity` strings; 171 bytes each where they have 55 characters."""

    __slots__ = ("_hand", "_referenced", "_slots", "_strings")

    def __init__(self, capacity: int) -> None:
        self._slots: dict[str, int] = {}
        self._strings: list[str] = []
        self._referenced = bytearray(capacity)
        self._hand = 0

    def __len__(self) -> int:
        return len(self._strings)

    def __repr__(self) -> str:
        return f"<SecondChance {len(self)} of {len(self._referenced)}>"

    def misses(self, strings: Sequence[str]) -> list[str]:
        """Those that are not in the table, in order; the others get their reference bit."""
        find, referenced = self._slots.get, self._referenced
        rest = []
        for string in strings:
            slot = find(string)
            if slot is None:
                rest.append(string)
            else:
                referenced[slot] = 1
        return rest

    def insert(self, string: str) -> None:
        """Hold this string, in the place of another where the table is full."""
        if string in self._slots:
            return
        if len(self._strings) < len(self._referenced):
            self._slots[string] = len(self._strings)
            self._strings.append(string)
            return
        referenced, hand = self._referenced, self._hand
        while referenced[hand]:
            referenced[hand] = 0
            hand = (hand + 1) % len(self._strings)
        del self._slots[self._strings[hand]]
        self._strings[hand] = string
        self._slots[string] = hand
        self._hand = (hand + 1) % len(self._strings)
