"""Identity: the names by which runs, visits and crawls are told apart, wherever their rows are brought together.

Place in the flow: the commit names each visit once, when its outcome is settled; the row logs name their runs. A name is made of
the time, for people and for order, and of random bits, so that agents, runs and copies of a crawl need no agreement.
"""

import itertools
import os

#: Random bytes of a name: one collision in 10^9 is to be expected among 700,000 runs that begin in the same second.
_RANDOM = 6


def unique_name(now: float) -> str:
    """A name that nothing else has: 8 hexadecimal digits of the time in seconds since the epoch, and 12 of chance."""
    return f"{int(now):08x}{os.urandom(_RANDOM).hex()}"


class VisitIds:
    """Numbers the visits of one run. Two runs never give the same id, so a visit that a kill undid never shares its id."""

    def __init__(self, now: float) -> None:
        self._run = unique_name(now)
        self._serials = itertools.count(1)

    def next(self) -> str:
        """An id that no other visit has, as `69a42f80c1d2e3f4a5b6-17`."""
        return f"{self._run}-{next(self._serials)}"


def visit_order(visit: str) -> tuple[str, int]:
    """What sorts ids of visits in the order in which they were made: by the time of their run, then by number."""
    run, _, number = visit.partition("-")
    return run, int(number) if number.isdecimal() else 0
