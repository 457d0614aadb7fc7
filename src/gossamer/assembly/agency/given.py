"""Settings that were changed while agents and masters work, so that one that was away learns them when it is back. Pure.

Place in the flow: the supervisor gives a change to everybody at once and notes it here (:mod:`giving`). Whoever did not hear it has
an older edition, and gets what it lacks with its next answer, without beginning again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gossamer.assembly.agency.orders import part_of
from gossamer.assembly.masters import SHARED_SETTINGS

Settings = dict[str, dict[str, Any]]


class GivenSettings:
    """Remembers the settings that were changed in the life of one supervisor."""

    def __init__(self, agents: int) -> None:
        """Nothing was; the crawl has so many `agents`."""
        self.edition = 0
        """Of the settings as they stand: how often they were changed."""
        self._agents = agents
        self._known: dict[tuple[str, str], tuple[int, Any]] = {}

    def __repr__(self) -> str:
        return f"<GivenSettings, edition {self.edition}>"

    def note(self, unit: str, settings: Mapping[str, Any]) -> Callable[[], None]:
        """These settings of a unit have these values from now on; returns what takes that back for those who have not heard it."""
        self.edition += 1
        before = dict(self._known)
        for name, value in settings.items():
            self._known[unit, name] = self.edition, value

        def take_back() -> None:
            self._known = before

        return take_back

    def for_agent(self, index: int, since: int) -> Settings:
        """Return the settings, by unit, that an agent has not heard: it has this index, and knows the edition `since`."""
        found: Settings = {}
        for (unit, name), value in self._since(since):
            found.setdefault(unit, {})[name] = part_of(unit, name, value, self._agents, index)
        return found

    def for_master(self, since: int) -> Settings:
        """The same for a master, which has few of them, under names of its own."""
        found: Settings = {}
        for key, value in self._since(since):
            if (own := SHARED_SETTINGS.get(key)) is not None:
                found.setdefault(own[0], {})[own[1]] = value
        return found

    def _since(self, edition: int) -> list[tuple[tuple[str, str], Any]]:
        return [(key, value) for key, (changed, value) in self._known.items() if changed > edition]
