"""Something that can be asked only so often: a host, a domain, an address. And tables of the shared ones.

Place in the flow: :mod:`gates` keeps them; :mod:`schedule` lets hosts wait beside the place that is in their way.
"""

from math import inf

import msgspec

#: Places that are kept before the idle ones among them are looked for.
_FEW = 1024


class Share(msgspec.Struct, frozen=True):
    """What all hosts of one domain or address may take together."""

    live: float = 4
    """Requests; infinite is no cap."""
    gap: float = 0.25
    """Seconds between two starts."""


class Place:
    """Lets `limit` requests be live at once, and none begin before `next`."""

    __slots__ = ("limit", "live", "next")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.live = 0
        self.next = -inf
        """Monotonic seconds."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.live} live, next at {self.next:g}>"

    def ready_at(self) -> float:
        """When the next request may begin; infinite if another must end first."""
        return inf if self.live >= self.limit else self.next


class SharedPlace(Place):
    """A domain or address."""

    __slots__ = ("on_loopback",)

    def __init__(self, limit: float, *, on_loopback: bool) -> None:
        super().__init__(limit)
        self.on_loopback = on_loopback


class SharedPlaces:
    """All domains, or all addresses, that are or lately were asked: idle ones are dropped whenever the table has doubled."""

    def __init__(self, usual: Share, loopback: Share, per_host: int) -> None:
        self._table: dict[str, SharedPlace] = {}
        self._sweep_at = _FEW
        self._usual, self._loopback, self._per_host = usual, loopback, per_host
        self.get = self._table.get
        """The place of this name, or None."""

    def __len__(self) -> int:
        return len(self._table)

    def change(self, usual: Share, loopback: Share, per_host: int) -> None:
        """Go by other shares; what has begun stays."""
        self._usual, self._loopback, self._per_host = usual, loopback, per_host
        for place in self._table.values():
            place.limit = self._limit(place.on_loopback)

    def enter(self, name: str, place: SharedPlace | None, now: float, *, on_loopback: bool, least: int = 1) -> None:
        """One more request is live at `place`, which is what :meth:`get` gives for `name`; its host alone may have `least`."""
        if place is None:
            self._sweep(now)
            place = self._table[name] = SharedPlace(self._limit(on_loopback), on_loopback=on_loopback)
        elif place.on_loopback != on_loopback:
            place.on_loopback, place.limit = on_loopback, self._limit(on_loopback)
        if place.limit < least:
            place.limit = least
        place.live += 1
        place.next = now + (self._loopback.gap if on_loopback else self._usual.gap)

    def leave(self, name: str) -> None:
        """One has ended."""
        place = self._table.get(name)
        if place is not None and place.live > 0:
            place.live -= 1

    def _limit(self, on_loopback: bool) -> float:
        """Who allows one host more live requests owns it, and means them to happen."""
        return max((self._loopback if on_loopback else self._usual).live, self._per_host)

    def _sweep(self, now: float) -> None:
        if len(self._table) < self._sweep_at:
            return
        for name in [name for name, place in self._table.items() if not place.live and place.next <= now]:
            del self._table[name]
        self._sweep_at = max(_FEW, 2 * len(self._table))
