"""The layers of politeness together."""

from math import inf

import pytest

from gossamer.frontier.politeness.gates import Gates
from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.places import HostNote
from gossamer.frontier.politeness.rules import GateRules, Share
from gossamer.frontier.politeness.whole_crawl import RateUse
from gossamer.testing import FakeClock
from gossamer.values.hosts import registered_domain
from gossamer.values.outcome import Outcome
from gossamer.values.task import KEEP, Answer, Disposition

PUBLIC = "198.51.100.7"
WALL = 1_700_000_000.0


def note_of(gates: Gates, host: str, now: float, wall: float) -> HostNote | None:
    known = gates.hosts.get(host)
    return None if known is None else known.note(now, wall)


def spent(gates: Gates, host: str) -> bool:
    known = gates.hosts.get(host)
    return known is not None and known.is_spent(gates.rules.waits)


def end(
    gates: Gates,
    host: str,
    now: float,
    outcome: Outcome = Outcome.OK,
    *,
    domain: str = "",
    address: str = PUBLIC,
    elapsed: float = 0.05,
    retry_after: str = "",
    is_met: bool = False,
) -> Disposition:
    """End a live request; what becomes of the page."""
    answer = Answer(f"http://{host}/", host, outcome, elapsed, retry_after, is_met)
    return gates.end(host, domain or host, address, answer, now, WALL + now).what


def address_of(host: str) -> str:
    """Each `hN.test` has an address of its own; all others share one."""
    number = host[1:].partition(".")[0]
    return f"203.0.113.{number}" if host.startswith("h") and number.isdigit() else PUBLIC


def ask(gates: Gates, host: str, now: float, outcome: Outcome = Outcome.OK, **more: float | str | bool) -> float:
    """One request as early as it may begin, 0.05 s long; when it ended."""
    address = address_of(host)
    began = gates.ready_at(host, host, address, now)
    gates.begin(host, host, address, began)
    end(gates, host, began + 0.05, outcome, **{"address": address, **more})  # type: ignore[arg-type]
    return began + 0.05


def test_a_host_is_never_asked_twice_at_once() -> None:
    gates = Gates()
    gates.begin("a.test", "a.test", PUBLIC, 0.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 9.0) == inf
    with pytest.raises(ValueError, match=r"a\.test may not be asked yet"):
        gates.begin("a.test", "a.test", PUBLIC, 9.0)


def test_the_delay_counts_from_the_end_of_the_last_request() -> None:
    gates = Gates()
    gates.begin("a.test", "a.test", PUBLIC, 0.0)
    end(gates, "a.test", 7.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 7.0) == 8.0
    assert gates.ready_at("a.test", "a.test", "203.0.113.9", 7.0) == 8.0, "another address is the same host"


def test_who_owns_the_host_may_ask_it_several_times_at_once() -> None:
    gates = Gates(GateRules(pace=PaceRules(delay=0.0), per_host=3, domain=Share(gap=0.0), address=Share(gap=0.0)))
    for _ in range(3):
        gates.begin("a.test", "a.test", PUBLIC, 0.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 0.0) == inf
    end(gates, "a.test", 1.0, Outcome.RATE_LIMITED)
    end(gates, "a.test", 1.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 60.0) == inf, "after a refusal one is in flight"


def test_hosts_of_a_domain_share_four_live_requests_a_quarter_of_a_second_apart() -> None:
    gates = Gates()
    for number in range(4):
        name = f"h{number}.example.org"
        assert gates.ready_at(name, "example.org", "", 0.0) == number * 0.25
        gates.begin(name, "example.org", "", number * 0.25)
    assert gates.ready_at("h9.example.org", "example.org", "", 5.0) == inf
    end(gates, "h0.example.org", 5.0, domain="example.org", address="")
    assert gates.ready_at("h9.example.org", "example.org", "", 5.0) == 5.0


def test_hosts_at_an_address_share_it_likewise() -> None:
    gates = Gates()
    for number in range(4):
        name = f"h{number}.test"
        assert gates.ready_at(name, name, PUBLIC, 0.0) == number * 0.25
        gates.begin(name, name, PUBLIC, number * 0.25)
    assert gates.ready_at("h9.test", "h9.test", PUBLIC, 5.0) == inf
    assert gates.ready_at("h9.test", "h9.test", "203.0.113.9", 5.0) == 5.0


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1"])
def test_on_loopback_neither_domain_nor_address_delays(address: str) -> None:
    gates = Gates()
    for number in range(40):
        gates.begin(f"h{number}.d{number // 4}.test", f"d{number // 4}.test", address, 0.0)
    assert gates.ready_at("h.d0.test", "d0.test", address, 0.0) == inf, "but a domain has four live requests there too"


def test_files_of_this_machine_share_nothing_that_would_delay_them() -> None:
    gates = Gates(GateRules(pace=PaceRules(delay=0.0)))
    gates.begin("", "", "", 0.0)
    end(gates, "", 0.0, domain="", address="")
    assert gates.ready_at("", "", "", 0.0) == 0.0


def test_the_whole_crawl_keeps_to_pages_a_second() -> None:
    gates = Gates(GateRules(pages_per_second=2.0))
    begun = []
    now = 0.0
    for number in range(5):
        now = gates.ready_at(f"h{number}.test", f"h{number}.test", "", now)
        gates.begin(f"h{number}.test", f"h{number}.test", "", now)
        begun.append(now)
    assert begun == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_late_turn_of_the_loop_costs_no_pace_and_makes_no_burst() -> None:
    gates = Gates(GateRules(pages_per_second=100.0))
    begun = 0
    now = 50.0
    while gates.ready_at(f"h{begun}.test", "", "", now) <= now:
        gates.begin(f"h{begun}.test", f"h{begun}.test", "", now)
        begun += 1
    assert begun == 10, "a tenth of a second's worth"


def test_bytes_come_in_no_faster_than_the_bandwidth_in_any_second_though_many_requests_are_live() -> None:
    gates = Gates(GateRules(bytes_per_second=100_000.0))
    came: list[tuple[float, float]] = []
    live: list[tuple[float, float, str]] = []
    now, number = 0.0, 0
    while now < 60.0:
        opens = gates.ready_at(f"h{number}.test", f"h{number}.test", "", now)
        if live and (len(live) >= 64 or live[0][0] <= opens):
            now, booked, host = live.pop(0)
            now = max(now, came[-1][0] if came else 0.0)
            size = 10_000 if came else 100  # the first page of a site is often none like the others
            came.append((now, size))
            gates.crawl.received(size, now, booked)
            end(gates, host, now, domain=host, address="")
            continue
        now = opens
        booked = gates.begin(f"h{number}.test", f"h{number}.test", "", now)
        live.append((now + 0.8, booked, f"h{number}.test"))
        number += 1
    seconds = [sum(size for when, size in came if second <= when < second + 1) for second in range(58)]
    assert max(seconds) <= 150_000.0
    assert sum(seconds[10:]) / len(seconds[10:]) >= 90_000.0, "and none of it is left unused"


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_caps_of_the_crawl_are_so_many_times_as_much_as_the_agent_is_lent_also_when_they_are_set_anew(
    share: float,
) -> None:
    gates = Gates(GateRules(pages_per_second=2.0))
    gates.crawl.lend(share, 1.0, 0.0)
    gates.begin("a.test", "a.test", "", 0.0)
    assert gates.ready_at("b.test", "b.test", "", 0.0) == 0.5 / share
    gates.change(GateRules(pages_per_second=4.0))
    gates.begin("b.test", "b.test", "", 1.0)
    assert gates.ready_at("c.test", "c.test", "", 1.0) == 1.0 + 0.25 / share
    assert gates.crawl.uses() == (RateUse(4.0, share, 2.0), None)


def test_what_was_taken_at_a_small_share_is_paid_for_at_the_larger_one_that_follows() -> None:
    gates = Gates(GateRules(bytes_per_second=1000.0))
    gates.crawl.lend(1.0, 0.1, 0.0)
    booked = gates.begin("a.test", "a.test", "", 0.0)
    gates.crawl.received(10_000, 0.0, booked)
    assert gates.crawl.ready_at(0.0) == pytest.approx(100.0, abs=0.1)
    gates.crawl.lend(1.0, 2.0, 50.0)
    assert gates.crawl.ready_at(50.0) == pytest.approx(52.5, abs=0.1)


def test_what_was_booked_for_a_request_that_brought_nothing_is_given_back() -> None:
    gates = Gates(GateRules(bytes_per_second=1000.0))
    booked = gates.begin("a.test", "a.test", "", 0.0)
    assert gates.ready_at("b.test", "b.test", "", 0.0) > 0.5
    gates.crawl.received(0, 0.0, booked)
    assert gates.ready_at("b.test", "b.test", "", 0.0) == 0.0


def test_the_whole_crawl_pays_off_its_bytes() -> None:
    gates = Gates(GateRules(bytes_per_second=1000.0))
    gates.crawl.received(5000, 10.0)
    assert gates.ready_at("a.test", "a.test", "", 10.0) == pytest.approx(14.9, abs=0.01)


def test_a_task_that_never_went_out_leaves_the_delay_as_it_was() -> None:
    gates = Gates()
    ask(gates, "a.test", 0.0)
    gates.begin("a.test", "a.test", PUBLIC, 5.0)
    end(gates, "a.test", 6.0, Outcome.ROBOTS_DENIED)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 6.0) == 6.0


def test_a_crawl_delay_that_becomes_known_counts_from_the_last_request() -> None:
    gates = Gates()
    ended = ask(gates, "a.test", 0.0)
    gates.set_crawl_delay("a.test", 30.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 1.0) == ended + 30.0
    gates.set_crawl_delay("never-asked.test", 30.0)
    assert gates.ready_at("never-asked.test", "never-asked.test", PUBLIC, 1.0) == 1.0
    gates.set_crawl_delay("nobody.test", None)
    assert note_of(gates, "nobody.test", 1.0, WALL) is None


def test_a_host_whose_robots_are_out_of_reach_is_left_alone_until_they_are_due() -> None:
    gates = Gates()
    gates.begin("a.test", "a.test", PUBLIC, 0.0)
    assert end(gates, "a.test", 1.0, Outcome.ROBOTS_UNREACHABLE) is Disposition.KEEP
    assert gates.ready_at("a.test", "a.test", PUBLIC, 1.0) == 2.0, "robots.txt was asked for: the delay counts"
    gates.hold("a.test", 600.0)
    gates.hold("a.test", 300.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, 1.0) == 600.0


def test_other_settings_hold_at_once() -> None:
    gates = Gates()
    ended = ask(gates, "a.test", 0.0)
    gates.change(GateRules(pace=PaceRules(delay=60.0)))
    assert gates.ready_at("a.test", "a.test", PUBLIC, ended) == ended + 60.0
    assert gates.told_delay("a.test")[0] == 60.0


def test_a_retry_after_holds_for_the_whole_host() -> None:
    gates = Gates()
    gates.begin("a.test", "a.test", PUBLIC, 0.0)
    assert end(gates, "a.test", 1.0, Outcome.RATE_LIMITED, retry_after="3600") is Disposition.POSTPONE
    assert gates.ready_at("a.test", "a.test", PUBLIC, 1.0) == 3601.0


def test_a_refused_page_comes_again_behind_two_others_and_after_the_wait_that_its_host_asks_for() -> None:
    gates = Gates()
    answer = Answer("http://a.test/", "a.test", Outcome.RATE_LIMITED, 0.0, "60")
    gates.begin("a.test", "a.test", PUBLIC, 0.0)
    ruling = gates.end("a.test", "a.test", PUBLIC, answer, 1.0, WALL)
    assert ruling.what is Disposition.POSTPONE, "no try is spent"
    opens = gates.ready_at("a.test", "a.test", PUBLIC, 1.0)
    assert opens + 2.0 * gates.told_delay("a.test")[0] < 1.0 + ruling.wait < opens + 3.0 * gates.told_delay("a.test")[0]


def test_a_page_that_is_refused_while_others_are_clean_spends_its_tries_and_slows_nobody_down() -> None:
    gates, now, rulings = Gates(), 0.0, []
    for attempt in range(1, 7):
        for _ in range(10):
            now = ask(gates, "a.test", now)
        now = gates.ready_at("a.test", "a.test", PUBLIC, now)
        gates.begin("a.test", "a.test", PUBLIC, now)
        answer = Answer("http://a.test/bad", "a.test", Outcome.RATE_LIMITED, 0.0, "1")
        rulings.append(gates.end("a.test", "a.test", PUBLIC, answer, now, WALL, attempt))
    assert [one.wait for one in rulings[:5]] == [10.0, 20.0, 20.0, 600.0, 3600.0]
    assert rulings[5].what is Disposition.GONE
    assert gates.told_delay("a.test")[0] == 1.0


def test_a_host_that_does_not_answer_is_probed_alone_and_its_pages_are_kept() -> None:
    gates = Gates(GateRules(pace=PaceRules(delay=0.0), per_host=3))
    now = 0.0
    for _ in range(5):
        assert not spent(gates, "a.test")
        now = gates.ready_at("a.test", "a.test", PUBLIC, now)
        gates.begin("a.test", "a.test", PUBLIC, now)
        assert end(gates, "a.test", now, Outcome.CONNECT_FAILED) is Disposition.KEEP
    assert gates.ready_at("a.test", "a.test", PUBLIC, now) == now + 10.0
    gates.begin("a.test", "a.test", PUBLIC, now + 10.0)
    assert gates.ready_at("a.test", "a.test", PUBLIC, now + 10.0) == inf


def test_a_host_that_keeps_refusing_is_spent_in_the_end() -> None:
    gates, now = Gates(), 0.0
    for _ in range(10):
        assert not spent(gates, "a.test")
        now = ask(gates, "a.test", now, Outcome.RATE_LIMITED)
    assert spent(gates, "a.test")
    ask(gates, "a.test", now)
    assert not spent(gates, "a.test")
    assert not spent(gates, "nobody.test")


def crawled(hosts: int) -> tuple[Gates, float]:
    """Gates of a crawl that asked so many hosts and got answers."""
    gates, now = Gates(), 0.0
    for number in range(hosts):
        now = ask(gates, f"h{number}.test", now)
    return gates, now


def test_when_our_network_is_down_the_crawl_waits_and_no_host_is_blamed() -> None:
    gates, now = crawled(6)
    asked = 0
    while not gates.network.is_down:
        now = ask(gates, f"h{asked % 6}.test", now, Outcome.CONNECT_FAILED)
        asked += 1
    assert asked == 12
    assert gates.ready_at("somebody.test", "somebody.test", "", now) == now + 1.0
    probe_ends = ask(gates, "h0.test", now, Outcome.DNS_FAILED)
    assert gates.ready_at("h1.test", "h1.test", PUBLIC, probe_ends) == probe_ends + 2.0
    back = ask(gates, "h0.test", probe_ends)
    for number in range(6):
        assert gates.ready_at(f"h{number}.test", f"h{number}.test", PUBLIC, back) <= back + 1.0
        note = note_of(gates, f"h{number}.test", back, WALL)
        assert note is not None and note.circuit is None and not note.circuits


def test_while_the_network_may_be_down_a_page_pays_no_try() -> None:
    gates, now = crawled(6)
    rulings = []
    for number in range(6):
        name = f"h{number}.test"
        now = gates.ready_at(name, name, address_of(name), now)
        gates.begin(name, name, address_of(name), now)
        answer = Answer(url="", host=name, outcome=Outcome.TIMED_OUT, elapsed=10.0)
        rulings.append(gates.end(name, name, address_of(name), answer, now, WALL))
        now = ask(gates, name, now, Outcome.CONNECT_FAILED)
    assert [one.what for one in rulings[:4]] == [Disposition.RETRY] * 4
    assert rulings[4:] == [KEEP] * 2


@pytest.mark.parametrize("is_met", [True, False])
def test_servers_that_stall_are_no_sign_that_our_network_is_down(is_met: bool) -> None:
    gates, now = crawled(6)
    for number in range(30):
        now = ask(gates, f"h{number % 6}.test", now, Outcome.TIMED_OUT, is_met=is_met)
        assert not gates.network.is_suspect
    note = note_of(gates, "h5.test", now, WALL)
    assert note is not None and all(one.is_open for one in note.circuits.values()) and note.circuits, (
        "it is the host that is blamed"
    )


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.CONNECT_FAILED])
def test_whoever_lets_us_in_proves_that_our_network_is_there(outcome: Outcome) -> None:
    gates, now = crawled(6)
    for number in range(11):
        now = ask(gates, f"h{number % 6}.test", now, Outcome.CONNECT_FAILED)
    now = ask(gates, "h5.test", now, outcome, is_met=True)
    now = ask(gates, "h0.test", now, Outcome.CONNECT_FAILED)
    assert not gates.network.is_down
    while not gates.network.is_down:
        now = ask(gates, "h1.test", ask(gates, "h2.test", now, Outcome.DNS_FAILED), Outcome.CONNECT_FAILED)
        now = ask(gates, "h3.test", ask(gates, "h4.test", now, Outcome.DNS_FAILED), Outcome.CONNECT_FAILED)
    now = ask(gates, "h5.test", now, outcome, is_met=True)
    assert not gates.network.is_down, "a probe that met its host ends the wait"


def test_a_probe_that_meets_silence_is_followed_by_others() -> None:
    gates, now = crawled(6)
    while not gates.network.is_down:
        for number in range(6):
            now = ask(gates, f"h{number}.test", now, Outcome.CONNECT_FAILED)
    assert now < 600.0
    now = ask(gates, "h0.test", now, Outcome.TIMED_OUT)
    assert gates.network.is_down
    assert gates.ready_at("h1.test", "h1.test", PUBLIC, now) < now + 60.0


def test_a_restored_host_whose_wait_is_over_is_tried_before_it_counts_as_spent_again() -> None:
    rules = GateRules(waits=())
    gates, now = Gates(rules), 0.0
    for _ in range(5):
        now = ask(gates, "a.test", now, Outcome.CONNECT_FAILED)
    note = note_of(gates, "a.test", now, WALL)
    assert note is not None and spent(gates, "a.test")
    for passed, is_spent in ((60.0, True), (86_400.0, False)):
        again = Gates(rules)
        again.restore("a.test", note, now=0.0, wall=WALL + passed)
        assert spent(again, "a.test") is is_spent
    ask(again, "a.test", 0.0, Outcome.CONNECT_FAILED)
    assert spent(again, "a.test")


def test_the_remaining_wait_survives_a_restart_on_another_clock() -> None:
    gates = Gates()
    gates.begin("a.test", "a.test", PUBLIC, 1000.0)
    end(gates, "a.test", 1001.0, Outcome.RATE_LIMITED, retry_after="100")
    note = note_of(gates, "a.test", 1011.0, WALL)
    assert note is not None
    again = Gates()
    again.restore("a.test", note, now=5.0, wall=WALL + 30.0)
    assert again.ready_at("a.test", "a.test", PUBLIC, 5.0) == pytest.approx(5.0 + 60.0)
    assert again.told_delay("a.test")[0] == gates.told_delay("a.test")[0]


def test_what_refusals_have_taught_survives_a_restart() -> None:
    gates, now = Gates(), 0.0
    for _ in range(3):
        now = ask(gates, "a.test", now, Outcome.RATE_LIMITED, retry_after="1")
    note = note_of(gates, "a.test", now, WALL)
    assert note is not None and note.pace.gap > 1.0
    again = Gates()
    again.restore("a.test", note, now=0.0, wall=WALL + 1.0)
    assert again.told_delay("a.test") == gates.told_delay("a.test")
    ask(again, "a.test", 0.0, Outcome.RATE_LIMITED, retry_after="1")
    assert again.told_delay("a.test")[0] > gates.told_delay("a.test")[0], "and it goes on from there"


def test_hosts_that_errors_or_refusals_slow_down_are_listed_with_the_reason() -> None:
    gates, now = Gates(), 0.0
    for number, outcome in enumerate([Outcome.OK, Outcome.SERVER_ERROR, Outcome.RATE_LIMITED]):
        for _ in range(12):
            now = ask(gates, f"h{number}.test", now, outcome)
    assert {host: reason for host, _, reason in gates.slowed()} == {"h1.test": "errors", "h2.test": "refusals"}
    assert all(delay > 1.0 for _, delay, _ in gates.slowed())


def test_a_gap_is_kept_on_average_where_latencies_spread() -> None:
    gates, now = Gates(GateRules(pace=PaceRules(delay=0.0), address=Share(gap=0.0), domain=Share(gap=0.0))), 0.0
    for outcome in [Outcome.OK] * 10 + [Outcome.RATE_LIMITED] * 8:
        now = ask(gates, "a.test", now, outcome, retry_after="1")
    note = note_of(gates, "a.test", now, WALL)
    assert note is not None
    gap, began = note.pace.gap, now + 1000.0
    assert gap > 0.1
    gates.begin("a.test", "a.test", PUBLIC, began)
    end(gates, "a.test", began + 1.6 * gap)
    second = gates.ready_at("a.test", "a.test", PUBLIC, began)
    assert second == began + 1.6 * gap, "no request before the answer to the last one"
    gates.begin("a.test", "a.test", PUBLIC, second)
    end(gates, "a.test", second + 0.1 * gap)
    assert gates.ready_at("a.test", "a.test", PUBLIC, second) == pytest.approx(began + 2.0 * gap, rel=0.01)


def test_a_clock_that_was_set_back_makes_nobody_wait_longer_than_there_was_to_wait() -> None:
    clock = FakeClock()
    gates = Gates(GateRules(pace=PaceRules(delay=10.0)))
    ended = ask(gates, "a.test", clock.monotonic())
    note = note_of(gates, "a.test", ended + 4.0, clock.now())
    assert note is not None
    clock.jump(-3600.0)
    again = Gates(gates.rules)
    again.restore("a.test", note, now=77.0, wall=clock.now())
    assert again.ready_at("a.test", "a.test", PUBLIC, 77.0) == pytest.approx(77.0 + 6.0)


def test_after_a_kill_nobody_is_asked_before_a_whole_delay() -> None:
    gates = Gates(GateRules(pace=PaceRules(delay=3.0)))
    ended = ask(gates, "a.test", 0.0)
    note = note_of(gates, "a.test", ended, WALL)
    assert note is not None
    again = Gates(gates.rules)
    again.restore("a.test", note, now=0.0, wall=WALL + 60.0, clean=False)
    again.crawl.hush(again.rules, 0.0)
    assert again.ready_at("a.test", "a.test", PUBLIC, 0.0) == 3.0
    assert again.ready_at("unknown.test", "unknown.test", "", 0.0) == 3.0


def test_a_broken_circuit_survives_a_restart() -> None:
    gates, now = Gates(), 0.0
    for _ in range(5):
        now = ask(gates, "a.test", now, Outcome.CONNECT_FAILED)
    note = note_of(gates, "a.test", now + 4.0, WALL)
    assert note is not None
    again = Gates()
    again.restore("a.test", note, now=0.0, wall=WALL)
    assert again.ready_at("a.test", "a.test", PUBLIC, 0.0) == pytest.approx(6.0)


def test_a_busy_or_waiting_host_is_not_forgotten_and_an_idle_one_leaves_nothing() -> None:
    gates = Gates()
    gates.begin("a.test", "a.test", PUBLIC, 0.0)
    assert not gates.forget("a.test", 1.0)
    end(gates, "a.test", 1.0)
    assert not gates.forget("a.test", 1.5)
    assert gates.forget("a.test", 2.0)
    assert note_of(gates, "a.test", 2.0, WALL) is None


def test_idle_domains_and_addresses_are_not_kept() -> None:
    gates = Gates()
    for number in range(10_000):
        name, address = f"h{number}.test", f"10.0.{number >> 8}.{number & 255}"
        gates.begin(name, name, address, float(number))
        end(gates, name, number + 0.5, address=address)
        gates.forget(name, number + 60.0)
    assert not gates.hosts
    assert max(len(gates.domains), len(gates.addresses)) <= 1100


def test_an_end_without_a_beginning_is_an_error() -> None:
    gates = Gates()
    with pytest.raises(KeyError):
        end(gates, "a.test", 0.0)
    ask(gates, "a.test", 0.0)
    with pytest.raises(KeyError):
        end(gates, "a.test", 9.0)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("a.b.example.org", "example.org"),
        ("192.0.2.1", "192.0.2.1"),
        ("::1", "::1"),
        ("localhost", "localhost"),
        ("co.uk", "co.uk"),
    ],
)
def test_the_registered_domain_is_what_one_owner_answers_for(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_a_name_without_address_waits_by_the_retry_table_and_is_spent_after_it() -> None:
    gates, now = Gates(), 0.0
    for wait in (10.0, 600.0, 3600.0):
        assert not spent(gates, "nowhere.test")
        gates.missed("nowhere.test", now, WALL)
        assert gates.ready_at("nowhere.test", "nowhere.test", "", now) == now + wait
        now += wait
    gates.missed("nowhere.test", now, WALL)
    assert spent(gates, "nowhere.test")
    note = note_of(gates, "nowhere.test", now, WALL)
    assert note is not None and note.circuit is not None
    ask(gates, "nowhere.test", now)
    assert not spent(gates, "nowhere.test"), "whoever answers is well again"


def test_where_no_try_is_left_a_name_without_address_is_spent_at_once() -> None:
    gates = Gates(GateRules(waits=()))
    gates.missed("nowhere.test", 0.0, WALL)
    assert spent(gates, "nowhere.test")


def test_while_our_network_is_down_a_name_without_address_waits_without_blame() -> None:
    gates, now = crawled(6)
    while not gates.network.is_down:
        for number in range(6):
            gates.missed(f"h{number}.test", now, WALL)
    gates.missed("new.test", now, WALL)
    for host in ("h5.test", "new.test"):
        note = note_of(gates, host, now, WALL)
        assert note is not None and note.circuit is None and not note.circuits
        assert now < gates.blocker(host, host, "")[0] <= now + 60.0


def names_at_one_server(count: int, outcome: Outcome, *, domain: bool) -> Gates:
    """Gates of a crawl of so many names that answered, until the one server behind them died."""
    gates, now = Gates(), 0.0
    for said in (Outcome.OK, outcome, outcome):
        for number in range(count):
            name = f"n{number}.one.test" if domain else f"n{number}.test"
            group, address = ("one.test", f"192.0.2.{number}") if domain else (name, PUBLIC)
            now = gates.ready_at(name, group, address, now)
            gates.begin(name, group, address, now)
            end(gates, name, now, said, domain=group, address=address)
    return gates


@pytest.mark.parametrize("domain", [True, False])
def test_a_dead_server_with_twelve_names_is_no_sign_that_our_network_is_down(domain: bool) -> None:
    gates = names_at_one_server(12, Outcome.CONNECT_FAILED, domain=domain)
    assert not gates.network.is_down and not gates.network.is_suspect


def ask_endpoint(gates: Gates, url: str, now: float, outcome: Outcome) -> float:
    """One request to `a.test` for this URL, as early as it may begin."""
    now = gates.ready_at("a.test", "a.test", PUBLIC, now)
    gates.begin("a.test", "a.test", PUBLIC, now)
    gates.end("a.test", "a.test", PUBLIC, Answer(url, "a.test", outcome, 0.1), now, WALL + now)
    return now


DEAD, WELL = "http://a.test:8999/", "http://a.test:8901/a"


def test_an_endpoint_that_does_not_answer_keeps_no_other_of_its_host_waiting() -> None:
    gates, now = Gates(), 0.0
    for _ in range(5):
        now = ask_endpoint(gates, DEAD, now, Outcome.CONNECT_FAILED)
    assert gates.hosts["a.test"].is_closed(now) and gates.hosts["a.test"].retry_wait(now) == 10.0
    gates.hosts["a.test"].meet([DEAD, WELL])
    assert not gates.hosts["a.test"].is_closed(now) and gates.hosts["a.test"].retry_wait(now) == 0.0
    assert (gates.hosts["a.test"].closed_for(DEAD, now), gates.hosts["a.test"].closed_for(WELL, now)) == (10.0, 0.0)
    now = ask_endpoint(gates, WELL, now, Outcome.OK)
    assert gates.hosts["a.test"].closed_for(DEAD, now) > 0.0, "what answers says nothing of the other port"
    now = ask_endpoint(gates, DEAD, now + 10.0, Outcome.OK)
    assert not gates.hosts["a.test"].closed_for(DEAD, now)


def test_circuits_of_endpoints_survive_a_restart() -> None:
    gates, now = Gates(), 0.0
    for _ in range(5):
        now = ask_endpoint(gates, DEAD, now, Outcome.CONNECT_FAILED)
    gates.hosts["a.test"].meet([DEAD, WELL])
    note = note_of(gates, "a.test", now, WALL)
    assert note is not None
    again = Gates()
    again.restore("a.test", note, now=3.0, wall=WALL + 4.0, clean=False)
    assert again.hosts["a.test"].closed_for(DEAD, 3.0) == pytest.approx(6.0)
    assert not again.hosts["a.test"].is_closed(3.0)
