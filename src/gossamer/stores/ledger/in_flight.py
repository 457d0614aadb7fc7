"""Tasks that were popped and are not finished: where in its lane each was, by the identity of its request.

Place in the flow: the queues note here what they hand out, and ask what a commit has ended. A URL can be in flight more than once,
as where a walk comes back.
"""

from collections.abc import Mapping

from gossamer.stores.ledger.chunks import Place
from gossamer.stores.ledger.held import HeldLane

#: Where a task was popped.
Flight = tuple[HeldLane, Place]


class QueueFlights:
    """Flights by identity, the earliest of each first."""

    def __init__(self) -> None:
        self._first: dict[str, Flight] = {}
        self._others: dict[str, list[Flight]] = {}
        """Further flights of what is in flight already."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<QueueFlights: {self._count} in flight>"

    def count(self, identity: str) -> int:
        """How many flights there are of this identity."""
        return (identity in self._first) + (len(self._others.get(identity, ())) if self._others else 0)

    def depart(self, identity: str, lane: HeldLane, place: Place) -> None:
        """A task was popped there."""
        self._count += 1
        if identity in self._first:
            self._others.setdefault(identity, []).append((lane, place))
        else:
            self._first[identity] = (lane, place)

    def call_back(self, identity: str) -> Flight | None:
        """The latest flight of this identity is none after all; returns where it was popped, or None where there is none."""
        if identity not in self._first:
            return None
        self._count -= 1
        others = self._others.get(identity)
        if not others:
            return self._first.pop(identity)
        flight = others.pop()
        if not others:
            del self._others[identity]
        return flight

    def places(self, ended: Mapping[str, int]) -> dict[HeldLane, set[Place]]:
        """The places by lane of so many flights of each identity, the earliest first."""
        found: dict[HeldLane, set[Place]] = {}
        for identity, count in ended.items():
            lane, place = self._first[identity]
            found.setdefault(lane, set()).add(place)
            if count > 1:
                for lane, place in self._others[identity][: count - 1]:
                    found.setdefault(lane, set()).add(place)
        return found

    def land(self, identity: str, count: int) -> bool:
        """So many flights of an identity have ended, the earliest first. Returns whether none is left."""
        self._count -= count
        others = self._others.get(identity) if self._others else None
        if not others:
            del self._first[identity]
            return True
        left = [self._first.pop(identity), *others][count:]
        del self._others[identity]
        if left:
            self._first[identity] = left[0]
        if left[1:]:
            self._others[identity] = left[1:]
        return not left
