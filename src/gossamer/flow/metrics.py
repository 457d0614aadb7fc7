"""Counters and gauges of a unit. Reading them gives a value; it never disturbs the unit (row C5)."""

from collections import defaultdict
from collections.abc import Callable, Mapping


class Metrics:
    """What a unit counts. Names are lower case with underscores; a label is part of the name after a colon.

    A counter only grows; a gauge is a function that is asked when somebody looks.
    """

    __slots__ = ("_gauges", "counters")

    def __init__(self) -> None:
        self.counters: defaultdict[str, int] = defaultdict(int)
        self._gauges: dict[str, Callable[[], float]] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self.counters[name] += by

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Register a gauge under a name; a later one of the same name replaces it."""
        self._gauges[name] = read

    def snapshot(self) -> Mapping[str, float]:
        """Every counter and gauge as they stand now."""
        return {**self.counters, **{name: read() for name, read in self._gauges.items()}}
