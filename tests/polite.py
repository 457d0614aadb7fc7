"""Politeness that is told the time with each call: tests of its decisions hand over instants instead of moving a clock."""

import random
from collections.abc import Callable, Iterable

from gossamer.frontier.politeness.places import Held, HostNote
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import LayerRules
from gossamer.frontier.politeness.schedule import Schedule
from gossamer.testing.clock import FakeClock
from gossamer.values.task import Answer, RetryDecision, Task


class SetClock(FakeClock):
    """A clock that shows any instant, the next one earlier than the last where a test wants it so."""

    def show(self, now: float, wall: float = 0.0) -> None:
        self._passed, self._now = now, wall - now


class Polite:
    """One provider; its clock shows the instant of each call."""

    def __init__(
        self,
        rules: LayerRules | None = None,
        *,
        schedule: Callable[..., Schedule] = Schedule,
        draw: Callable[[], float] | None = None,
    ) -> None:
        """`schedule` makes the schedule; `draw` gives the numbers that choose among levels."""
        self.unit = HostPoliteness()
        self.unit.clock = self.clock = SetClock()
        self.schedule = self.unit.schedule = schedule(rules or LayerRules(), draw or random.Random(1).random)
        self.unit._draw = lambda: 0.0
        self.hosts = self.unit.hosts = self.schedule.hosts
        self.crawl, self.network = self.schedule.crawl, self.schedule.crawl.network
        self.domains, self.addresses = self.schedule.domains, self.schedule.addresses
        self.blocker, self.change = self.schedule.blocker, self.schedule.change

    @property
    def rules(self) -> LayerRules:
        return self.schedule.rules

    def ready_at(self, host: str, domain: str, address: str, now: float) -> float:
        return max(now, self.crawl.ready_at(now), self.blocker(host, domain, address)[0])

    def begin(self, host: str, address: str, now: float) -> float:
        """The bytes that are booked for the request."""
        self.clock.show(now)
        self.unit.begin(Task(host, host), address, now)
        return self.unit._flights[host][-1].booked

    def end(self, host: str, answer: Answer, now: float, wall: float, attempt: int = 1) -> RetryDecision:
        """Raises KeyError: no request of this host is live."""
        self.clock.show(now, wall)
        flights = self.unit._flights.pop(host)
        flights[0].attempt = attempt
        self.unit._flights[answer.identity] = flights
        self.unit.answered(answer)
        ruling = self.unit.ruling(answer)
        if flights:
            self.unit._flights[host] = self.unit._flights.pop(answer.identity)
        return ruling

    def missed(self, host: str, now: float, wall: float) -> None:
        self.clock.show(now, wall)
        self.unit.missed(host)

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        self.unit.pace(host, seconds)

    def hold(self, host: str, until: float) -> None:
        self.clock.show(0.0)
        self.unit.hold(Task("", host), until)

    def told_delay(self, host: str) -> tuple[float, str]:
        return self.unit.delay(host), self.unit.delay_reason(host)

    def held(self, hosts: Iterable[str], now: float) -> Iterable[Held]:
        self.clock.show(now)
        return self.unit.held(hosts)

    def restore(self, host: str, note: HostNote, now: float, wall: float, *, clean: bool = True) -> None:
        self.schedule.asked(host).restore(note, now, wall, clean=clean)

    def forget(self, host: str, now: float) -> bool:
        self.clock.show(now)
        return self.unit.forget(host)
