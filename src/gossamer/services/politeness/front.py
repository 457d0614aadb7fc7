"""Front queues: one for each level of urgency, chosen at random with a bias (the system-design chapter, URL frontier).

Place in the flow: :mod:`schedule` keeps its ready hosts in them; they hold anything. A strict order would starve what
is less urgent for as long as urgent things keep coming; with the bias, each level is chosen half as often as the one
before it, and none never. Randomness is seeded, so a crawl on a simulated clock repeats exactly (design promise 4).
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

#: Levels of urgency, 0 the most urgent. With a bias of 2 the last of eight still gets one draw in 255.
LEVELS = 8

#: How much likelier a level is than the next one.
BIAS = 2.0


class FrontQueues(Generic[T]):
    """First in, first out within a level; `O(levels)` to take one."""

    def __init__(self, draw: Callable[[], float], levels: int = LEVELS, bias: float = BIAS) -> None:
        """Empty queues.

        Args:
            draw: numbers in [0, 1), seeded.
            levels: how many queues.
            bias: at least 1; infinite takes the most urgent always.
        """
        self._draw = draw
        self._queues: tuple[deque[T], ...] = tuple(deque() for _ in range(levels))
        self._weights = tuple(bias**-level if level else 1.0 for level in range(levels))
        self._taken = 0
        """The levels that are not empty, as bits."""

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def __bool__(self) -> bool:
        return self._taken != 0

    def push(self, thing: T, level: int) -> None:
        """Append to a level; levels outside the range count as the nearest one."""
        level = min(max(level, 0), len(self._queues) - 1)
        self._queues[level].append(thing)
        self._taken |= 1 << level

    def pop(self) -> T:
        """Take the oldest thing of a level drawn at random.

        Raises:
            IndexError: there is nothing.
        """
        taken = self._taken
        level = self._chosen(taken) if taken & (taken - 1) else taken.bit_length() - 1
        if level < 0:
            raise IndexError("nothing is queued")
        queue = self._queues[level]
        thing = queue.popleft()
        if not queue:
            self._taken ^= 1 << level
        return thing

    def _chosen(self, taken: int) -> int:
        levels = [level for level in range(len(self._queues)) if taken >> level & 1]
        left = self._draw() * sum(self._weights[level] for level in levels)
        for level in levels:
            left -= self._weights[level]
            if left < 0.0:
                return level
        return levels[0]
