"""The ring: consistent hashing of assignable domains over agents (Hunyadi 2007, section 3.3), as plain code.

Each agent has points on a circle of 32 bits, as many as its capacity says, drawn from its name alone. A domain belongs to the
agent of the next point. So whoever knows the members knows the owner, a new agent takes only what lies before its own points, and
what an agent leaves behind falls to those behind its points.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import pairwise

from xxhash import xxh32_intdigest

from gossamer.model.agents import Member
from gossamer.model.domains import domain_point
from gossamer.model.errors import UsageError

#: Points of an agent of capacity 1. The share of an agent strays from its due by about 1/sqrt(points), here 3 %; two agents
#: cost 2 ms when the ring is made, and a look-up costs one more step for each doubling.
POINTS = 1024


#: First and last point of a stretch of the circle.
Arc = tuple[int, int]

#: A range of addresses.
_Network = IPv4Network | IPv6Network

#: The last point of the circle.
_LAST = 2**32 - 1


#: What a setting says that takes the rules of a :class:`PlaceTable`.
PLACES_HELP = (
    "Prefer agents at this place for hosts with this suffix, or for addresses of this network: SUFFIX=PLACE or NETWORK=PLACE, as "
    "hu=budapest or 192.0.2.0/24=oslo (repeatable)."
)


class PlaceTable:
    """Says at which place a domain is best asked, by the longest suffix of labels, or for an address the narrowest network."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        """Rules as `SUFFIX=PLACE` or `NETWORK=PLACE`, as `hu=budapest`, `example.com=oslo` or `192.0.2.0/24=oslo`.

        Raises:
            UsageError: a rule has another form.
        """
        self._places: dict[str, str] = {}
        networks: dict[_Network, str] = {}
        for rule in rules:
            suffix, equals, place = rule.strip().partition("=")
            if not (suffix and equals and place):
                raise UsageError(f"{rule!r} names no place; write SUFFIX=PLACE, as hu=budapest")
            if "/" not in suffix:
                self._places[suffix.lower().strip(".")] = place
                continue
            try:
                networks[ip_network(suffix)] = place
            except ValueError as error:
                raise UsageError(f"{rule!r} names no network ({error}); write 192.0.2.0/24=PLACE") from None
        self._networks = sorted(networks.items(), key=lambda one: -one[0].prefixlen)

    def __repr__(self) -> str:
        return f"<PlaceTable of {len(self._places) + len(self._networks)} rules>"

    def place(self, domain: str) -> str:
        """The place of a domain, or of an address; empty where no rule speaks of it."""
        if domain in self._places:
            return self._places[domain]
        if self._networks and (place := self._place_of_address(domain)):
            return place
        while self._places and domain:
            if domain in self._places:
                return self._places[domain]
            domain = domain.partition(".")[2]
        return ""

    def _place_of_address(self, domain: str) -> str:
        try:
            address = ip_address(domain)
        except ValueError:
            return ""
        return next((place for network, place in self._networks if address in network), "")


class Ring:
    """Members on a circle. It never changes: other members make another ring."""

    def __init__(self, members: Iterable[Member], places: PlaceTable | None = None) -> None:
        """The ring of those members that have not left. With places, a domain goes to those at its own, where there are any.

        Raises:
            UsageError: there are no members, or two have one name.
        """
        found = sorted(members, key=lambda one: one.agent)
        for one, other in pairwise(found):
            if one.agent == other.agent:
                raise UsageError(f"two agents are called {one.agent!r}")
        found = [one for one in found if one.capacity]
        if not found:
            raise UsageError("a crawl has one agent at least")
        self.members = tuple(found)
        self._places = places or PlaceTable()
        self._all = _circle(found)
        by_place: dict[str, list[Member]] = {}
        for one in found:
            by_place.setdefault(one.place, []).append(one)
        self._circles: Mapping[str, _Circle] = {place: _circle(those) for place, those in by_place.items() if place}

    def __repr__(self) -> str:
        return f"<Ring of {', '.join(map(str, self.members))}>"

    def owner(self, domain: str) -> str:
        """The agent of an assignable domain."""
        points, owners = self._circles.get(self._places.place(domain), self._all) if self._circles else self._all
        at = bisect_left(points, domain_point(domain))
        return owners[at if at < len(owners) else 0]

    def arcs(self, agent: str) -> Sequence[Arc]:
        """The stretches of the circle that belong to an agent, in order. Where places are told apart, they are not one circle.

        Raises:
            ValueError: they are.
        """
        if self._circles:
            raise ValueError("agents at different places share no circle")
        points, owners = self._all
        found: list[Arc] = []
        first = 0
        for point, owner in zip((*points, _LAST), (*owners, owners[0]), strict=True):
            if owner == agent and first <= point:
                if found and found[-1][1] == first - 1:
                    found[-1] = found[-1][0], point
                else:
                    found.append((first, point))
            first = max(first, point + 1)
        return found


def moving(before: Ring, after: Ring, giver: str, taker: str) -> list[Arc]:
    """The stretches that one agent has before, and another one after."""
    found: list[Arc] = []
    mine, others = before.arcs(giver), after.arcs(taker)
    one = other = 0
    while one < len(mine) and other < len(others):
        first, last = max(mine[one][0], others[other][0]), min(mine[one][1], others[other][1])
        if first <= last:
            found.append((first, last))
        if mine[one][1] <= others[other][1]:
            one += 1
        else:
            other += 1
    return found


#: Points in order, and the agent of each.
_Circle = tuple[Sequence[int], Sequence[str]]


def _circle(members: Iterable[Member]) -> _Circle:
    placed = sorted(
        (xxh32_intdigest(f"{one.agent}/{number}".encode()), one.agent)
        for one in members
        for number in range(max(1, round(POINTS * one.capacity)))
    )
    return [point for point, _ in placed], [agent for _, agent in placed]
