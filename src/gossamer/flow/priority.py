"""`priority:FIELD`, a connector of one's own as an example: items leave in the order of one of their fields, lowest first.

All that differs from `local:` is the buffer, so that is all that stands here. Equal items leave in the order of arrival.
"""

import heapq
import itertools
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gossamer.flow.connector import DEFAULT_CAPACITY, Receipts
from gossamer.flow.errors import WiringError
from gossamer.flow.local import Buffer, LocalConnector
from gossamer.flow.receipt import Receipt

T = TypeVar("T")


class PriorityBuffer(Generic[T]):
    """A heap by the value of one field."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._heap: list[tuple[Any, int, T, Receipt | None]] = []
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Sort items in."""
        if receipt is not None:
            receipt.hold(len(items))
        for item in items:
            heapq.heappush(self._heap, (getattr(item, self._field), next(self._arrivals), item, receipt))

    def get(self, limit: int) -> tuple[list[T], Receipts]:
        """The items of lowest value."""
        entries = [heapq.heappop(self._heap) for _ in range(min(limit, len(self._heap)))]
        receipts = [entry[3] for entry in entries]
        return [entry[2] for entry in entries], receipts if any(receipts) else None


class PriorityConnector(LocalConnector[T]):
    """A bounded queue in this process that serves the lowest value of `field` first."""

    def __init__(self, name: str, item_type: type[T], capacity: int = DEFAULT_CAPACITY, *, field: str) -> None:
        if field not in getattr(item_type, "__struct_fields__", ()):
            known = ", ".join(getattr(item_type, "__struct_fields__", ())) or "none"
            raise WiringError(
                f"connector {name!r}: items of type {item_type.__name__} have no field {field!r}; known: {known}"
            )
        self._field = field
        super().__init__(name, item_type, capacity)

    def make_buffer(self) -> Buffer[T]:
        """Lowest value first."""
        return PriorityBuffer(self._field)
