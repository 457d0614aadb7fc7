"""Why hosts wait, in the words that people read."""

from tests.polite import Polite

from gossamer.frontier.politeness.places import Held, HeldBy
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer

ADDRESS = "198.51.100.7"


def asked(polite: Polite, host: str, now: float, outcome: Outcome, retry_after: str = "") -> None:
    """One request that ends at once."""
    polite.begin(host, "", now)
    polite.end(host, Answer(f"http://{host}/", host, outcome, 0.05, retry_after), now, 1_700_000_000.0 + now)


def held(polite: Polite, *hosts: str, now: float) -> dict[str, Held]:
    return {one.host: one for one in polite.held(hosts, now)}


def test_a_host_says_why_it_waits_and_for_how_long() -> None:
    polite = Polite()
    asked(polite, "refuses.test", 0.0, Outcome.RATE_LIMITED, retry_after="90")
    polite.missed("gone.test", 0.0, 1_700_000_000.0)
    polite.hold("robots.test", 45.0)
    asked(polite, "well.test", 0.0, Outcome.OK)
    found = held(polite, "refuses.test", "gone.test", "robots.test", "well.test", "never.test", now=0.5)
    assert {host: one.why for host, one in found.items()} == {
        "refuses.test": HeldBy.REFUSALS,
        "gone.test": HeldBy.DNS_FAILED,
        "robots.test": HeldBy.ROBOTS_UNREACHABLE,
        "well.test": polite.told_delay("well.test")[1],
    }
    assert 89.0 <= found["refuses.test"].seconds <= 130.0
    assert found["robots.test"].seconds == 44.5
    assert 0.0 < found["well.test"].seconds <= 1.0


def test_a_host_whose_wait_is_over_is_not_told() -> None:
    polite = Polite()
    polite.hold("robots.test", 45.0)
    assert held(polite, "robots.test", now=45.0) == {}


def test_a_network_that_is_down_says_when_it_is_probed_next() -> None:
    polite = Polite()
    hosts = [f"h{number}.test" for number in range(12)]
    for host in hosts:
        asked(polite, host, 0.0, Outcome.OK)
    for host in hosts:
        asked(polite, host, 100.0, Outcome.CONNECT_FAILED)
    assert polite.network.is_down
    assert polite.network.next_probe == 100.0 + polite.network.rules.first_probe
