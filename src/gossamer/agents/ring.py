"""Which agent has a host: the ring, by consistent hashing of assignable domains, and by places (Hunyadi 2007, section 3.3); and,
where a crawl has masters, the domains that an agent holds.

Each agent has points on a circle of 32 bits, as many as its capacity says, drawn from its name alone. A domain belongs to the
agent of the next point. So the members alone say which agent has a domain, a new agent takes only what lies before its own
points, and what an agent leaves behind falls to those behind its points.

    found here, domain held ──► the ledger's queues
    found here, not held ─────► the outbox, for any master ──► marshaled ──► `receive` of the agent that it is given to

Place in the flow: in the wiring of an agent, behind the outbox. With masters :class:`HeldDomains` has the place of the ring. A
domain is held from the group on that has its first URL from a master, and is handed over with everything else that the ledger
keeps of it. URLs that this agent itself has found come back to it where the domain becomes its own: they are seen here, owed,
and then queued.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import pairwise
from statistics import median
from typing import Annotated, NamedTuple

from xxhash import xxh32_intdigest

from gossamer.crawls.basic_options import PlaceRules
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.moving import Arc
from gossamer.storage.mailbox.contract import MASTERS, Designation
from gossamer.values.agents import Member, agent_name, digest_names, member
from gossamer.values.errors import UsageError
from gossamer.values.hosts import Division, DomainRule, Remembered, domain_point, domain_rule
from gossamer.values.task import Task
from gossamer.values.url import MAX_URL_BYTES

#: Points of an agent of capacity 1. The share of an agent strays from its due by about 1/sqrt(points), here 3 %; two agents
#: cost 2 ms when the ring is made, and a look-up costs one more step for each doubling.
POINTS = 1024


#: A range of addresses.
_Network = IPv4Network | IPv6Network

#: The last point of the circle.
_LAST = 2**32 - 1


class PlaceTable:
    """Says at which place a domain is best asked, by the longest suffix of labels, or for an address the narrowest network."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        """Rules as `SUFFIX=PLACE` or `NETWORK=PLACE`, as `hu=budapest`, `example.com=oslo` or `192.0.2.0/24=oslo`. Raises
        UsageError: a rule has another form."""
        self._places: dict[str, str] = {}
        networks: dict[_Network, str] = {}
        for rule in rules:
            suffix, equals, place = rule.strip().partition("=")
            if not (suffix and equals and place):
                raise UsageError(f"{rule!r} names no place; write SUFFIX=PLACE, as hu=budapest")
            if "/" not in suffix:
                self._places[suffix.lower().strip(".")] = place
                continue
            try:
                networks[ip_network(suffix)] = place
            except ValueError as error:
                raise UsageError(f"{rule!r} names no network ({error}); write 192.0.2.0/24=PLACE") from None
        self._networks = sorted(networks.items(), key=lambda one: -one[0].prefixlen)

    def place(self, domain: str) -> str:
        """The place of a domain, or of an address; empty where no rule speaks of it."""
        if domain in self._places:
            return self._places[domain]
        if self._networks:
            with suppress(ValueError):  # it is no address
                address = ip_address(domain)
                if place := next((place for network, place in self._networks if address in network), ""):
                    return place
        while self._places and domain:
            if domain in self._places:
                return self._places[domain]
            domain = domain.partition(".")[2]
        return ""


class Ring:
    """Members on a circle. It never changes: other members make another ring."""

    def __init__(self, members: Iterable[Member], places: PlaceTable | None = None) -> None:
        """The ring of those members that have not left. With places, a domain goes to those at its own, where there are any.
        Raises UsageError: there are no members, or two have one name."""
        found = sorted(members, key=lambda one: one.agent)
        for one, other in pairwise(found):
            if one.agent == other.agent:
                raise UsageError(f"two agents are called {one.agent!r}; give each a name of its own")
        found = [one for one in found if one.capacity]
        if not found:
            raise UsageError("a crawl has one agent at least")
        self.members = tuple(found)
        self._places = places or PlaceTable()
        self._all = _circle(found)
        by_place: dict[str, list[Member]] = {}
        for one in found:
            by_place.setdefault(one.place, []).append(one)
        self._circles: Mapping[str, _Circle] = {
            place: _circle(those) for place, those in by_place.items() if place and places is not None
        }

    def owner(self, domain: str) -> str:
        return _at(
            self._circles.get(self._places.place(domain), self._all) if self._circles else self._all,
            domain_point(domain),
        )

    def owner_at(self, point: int) -> str:
        """The agent of a point, where agents share one circle."""
        return _at(self._all, point)

    def ends(self) -> list[int]:
        """The last points of stretches that each belong to one agent. Raises ValueError: agents at different places share no
        circle."""
        if self._circles:
            raise ValueError("agents at different places share no circle")
        return [*self._all[0], _LAST]

    def arcs(self, agent: str) -> Sequence[Arc]:
        """The stretches of the circle that belong to an agent, in order. Raises as :meth:`ends`."""
        return moving(self, self).get((agent, agent), ())


def append(arcs: list[Arc], first: int, last: int) -> None:
    """Add a stretch behind others; those that touch are one."""
    if arcs and arcs[-1][1] == first - 1:
        first = arcs.pop()[0]
    arcs.append((first, last))


def moving(before: Ring, after: Ring) -> dict[tuple[str, str], list[Arc]]:
    """The stretches of the circle in order, by the agents that have them before and after. Raises as :meth:`Ring.ends`."""
    found: dict[tuple[str, str], list[Arc]] = defaultdict(list)
    first = 0
    for last in sorted({*before.ends(), *after.ends()}):
        append(found[before.owner_at(last), after.owner_at(last)], first, last)
        first = last + 1
    return found


#: Points in order, and the agent of each.
_Circle = tuple[Sequence[int], Sequence[str]]


def _at(circle: _Circle, point: int) -> str:
    points, owners = circle
    at = bisect_left(points, point)
    return owners[at if at < len(owners) else 0]


def _circle(members: Iterable[Member]) -> _Circle:
    placed = sorted(
        (xxh32_intdigest(f"{one.agent}/{number}".encode()), one.agent)
        for one in members
        for number in range(max(1, round(POINTS * one.capacity)))
    )
    return [point for point, _ in placed], [agent for _, agent in placed]


# The ring as a wiring names it. Its members are a setting, so that each agent is told of joins and leaves alike.

#: Hosts whose agent is remembered: a crawl asks for the same ones again and again. About 200 bytes each.
REMEMBERED = 65_536


class DivisionSheet(Sheet, frozen=True):
    """Settings of units that divide hosts among agents: the base of their sheets, so that no two of them differ."""

    division: Annotated[
        Division,
        setting(
            "Assign registered domains or single hosts as a whole. Use the value that the ledgers have.",
            restart="it is fixed when the crawl is made",
        ),
    ] = "domain"
    together: Annotated[
        tuple[str, ...],
        setting(
            "Assign these registered domains to the same agent. Use the value that the ledgers have (repeatable).",
            restart="it is fixed when the crawl is made",
        ),
    ] = ()


class RingSheet(DivisionSheet, frozen=True):
    members: Annotated[
        tuple[str, ...], setting("Divide the hosts among these agents: AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE.")
    ] = (agent_name(0),)
    places: PlaceRules = ()
    moved: Annotated[
        tuple[str, ...],
        setting(
            "Domains that have another agent than the ring says: DOMAIN=AGENT. The supervisor sets this when it moves one."
        ),
    ] = ()


class RingDesignation(Provider[RingSheet]):
    """Consistent hashing over the members of its sheet. Contract: `storage.mailbox.contract.Designation`."""

    def __init__(self, sheet: RingSheet | None = None) -> None:
        """The ring of the sheet. Raises UsageError: the sheet names agents, places or domains in a way that cannot be read."""
        super().__init__(sheet)
        self._rule = DomainRule()
        self._owners = Remembered(self._owner, REMEMBERED)
        self._moved: dict[str, str] = {}
        self._ring = self._made()
        self.metrics.gauge("agents", lambda: len(self._ring.members))

    def _made(self) -> Ring:
        sheet = self.sheet
        self._rule = domain_rule(sheet.division, sheet.together)
        self._moved = dict(text.rsplit("=", 1) for text in sheet.moved)
        return Ring(map(member, sheet.members), PlaceTable(sheet.places))

    def changed(self, before: RingSheet) -> None:
        self._ring = self._made()
        self._owners.clear()

    def owner(self, host: str) -> str:
        """The agent that a host belongs to."""
        return self._owners[host]

    def _owner(self, host: str) -> str:
        domain = self._rule.assignable(host)
        return self._moved.get(domain) or self._ring.owner(domain)


# Places of hosts: latencies that agents at several places have measured become rules for the ring (`places`), or for the policy
# `by-place` of a marshaler. A domain that was measured from several places goes to the nearest one. Of most domains only one agent
# knows a latency; they go by their suffix, if the domains below it are nearer to one place than to all others.

#: Domains of a suffix that a place must have measured: the median of fewer says little.
ENOUGH = 8

#: Part of the latency that another place must save: a place nearly as near is divided by the ring, which is even.
WORTH = 0.2


class MeasuredLatency(NamedTuple):
    """The latency that an agent has measured of one domain."""

    place: str
    """Of the agent."""
    domain: str
    seconds: float
    """The usual time until a connection is open, or until an answer begins."""


def rules_of(measured: Iterable[MeasuredLatency], *, enough: int = ENOUGH, worth: float = WORTH) -> list[str]:
    """Rules as `SUFFIX=PLACE`, in order; a domain has one of its own only where its suffix leads elsewhere, or nowhere.

    Args:
        measured: in any order; of several for one domain at one place, the median counts.
        enough: domains of a suffix that a place must have measured.
        worth: part of the latency that the nearest place must save beside the next one.
    """
    of_domains: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, domain, seconds in measured:
        of_domains[domain][place].append(seconds)
    of_suffixes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    medians = {domain: {place: median(times) for place, times in those.items()} for domain, those in of_domains.items()}
    for domain, those in medians.items():
        for suffix in _suffixes(domain):
            for place, seconds in those.items():
                of_suffixes[suffix][place].append(seconds)
    found: dict[str, str] = {}
    for suffix in sorted(of_suffixes, key=lambda name: name.count(".")):
        known = {place: median(times) for place, times in of_suffixes[suffix].items() if len(times) >= enough}
        _add(found, suffix, known, worth)
    for domain in sorted(medians):
        _add(found, domain, medians[domain], worth)
    return [f"{name}={place}" for name, place in sorted(found.items())]


def _add(found: dict[str, str], name: str, known: dict[str, float], worth: float) -> None:
    """Add a rule where one place is nearer than all others, and a wider rule does not say so already."""
    if len(known) < 2:
        return
    (least, place), (next_, _), *_ = sorted((seconds, place) for place, seconds in known.items())
    if least > (1 - worth) * next_:
        return
    wider = next((found[suffix] for suffix in _suffixes(name) if suffix in found), "")
    if place != wider:
        found[name] = place


def _suffixes(domain: str) -> Iterator[str]:
    """The part behind each dot of a name, the longest first; none of an address."""
    if ":" in domain or domain.rpartition(".")[2].isdigit():
        return
    while domain := domain.partition(".")[2]:
        yield domain


#: The domains that an agent holds, each under itself. The value repeats the domain, since a key has only its hash.
HELD = Space("held-domains", value_bytes=MAX_URL_BYTES, host_bytes=MAX_URL_BYTES + 64)


class HeldDomainsSheet(DivisionSheet, frozen=True):
    agent: Annotated[str, setting("Hold the domains of this agent.", restart="it names this agent")] = agent_name(0)


class HeldDomains(Provider[HeldDomainsSheet]):
    """Knows the domains that one agent holds. Contract: `Designation`."""

    ledger: Uses[RocksLedger]
    ring: Uses[Designation]
    keeps_state = True

    def __init__(self, sheet: HeldDomainsSheet | None = None) -> None:
        super().__init__(sheet)
        self._owners = Remembered(self._owner, REMEMBERED)
        self._rule: DomainRule = domain_rule(self.sheet.division, self.sheet.together)

    async def start(self) -> None:
        self.ledger.spaces.open(HELD)

    def owner(self, host: str) -> str:
        return self._owners[host]

    def _owner(self, host: str) -> str:
        domain = self._rule.assignable(host)
        name = digest_names().get(domain_point(domain))
        if name is not None:
            is_held = self.ring.owner(name) == self.sheet.agent
        else:
            is_held = self.ledger.spaces.get(HELD, domain) is not None
        return self.sheet.agent if is_held else MASTERS

    def hold(self, hosts: Iterable[str], group: Group) -> None:
        """Hold the domains of these hosts from this group on."""
        digests = digest_names()
        for domain in dict.fromkeys(map(self._rule.assignable, hosts)):
            if domain_point(domain) not in digests and group.get(HELD, domain, b"") is None:
                group.put(HELD, domain, b"", domain.encode())
                self.metrics.count("domains")
                self._owners[domain] = self.sheet.agent  # the group itself asks, and does not see what it holds
        for host in hosts:
            # Where the group fails, the master sends its URLs again, and their domains are noted then.
            self._owners[host] = self.sheet.agent

    def has_task(self, task: Task) -> bool:
        """Whether this agent has a task that came as mail; that it has met the URL says nothing, since it may be who found it."""
        return self.ledger.has_task(task.identity)


def held_domains(ledger: Ledger) -> list[str]:
    ledger.spaces.open(HELD)
    return [value.decode() for _, value in ledger.spaces.walk(HELD)]


def let_go(ledger: Ledger, domains: Sequence[str]) -> None:
    """Hold domains no more that are deleted, or that were copied here and are not to move after all."""
    if domains:
        ledger.spaces.open(HELD)
        with ledger.group() as group:
            for domain in domains:
                group.delete(HELD, domain, b"")


def hold_again(ledger: Ledger, domains: Iterable[str]) -> None:
    """Let a ledger that has lost everything hold the domains that its agent has by the table."""
    ledger.spaces.open(HELD)
    with ledger.group() as group:
        for domain in domains:
            group.put(HELD, domain, b"", domain.encode())
