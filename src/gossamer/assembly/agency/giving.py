"""Gives changes to agents and masters at work: at once to those that answer, and to the others when they are back.

Place in the flow: the supervisor is told of a change, and asks everybody for news in rounds; whoever answers catches up here first.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from gossamer.assembly.agency.agent_process import AgentProcess
from gossamer.assembly.agency.given import GivenSettings
from gossamer.assembly.agency.line import AgentRefused, AgentSilent
from gossamer.assembly.agency.master_process import MasterProcess
from gossamer.assembly.agency.supervised import SupervisedProcess
from gossamer.assembly.control.agent_messages import SetAgent
from gossamer.assembly.control.messages import Continue, Pause


class Giving:
    """Tells agents and masters the settings and pauses that they have not heard."""

    def __init__(self, agents: Mapping[str, AgentProcess], masters: Mapping[str, MasterProcess]) -> None:
        """Nothing was changed yet."""
        self._agents, self._masters = agents, masters
        self._given = GivenSettings(len(agents))

    def __repr__(self) -> str:
        return f"<Giving {self._given!r}>"

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
