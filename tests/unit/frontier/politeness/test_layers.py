"""The layers of politeness together."""

from math import inf

import pytest
from tests.polite import Polite

from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.places import HostNote
from gossamer.frontier.politeness.rules import LayerRules, Share
from gossamer.frontier.politeness.whole_crawl import RateUse
from gossamer.testing import FakeClock
from gossamer.values.hosts import registered_domain
from gossamer.values.outcome import Outcome
from gossamer.values.task import KEEP, Answer, Disposition

PUBLIC = "198.51.100.7"
WALL = 1_700_000_000.0


def note_of(polite: Polite, host: str, now: float, wall: float) -> HostNote | None:
    known = polite.hosts.get(host)
    return None if known is None else known.note(now, wall)


def spent(polite: Polite, host: str) -> bool:
    known = polite.hosts.get(host)
    return known is not None and known.is_spent(polite.rules.waits)


def end(
    polite: Polite,
    host: str,
    now: float,
    outcome: Outcome = Outcome.OK,
    *,
    elapsed: float = 0.05,
    retry_after: str = "",
    is_met: bool = False,
) -> Disposition:
    """End a live request; what becomes of the page."""
    answer = Answer(f"http://{host}/", host, outcome, elapsed, retry_after, is_met)
    return polite.end(host, answer, now, WALL + now).what


def address_of(host: str) -> str:
    """Each `hN.test` has an address of its own; all others share one."""
    number = host[1:].partition(".")[0]
    return f"203.0.113.{number}" if host.startswith("h") and number.isdigit() else PUBLIC


def ask(polite: Polite, host: str, now: float, outcome: Outcome = Outcome.OK, **more: float | str | bool) -> float:
    """One request as early as it may begin, 0.05 s long; when it ended."""
    address = address_of(host)
    began = polite.ready_at(host, host, address, now)
    polite.begin(host, address, began)
    end(polite, host, began + 0.05, outcome, **more)  # type: ignore[arg-type]
    return began + 0.05


def test_a_host_is_never_asked_twice_at_once() -> None:
    polite = Polite()
    polite.begin("a.test", PUBLIC, 0.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 9.0) == inf
    with pytest.raises(ValueError, match=r"a\.test may not be asked yet"):
        polite.begin("a.test", PUBLIC, 9.0)


def test_the_delay_counts_from_the_end_of_the_last_request() -> None:
    polite = Polite()
    polite.begin("a.test", PUBLIC, 0.0)
    end(polite, "a.test", 7.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 7.0) == 8.0
    assert polite.ready_at("a.test", "a.test", "203.0.113.9", 7.0) == 8.0, "another address is the same host"


def test_who_owns_the_host_may_ask_it_several_times_at_once() -> None:
    polite = Polite(LayerRules(pace=PaceRules(delay=0.0), per_host=3, domain=Share(gap=0.0), address=Share(gap=0.0)))
    for _ in range(3):
        polite.begin("a.test", PUBLIC, 0.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 0.0) == inf
    end(polite, "a.test", 1.0, Outcome.RATE_LIMITED)
    end(polite, "a.test", 1.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 60.0) == inf, "after a refusal one is in flight"


def test_hosts_of_a_domain_share_four_live_requests_a_quarter_of_a_second_apart() -> None:
    polite = Polite()
    for number in range(4):
        name = f"h{number}.example.org"
        assert polite.ready_at(name, "example.org", "", 0.0) == number * 0.25
        polite.begin(name, "", number * 0.25)
    assert polite.ready_at("h9.example.org", "example.org", "", 5.0) == inf
    end(polite, "h0.example.org", 5.0)
    assert polite.ready_at("h9.example.org", "example.org", "", 5.0) == 5.0


def test_hosts_at_an_address_share_it_likewise() -> None:
    polite = Polite()
    for number in range(4):
        name = f"h{number}.test"
        assert polite.ready_at(name, name, PUBLIC, 0.0) == number * 0.25
        polite.begin(name, PUBLIC, number * 0.25)
    assert polite.ready_at("h9.test", "h9.test", PUBLIC, 5.0) == inf
    assert polite.ready_at("h9.test", "h9.test", "203.0.113.9", 5.0) == 5.0


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1"])
def test_on_loopback_neither_domain_nor_address_delays(address: str) -> None:
    polite = Polite()
    for number in range(40):
        polite.begin(f"h{number}.d{number // 4}.test", address, 0.0)
    assert polite.ready_at("h.d0.test", "d0.test", address, 0.0) == inf, "but a domain has four live requests there too"


def test_files_of_this_machine_share_nothing_that_would_delay_them() -> None:
    polite = Polite(LayerRules(pace=PaceRules(delay=0.0)))
    polite.begin("", "", 0.0)
    end(polite, "", 0.0)
    assert polite.ready_at("", "", "", 0.0) == 0.0


def test_the_whole_crawl_keeps_to_pages_a_second() -> None:
    polite = Polite(LayerRules(pages_per_second=2.0))
    begun = []
    now = 0.0
    for number in range(5):
        now = polite.ready_at(f"h{number}.test", f"h{number}.test", "", now)
        polite.begin(f"h{number}.test", "", now)
        begun.append(now)
    assert begun == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_late_turn_of_the_loop_costs_no_pace_and_makes_no_burst() -> None:
    polite = Polite(LayerRules(pages_per_second=100.0))
    begun = 0
    now = 50.0
    while polite.ready_at(f"h{begun}.test", "", "", now) <= now:
        polite.begin(f"h{begun}.test", "", now)
        begun += 1
    assert begun == 10, "a tenth of a second's worth"


def test_bytes_come_in_no_faster_than_the_bandwidth_in_any_second_though_many_requests_are_live() -> None:
    polite = Polite(LayerRules(bytes_per_second=100_000.0))
    came: list[tuple[float, float]] = []
    live: list[tuple[float, float, str]] = []
    now, number = 0.0, 0
    while now < 60.0:
        opens = polite.ready_at(f"h{number}.test", f"h{number}.test", "", now)
        if live and (len(live) >= 64 or live[0][0] <= opens):
            now, booked, host = live.pop(0)
            now = max(now, came[-1][0] if came else 0.0)
            size = 10_000 if came else 100  # the first page of a site is often none like the others
            came.append((now, size))
            polite.crawl.received(size, now, booked)
            end(polite, host, now)
            continue
        now = opens
        booked = polite.begin(f"h{number}.test", "", now)
        live.append((now + 0.8, booked, f"h{number}.test"))
        number += 1
    seconds = [sum(size for when, size in came if second <= when < second + 1) for second in range(58)]
    assert max(seconds) <= 150_000.0
    assert sum(seconds[10:]) / len(seconds[10:]) >= 90_000.0, "and none of it is left unused"


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_caps_of_the_crawl_are_so_many_times_as_much_as_the_agent_is_lent_also_when_they_are_set_anew(
    share: float,
) -> None:
    polite = Polite(LayerRules(pages_per_second=2.0))
    polite.crawl.lend(share, 1.0, 0.0)
    polite.begin("a.test", "", 0.0)
    assert polite.ready_at("b.test", "b.test", "", 0.0) == 0.5 / share
    polite.change(LayerRules(pages_per_second=4.0))
    polite.begin("b.test", "", 1.0)
    assert polite.ready_at("c.test", "c.test", "", 1.0) == 1.0 + 0.25 / share
    assert polite.crawl.uses() == (RateUse(4.0, share, 2.0), None)


def test_what_was_taken_at_a_small_share_is_paid_for_at_the_larger_one_that_follows() -> None:
    polite = Polite(LayerRules(bytes_per_second=1000.0))
    polite.crawl.lend(1.0, 0.1, 0.0)
    booked = polite.begin("a.test", "", 0.0)
    polite.crawl.received(10_000, 0.0, booked)
    assert polite.crawl.ready_at(0.0) == pytest.approx(100.0, abs=0.1)
    polite.crawl.lend(1.0, 2.0, 50.0)
    assert polite.crawl.ready_at(50.0) == pytest.approx(52.5, abs=0.1)


def test_what_was_booked_for_a_request_that_brought_nothing_is_given_back() -> None:
    polite = Polite(LayerRules(bytes_per_second=1000.0))
    booked = polite.begin("a.test", "", 0.0)
    assert polite.ready_at("b.test", "b.test", "", 0.0) > 0.5
    polite.crawl.received(0, 0.0, booked)
    assert polite.ready_at("b.test", "b.test", "", 0.0) == 0.0


def test_the_whole_crawl_pays_off_its_bytes() -> None:
    polite = Polite(LayerRules(bytes_per_second=1000.0))
    polite.crawl.received(5000, 10.0)
    assert polite.ready_at("a.test", "a.test", "", 10.0) == pytest.approx(14.9, abs=0.01)


def test_a_task_that_never_went_out_leaves_the_delay_as_it_was() -> None:
    polite = Polite()
    ask(polite, "a.test", 0.0)
    polite.begin("a.test", PUBLIC, 5.0)
    end(polite, "a.test", 6.0, Outcome.ROBOTS_DENIED)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 6.0) == 6.0


def test_a_crawl_delay_that_becomes_known_counts_from_the_last_request() -> None:
    polite = Polite()
    ended = ask(polite, "a.test", 0.0)
    polite.set_crawl_delay("a.test", 30.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 1.0) == ended + 30.0
    polite.set_crawl_delay("never-asked.test", 30.0)
    assert polite.ready_at("never-asked.test", "never-asked.test", PUBLIC, 1.0) == 1.0
    polite.set_crawl_delay("nobody.test", 0.0)
    assert note_of(polite, "nobody.test", 1.0, WALL) is None


def test_a_host_whose_robots_are_out_of_reach_is_left_alone_until_they_are_due() -> None:
    polite = Polite()
    polite.begin("a.test", PUBLIC, 0.0)
    assert end(polite, "a.test", 1.0, Outcome.ROBOTS_UNREACHABLE) is Disposition.KEEP
    assert polite.ready_at("a.test", "a.test", PUBLIC, 1.0) == 2.0, "robots.txt was asked for: the delay counts"
    polite.hold("a.test", 600.0)
    polite.hold("a.test", 300.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, 1.0) == 600.0


def test_other_settings_hold_at_once() -> None:
    polite = Polite()
    ended = ask(polite, "a.test", 0.0)
    polite.change(LayerRules(pace=PaceRules(delay=60.0)))
    assert polite.ready_at("a.test", "a.test", PUBLIC, ended) == ended + 60.0
    assert polite.told_delay("a.test")[0] == 60.0


def test_a_retry_after_holds_for_the_whole_host() -> None:
    polite = Polite()
    polite.begin("a.test", PUBLIC, 0.0)
    assert end(polite, "a.test", 1.0, Outcome.RATE_LIMITED, retry_after="3600") is Disposition.POSTPONE
    assert polite.ready_at("a.test", "a.test", PUBLIC, 1.0) == 3601.0


def test_a_refused_page_comes_again_behind_two_others_and_after_the_wait_that_its_host_asks_for() -> None:
    polite = Polite()
    answer = Answer("http://a.test/", "a.test", Outcome.RATE_LIMITED, 0.0, "60")
    polite.begin("a.test", PUBLIC, 0.0)
    ruling = polite.end("a.test", answer, 1.0, WALL)
    assert ruling.what is Disposition.POSTPONE, "no try is spent"
    opens = polite.ready_at("a.test", "a.test", PUBLIC, 1.0)
    assert (
        opens + 2.0 * polite.told_delay("a.test")[0] < 1.0 + ruling.wait < opens + 3.0 * polite.told_delay("a.test")[0]
    )


def test_a_page_that_is_refused_while_others_are_clean_spends_its_tries_and_slows_nobody_down() -> None:
    polite, now, rulings = Polite(), 0.0, []
    for attempt in range(1, 7):
        for _ in range(10):
            now = ask(polite, "a.test", now)
        now = polite.ready_at("a.test", "a.test", PUBLIC, now)
        polite.begin("a.test", PUBLIC, now)
        answer = Answer("http://a.test/bad", "a.test", Outcome.RATE_LIMITED, 0.0, "1")
        rulings.append(polite.end("a.test", answer, now, WALL, attempt))
    assert [one.wait for one in rulings[:5]] == [10.0, 20.0, 20.0, 600.0, 3600.0]
    assert rulings[5].what is Disposition.GONE
    assert polite.told_delay("a.test")[0] == 1.0


def test_a_host_that_does_not_answer_is_probed_alone_and_its_pages_are_kept() -> None:
    polite = Polite(LayerRules(pace=PaceRules(delay=0.0), per_host=3))
    now = 0.0
    for _ in range(5):
        assert not spent(polite, "a.test")
        now = polite.ready_at("a.test", "a.test", PUBLIC, now)
        polite.begin("a.test", PUBLIC, now)
        assert end(polite, "a.test", now, Outcome.CONNECT_FAILED) is Disposition.KEEP
    assert polite.ready_at("a.test", "a.test", PUBLIC, now) == now + 10.0
    polite.begin("a.test", PUBLIC, now + 10.0)
    assert polite.ready_at("a.test", "a.test", PUBLIC, now + 10.0) == inf


def test_a_host_that_keeps_refusing_is_spent_in_the_end() -> None:
    polite, now = Polite(), 0.0
    for _ in range(10):
        assert not spent(polite, "a.test")
        now = ask(polite, "a.test", now, Outcome.RATE_LIMITED)
    assert spent(polite, "a.test")
    ask(polite, "a.test", now)
    assert not spent(polite, "a.test")
    assert not spent(polite, "nobody.test")


def crawled(hosts: int) -> tuple[Polite, float]:
    """Polite of a crawl that asked so many hosts and got answers."""
    polite, now = Polite(), 0.0
    for number in range(hosts):
        now = ask(polite, f"h{number}.test", now)
    return polite, now


def test_when_our_network_is_down_the_crawl_waits_and_no_host_is_blamed() -> None:
    polite, now = crawled(6)
    asked = 0
    while not polite.network.is_down:
        now = ask(polite, f"h{asked % 6}.test", now, Outcome.CONNECT_FAILED)
        asked += 1
    assert asked == 12
    assert polite.ready_at("somebody.test", "somebody.test", "", now) == now + 1.0
    probe_ends = ask(polite, "h0.test", now, Outcome.DNS_FAILED)
    assert polite.ready_at("h1.test", "h1.test", PUBLIC, probe_ends) == probe_ends + 2.0
    back = ask(polite, "h0.test", probe_ends)
    for number in range(6):
        assert polite.ready_at(f"h{number}.test", f"h{number}.test", PUBLIC, back) <= back + 1.0
        note = note_of(polite, f"h{number}.test", back, WALL)
        assert note is not None and note.circuit is None and not note.circuits


def test_while_the_network_may_be_down_a_page_pays_no_try() -> None:
    polite, now = crawled(6)
    rulings = []
    for number in range(6):
        name = f"h{number}.test"
        now = polite.ready_at(name, name, address_of(name), now)
        polite.begin(name, address_of(name), now)
        answer = Answer(url="", host=name, outcome=Outcome.TIMED_OUT, elapsed=10.0)
        rulings.append(polite.end(name, answer, now, WALL))
        now = ask(polite, name, now, Outcome.CONNECT_FAILED)
    assert [one.what for one in rulings[:4]] == [Disposition.RETRY] * 4
    assert rulings[4:] == [KEEP] * 2


@pytest.mark.parametrize("is_met", [True, False])
def test_servers_that_stall_are_no_sign_that_our_network_is_down(is_met: bool) -> None:
    polite, now = crawled(6)
    for number in range(30):
        now = ask(polite, f"h{number % 6}.test", now, Outcome.TIMED_OUT, is_met=is_met)
        assert not polite.network.is_suspect
    note = note_of(polite, "h5.test", now, WALL)
    assert note is not None and all(one.is_open for one in note.circuits.values()) and note.circuits, (
        "it is the host that is blamed"
    )


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.CONNECT_FAILED])
def test_whoever_lets_us_in_proves_that_our_network_is_there(outcome: Outcome) -> None:
    polite, now = crawled(6)
    for number in range(11):
        now = ask(polite, f"h{number % 6}.test", now, Outcome.CONNECT_FAILED)
    now = ask(polite, "h5.test", now, outcome, is_met=True)
    now = ask(polite, "h0.test", now, Outcome.CONNECT_FAILED)
    assert not polite.network.is_down
    while not polite.network.is_down:
        now = ask(polite, "h1.test", ask(polite, "h2.test", now, Outcome.DNS_FAILED), Outcome.CONNECT_FAILED)
        now = ask(polite, "h3.test", ask(polite, "h4.test", now, Outcome.DNS_FAILED), Outcome.CONNECT_FAILED)
    now = ask(polite, "h5.test", now, outcome, is_met=True)
    assert not polite.network.is_down, "a probe that met its host ends the wait"


def test_a_probe_that_meets_silence_is_followed_by_others() -> None:
    polite, now = crawled(6)
    while not polite.network.is_down:
        for number in range(6):
            now = ask(polite, f"h{number}.test", now, Outcome.CONNECT_FAILED)
    assert now < 600.0
    now = ask(polite, "h0.test", now, Outcome.TIMED_OUT)
    assert polite.network.is_down
    assert polite.ready_at("h1.test", "h1.test", PUBLIC, now) < now + 60.0


def test_a_restored_host_whose_wait_is_over_is_tried_before_it_counts_as_spent_again() -> None:
    rules = LayerRules(waits=())
    polite, now = Polite(rules), 0.0
    for _ in range(5):
        now = ask(polite, "a.test", now, Outcome.CONNECT_FAILED)
    note = note_of(polite, "a.test", now, WALL)
    assert note is not None and spent(polite, "a.test")
    for passed, is_spent in ((60.0, True), (86_400.0, False)):
        again = Polite(rules)
        again.restore("a.test", note, now=0.0, wall=WALL + passed)
        assert spent(again, "a.test") is is_spent
    ask(again, "a.test", 0.0, Outcome.CONNECT_FAILED)
    assert spent(again, "a.test")


def test_the_remaining_wait_survives_a_restart_on_another_clock() -> None:
    polite = Polite()
    polite.begin("a.test", PUBLIC, 1000.0)
    end(polite, "a.test", 1001.0, Outcome.RATE_LIMITED, retry_after="100")
    note = note_of(polite, "a.test", 1011.0, WALL)
    assert note is not None
    again = Polite()
    again.restore("a.test", note, now=5.0, wall=WALL + 30.0)
    assert again.ready_at("a.test", "a.test", PUBLIC, 5.0) == pytest.approx(5.0 + 60.0)
    assert again.told_delay("a.test")[0] == polite.told_delay("a.test")[0]


def test_what_refusals_have_taught_survives_a_restart() -> None:
    polite, now = Polite(), 0.0
    for _ in range(3):
        now = ask(polite, "a.test", now, Outcome.RATE_LIMITED, retry_after="1")
    note = note_of(polite, "a.test", now, WALL)
    assert note is not None and note.pace.gap > 1.0
    again = Polite()
    again.restore("a.test", note, now=0.0, wall=WALL + 1.0)
    assert again.told_delay("a.test") == polite.told_delay("a.test")
    ask(again, "a.test", 0.0, Outcome.RATE_LIMITED, retry_after="1")
    assert again.told_delay("a.test")[0] > polite.told_delay("a.test")[0], "and it goes on from there"


def test_hosts_that_errors_or_refusals_slow_down_are_listed_with_the_reason() -> None:
    polite, now = Polite(), 0.0
    for number, outcome in enumerate([Outcome.OK, Outcome.SERVER_ERROR, Outcome.RATE_LIMITED]):
        for _ in range(12):
            now = ask(polite, f"h{number}.test", now, outcome)
    slowed = polite.unit.slowed(9)
    assert {host: reason for host, _, reason in slowed} == {"h1.test": "errors", "h2.test": "refusals"}
    assert all(delay > 1.0 for _, delay, _ in slowed)


def test_a_gap_is_kept_on_average_where_latencies_spread() -> None:
    polite, now = Polite(LayerRules(pace=PaceRules(delay=0.0), address=Share(gap=0.0), domain=Share(gap=0.0))), 0.0
    for outcome in [Outcome.OK] * 10 + [Outcome.RATE_LIMITED] * 8:
        now = ask(polite, "a.test", now, outcome, retry_after="1")
    note = note_of(polite, "a.test", now, WALL)
    assert note is not None
    gap, began = note.pace.gap, now + 1000.0
    assert gap > 0.1
    polite.begin("a.test", PUBLIC, began)
    end(polite, "a.test", began + 1.6 * gap)
    second = polite.ready_at("a.test", "a.test", PUBLIC, began)
    assert second == began + 1.6 * gap, "no request before the answer to the last one"
    polite.begin("a.test", PUBLIC, second)
    end(polite, "a.test", second + 0.1 * gap)
    assert polite.ready_at("a.test", "a.test", PUBLIC, second) == pytest.approx(began + 2.0 * gap, rel=0.01)


def test_a_clock_that_was_set_back_makes_nobody_wait_longer_than_there_was_to_wait() -> None:
    clock = FakeClock()
    polite = Polite(LayerRules(pace=PaceRules(delay=10.0)))
    ended = ask(polite, "a.test", clock.monotonic())
    note = note_of(polite, "a.test", ended + 4.0, clock.now())
    assert note is not None
    clock.jump(-3600.0)
    again = Polite(polite.rules)
    again.restore("a.test", note, now=77.0, wall=clock.now())
    assert again.ready_at("a.test", "a.test", PUBLIC, 77.0) == pytest.approx(77.0 + 6.0)


def test_after_a_kill_nobody_is_asked_before_a_whole_delay() -> None:
    polite = Polite(LayerRules(pace=PaceRules(delay=3.0)))
    ended = ask(polite, "a.test", 0.0)
    note = note_of(polite, "a.test", ended, WALL)
    assert note is not None
    again = Polite(polite.rules)
    again.restore("a.test", note, now=0.0, wall=WALL + 60.0, clean=False)
    again.crawl.hush(again.rules, 0.0)
    assert again.ready_at("a.test", "a.test", PUBLIC, 0.0) == 3.0
    assert again.ready_at("unknown.test", "unknown.test", "", 0.0) == 3.0


def test_a_broken_circuit_survives_a_restart() -> None:
    polite, now = Polite(), 0.0
    for _ in range(5):
        now = ask(polite, "a.test", now, Outcome.CONNECT_FAILED)
    note = note_of(polite, "a.test", now + 4.0, WALL)
    assert note is not None
    again = Polite()
    again.restore("a.test", note, now=0.0, wall=WALL)
    assert again.ready_at("a.test", "a.test", PUBLIC, 0.0) == pytest.approx(6.0)


def test_a_busy_or_waiting_host_is_not_forgotten_and_an_idle_one_leaves_nothing() -> None:
    polite = Polite()
    polite.begin("a.test", PUBLIC, 0.0)
    assert not polite.forget("a.test", 1.0)
    end(polite, "a.test", 1.0)
    assert not polite.forget("a.test", 1.5)
    assert polite.forget("a.test", 2.0)
    assert note_of(polite, "a.test", 2.0, WALL) is None


def test_idle_domains_and_addresses_are_not_kept() -> None:
    polite = Polite()
    for number in range(10_000):
        name, address = f"h{number}.test", f"10.0.{number >> 8}.{number & 255}"
        polite.begin(name, address, float(number))
        end(polite, name, number + 0.5)
        polite.forget(name, number + 60.0)
    assert not polite.hosts
    assert max(len(polite.domains), len(polite.addresses)) <= 1100


def test_an_answer_to_no_request_changes_nothing() -> None:
    polite = Polite()
    now = ask(polite, "a.test", 0.0)
    polite.unit.answered(Answer("http://a.test/", "a.test", Outcome.RATE_LIMITED, 0.05, "3600"))
    assert polite.ready_at("a.test", "a.test", PUBLIC, now) == now + 1.0


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
    polite, now = Polite(), 0.0
    for wait in (10.0, 600.0, 3600.0):
        assert not spent(polite, "nowhere.test")
        polite.missed("nowhere.test", now, WALL)
        assert polite.ready_at("nowhere.test", "nowhere.test", "", now) == now + wait
        now += wait
    polite.missed("nowhere.test", now, WALL)
    assert spent(polite, "nowhere.test")
    note = note_of(polite, "nowhere.test", now, WALL)
    assert note is not None and note.circuit is not None
    ask(polite, "nowhere.test", now)
    assert not spent(polite, "nowhere.test"), "whoever answers is well again"


def test_where_no_try_is_left_a_name_without_address_is_spent_at_once() -> None:
    polite = Polite(LayerRules(waits=()))
    polite.missed("nowhere.test", 0.0, WALL)
    assert spent(polite, "nowhere.test")


def test_while_our_network_is_down_a_name_without_address_waits_without_blame() -> None:
    polite, now = crawled(6)
    while not polite.network.is_down:
        for number in range(6):
            polite.missed(f"h{number}.test", now, WALL)
    polite.missed("new.test", now, WALL)
    for host in ("h5.test", "new.test"):
        note = note_of(polite, host, now, WALL)
        assert note is not None and note.circuit is None and not note.circuits
        assert now < polite.blocker(host, host, "")[0] <= now + 60.0


def names_at_one_server(count: int, outcome: Outcome, *, domain: bool) -> Polite:
    """Polite of a crawl of so many names that answered, until the one server behind them died."""
    polite, now = Polite(), 0.0
    for said in (Outcome.OK, outcome, outcome):
        for number in range(count):
            name = f"n{number}.one.test" if domain else f"n{number}.test"
            group, address = ("one.test", f"192.0.2.{number}") if domain else (name, PUBLIC)
            now = polite.ready_at(name, group, address, now)
            polite.begin(name, address, now)
            end(polite, name, now, said)
    return polite


@pytest.mark.parametrize("domain", [True, False])
def test_a_dead_server_with_twelve_names_is_no_sign_that_our_network_is_down(domain: bool) -> None:
    polite = names_at_one_server(12, Outcome.CONNECT_FAILED, domain=domain)
    assert not polite.network.is_down and not polite.network.is_suspect


def ask_endpoint(polite: Polite, url: str, now: float, outcome: Outcome) -> float:
    """One request to `a.test` for this URL, as early as it may begin."""
    now = polite.ready_at("a.test", "a.test", PUBLIC, now)
    polite.begin("a.test", PUBLIC, now)
    polite.end("a.test", Answer(url, "a.test", outcome, 0.1), now, WALL + now)
    return now


DEAD, WELL = "http://a.test:8999/", "http://a.test:8901/a"


def test_an_endpoint_that_does_not_answer_keeps_no_other_of_its_host_waiting() -> None:
    polite, now = Polite(), 0.0
    for _ in range(5):
        now = ask_endpoint(polite, DEAD, now, Outcome.CONNECT_FAILED)
    assert polite.hosts["a.test"].is_closed(now) and polite.hosts["a.test"].retry_wait(now) == 10.0
    polite.hosts["a.test"].meet([DEAD, WELL])
    assert not polite.hosts["a.test"].is_closed(now) and polite.hosts["a.test"].retry_wait(now) == 0.0
    assert (polite.hosts["a.test"].closed_for(DEAD, now), polite.hosts["a.test"].closed_for(WELL, now)) == (10.0, 0.0)
    now = ask_endpoint(polite, WELL, now, Outcome.OK)
    assert polite.hosts["a.test"].closed_for(DEAD, now) > 0.0, "what answers says nothing of the other port"
    now = ask_endpoint(polite, DEAD, now + 10.0, Outcome.OK)
    assert not polite.hosts["a.test"].closed_for(DEAD, now)


def test_circuits_of_endpoints_survive_a_restart() -> None:
    polite, now = Polite(), 0.0
    for _ in range(5):
        now = ask_endpoint(polite, DEAD, now, Outcome.CONNECT_FAILED)
    polite.hosts["a.test"].meet([DEAD, WELL])
    note = note_of(polite, "a.test", now, WALL)
    assert note is not None
    again = Polite()
    again.restore("a.test", note, now=3.0, wall=WALL + 4.0, clean=False)
    assert again.hosts["a.test"].closed_for(DEAD, 3.0) == pytest.approx(6.0)
    assert not again.hosts["a.test"].is_closed(3.0)
