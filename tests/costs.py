"""What reading costs, compared with itself at a fourth of the size, so that the bound says nothing about the machine."""

import gc
import time
from collections.abc import Callable

#: How much longer four times the document may take: a quadratic reader needs sixteen times the work.
MOST = 10

#: Seconds of a clock tick, where a limit ends both.
TICK = 0.01


def costs_its_size(reading: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Whether a reader takes no more CPU than the size of its document says, in one of three tries at most.

    `reading` makes a document of so many bytes, and returns what reads it.
    """
    small = large = float("inf")
    for _ in range(3):
        small = min(small, _spent(reading(size)), _spent(reading(size)))
        large = min(large, _spent(reading(4 * size)))
        if large < MOST * small + TICK:
            return True
    return False


def _spent(work: Callable[[], object]) -> float:
    gc.disable()  # a collection looks through all that the tests before have left
    begun = time.process_time()
    work()
    spent = time.process_time() - begun
    gc.enable()
    return spent


def is_linear(work: Callable[[int], object], size: int) -> bool:
    """Whether eight times as much work costs no more than some thirty times the CPU: 64 times would be quadratic, and the rest
    is for the machine. `work`: does as much as it is told; `size`: the smaller of the two."""
    costs = []
    for many in (size, 8 * size):
        work(size // 8)  # what the first run alone costs
        began = time.process_time()
        work(many)
        costs.append(max(time.process_time() - began, 0.01))
    return costs[1] < 30 * costs[0]
