"""`turns:FIELD`, a connector of one's own: items with different values of a field leave in turn.

All that differs from `local:` is the order in which items leave, so a buffer is all there is to write. The entry point
`turns = "taking_turns:TRANSPORT"` in the group `gossamer.connectors` makes the scheme known to every wiring.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gossamer.engine.connector import Connector, Receipts
from gossamer.engine.errors import WiringError
from gossamer.engine.gate import Receipt
from gossamer.engine.local import Buffer, LocalConnector
from gossamer.engine.sheet import NoSettings
from gossamer.engine.transports import Opening, Transport

T = TypeVar("T")


class TurnsBuffer(Generic[T]):
    """A queue for each value of the field, served in turn."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._queues: dict[Any, deque[tuple[T, Receipt | None]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Each item goes to its value's queue, and holds its receipt."""
        if receipt is not None:
            receipt.hold(len(items))
        for item in items:
            self._queues.setdefault(getattr(item, self._field), deque()).append((item, receipt))
        self._count += len(items)

    def get(self, limit: int) -> tuple[list[T], Receipts]:
        """One from each queue, and round again."""
        taken: list[tuple[T, Receipt | None]] = []
        while self._queues and len(taken) < limit:
            value, queue = next(iter(self._queues.items()))
            taken.append(queue.popleft())
            del self._queues[value]
            if queue:
                self._queues[value] = queue  # at the end of the line
        self._count -= len(taken)
        return [item for item, _ in taken], [receipt for _, receipt in taken]


class TurnsConnector(LocalConnector[T]):
    """A bounded queue in this process in which no value of a field keeps the others waiting."""

    def __init__(self, name: str, item_type: type[T], capacity: int, field: str) -> None:
        if field not in getattr(item_type, "__struct_fields__", ()):
            raise WiringError(f"connector {name!r}: items of type {item_type.__name__} have no field {field!r}")
        self._field = field
        super().__init__(name, item_type, capacity)

    def make_buffer(self) -> Buffer[T]:
        """In turn."""
        return TurnsBuffer(self._field)


def _open(opening: Opening, field: str, sheet: NoSettings) -> Connector[Any]:
    return TurnsConnector(opening.name, opening.item_type, opening.capacity, field)


TRANSPORT = Transport(_open, "turns:FIELD")
