"""Seen sets in memory: what goes beyond the contract's promises."""

from collections.abc import Sequence

import pytest

from gossamer.storage.seen.memory import MemorySeen, RecentlySeen, RecentlySeenSheet


class Asked(MemorySeen):
    """Notes what it is asked; breaks when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.broken = False

    def offer(self, urls: Sequence[str]) -> list[str]:
        if self.broken:
            raise OSError("disk full")
        self.asked.append(list(urls))
        return super().offer(urls)


def table(capacity: int) -> tuple[RecentlySeen, Asked]:
    seen, behind = RecentlySeen(RecentlySeenSheet(capacity=capacity)), Asked()
    seen.behind = behind
    return seen, behind


def test_what_is_in_the_table_is_not_asked_again() -> None:
    seen, behind = table(10)
    assert seen.offer(["a", "b"]) == ["a", "b"]
    assert seen.offer(["b", "c", "a"]) == ["c"]
    assert seen.offer(["a"]) == []
    assert behind.asked == [["a", "b"], ["c"]]
    assert seen.metrics.snapshot() == {"asked": 6, "hits": 3, "urls": 3}


def test_a_referenced_entry_gets_a_second_chance() -> None:
    seen, behind = table(3)
    seen.offer(["a", "b", "c"])
    seen.offer(["a"])  # a hit: a is referenced
    seen.offer(["d"])  # the hand clears a's bit, and takes b
    behind.asked.clear()
    seen.offer(["a", "c", "d"])
    assert behind.asked == []
    seen.offer(["b"])
    assert behind.asked == [["b"]]


def test_what_broke_behind_stays_new() -> None:
    seen, behind = table(10)
    behind.broken = True
    with pytest.raises(OSError, match="disk full"):
        seen.offer(["a"])
    behind.broken = False
    assert seen.offer(["a"]) == ["a"]


def test_memory_stays_within_the_capacity() -> None:
    seen, _ = table(5)
    for n in range(100):
        seen.offer([f"{n}", f"{n // 3}"])
    assert seen.metrics.snapshot()["urls"] == 5
