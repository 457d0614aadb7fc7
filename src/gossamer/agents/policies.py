"""Policies of a master: to which agent a domain goes that has none (Hunyadi 2007, section 5.3.1, step 6).

Place in the flow: the table of designations (:mod:`gossamer.agents.designations`) asks one of these, once for each domain,
and remembers the answer. So a policy may look at the load, or draw lots, where the ring may not.
"""

import random
from collections.abc import Sequence
from typing import Annotated

from gossamer.agents.contract import DomainCount
from gossamer.agents.ring import PLACES_HELP, PlaceTable, Ring
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.errors import UsageError


def least_loaded(candidates: Sequence[DomainCount]) -> str:
    """The agent with the fewest domains for its capacity; of equal ones the first by name."""
    return min(candidates, key=lambda one: (one.load, one.member.agent)).member.agent


class LeastLoaded(Provider[NoSettings]):
    """Gives a domain to the agent that has the fewest domains for its capacity. Contract: `marshaling.DesignationPolicy`."""

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        """The agent that gets an assignable domain."""
        return least_loaded(candidates)


class ByDomain(Provider[NoSettings]):
    """Gives a domain to the agent to which a ring of the same members would give it. Contract: `marshaling.DesignationPolicy`."""

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._ring: Ring | None = None

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        """The agent that gets an assignable domain."""
        members = tuple(one.member for one in candidates)
        if self._ring is None or self._ring.members != members:
            self._ring = Ring(members)
        return self._ring.owner(domain)


class ByPlaceSheet(Sheet, frozen=True):
    """Settings of :class:`ByPlace`."""

    places: Annotated[tuple[str, ...], setting(PLACES_HELP)] = ()


class ByPlace(Provider[ByPlaceSheet]):
    """Gives a domain to the least loaded agent at the domain's place, or to the least loaded of all if no agent is there.

    Contract: `marshaling.DesignationPolicy`.

    Raises:
        UsageError: a rule names no place.
    """

    def __init__(self, sheet: ByPlaceSheet | None = None) -> None:
        super().__init__(sheet)
        self._places = PlaceTable(self.sheet.places)

    async def start(self) -> None:
        """Begin with the rules of the sheet.

        Raises:
            UsageError: there are none.
        """
        if not self.sheet.places:
            raise UsageError(f"{self.name}: by-place has no places; give it some, as places = ['hu=budapest']")

    def changed(self, before: ByPlaceSheet) -> None:
        """Take other rules; domains that have an agent keep it."""
        self._places = PlaceTable(self.sheet.places)

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        """The agent that gets an assignable domain."""
        place = self._places.place(domain)
        return least_loaded([one for one in candidates if place and one.member.place == place] or candidates)


class RandomAgent(Provider[NoSettings]):
    """Draws an agent at random, in proportion to the agents' capacities. Contract: `marshaling.DesignationPolicy`."""

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._random = random.Random()

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        """The agent that gets an assignable domain."""
        [drawn] = self._random.choices(candidates, [one.member.capacity for one in candidates])
        return drawn.member.agent
