"""Settings that change while agents and masters work: given at once to those that answer, and to the others when they are back.

Place in the flow: the supervisor gives a change to all processes at once, and notes it here. One that did not hear it has an older
edition, and gets what it lacks with its next answer, without beginning again.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from gossamer.agents.masters import SHARED_SETTINGS
from gossamer.agents.orders import part_of
from gossamer.agents.supervised import AgentProcess, MasterProcess, SupervisedProcess
from gossamer.agents.supervision import SetAgent
from gossamer.crawls.control.line import AgentRefused, AgentSilent
from gossamer.crawls.control.messages import Continue, Pause

Settings = dict[str, dict[str, Any]]


class GivenSettings:
    """Remembers the settings that were changed in the life of one supervisor."""

    def __init__(self, agents: int) -> None:
        self.edition = 0
        """Of the settings as they stand: how often they were changed."""
        self._agents = agents
        self._known: dict[tuple[str, str], tuple[int, Any]] = {}

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


class Giving:
    """Tells agents and masters the settings and pauses that they have not heard."""

    def __init__(self, agents: Mapping[str, AgentProcess], masters: Mapping[str, MasterProcess]) -> None:
        self._agents, self._masters = agents, masters
        self._given = GivenSettings(len(agents))

    async def give(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a unit in all agents; one that does not answer is told when it does.

        Raises:
            AgentRefused: one does not take them; those before it have them.
        """
        given = dict(settings)
        for limit, share in (("max_pages", "page_share"), ("max_bytes", "byte_share")):
            if unit == "frontier" and limit in given:
                # What was lent is lent anew: it was so many of another number.
                given[share] = None if given[limit] is None else 0
        take_back = self._given.note(unit, given)
        try:
            everybody: list[SupervisedProcess] = [*self._agents.values(), *self._masters.values()]
            for one in [one for one in everybody if not one.is_late]:
                with contextlib.suppress(AgentSilent):
                    await self._give_missed(one)
        except AgentRefused:
            take_back()
            raise

    async def catch_up(self, name: str, *, is_held: bool) -> str:
        """Tell one that answers what others were told while it was away; returns why it refused that, empty where it did not.

        Args:
            name: of the agent or master.
            is_held: agents pause now.
        """
        one: SupervisedProcess = self._agents.get(name) or self._masters[name]
        edition = self._given.edition
        try:
            if name in self._agents and one.is_held != is_held:
                await one.line.do(Pause() if is_held else Continue())
                one.is_held = is_held
            await self._give_missed(one)
        except AgentSilent:
            pass
        except AgentRefused as error:
            one.edition = edition
            return str(error)
        return ""

    async def _give_missed(self, one: SupervisedProcess) -> None:
        edition = self._given.edition
        if one.edition == edition:
            return
        if one.name in self._agents:
            missed = self._given.for_agent(list(self._agents).index(one.name), one.edition)
        else:
            missed = self._given.for_master(one.edition)
        for unit, settings in missed.items():
            await one.line.do(SetAgent(unit, settings))
        one.edition = edition
