"""The politeness provider: it says when a host may be asked, learns from every answer, and keeps the blocklist of a crawl.

Place in the flow: :mod:`schedule` has the hosts and the layers above them. Frontier and committer share the provider, in the
process that owns the state. The frontier asks whose turn it is, says `begin` when a task goes out, and `answered` at the answer.
Whichever of the two sees an answer first brings it here, so that a page's ruling is there when its visit is committed, whatever
took longer.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from types import MappingProxyType

import msgspec

from gossamer.engine.ends import UsesMany
from gossamer.engine.errors import SettingError
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import PolitenessRule
from gossamer.frontier.politeness import pace, retries
from gossamer.frontier.politeness.pace import FRESH, Reason
from gossamer.frontier.politeness.places import AskedHost, Held, HostNote, SharedPlaces, why_held
from gossamer.frontier.politeness.retries import CLOSING, DAY, RETRIED, STRIKING, circuit_after
from gossamer.frontier.politeness.rules import Blocklist, PolitenessSheet, pace_of, rules_of
from gossamer.frontier.politeness.schedule import Schedule
from gossamer.frontier.politeness.whole_crawl import RateUse
from gossamer.values.addresses import is_loopback
from gossamer.values.errors import UsageError
from gossamer.values.hosts import registered_domain
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import DONE, KEEP, Answer, RetryDecision, Task
from gossamer.values.url import site_of

#: Of the draws that choose among levels and jitter waits: a crawl on a simulated clock repeats exactly.
SEED = 1

#: Stands before the name of a registered domain where places are named: a host that is an address is its own domain.
DOMAIN_MARK = "@"

#: Places that are asked for at once: more than an agent can ask in a round of its supervisor's.
WANTED_AT_ONCE = 1_000

#: Outcomes of tasks for which nothing was asked of the host: its delay runs on as if they had not been.
UNASKED = frozenset({Outcome.ROBOTS_DENIED, Outcome.ADDRESS_REFUSED, Outcome.SCHEME_REFUSED})
UNASKED |= {Outcome.BLOCKED, Outcome.GONE_AFTER_RETRIES}

#: Outcomes of requests that never met their host, as they all end when our own network is down. Answers that say that a server
#: was there do not count, whatever their outcome.
UNREACHED = frozenset({Outcome.DNS_FAILED, Outcome.CONNECT_FAILED})

#: Outcomes that prove that packets come and go.
REACHED = ANSWERED | {Outcome.TLS_FAILED, Outcome.PROTOCOL_FAILED, Outcome.TOO_SLOW}

#: Seconds that a host waits whose name was not found while our own network seemed down: a resolver's answer that there is
#: no address is remembered for as long.
SPARED = 5.0


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

    def __init__(self, sheet: PolitenessSheet | None = None, seed: int = SEED) -> None:
        super().__init__(sheet)
        self._draw = random.Random(seed).random
        self.schedule = Schedule(rules_of(self.sheet), self._draw, is_blocked=self._is_blocked)
        self.hosts = self.schedule.hosts
        self._shared = {"": self.schedule.addresses, DOMAIN_MARK: self.schedule.domains}
        if self.sheet.address_turns:
            self.schedule.addresses.ask_by_turns()
        if self.sheet.domain_turns:
            self.schedule.domains.ask_by_turns()
        self._closed = Blocklist()
        """Hosts and domains that orders have blocked, beside the setting."""
        self._slowed: dict[str, float] = {}
        """The delays that were ordered, in seconds."""
        self._flights: dict[str, deque[_Flight]] = {}
        self._notes = msgspec.msgpack.Decoder(HostNote)
        self._encoder = msgspec.msgpack.Encoder()
        self.metrics.gauge("waiting_hosts", lambda: len(self.schedule))
        self.metrics.gauge("in_flight", lambda: len(self._flights))
        self.metrics.gauge("blocked", lambda: len(self._blocklist) + len(self._closed))

    def read_sheet(self) -> None:
        try:
            self._blocklist = Blocklist(self.sheet.blocked)
        except UsageError as error:
            raise SettingError(f"setting 'blocked': {error}") from None

    def changed(self, before: PolitenessSheet) -> None:
        super().changed(before)
        self.schedule.change(rules_of(self.sheet))

    # -- whose turn it is

    def put(self, host: str, address: str, level: int = 0) -> None:
        if host in self._slowed:
            self.slow(host, 0.0)
        self.schedule.put(host, registered_domain(host), address, level)

    def next(self, now: float) -> str | float:
        return self.schedule.pop(now)

    def _is_blocked(self, host: str, now: float) -> bool:
        """Whether a host whose turn it is must not be asked any more; where not, rules say whether it rests, the longest counts."""
        if (self._blocklist.entries or self._closed.entries) and self.rule_against(host):
            return True
        for rule in self.rules.get("hosts", ()):
            seconds = min(rule.rest(host, self.clock.now()), DAY)
            place = self.hosts.get(host)
            if seconds > 0.0 and (place is None or place.next < now + seconds):
                place = self.schedule.asked(host)
                place.rest = (now + seconds, rule.word)
                place.settle()
        return False

    def begin(self, task: Task, address: str, now: float) -> bool:
        host, domain = task.host, registered_domain(task.host)
        schedule, crawl = self.schedule, self.schedule.crawl
        entry, shared, there = self.hosts.get(host), schedule.domains.get(domain), schedule.addresses.get(address)
        for place in (entry, shared, there):
            if place is not None and (place.live >= place.limit or place.next > now):
                raise ValueError(f"{host} may not be asked yet")
        is_free = not crawl.is_capped and crawl.network.down_since is None and crawl.quiet_until <= now
        if not is_free and crawl.ready_at(now) > now:
            raise ValueError(f"the crawl as a whole may not ask {host} yet")
        if entry is None:
            entry = schedule.asked(host)
        entry.is_due = False
        entry.live += 1
        entry.prior = (entry.last, entry.begun) if entry.live == 1 else (inf, inf)
        entry.begun = now if entry.pace.control is None else entry.start_of(now, entry.pace.control.gap)
        if entry.limit > 1:
            entry.last = now
            entry.settle()
        on_loopback = not host  # files of this machine have none
        if address:
            on_loopback = is_loopback(address) if there is None else there.on_loopback
            schedule.addresses.enter(address, there, now, on_loopback=on_loopback, least=entry.most)
        schedule.domains.enter(domain, shared, now, on_loopback=on_loopback, least=entry.most)
        flight = _Flight(host, domain, address, task.attempt, 0.0 if is_free else crawl.begin(host, now))
        self._flights.setdefault(task.identity, deque()).append(flight)
        return entry.live < entry.limit

    def answered(self, answer: Answer) -> None:
        for flight in self._flights.get(answer.identity, ()):
            if flight.ruling is None:
                break
        else:
            return
        now, outcome = self.clock.monotonic(), answer.outcome
        entry, schedule = self.hosts[flight.host], self.schedule
        entry.live -= 1
        if outcome in UNASKED:
            schedule.crawl.network.unasked(flight.host)
            if entry.live == 0 and entry.prior[0] < inf:
                entry.last, entry.begun = entry.prior
        else:
            entry.last = now
            self._learn(flight.host, entry, answer, now, (flight.domain, flight.address), attempt=flight.attempt)
        entry.settle()
        schedule.domains.leave(flight.domain, entry.next if self.sheet.host_turns else -inf)
        schedule.addresses.leave(flight.address)
        waits, known = schedule.rules.waits, entry.pace
        if outcome is Outcome.RATE_LIMITED and entry.is_spent(waits):
            flight.ruling = KEEP  # other pages have not helped, and a page that is put off would keep the crawl alive
        elif outcome is Outcome.RATE_LIMITED:
            wait, gap = max(0.0, entry.next - now), max(known.gap, pace.delay_of(known, entry.rules) + known.latency)
            flight.ruling = retries.refused(flight.attempt, wait, gap, is_well=known.is_well, waits=waits)
        elif outcome not in RETRIED:
            flight.ruling = DONE
        else:
            flight.ruling = retries.ruling(outcome, flight.attempt, waits)
            is_suspect = outcome is Outcome.TIMED_OUT and not answer.is_met and schedule.crawl.network.is_suspect
            if is_suspect and flight.ruling is not DONE:
                flight.ruling = KEEP
        if schedule.parked:
            schedule.ended(flight.host, flight.domain, flight.address)

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

    def _learn(
        self,
        host: str,
        entry: AskedHost,
        answer: Answer,
        now: float,
        place: tuple[str, str],
        strikes: int | None = None,
        attempt: int = 1,
    ) -> None:
        outcome, network = answer.outcome, self.schedule.crawl.network
        if answer.is_met or outcome in REACHED:
            network.reached(host, now, place=place)
        elif outcome in UNREACHED or outcome is Outcome.TIMED_OUT:
            # Silence on a connection of before is what a stalling server and a lost network have in common: it proves nothing.
            known = (entry.pace, entry.circuit, entry.circuits)
            spared = network.failed(host, known, now, place=place, is_proof=outcome in UNREACHED)
            for name, before in spared.items():
                other = self.hosts.get(name)
                if other is not None:
                    other.pace, other.circuit, other.circuits = before
                    other.settle()
            if spared:
                self.schedule.is_outdated |= len(spared) > 1
                return
        entry.pace = pace.after(entry.pace, answer, now, self.clock.now(), entry.rules, self._draw, attempt)
        rules = self.schedule.rules
        if outcome is Outcome.DNS_FAILED:
            entry.circuit = circuit_after(entry.circuit, outcome, now, rules.waits, strikes or rules.strikes)
            return
        if outcome in CLOSING or outcome in STRIKING:
            entry.circuit = None  # its name has an address
        if entry.circuits or outcome in STRIKING:
            entry.judge_endpoint(site_of(answer.url) if answer.url else "", outcome, now, rules)

    # -- turns at addresses and domains

    def turns(self) -> tuple[list[str], dict[str, tuple[int, float]]]:
        """Places that hosts wait for, up to a number; and those whose turns have ended, with the number of the turn and the
        seconds in which no agent may ask there. A place is an address, or a registered domain behind :data:`DOMAIN_MARK`."""
        now = self.clock.monotonic()
        wanted: list[str] = []
        back: dict[str, tuple[int, float]] = {}
        for mark, places in self._shared.items():
            wanted += [mark + name for name in islice(places.wanted, WANTED_AT_ONCE - len(wanted))]
            back |= {mark + name: (number, max(0.0, opens - now)) for name, (number, opens) in places.back.items()}
        return wanted, back

    def turns_held(self) -> dict[str, int]:
        return {mark + name: number for mark, places in self._shared.items() for name, number in places.held().items()}

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
            places.recall(name, is_wanted=places.known(name) in self.schedule.parked)
        for told, (number, wait) in granted.items():
            places, name = self._place(told)
            self.schedule.opened(places.lend(name, number, now + wait))

    def _place(self, told: str) -> tuple[SharedPlaces, str]:
        mark = DOMAIN_MARK if told.startswith(DOMAIN_MARK) else ""
        return self._shared[mark], told.removeprefix(mark)

    # -- rates of the whole crawl

    def rates(self) -> tuple[RateUse | None, RateUse | None]:
        return self.schedule.crawl.uses()

    def take_rates(self, rate: float, bandwidth: float) -> None:
        """Go by so many times the `rate` and `bandwidth` of the settings, as the lender of rates has decided."""
        self.schedule.crawl.lend(rate, bandwidth, self.clock.monotonic())
        self.schedule.is_outdated = True

    # -- what else is known of a host

    def pace(self, host: str, crawl_delay: float) -> float:
        seconds = max(crawl_delay, self._slowed.get(host, 0.0))
        if not seconds and host not in self.hosts:
            return self.clock.monotonic()
        place = self.schedule.asked(host)
        place.pace = pace.with_crawl_delay(place.pace, seconds or None)
        place.settle()
        return place.next

    def hold(self, task: Task, seconds: float) -> None:
        self.schedule.asked(task.host).hold(site_of(task.url), self.clock.monotonic() + seconds)

    def missed(self, host: str) -> None:
        # One failure is enough, for the name was asked for more than once. Where our own network seems down the host is not
        # blamed, and waits for as long as the answer is remembered.
        entry, now = self.schedule.asked(host), self.clock.monotonic()
        entry.is_due = False
        failed = Answer("", host, Outcome.DNS_FAILED, 0.0)
        self._learn(host, entry, failed, now, (registered_domain(host), ""), strikes=1)
        if entry.circuit is None:
            entry.pace = msgspec.structs.replace(entry.pace, until=max(entry.pace.until, now + SPARED))
        entry.settle()

    def received(self, identity: str, size: int) -> None:
        flights = self._flights.get(identity)
        booked = 0.0
        if flights:
            booked, flights[0].booked = flights[0].booked, 0.0
        if self.schedule.crawl.is_capped:
            self.schedule.crawl.received(size, self.clock.monotonic(), booked)

    def waits(self, host: str, now: float) -> float:
        entry = self.hosts.get(host)
        return 0.0 if entry is None else max(0.0, entry.ready_at() - now)

    def delay(self, host: str) -> float:
        return self._told_delay(host)[0]

    def delay_reason(self, host: str) -> str:
        delay, reason = self._told_delay(host)
        return "processor" if reason == Reason.ROBOTS and delay == self._slowed.get(host) else reason

    def _told_delay(self, host: str) -> tuple[float, Reason]:
        entry = self.hosts.get(host)
        if entry is None:
            return pace.shown_delay(FRESH, pace_of(host, self.schedule.rules))
        return pace.shown_delay(entry.pace, entry.rules)

    def block(self, name: str) -> None:
        self._closed.block(name)

    def slow(self, host: str, seconds: float) -> None:
        self._slowed[host] = seconds = max(min(seconds, DAY), self._slowed.get(host, 0.0))
        entry = self.hosts.get(host)
        if entry is not None and entry.pace.crawl_delay < seconds:
            self.pace(host, seconds)

    def slowed(self, count: int) -> Sequence[tuple[str, float, str]]:
        taught = (
            (host, *pace.shown_delay(entry.pace, entry.rules))
            for host, entry in self.hosts.items()
            if entry.pace.gap or entry.pace.strain > 1
        )
        found = (one for one in taught if one[2] in (Reason.ERRORS, Reason.REFUSALS))
        return heapq.nlargest(count, found, key=lambda one: one[1])

    def held(self, hosts: Iterable[str] | None = None) -> Iterator[Held]:
        now = self.clock.monotonic()
        for host in self.schedule if hosts is None else hosts:
            entry = self.hosts.get(host)
            if entry is not None and entry.next > now:
                why = why_held(entry.pace, entry.circuit, entry.circuits, now, entry.rest)[0]
                yield Held(host, entry.next - now, why or self._told_delay(host)[1])

    @property
    def network_probe(self) -> float | None:
        """Seconds until our own network is probed again; None while it is up."""
        network = self.schedule.crawl.network
        return max(0.0, network.next_probe - self.clock.monotonic()) if network.is_down else None

    def rule_against(self, host: str) -> str:
        rule = self._blocklist.rule(host) if self._blocklist.entries else ""
        return rule or (self._closed.rule(host) if self._closed.entries else "")

    def take_blocked(self) -> Sequence[str]:
        blocked, self.schedule.blocked = self.schedule.blocked, []
        return blocked

    def is_spent(self, host: str) -> bool:
        entry = self.hosts.get(host)
        if entry is None or not (entry.circuit or entry.circuits or entry.pace.refusals):
            return False
        return entry.is_spent(self.sheet.retries)

    def closed(self, task: Task, now: float) -> float:
        entry = self.hosts.get(task.host)
        return entry.closed_for(task.url, now) if entry is not None and entry.circuits else 0.0

    def is_closed(self, host: str, now: float) -> bool:
        entry = self.hosts.get(host)
        return entry is not None and entry.is_closed(now)

    def meet(self, host: str, urls: Iterable[str]) -> None:
        if (entry := self.hosts.get(host)) is not None:
            entry.meet(urls)

    def retry_wait(self, host: str, now: float) -> float:
        entry = self.hosts.get(host)
        return 0.0 if entry is None else entry.retry_wait(now)

    def at_work(self) -> Iterable[str]:
        return self.schedule

    # -- what outlives the process

    def note(self, host: str) -> bytes:
        entry = self.hosts.get(host)
        return b"" if entry is None else self._encoder.encode(entry.note(self.clock.monotonic(), self.clock.now()))

    def restore(self, host: str, note: bytes, *, clean: bool) -> None:
        if not note or self.hosts.get(host) is not None:
            return
        try:
            read = self._notes.decode(note)
        except ValueError:
            self.metrics.count("notes_unreadable")
            return
        self.schedule.asked(host).restore(read, self.clock.monotonic(), self.clock.now(), clean=clean)

    def hush(self) -> None:
        self.schedule.crawl.hush(self.schedule.rules, self.clock.monotonic())

    def forget(self, host: str) -> bool:
        entry = self.hosts.get(host)
        if entry is not None and (entry.live or entry.next > self.clock.monotonic()):
            return False
        self.hosts.pop(host, None)
        return True

    def let_go(self, is_meant: Callable[[str], bool]) -> None:
        """Forget hosts that another agent asks from now on: when they may be asked again, its note says."""
        for host in [host for host in self.hosts if is_meant(host)]:
            self.schedule.drop(host)
            del self.hosts[host]
