"""An even order of hosts (Ridgway 2010, section 5.1.2): the more tasks a host has on a page, the more regular its places.

Place in the flow: :mod:`gossamer.stores.diverse` lays out each of its pages with it. Pure code, nearly linear in the page.
"""

from collections.abc import Mapping, Sequence


def spread(counts: Mapping[str, int]) -> list[str]:
    """Each name as often as it is counted, in an order that spreads every name as far as it goes.

    The commonest name comes first and every `total / count` places from there. Each of the others begins at the first free place
    and takes steps of its own; where a place is taken, it moves on to the next free one, or back where none is left ahead.
    Names that are as common as others keep the order of `counts`.
    """
    total = sum(counts.values())
    order: list[str] = [""] * total
    ahead, behind = _FreePlaces(total, 1), _FreePlaces(total, -1)
    for name in sorted(counts, key=lambda one: -counts[one]):
        step = total / counts[name] if counts[name] else 0.0
        ideal = float(ahead.free(0))
        for _ in range(counts[name]):
            wanted = round(ideal)
            place = ahead.free(wanted) if wanted < total else total
            if place == total:
                place = behind.free(min(wanted, total - 1))
            order[place] = name
            ahead.take(place)
            behind.take(place)
            # A place that was moved moves those behind it; rounding alone does not, or the steps would drift.
            ideal = (ideal if place == wanted else place) + step
    return order


def shares(available: Mapping[str, int], room: int) -> dict[str, int]:
    """How many tasks of each host go on a page of `room` tasks: in proportion to what it has, and one at least.

    Hosts that find no room are left out, those behind first.
    """
    present = {name: count for name, count in available.items() if count}
    names = list(present)[:room]
    total = sum(present[name] for name in names)
    if total <= room:
        return {name: present[name] for name in names}
    ideal = {name: room * present[name] / total for name in names}
    taken = {name: max(1, int(ideal[name])) for name in names}
    _settle(taken, ideal, names, room)
    return taken


def _settle(taken: dict[str, int], ideal: Mapping[str, float], names: Sequence[str], room: int) -> None:
    """Make the sum of `taken` what there is room for, where rounding went furthest first."""
    missing = room - sum(taken.values())
    by_error = sorted(names, key=lambda name: taken[name] - ideal[name], reverse=missing < 0)
    while missing:
        for name in by_error:
            if missing > 0:
                taken[name] += 1
                missing -= 1
            elif missing < 0 and taken[name] > 1:
                taken[name] -= 1
                missing += 1


class _FreePlaces:
    """Finds the next free place in one direction, and forgets nothing it has learnt on the way (union-find)."""

    def __init__(self, total: int, step: int) -> None:
        self._next = list(range(total + 1))
        self._step = step

    def free(self, place: int) -> int:
        """The free place nearest to `place` in this direction; the number of places (ahead) or -1 (behind) where none is."""
        following = self._next
        found = place
        while found >= 0 and following[found] != found:
            found = following[found]
        while place != found and place >= 0:
            following[place], place = found, following[place]
        return found

    def take(self, place: int) -> None:
        """This place is free no more."""
        self._next[place] = place + self._step
