"""Front queues: one for each level of urgency, chosen at random with a bias (seed 003, URL frontier).

Place in the flow: :mod:`schedule` keeps its ready hosts in them; they hold anything. A strict order would starve what
is less urgent for as long as urgent things keep coming; with the bias, each level is chosen half as often as the one
before it, and none never. Randomness is seeded, so a crawl on a simulated clock repeats exactly (DESIGN 4.4).
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
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, thing: T, level: int) -> None:
        """Append to a level; levels outside the range count as the nearest one."""
        self._queues[min(max(level, 0), len(self._queues) - 1)].append(thing)
        self._count += 1

    def pop(self) -> T:
        """Take the oldest thing of a level drawn at random.

        Raises:
            IndexError: there is nothing.
        """
        taken = [number for number, queue in enumerate(self._queues) if queue]
        chosen = taken[0] if len(taken) == 1 else self._chosen(taken)
        self._count -= 1
        return self._queues[chosen].popleft()

    def _chosen(self, taken: list[int]) -> int:
        if not taken:
            raise IndexError("nothing is queued")
        left = self._draw() * sum(self._weights[number] for number in taken)
        for number in taken:
            left -= self._weights[number]
            if left < 0.0:
                return number
        return taken[0]
