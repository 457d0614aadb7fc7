"""A robots gate that shares what sites answer with the other crawls of the same user (`--robots-cache`).

Place in the flow: it stands in the place of :class:`~gossamer.services.robots.provider.ObeyRobots` and judges as it does. Before
a robots.txt is requested, it looks for an answer of another crawl (:mod:`gossamer.contracts.robots_answers`); settled answers of
its own go there. An answer is for one product token, one policy and one view of the web: crawls with other names, other addresses
of hosts or other credentials have their own. Failures are not shared: another crawl may have a better network.
"""

import ipaddress
from typing import Annotated

import msgspec

from gossamer.contracts.robots import Lesson, RobotsRuling, RobotsVerdict
from gossamer.contracts.robots_answers import RobotsAnswers
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import setting
from gossamer.model.task import Task
from gossamer.model.url import site_of
from gossamer.model.visit import Response
from gossamer.services.robots.machine import RobotsState, State
from gossamer.services.robots.policies import Effect, RobotsEvent
from gossamer.services.robots.provider import ObeyRobots, RobotsSheet
from gossamer.services.robots.reading import MAX_DELAY

#: Seconds by which the clock of another process may be ahead of ours.
_SLACK = 60.0

#: What an answer may mean that others can use.
_SHAREABLE = frozenset((Effect.OBEY, Effect.ALLOW, Effect.DENY))


class SharingRobotsSheet(RobotsSheet, frozen=True):
    """Settings of :class:`SharingRobots`."""

    reads: Annotated[
        bool,
        setting("Use answers of other crawls; if off, ask each site, and only share its answers."),
    ] = True
    private: Annotated[
        bool,
        setting(
            "Also share answers of hosts on this machine and in private networks, where an address may soon be another host's."
        ),
    ] = False
    view: Annotated[
        str,
        setting(
            "Share only with crawls that have the same text here, because they reach hosts in the same way.",
            restart="the kept answers were given to a crawl with this view",
        ),
    ] = ""


class SharingRobots(ObeyRobots):
    """Obeys robots.txt, and shares answers. Implements `contracts.robots.RobotsGate`."""

    answers: Uses[RobotsAnswers]
    sheet_type = SharingRobotsSheet

    def __init__(self, sheet: SharingRobotsSheet | None = None) -> None:
        super().__init__(sheet)
        self._claimed: set[str] = set()
        """Sites that this process asks."""
        self._private: set[str] = set()
        """Those of them that a private address has answered for."""

    @property
    def _terms(self) -> SharingRobotsSheet:
        assert isinstance(self.sheet, SharingRobotsSheet)
        return self.sheet

    async def stop(self) -> None:
        """Let others ask what was about to be asked."""
        for site in list(self._claimed):
            self._release(site)

    def judge(self, task: Task, now: float) -> RobotsVerdict:
        """See the contract."""
        verdict = super().judge(task, now)
        if verdict.ruling not in (RobotsRuling.FETCH_FIRST, RobotsRuling.WAIT) or not self._terms.reads:
            return verdict
        site = site_of(task.url)
        if self.known(site).tries or self.known(site).hops:
            return verdict  # an attempt of our own is under way
        if (found := self._found(site, now)) is not None:
            self._keep(site, found)
            self.metrics.count("answers_shared")
            self._release(site)
            return msgspec.structs.replace(super().judge(task, now), is_news=True)
        if verdict.ruling is RobotsRuling.FETCH_FIRST and (wait := self._claim(site, now)):
            return RobotsVerdict(RobotsRuling.WAIT, "another crawl asks for robots.txt", until=now + wait)
        return verdict

    def learned(self, site: str, response: Response, now: float, addresses: int = 1) -> Lesson:
        """See the contract."""
        if not _is_public(response):
            self._private.add(site)
        lesson = super().learned(site, response, now, addresses)
        state = self.known(site)
        if not (state.tries or state.hops):
            is_private = site in self._private
            self._private.discard(site)
            if _is_shareable(state) and (self._terms.private or not is_private) and not response.is_unverified:
                self.answers.keep(self._name(site), self.state(site), now)
            self._release(site)
        return lesson

    def restore(self, site: str, state: bytes) -> None:
        """See the contract."""
        super().restore(site, state)
        self._release(site)  # it need not be asked after all, or is claimed again

    # -- what others know

    def _name(self, site: str) -> str:
        sheet = self._terms
        return f"{site} {sheet.agent.lower()} {sheet.policy} {sheet.view}"

    def _found(self, site: str, now: float) -> RobotsState | None:
        """What another crawl was told, if it is good now. Only what this gate could have learnt itself is believed."""
        data = self.answers.find(self._name(site))
        if not data:
            return None
        try:
            state = msgspec.msgpack.decode(data, type=RobotsState)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.metrics.count("states_unreadable")
            return None
        until = min(state.date + self._policy.keep, state.until)
        if not (_is_shareable(state) and state.date <= now + _SLACK and now < until):
            return None
        return msgspec.structs.replace(state, until=until, failures=0, since=0.0, target="", after=0.0)

    def _claim(self, site: str, now: float) -> float:
        wait = self.answers.claim(self._name(site), now)
        if not wait:
            self._claimed.add(site)
        return wait

    def _release(self, site: str) -> None:
        if site in self._claimed:
            self._claimed.discard(site)
            self.answers.release(self._name(site))


def _is_public(response: Response) -> bool:
    """Whether the address that answered means the same host for everybody. One that is not told, as behind a proxy, does not."""
    try:
        return ipaddress.ip_address(response.address).is_global
    except ValueError:
        return False


def _is_shareable(state: RobotsState) -> bool:
    """A settled answer of the site itself, in the form that the machine gives it."""
    if state.state is not State.QUALIFIED or state.meaning not in _SHAREABLE or state.event is RobotsEvent.SHUT:
        return False
    if state.tries or state.hops or (state.rules is not None) != (state.meaning is Effect.OBEY):
        return False
    delays = (group.delay for group in state.rules.groups) if state.rules else ()
    return all(delay is None or 0 <= delay <= MAX_DELAY for delay in delays)
