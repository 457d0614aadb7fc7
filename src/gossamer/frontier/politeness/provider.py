"""The politeness provider: gates, schedule and blocklist of one crawl behind one contract.

Place in the flow: frontier and committer share it, in the process that owns the state. The frontier asks whose turn it is.
Whichever of the two sees an answer first brings it here, so that a page's ruling is there when its visit is committed, whatever
took longer.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import msgspec

from gossamer.engine.ends import UsesMany
from gossamer.engine.errors import SettingError
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import PolitenessRule
from gossamer.frontier.politeness.gates import Gates
from gossamer.frontier.politeness.pace import Reason
from gossamer.frontier.politeness.places import Held, HostNote, SharedPlaces
from gossamer.frontier.politeness.retries import DAY
from gossamer.frontier.politeness.rules import Blocklist, PolitenessSheet, rules_of
from gossamer.frontier.politeness.schedule import Schedule
from gossamer.frontier.politeness.whole_crawl import RateUse
from gossamer.values.errors import UsageError
from gossamer.values.hosts import registered_domain
from gossamer.values.task import DONE, Answer, RetryDecision, Task

#: Of the draws that choose among levels and jitter waits: a crawl on a simulated clock repeats exactly.
SEED = 1


#: Stands before the name of a registered domain where places are named: a host that is an address is its own domain.
DOMAIN_MARK = "@"

#: Places that are asked for at once: more than an agent can ask in a round of its supervisor's.
WANTED_AT_ONCE = 1_000


class _Flight(msgspec.Struct):
    """A request that went out, until its page's ruling was asked for."""

    host: str
    domain: str
    address: str
    attempt: int
    booked: float
    """Bytes that were booked when it began."""
    ruling: RetryDecision | None = None


class HostPoliteness(Provider[PolitenessSheet]):
    """Limits requests per host, registered domain, address and crawl (decision 7). Contract: `Politeness`."""

    keeps_state = True

    rules: UsesMany[PolitenessRule] = MappingProxyType({})
    """Rules beside ours, under the key `hosts`."""

    def __init__(self, sheet: PolitenessSheet | None = None) -> None:
        super().__init__(sheet)
        draw = random.Random(SEED).random
        self.gates = Gates(rules_of(self.sheet), draw=draw)
        if self.sheet.address_turns:
            self.gates.addresses.ask_by_turns()
        if self.sheet.domain_turns:
            self.gates.domains.ask_by_turns()
        self._blocklist = _blocklist(self.sheet)
        self._schedule = Schedule(self.gates, draw, is_blocked=self.rule_against, ask_rules=self._ask_rules)
        self._closed = Blocklist()
        """Hosts and domains that orders have blocked, beside the setting."""
        self._slowed: dict[str, float] = {}
        """The delays that were ordered, in seconds."""
        self._flights: dict[str, deque[_Flight]] = {}
        self._notes = msgspec.msgpack.Decoder(HostNote)
        self._encoder = msgspec.msgpack.Encoder()
        self.metrics.gauge("waiting_hosts", lambda: len(self._schedule))
        self.metrics.gauge("in_flight", lambda: len(self._flights))
        self.metrics.gauge("blocked", lambda: len(self._blocklist) + len(self._closed))

    def changed(self, before: PolitenessSheet) -> None:
        self._blocklist = _blocklist(self.sheet)
        self.gates.change(rules_of(self.sheet))

    # -- whose turn it is

    def put(self, host: str, address: str, level: int = 0) -> None:
        if host in self._slowed:
            self.gates.raise_crawl_delay(host, self._slowed[host])
        self._schedule.put(host, registered_domain(host), address, level)

    def drop(self, host: str) -> None:
        self._schedule.drop(host)

    def next(self, now: float) -> str | float:
        return self._schedule.pop(now)

    def _ask_rules(self, host: str, now: float) -> None:
        """Let each rule say whether a host whose turn it is rests; the longest rest counts."""
        for rule in self.rules.get("hosts", ()):
            seconds = min(rule.rest(host, self.clock.now()), DAY)
            place = self.gates.hosts.get(host)
            if seconds > 0.0 and (place is None or place.next < now + seconds):
                self.gates.rest(host, now + seconds, rule.word)

    def begin(self, task: Task, address: str, now: float) -> bool:
        host, domain = task.host, registered_domain(task.host)
        booked = self.gates.begin(host, domain, address, now)
        self._flights.setdefault(task.identity, deque()).append(_Flight(host, domain, address, task.attempt, booked))
        place = self.gates.hosts.get(host)
        return place is not None and place.live < place.limit

    def answered(self, answer: Answer) -> None:
        for flight in self._flights.get(answer.identity, ()):
            if flight.ruling is None:
                break
        else:
            return
        now, wall = self.clock.monotonic(), self.clock.now()
        host, domain, address = flight.host, flight.domain, flight.address
        flight.ruling = self.gates.end(host, domain, address, answer, now, wall, flight.attempt)
        if self._schedule.parked:
            self._schedule.ended(host, domain, address)

    def ruling(self, answer: Answer) -> RetryDecision:
        identity = answer.identity
        flights = self._flights.get(identity)
        if flights is None:
            return DONE
        if flights[0].ruling is None:
            self.answered(answer)
        ruling = flights.popleft().ruling or DONE
        if not flights:
            del self._flights[identity]
        return ruling

    def expected(self, answer: Answer) -> RetryDecision:
        flights = self._flights.get(answer.identity)
        if flights is None:
            return DONE
        if flights[0].ruling is None:
            self.answered(answer)
        return flights[0].ruling or DONE

    # -- turns at addresses and domains

    def turns(self) -> tuple[list[str], dict[str, tuple[int, float]]]:
        """Places that hosts wait for, up to a number; and those whose turns have ended, with the number of the turn and the
        seconds in which no agent may ask there. A place is an address, or a registered domain behind :data:`DOMAIN_MARK`."""
        now = self.clock.monotonic()
        wanted: list[str] = []
        back: dict[str, tuple[int, float]] = {}
        for mark, places in self._lent():
            wanted += [mark + name for name in islice(places.wanted, WANTED_AT_ONCE - len(wanted))]
            back |= {mark + name: (number, max(0.0, opens - now)) for name, (number, opens) in places.back.items()}
        return wanted, back

    def turns_held(self) -> dict[str, int]:
        return {mark + name: number for mark, places in self._lent() for name, number in places.held().items()}

    def take_turns(
        self, granted: Mapping[str, tuple[int, float]], recalled: Iterable[str], noted: Mapping[str, int]
    ) -> None:
        """Take the decisions of the lender of turns.

        Args:
            granted: place -> number of the turn, and the seconds after which it begins.
            recalled: places whose turns are to end.
            noted: place -> number of the turn of which the lender knows that it has ended.
        """
        now = self.clock.monotonic()
        for told, number in noted.items():
            places, name = self._place(told)
            places.noted(name, number)
        for told in recalled:
            places, name = self._place(told)
            places.recall(name, is_wanted=places.known(name) in self._schedule.parked)
        for told, (number, wait) in granted.items():
            places, name = self._place(told)
            self._schedule.opened(places.lend(name, number, now + wait))

    def _lent(self) -> tuple[tuple[str, SharedPlaces], tuple[str, SharedPlaces]]:
        return ("", self.gates.addresses), (DOMAIN_MARK, self.gates.domains)

    def _place(self, told: str) -> tuple[SharedPlaces, str]:
        is_domain = told.startswith(DOMAIN_MARK)
        return (self.gates.domains, told.removeprefix(DOMAIN_MARK)) if is_domain else (self.gates.addresses, told)

    # -- rates of the whole crawl

    def rates(self) -> tuple[RateUse | None, RateUse | None]:
        return self.gates.crawl.uses()

    def take_rates(self, rate: float, bandwidth: float) -> None:
        """Go by so many times the `rate` and `bandwidth` of the settings, as the lender of rates has decided."""
        self.gates.crawl.lend(rate, bandwidth, self.clock.monotonic())
        self.gates.changes += 1

    # -- what else is known of a host

    def pace(self, host: str, crawl_delay: float) -> float:
        self.gates.set_crawl_delay(host, max(crawl_delay, self._slowed.get(host, 0.0)) or None)
        place = self.gates.hosts.get(host)
        return place.next if place is not None else self.clock.monotonic()

    def hold(self, task: Task, seconds: float) -> None:
        self.gates.hold(task.host, self.clock.monotonic() + seconds, task.url)

    def missed(self, host: str) -> None:
        self.gates.missed(host, self.clock.monotonic(), self.clock.now(), registered_domain(host))

    def received(self, identity: str, size: int) -> None:
        flights = self._flights.get(identity)
        booked = 0.0
        if flights:
            booked, flights[0].booked = flights[0].booked, 0.0
        if self.gates.crawl.is_capped:
            self.gates.crawl.received(size, self.clock.monotonic(), booked)

    def waits(self, host: str, now: float) -> float:
        place = self.gates.hosts.get(host)
        return 0.0 if place is None else max(0.0, place.ready_at() - now)

    def delay(self, host: str) -> float:
        return self.gates.told_delay(host)[0]

    def delay_reason(self, host: str) -> str:
        delay, reason = self.gates.told_delay(host)
        return "processor" if reason == Reason.ROBOTS and delay == self._slowed.get(host) else reason

    def block(self, name: str) -> None:
        self._closed.block(name)

    def slow(self, host: str, seconds: float) -> None:
        self._slowed[host] = max(min(seconds, DAY), self._slowed.get(host, 0.0))
        self.gates.raise_crawl_delay(host, self._slowed[host])

    def slowed(self, count: int) -> Sequence[tuple[str, float, str]]:
        return heapq.nlargest(count, self.gates.slowed(), key=lambda one: one[1])

    def held(self, hosts: Iterable[str] | None = None) -> Iterator[Held]:
        return self.gates.held(self._schedule if hosts is None else hosts, self.clock.monotonic())

    @property
    def network_probe(self) -> float | None:
        """Seconds until our own network is probed again; None while it is up."""
        network = self.gates.network
        return max(0.0, network.next_probe - self.clock.monotonic()) if network.is_down else None

    def rule_against(self, host: str) -> str:
        rule = self._blocklist.rule(host) if self._blocklist.entries else ""
        return rule or (self._closed.rule(host) if self._closed.entries else "")

    def take_blocked(self) -> Sequence[str]:
        blocked, self._schedule.blocked = self._schedule.blocked, []
        return blocked

    def is_spent(self, host: str) -> bool:
        entry = self.gates.hosts.get(host)
        return entry is not None and entry.is_spent(self.sheet.retries)

    def closed(self, task: Task, now: float) -> float:
        entry = self.gates.hosts.get(task.host)
        return entry.closed_for(task.url, now) if entry is not None and entry.circuits else 0.0

    def is_closed(self, host: str, now: float) -> bool:
        entry = self.gates.hosts.get(host)
        return entry is not None and entry.is_closed(now)

    def meet(self, host: str, urls: Iterable[str]) -> None:
        if (entry := self.gates.hosts.get(host)) is not None:
            entry.meet(urls)

    def retry_wait(self, host: str, now: float) -> float:
        entry = self.gates.hosts.get(host)
        return 0.0 if entry is None else entry.retry_wait(now)

    def at_work(self) -> Iterable[str]:
        return self._schedule

    # -- what outlives the process

    def note(self, host: str) -> bytes:
        entry = self.gates.hosts.get(host)
        return b"" if entry is None else self._encoder.encode(entry.note(self.clock.monotonic(), self.clock.now()))

    def restore(self, host: str, note: bytes, *, clean: bool) -> None:
        if not note or self.gates.hosts.get(host) is not None:
            return
        try:
            read = self._notes.decode(note)
        except ValueError:
            self.metrics.count("notes_unreadable")
            return
        self.gates.restore(host, read, self.clock.monotonic(), self.clock.now(), clean=clean)

    def hush(self) -> None:
        self.gates.crawl.hush(self.gates.rules, self.clock.monotonic())

    def forget(self, host: str) -> bool:
        return self.gates.forget(host, self.clock.monotonic())

    def let_go(self, is_meant: Callable[[str], bool]) -> None:
        """Forget hosts that another agent asks from now on: when they may be asked again, its note says."""
        for host in [host for host in self.gates.hosts if is_meant(host)]:
            self._schedule.drop(host)
            del self.gates.hosts[host]


def _blocklist(sheet: PolitenessSheet) -> Blocklist:
    try:
        return Blocklist(sheet.blocked)
    except UsageError as error:
        raise SettingError(f"setting 'blocked': {error}") from None
