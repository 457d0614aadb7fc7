"""A bounded table of recent and popular strings: the memory in front of a seen set (Hunyadi 2007, section 5.3.1).

Links follow Zipf's law, so a small table answers most questions. It holds the strings themselves, never fingerprints.
Full, it replaces by second chance: a hit sets the entry's reference bit; the hand that looks for a place clears bits
and takes the first entry without one.

Beside each string stands the depth that it is known at, so that a URL which is met nearer to the seeds is no hit.
"""

from collections.abc import Sequence

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

    def __repr__(self) -> str:
        return f"<SecondChance {len(self)} of {len(self._referenced)}>"

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
