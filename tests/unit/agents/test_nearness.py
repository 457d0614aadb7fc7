"""Hosts get a place from measured latencies, and the ring gives them to agents there."""

import random

from gossamer.agents.ring import MeasuredLatency, PlaceTable, Ring, rules_of
from gossamer.values.agents import Member


def measured(place: str, seconds: float, *domains: str) -> list[MeasuredLatency]:
    return [MeasuredLatency(place, domain, seconds) for domain in domains]


HU = [f"h{number}.hu" for number in range(20)]


def test_domains_go_by_their_suffix_where_one_place_is_nearer_than_all_others() -> None:
    told = measured("budapest", 0.01, *HU[:10]) + measured("oslo", 0.05, *HU[10:])
    assert rules_of(told) == ["hu=budapest"]
    few = measured("budapest", 0.01, *HU[:10]) + measured("oslo", 0.05, *HU[10:14])
    assert rules_of(few) == [], "so few say little"
    alike = measured("budapest", 0.045, *HU[:10]) + measured("oslo", 0.05, *HU[10:])
    assert rules_of(alike) == [], "what is nearly as near is left to the ring"


def test_a_domain_that_was_measured_from_two_places_goes_by_itself() -> None:
    country = measured("budapest", 0.01, *HU[:10]) + measured("oslo", 0.05, *HU[10:])
    away = measured("budapest", 0.09, "far.hu") + measured("oslo", 0.02, "far.hu")
    home = measured("budapest", 0.01, "near.hu") + measured("oslo", 0.07, "near.hu")
    assert rules_of(country + away + home) == ["far.hu=oslo", "hu=budapest"]


def test_the_median_counts_so_that_one_bad_moment_decides_nothing() -> None:
    told = (
        measured("budapest", 9.0, "a.hu") + measured("budapest", 0.01, "a.hu", "a.hu") + measured("oslo", 0.05, "a.hu")
    )
    assert rules_of(told) == ["a.hu=budapest"]


def test_an_address_has_no_suffix() -> None:
    told = measured("budapest", 0.01, "192.0.2.7") + measured("oslo", 0.05, "192.0.2.7")
    assert rules_of(told, enough=1) == ["192.0.2.7=budapest"]


PLACES = ("amsterdam", "oregon", "singapore", "sao-paulo")


def test_the_ring_fetches_from_nearer_by_with_rules_that_one_measurement_of_each_domain_gave() -> None:
    """Places on a circle, and domains of which three quarters stand near the place of their country, the others anywhere."""
    chance = random.Random(1)
    homes = [chance.random() for _ in range(60)]
    domains = {}
    for number in range(3_000):
        country = chance.randrange(len(homes))
        stands = homes[country] + chance.gauss(0, 0.02) if chance.random() >= 0.25 else chance.random()
        domains[f"site{number}.c{country}"] = stands % 1
    members = [Member(f"agent-{number:02d}", place=place) for number, place in enumerate(PLACES)]
    places = {one.agent: one.place for one in members}

    def round_trip(agent: str, domain: str) -> float:
        apart = abs(PLACES.index(places[agent]) / len(PLACES) - domains[domain])
        return 5 + 290 * min(apart, 1 - apart)

    def mean(ring: Ring) -> float:
        return sum(round_trip(ring.owner(domain), domain) for domain in domains) / len(domains)

    alone = Ring(members)
    told = [MeasuredLatency(places[alone.owner(one)], one, round_trip(alone.owner(one), one)) for one in domains]
    near = Ring(members, PlaceTable(rules_of(told)))
    assert mean(near) < 0.7 * mean(alone)
