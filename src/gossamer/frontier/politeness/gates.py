"""The layers of politeness together: host, registered domain, IP address, whole crawl.

Place in the flow: the frontier asks before it hands out a task, says `begin` when it does, and `end` at the answer. A
request goes out when every layer allows it:

- *host*: one live request (`per_host` where the user owns it), its own delay (:mod:`pace`), the circuits of its name and of its
  endpoints (:mod:`retries`);
- *domain* and *address*: at most 4 live and 0.25 s between two starts each;
- *crawl*: pages/s, bytes/s, and our own network is there (:mod:`whole_crawl`).

The delay of a host counts from the end of its last request, and with `per_host` > 1 from its last start too; the gap that
refusals have taught counts from its last start. Only what
has begun has an entry here, so memory follows the hosts that were asked, and :meth:`Gates.forget` gives it back.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf

import msgspec

from gossamer.frontier.politeness import pace, retries
from gossamer.frontier.politeness.pace import FRESH, Reason
from gossamer.frontier.politeness.places import AskedHost, Held, HostNote, Place, SharedPlaces, why_held
from gossamer.frontier.politeness.retries import CLOSING, STRIKING, circuit_after
from gossamer.frontier.politeness.rules import GateRules, live_of, pace_of
from gossamer.frontier.politeness.whole_crawl import Known, Network, WholeCrawl
from gossamer.values.addresses import is_loopback
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import DONE, KEEP, Answer, RetryDecision
from gossamer.values.url import site_of

#: Outcomes of tasks for which nothing was asked of the host: its delay runs on as if they had not been.
UNASKED = frozenset(
    {
        Outcome.ROBOTS_DENIED,
        Outcome.ADDRESS_REFUSED,
        Outcome.SCHEME_REFUSED,
        Outcome.BLOCKED,
        Outcome.GONE_AFTER_RETRIES,
    }
)

#: Outcomes of requests that never met their host, as they all end when our own network is down. Answers that say that a server
#: was there do not count, whatever their outcome.
UNREACHED = frozenset({Outcome.DNS_FAILED, Outcome.CONNECT_FAILED})

#: Outcomes that prove that packets come and go.
REACHED = ANSWERED | {Outcome.TLS_FAILED, Outcome.PROTOCOL_FAILED, Outcome.TOO_SLOW}

#: Seconds that a host waits whose name was not found while our own network seemed down: a resolver's answer that there is
#: no address is remembered for as long.
SPARED = 5.0


class Gates:
    """Says when a host may be asked, and learns from every answer."""

    def __init__(
        self,
        rules: GateRules | None = None,
        *,
        network: Network[Known] | None = None,
        draw: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`draw` gives numbers in [0, 1), for jitter; `network` watches over our own, and belongs to these gates alone."""
        self.rules = rules or GateRules()
        self.crawl = WholeCrawl(self.rules, network)
        self.network = self.crawl.network
        self.changes = 0
        """How often hosts may have become ready earlier than they were told: settings changed, or hosts were spared."""
        self._draw = draw
        self.hosts: dict[str, AskedHost] = {}
        """Hosts that were asked, or are known."""
        known = self.rules
        self.domains = SharedPlaces(known.domain, known.domain_on_loopback, known.per_host)
        self.addresses = SharedPlaces(known.address, known.address_on_loopback, known.per_host)

    # -- asking

    def blocker(self, host: str, domain: str, address: str) -> tuple[float, Place | None]:
        """The instant at which host, domain and address all allow a request, and the last of them to do so.

        The time is infinite if another request has to end first. None: they know nothing that is against it.
        """
        until = -inf
        where: Place | None = None
        own, shared = self.hosts.get(host), self.domains.get(domain)
        # A turn at an address is no use without the domain's: two agents would wait for each other's.
        there = None if shared is not None and not shared.limit else self.addresses.get(address)
        if own is not None:
            until, where = inf if own.live >= own.limit else own.next, own
        if shared is not None:
            opens = inf if shared.live >= shared.limit else shared.next
            if opens > until:
                until, where = opens, shared
        if there is not None:
            opens = inf if there.live >= there.limit else there.next
            if opens > until:
                until, where = opens, there
        return until, where

    def ready_at(self, host: str, domain: str, address: str, now: float) -> float:
        """The earliest instant at which :meth:`begin` is allowed as things are; infinite if something must end first.

        Args:
            host: its name without port.
            domain: its registered domain.
            address: its IP address; empty while unknown, and then no address's share is taken.
            now: monotonic seconds.
        """
        return max(now, self.crawl.ready_at(now), self.blocker(host, domain, address)[0])

    # -- events

    def begin(self, host: str, domain: str, address: str, now: float) -> float:
        """A request goes out. Returns the bytes that are booked for it, for :meth:`WholeCrawl.received`. Raises ValueError:
        it may not yet."""
        entry = self.hosts.get(host)
        shared, there = self.domains.get(domain), self.addresses.get(address)
        for place in (entry, shared, there):
            if place is not None and (place.live >= place.limit or place.next > now):
                raise ValueError(f"{host} may not be asked yet")
        if self.crawl.ready_at(now) > now:
            raise ValueError(f"the crawl as a whole may not ask {host} yet")
        if entry is None:
            entry = self.hosts[host] = AskedHost(host, self.rules)
        entry.is_due = False
        entry.live += 1
        entry.prior = (entry.last, entry.begun) if entry.live == 1 else (inf, inf)
        entry.begun = entry.start_of(now)
        if entry.limit > 1:
            entry.last = now
            entry.settle()
        on_loopback = not host  # files of this machine have none
        if address:
            on_loopback = is_loopback(address) if there is None else there.on_loopback
            self.addresses.enter(address, there, now, on_loopback=on_loopback, least=entry.most)
        self.domains.enter(domain, shared, now, on_loopback=on_loopback, least=entry.most)
        return self.crawl.begin(host, now)

    def end(
        self, host: str, domain: str, address: str, answer: Answer, now: float, wall: float, attempt: int = 1
    ) -> RetryDecision:
        """It has been answered, or has failed.

        Args:
            host, domain, address: as they were given to :meth:`begin`.
            answer: how it ended.
            now: monotonic seconds.
            wall: seconds since the epoch.
            attempt: which try of its page it was, from 1.

        Returns:
            What becomes of the page.

        Raises:
            KeyError: no such request is live.
        """
        entry = self.hosts[host]
        if entry.live <= 0:
            raise KeyError(f"{host} has no live request")
        entry.live -= 1
        self.domains.leave(domain)
        self.addresses.leave(address)
        outcome = answer.outcome
        if outcome in UNASKED:
            self.network.unasked(host)
            if entry.live == 0 and entry.prior[0] < inf:
                entry.last, entry.begun = entry.prior
        else:
            entry.last = now
            self._learn(host, entry, answer, now, wall, (domain, address), attempt=attempt)
        entry.settle()
        if outcome is Outcome.RATE_LIMITED:
            return self._refused(entry, attempt, now)
        ruled = retries.ruling(outcome, attempt, self.rules.waits)
        if ruled is DONE:
            return ruled
        return KEEP if outcome is Outcome.TIMED_OUT and not answer.is_met and self.network.is_suspect else ruled

    def missed(self, host: str, now: float, wall: float, domain: str = "") -> None:
        """A host's name has no address. No request is live; one failure is enough, for the name was asked for more than
        once. Where our own network seems down the host is not blamed, and waits for as long as the answer is remembered.
        """
        entry = self.hosts.setdefault(host, AskedHost(host, self.rules))
        entry.is_due = False
        self._learn(host, entry, Answer("", host, Outcome.DNS_FAILED, 0.0), now, wall, (domain, ""), strikes=1)
        if entry.circuit is None:
            entry.pace = msgspec.structs.replace(entry.pace, until=max(entry.pace.until, now + SPARED))
        entry.settle()

    def set_crawl_delay(self, host: str, seconds: float | None) -> None:
        """Set the `Crawl-delay` of this host; None is none. It counts from the host's last request."""
        entry = self.hosts.get(host)
        if entry is None:
            if seconds is None:
                return
            entry = self.hosts[host] = AskedHost(host, self.rules)
        entry.pace = pace.with_crawl_delay(entry.pace, seconds)
        entry.settle()

    def raise_crawl_delay(self, host: str, seconds: float) -> None:
        """At least so long between two requests to a host that is known here, whatever its robots.txt says."""
        entry = self.hosts.get(host)
        if entry is not None and entry.pace.crawl_delay < seconds:
            self.set_crawl_delay(host, seconds)

    def hold(self, host: str, until: float, url: str = "") -> None:
        """Do not ask the endpoint of this URL before that instant: its robots.txt is out of reach, say, and is due again then."""
        entry = self.hosts.setdefault(host, AskedHost(host, self.rules))
        entry.hold(site_of(url), until)

    def rest(self, host: str, until: float, word: str) -> None:
        """A rule beside ours has this host left alone until that instant, and says why in one word."""
        entry = self.hosts.setdefault(host, AskedHost(host, self.rules))
        entry.rest = (until, word)
        entry.settle()

    def change(self, rules: GateRules) -> None:
        self.rules = rules
        self.changes += 1
        self.crawl.change(rules)
        for host, entry in self.hosts.items():
            entry.rules, entry.most = pace_of(host, rules), live_of(host, rules)
            entry.settle()
        self.domains.change(rules.domain, rules.domain_on_loopback, rules.per_host)
        self.addresses.change(rules.address, rules.address_on_loopback, rules.per_host)

    # -- what is known

    def told_delay(self, host: str) -> tuple[float, Reason]:
        entry = self.hosts.get(host)
        return pace.shown_delay(entry.pace if entry else FRESH, entry.rules if entry else pace_of(host, self.rules))

    def slowed(self) -> Iterator[tuple[str, float, Reason]]:
        for host, entry in self.hosts.items():
            if entry.pace.gap or entry.pace.strain > 1:
                delay, reason = pace.shown_delay(entry.pace, entry.rules)
                if reason in (Reason.ERRORS, Reason.REFUSALS):
                    yield host, delay, reason

    def held(self, hosts: Iterable[str], now: float) -> Iterator[Held]:
        for host in hosts:
            entry = self.hosts.get(host)
            if entry is not None and entry.next > now:
                why = (
                    why_held(entry.pace, entry.circuit, entry.circuits, now, entry.rest)[0] or self.told_delay(host)[1]
                )
                yield Held(host, entry.next - now, why)

    def restore(self, host: str, note: HostNote, now: float, wall: float, *, clean: bool = True) -> None:
        """Take up what the ledger kept of this host; for the arguments see :meth:`AskedHost.restore`."""
        self.hosts.setdefault(host, AskedHost(host, self.rules)).restore(note, now, wall, clean=clean)

    def forget(self, host: str, now: float) -> bool:
        """Give back this host's memory, once nothing is left to fetch there and its note is kept; False while it is busy."""
        entry = self.hosts.get(host)
        if entry is not None and (entry.live or entry.next > now):
            return False
        self.hosts.pop(host, None)
        return True

    # -- inside

    def _refused(self, entry: AskedHost, attempt: int, now: float) -> RetryDecision:
        waits = self.rules.waits
        if entry.is_spent(waits):
            return KEEP  # to ask for other pages has not helped, and a page that is put off would keep the crawl alive
        known = entry.pace
        gap = max(known.gap, pace.delay_of(known, entry.rules) + known.latency)
        return retries.refused(attempt, max(0.0, entry.next - now), gap, is_well=known.is_well, waits=waits)

    def _learn(
        self,
        host: str,
        entry: AskedHost,
        answer: Answer,
        now: float,
        wall: float,
        place: tuple[str, str],
        strikes: int | None = None,
        attempt: int = 1,
    ) -> None:
        outcome = answer.outcome
        if answer.is_met or outcome in REACHED:
            self.network.reached(host, now, place=place)
        elif outcome in UNREACHED or outcome is Outcome.TIMED_OUT:
            # Silence on a connection of before is what a stalling server and a lost network have in common: it proves nothing.
            known = (entry.pace, entry.circuit, entry.circuits)
            spared = self.network.failed(host, known, now, place=place, is_proof=outcome in UNREACHED)
            for name, before in spared.items():
                other = self.hosts.get(name)
                if other is not None:
                    other.pace, other.circuit, other.circuits = before
                    other.settle()
            if spared:
                self.changes += len(spared) > 1
                return
        entry.pace = pace.after(entry.pace, answer, now, wall, entry.rules, self._draw, attempt)
        if outcome is Outcome.DNS_FAILED:
            entry.circuit = circuit_after(entry.circuit, outcome, now, self.rules.waits, strikes or self.rules.strikes)
            return
        if outcome in CLOSING or outcome in STRIKING:
            entry.circuit = None  # its name has an address
        if entry.circuits or outcome in STRIKING:
            entry.judge_endpoint(site_of(answer.url) if answer.url else "", outcome, now, self.rules)
