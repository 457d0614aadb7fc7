"""Places that can be asked only so often: a host, a domain, an address; and tables of the shared ones.

Place in the flow: :mod:`gates` keeps them; :mod:`schedule` lets hosts wait beside the place that is in their way.
"""

from collections.abc import Callable
from math import inf

import msgspec

from gossamer.values.addresses import is_loopback

#: Places that are kept before the idle ones among them are looked for.
_FEW = 1024


class Share(msgspec.Struct, frozen=True):
    """The part that all hosts of one domain or address may take together."""

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

    def ready_at(self) -> float:
        """When the next request may begin; infinite if another must end first."""
        return inf if self.live >= self.limit else self.next


class SharedPlace(Place):
    """A domain or address."""

    __slots__ = ("on_loopback", "turn")

    def __init__(self, limit: float, *, on_loopback: bool) -> None:
        super().__init__(limit)
        self.on_loopback = on_loopback
        self.turn = 0
        """Number of the turn that is lent, where places are asked in turns; 0 for none."""


class SharedPlaces:
    """All domains, or all addresses, that are or lately were asked: idle ones are dropped whenever the table has doubled."""

    def __init__(self, usual: Share, loopback: Share, per_host: int) -> None:
        self._table: dict[str, SharedPlace] = {}
        self._sweep_at = _FEW
        self._usual, self._loopback, self._per_host = usual, loopback, per_host
        self.known: Callable[[str], SharedPlace | None] = self._table.get
        """The place of this name, or None."""
        self.get: Callable[[str], SharedPlace | None] = self._table.get
        """The same for a caller that would ask there: where places are asked in turns, the place is wanted."""
        self.wanted: dict[str, None] = {}
        """Names of places where hosts wait for a turn."""
        self.back: dict[str, tuple[int, float]] = {}
        """Places that were given back: number of the turn, and the instant from which they may be asked."""
        self._recalled: set[str] = set()
        self._by_turns = False

    def __len__(self) -> int:
        return len(self._table)

    def change(self, usual: Share, loopback: Share, per_host: int) -> None:
        """Go by other shares; what has begun stays."""
        self._usual, self._loopback, self._per_host = usual, loopback, per_host
        for name, place in self._table.items():
            place.limit = 0 if self._is_foreign(name, place) else self._limit(place.on_loopback)

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
            if not place.live and name in self._recalled:
                self._give_back(name, place)

    # -- turns, where other agents have hosts at the same places

    def ask_by_turns(self) -> None:
        """From now on, let nothing begin but at places that are lent."""
        self._by_turns = True
        self.get = self._borrowed

    def lend(self, name: str, number: int, opens: float) -> SharedPlace:
        """A place may be asked from this instant on, until it is recalled; returns it."""
        place = self._table.get(name)
        if place is None:
            place = self._table[name] = SharedPlace(0, on_loopback=is_loopback(name))
        if number not in (place.turn, self.back.get(name, (0, 0.0))[0]):
            place.turn, place.limit, place.next = number, self._limit(place.on_loopback), max(place.next, opens)
            self.wanted.pop(name, None)
        return place

    def held(self) -> dict[str, int]:
        """The places that are lent, with the numbers of the turns."""
        return {name: place.turn for name, place in self._table.items() if place.turn}

    def recall(self, name: str, *, is_wanted: bool) -> None:
        """Begin nothing more there, and give it back as soon as nothing is live; a host waits there where it `is_wanted`."""
        place = self._table.get(name)
        if place is None or not place.turn:
            return
        place.limit = 0
        self._recalled.add(name)
        if is_wanted:
            self.wanted[name] = None
        if not place.live:
            self._give_back(name, place)

    def noted(self, name: str, number: int) -> None:
        """The lender knows that it was given back."""
        if self.back.get(name, (0, 0.0))[0] == number:
            del self.back[name]

    def _give_back(self, name: str, place: SharedPlace) -> None:
        self._recalled.discard(name)
        self.back[name] = place.turn, place.next
        place.turn, place.limit = 0, 0

    def _borrowed(self, name: str) -> SharedPlace | None:
        place = self._table.get(name)
        if place is None and name:
            on_loopback = is_loopback(name)
            share = self._loopback if on_loopback else self._usual
            if not share.gap and share.live == inf:
                return None
            place = self._table[name] = SharedPlace(0, on_loopback=on_loopback)
        if place is not None and self._is_foreign(name, place):
            self.wanted[name] = None
        return place

    def _is_foreign(self, name: str, place: SharedPlace) -> bool:
        """Nothing may begin there: it is another agent's turn, or about to be."""
        if not self._by_turns or (place.turn and name not in self._recalled):
            return False
        share = self._loopback if place.on_loopback else self._usual
        return bool(share.gap) or share.live < inf

    def _limit(self, on_loopback: bool) -> float:
        """A person who allows one host more live requests owns it, and means them to happen."""
        return max((self._loopback if on_loopback else self._usual).live, self._per_host)

    def _sweep(self, now: float) -> None:
        if len(self._table) < self._sweep_at:
            return
        idle = [name for name, place in self._table.items() if not place.live and place.next <= now]
        for name in idle:
            place = self._table[name]
            if place.turn:
                self._give_back(name, place)
            if name not in self.wanted:
                del self._table[name]
        self._sweep_at = max(_FEW, 2 * len(self._table))
