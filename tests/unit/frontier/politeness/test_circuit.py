"""Circuit, retry table, and whether it is the hosts or our own network."""

import pytest

from gossamer.frontier.politeness.retries import RETRIED, Circuit, Whose, ruling
from gossamer.frontier.politeness.retries import circuit_after as after
from gossamer.frontier.politeness.whole_crawl import Network, NetworkRules
from gossamer.values.outcome import TRANSIENT, Outcome
from gossamer.values.task import DONE, GONE, KEEP, Disposition


def failing(times: int, circuit: Circuit | None = None, now: float = 0.0) -> tuple[Circuit | None, float]:
    """The circuit after so many failures, each as early as one is possible."""
    for _ in range(times):
        now = max(now + 1.0, circuit.until if circuit else 0.0)
        circuit = after(circuit, Outcome.CONNECT_FAILED, now)
    return circuit, now


def test_five_failures_in_a_row_open_the_circuit() -> None:
    circuit, _ = failing(4)
    assert circuit is not None and not circuit.is_open and not circuit.until
    circuit, now = failing(5)
    assert circuit is not None and circuit.is_open and circuit.until == now + 10.0


def test_waits_between_probes_follow_the_table_then_double_up_to_six_hours() -> None:
    circuit, now = failing(5)
    waits = []
    for _ in range(8):
        assert circuit is not None
        waits.append(circuit.until - now)
        circuit, now = failing(1, circuit, now)
    assert waits == [10, 600, 3600, 7200, 14400, 21600, 21600, 21600]


def test_any_answer_closes_the_circuit() -> None:
    circuit, now = failing(9)
    for outcome in (Outcome.OK, Outcome.CLIENT_ERROR, Outcome.SERVER_ERROR, Outcome.RATE_LIMITED):
        assert after(circuit, outcome, now) is None


def test_answers_that_say_nothing_of_the_host_leave_the_circuit_alone() -> None:
    circuit, now = failing(5)
    assert after(circuit, Outcome.ROBOTS_DENIED, now) == circuit


def test_failures_that_were_under_way_when_it_opened_are_no_probes() -> None:
    circuit, now = failing(5)
    assert after(circuit, Outcome.CONNECT_FAILED, now + 3.0) == circuit


def test_a_host_is_spent_after_three_probes() -> None:
    spent = [bool(circuit and circuit.is_spent()) for circuit, _ in (failing(times) for times in range(5, 9))]
    assert spent == [False, False, False, True]


def test_every_transient_outcome_is_retried_and_no_other() -> None:
    assert set(RETRIED) == TRANSIENT - {Outcome.GONE_AFTER_RETRIES}


def test_a_page_is_tried_again_after_10_seconds_10_and_60_minutes_then_gone() -> None:
    rulings = [ruling(Outcome.SERVER_ERROR, attempt) for attempt in (1, 2, 3, 4)]
    assert [one.wait for one in rulings[:3]] == [10.0, 600.0, 3600.0]
    assert all(one.what is Disposition.RETRY for one in rulings[:3])
    assert rulings[3] == GONE


@pytest.mark.parametrize("outcome", [outcome for outcome, whose in RETRIED.items() if whose is Whose.HOST])
def test_what_the_host_is_to_blame_for_costs_the_page_no_try(outcome: Outcome) -> None:
    assert ruling(outcome, 1) == ruling(outcome, 99) == KEEP


def test_everything_else_is_final() -> None:
    assert all(ruling(outcome, 1) == DONE for outcome in Outcome if outcome not in RETRIED)


def working(hosts: int) -> Network[str]:
    """A network over which so many hosts were reached."""
    network: Network[str] = Network()
    for number in range(hosts):
        network.reached(f"h{number}.test", 0.0)
    return network


def outage(network: Network[str], hosts: int, failures: int = 12, now: float = 0.0) -> dict[str, str]:
    """Failures in turn over so many hosts; what is to be restored."""
    restored: dict[str, str] = {}
    for number in range(failures):
        restored |= network.failed(f"h{number % hosts}.test", f"known {number}", now)
    return restored


def test_failures_over_many_hosts_mean_that_our_own_network_is_down() -> None:
    network = working(6)
    restored = outage(network, 6)
    assert network.is_down
    assert restored == {f"h{number}.test": f"known {number}" for number in range(6)}, (
        "as it was before each first failure"
    )


def test_one_success_in_between_means_that_it_is_the_hosts() -> None:
    network = working(6)
    assert outage(network, 6, failures=11) == {}
    network.reached("h1.test", 0.0)
    assert outage(network, 6, failures=11) == {}
    assert not network.is_down


def test_a_few_hosts_that_fail_are_to_blame_themselves() -> None:
    network = working(6)
    assert outage(network, 3, failures=100) == {}
    assert not network.is_down


@pytest.mark.parametrize("hosts", [2, 3])
def test_our_network_is_down_where_all_of_a_few_hosts_fail_that_answered_lately(hosts: int) -> None:
    network = working(hosts)
    assert outage(network, hosts, failures=3 * hosts - 1) == {}
    assert len(outage(working(hosts), hosts, failures=3 * hosts)) == hosts, "so soon that none is given up before"
    later = working(6)
    for number in range(hosts):
        later.reached(f"h{number}.test", 1000.0)
    assert len(outage(later, hosts, now=1010.0)) == hosts, "the others have no more pages"


def test_one_site_that_fails_is_to_blame_itself() -> None:
    network: Network[str] = Network()
    for name in ("a.one.test", "b.one.test"):
        network.reached(name, 0.0, place=("one.test", "192.0.2.1"))
    for number in range(100):
        assert network.failed(f"{'ab'[number % 2]}.one.test", "", 1.0, place=("one.test", "192.0.2.1")) == {}


def test_a_list_of_dead_links_is_not_an_outage() -> None:
    network = working(1)
    assert outage(network, 100, failures=1000) == {}
    assert not network.is_down


def test_while_the_network_is_down_one_probe_at_a_time_goes_out_at_growing_distances() -> None:
    network = working(6)
    outage(network, 6)
    waits, now = [], 0.0
    for _ in range(8):
        waits.append(network.ready_at(now) - now)
        now = network.ready_at(now)
        network.begun("h1.test")
        assert network.ready_at(now) == float("inf")
        assert network.failed("h1.test", "as ever", now) == {"h1.test": "as ever"}
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    network.begun("h2.test")
    network.reached("h2.test", 0.0)
    assert not network.is_down and network.ready_at(now) == now


def test_a_probe_that_never_went_out_proves_nothing() -> None:
    network = working(6)
    outage(network, 6)
    network.begun("h1.test")
    network.unasked("h1.test")
    assert network.is_down and network.ready_at(1.0) == 1.0


def test_hosts_are_blamed_after_all_when_patience_ends_until_one_answers() -> None:
    network: Network[str] = Network(NetworkRules(patience=100.0))
    for number in range(6):
        network.reached(f"h{number}.test", 0.0)
    outage(network, 6)
    now = 0.0
    while network.is_down:
        now = network.ready_at(now)
        network.begun("h1.test")
        network.failed("h1.test", "as ever", now)
    assert 100.0 <= now <= 200.0
    assert outage(network, 6, now=now) == {} and not network.is_down
    network.reached("h3.test", 0.0)
    assert outage(network, 6, now=now) and network.is_down
