"""The ring as a wiring names it. Its members are a setting, so that each agent is told of joins and leaves alike."""

from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.agents import agent_name, member
from gossamer.model.domains import Division, DomainRule, domain_rule
from gossamer.services.designation.ring import PLACES_HELP, PlaceTable, Ring

#: Hosts whose agent is remembered: a crawl asks for the same ones again and again. About 200 bytes each.
REMEMBERED = 65_536

_MADE = "it is fixed when the crawl is made"


class RingSheet(Sheet, frozen=True):
    """Settings of :class:`RingDesignation`."""

    members: Annotated[
        tuple[str, ...],
        setting("Divide the hosts among these agents: AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE."),
    ] = (agent_name(0),)
    places: Annotated[
        tuple[str, ...],
        setting(PLACES_HELP),
    ] = ()
    division: Annotated[
        Division, setting("Assign registered domains or single hosts as a whole; as the ledger does.", restart=_MADE)
    ] = "domain"
    together: Annotated[
        tuple[str, ...],
        setting("Assign these registered domains to one agent; as the ledger does (repeatable).", restart=_MADE),
    ] = ()


class RingDesignation(Provider[RingSheet]):
    """Consistent hashing over the members of its sheet. Contract: `designating.Designation`."""

    def __init__(self, sheet: RingSheet | None = None) -> None:
        """The ring of the sheet.

        Raises:
            UsageError: the sheet names agents, places or domains in a way that cannot be read.
        """
        super().__init__(sheet)
        self._rule = DomainRule()
        self._owners: dict[str, str] = {}
        self._ring = self._made()
        self.metrics.gauge("agents", lambda: len(self._ring.members))

    def _made(self) -> Ring:
        sheet = self.sheet
        self._rule = domain_rule(sheet.division, sheet.together)
        return Ring(map(member, sheet.members), PlaceTable(sheet.places))

    def changed(self, before: RingSheet) -> None:
        """Other members, or other places: some hosts belong to others from now on."""
        self._ring = self._made()
        self._owners.clear()

    def owner(self, host: str) -> str:
        """The agent that a host belongs to."""
        known = self._owners.get(host)
        if known is None:
            if len(self._owners) >= REMEMBERED:
                self._owners.clear()
            known = self._owners[host] = self._ring.owner(self._rule.assignable(host))
        return known
