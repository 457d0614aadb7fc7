"""What it saves to fetch each host from near by: agents at several places of a simulated world, with and without places.

The world: places on a circle, and registered domains whose hosts stand near the place of their country, or anywhere. A round trip
takes 5 ms, and up to 145 ms more by distance; what is measured strays from that by a quarter. In a first crawl the ring knows no
places, so each domain is measured by the one agent that has it. The rules that follow from this divide the same domains again.
"""

import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gossamer.agents.ring import MeasuredLatency, PlaceTable, Ring, rules_of
from gossamer.bench.report import BenchReport
from gossamer.values.agents import Member

#: Domains, their countries, and the share of them whose hosts stand anywhere.
DOMAINS, COUNTRIES, ANYWHERE = 20_000, 60, 0.25

#: Places with two agents each.
PLACES = ("amsterdam", "oregon", "singapore", "sao-paulo")

#: Milliseconds of the shortest round trip, and of what the other side of the world adds.
NEAR, FAR = 5.0, 145.0

#: Part by which a measurement strays.
NOISE = 0.25


class World(NamedTuple):
    """Where things are, as parts of a circle."""

    places: Mapping[str, float]
    domains: Mapping[str, float]

    def round_trip(self, place: str, domain: str) -> float:
        apart = abs(self.places[place] - self.domains[domain])
        return NEAR + FAR * 2 * min(apart, 1 - apart)


def world(domains: int = DOMAINS, seed: int = 1) -> World:
    """A world; the same for the same numbers."""
    chance = random.Random(seed)
    places = {place: number / len(PLACES) for number, place in enumerate(PLACES)}
    homes = [chance.random() for _ in range(COUNTRIES)]
    found = {}
    for number in range(domains):
        country = chance.randrange(COUNTRIES)
        is_home = chance.random() >= ANYWHERE
        at = (homes[country] + chance.gauss(0, 0.02)) % 1 if is_home else chance.random()
        found[f"site{number}.c{country}"] = at
    return World(places, found)


def run(domains: int = DOMAINS) -> BenchReport:
    report = BenchReport("places")
    found = world(domains)
    members = [
        Member(f"agent-{2 * number + twin:02d}", place=place) for number, place in enumerate(PLACES) for twin in (0, 1)
    ]
    at = {one.agent: one.place for one in members}
    alone = Ring(members)
    chance = random.Random(2)
    measured = []
    for domain in found.domains:
        place = at[alone.owner(domain)]
        measured.append(MeasuredLatency(place, domain, found.round_trip(place, domain) * (1 + chance.gauss(0, NOISE))))
    rules = rules_of(measured)
    nearest = {domain: min(PLACES, key=lambda place: found.round_trip(place, domain)) for domain in found.domains}
    table = report.table(
        f"{domains:,} domains of {COUNTRIES} countries, 8 agents at {len(PLACES)} places",
        "what",
        "rules",
        "mean round trip, ms",
        "at the nearest place",
        "most loaded agent, of the mean",
    )
    every = [f"{domain}={place}" for domain, place in nearest.items()]
    for name, given in (("no places", []), ("by measured latencies", rules), ("by the true places of all", every)):
        table.add(name, f"{len(given):,}", *_figures(found, Ring(members, PlaceTable(given)), at, nearest))
    return report


def _figures(found: World, ring: Ring, at: Mapping[str, str], nearest: Mapping[str, str]) -> tuple[str, str, str]:
    owners = {domain: ring.owner(domain) for domain in found.domains}
    trips: Sequence[float] = [found.round_trip(at[owner], domain) for domain, owner in owners.items()]
    loads = Counter(owners.values())
    hits = sum(at[owner] == nearest[domain] for domain, owner in owners.items())
    fullest = max(loads.values()) / (len(owners) / len(at))
    return f"{statistics.mean(trips):.1f}", f"{hits / len(owners):.0%}", f"{fullest:.2f}"
