"""The pace of one host: what each kind of answer does to the time between two requests."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.frontier.politeness.pace import (
    FRESH,
    Pace,
    PaceRules,
    Reason,
    after,
    delay_of,
    shown_delay,
    with_crawl_delay,
)
from gossamer.frontier.politeness.retries import DAY, asked_wait
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer

RULES = PaceRules()
WALL = 1_700_000_000.0


def answer(outcome: Outcome = Outcome.OK, elapsed: float = 0.05, retry_after: str = "") -> Answer:
    return Answer(url="http://a.test/", host="a.test", outcome=outcome, elapsed=elapsed, retry_after=retry_after)


def told(pace: Pace, *answers: Answer, now: float = 0.0, rules: PaceRules = RULES, draw: float = 0.0) -> Pace:
    """The pace after answers that come when the host may be asked."""
    for one in answers:
        now = max(now + delay_of(pace, rules), pace.until)
        pace = after(pace, one, now, WALL + now, rules, lambda: draw)
    return pace


def test_the_delay_is_five_latencies_between_floor_and_cap() -> None:
    assert delay_of(FRESH, RULES) == 1.0
    assert delay_of(told(FRESH, answer(elapsed=0.05)), RULES) == 1.0
    assert delay_of(told(FRESH, answer(elapsed=2.0)), RULES) == 10.0
    assert delay_of(told(FRESH, answer(elapsed=20.0)), RULES) == 30.0


def test_a_fixed_delay_is_kept_whatever_the_latency() -> None:
    assert delay_of(told(FRESH, answer(elapsed=9.0)), PaceRules(delay=2.5)) == 2.5
    assert delay_of(told(FRESH, answer(elapsed=9.0)), PaceRules(delay=0.0)) == 0.0


def test_a_server_that_slows_down_is_given_time_within_five_requests() -> None:
    pace = told(FRESH, *[answer(elapsed=0.05)] * 50)
    assert delay_of(pace, RULES) == 1.0
    pace = told(pace, *[answer(elapsed=5.0)] * 5)
    assert delay_of(pace, RULES) >= 0.9 * 25.0


def test_a_server_that_is_quick_again_is_believed_slowly() -> None:
    slow = told(FRESH, *[answer(elapsed=5.0)] * 5)
    assert delay_of(told(slow, answer(elapsed=0.05)), RULES) > 0.8 * delay_of(slow, RULES)
    assert delay_of(told(slow, *[answer(elapsed=0.05)] * 60), RULES) == 1.0


def test_a_quick_error_does_not_make_a_server_look_quick() -> None:
    slow = told(FRESH, *[answer(elapsed=4.0)] * 5)
    quick = told(slow, answer(Outcome.SERVER_ERROR, elapsed=0.001))
    assert delay_of(quick, RULES) == delay_of(slow, RULES)


@pytest.mark.parametrize(
    ("seconds", "delay"),
    [(0.001, 1.0), (10, 10.0), (86_400, DAY), (1e9, DAY), (math.inf, DAY), (-1, 1.0), (math.nan, 1.0), (None, 1.0)],
)
def test_a_crawl_delay_is_obeyed_up_to_a_day(seconds: float | None, delay: float) -> None:
    assert delay_of(with_crawl_delay(FRESH, seconds), RULES) == delay


def test_a_crawl_delay_wins_over_a_shorter_fixed_one() -> None:
    assert delay_of(with_crawl_delay(FRESH, 10), PaceRules(delay=0.0)) == 10.0
    assert delay_of(with_crawl_delay(FRESH, 10), PaceRules(delay=20.0)) == 20.0


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("315360000", DAY),
        ("9" * 5000, DAY),
        ("0" * 90 + "5", 5.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("Tue Nov 14 22:14:20 2023", 60.0),
        ("Tue, 14 Nov 2023 22:14:20 -0000", 60.0),
        ("Tue, 14 Nov 2023 00:00:00 GMT", 0.0),
        ("Fri, 14 Nov 2033 22:13:20 GMT", DAY),
        ("Tue, 99 Nov 2023 99:99:99 GMT", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("1e9", 0.0),
        ("nan", 0.0),
        ("٣٠", 0.0),
        ("x" * 100_000, 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_date_and_junk_as_nothing(text: str, wait: float) -> None:
    assert asked_wait(text, WALL) == wait


@given(text=st.text(max_size=80))
def test_no_retry_after_raises_or_asks_for_more_than_a_day(text: str) -> None:
    assert 0.0 <= asked_wait(text, WALL) <= DAY


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.SERVER_ERROR])
def test_the_host_waits_as_long_as_it_asks_for_and_at_most_a_day(outcome: Outcome) -> None:
    assert after(FRESH, answer(outcome, retry_after="120"), 100.0, WALL, RULES).until == 220.0
    assert after(FRESH, answer(outcome, retry_after="315360000"), 100.0, WALL, RULES).until == 100.0 + DAY


def test_a_wait_has_jitter_but_is_never_shorter() -> None:
    for draw, until in ((0.0, 200.0), (0.5, 205.0), (0.999, 210.0)):
        waits = after(FRESH, answer(Outcome.RATE_LIMITED, retry_after="200"), 0.0, WALL, RULES, lambda d=draw: d)
        assert waits.until == pytest.approx(until, abs=0.1)


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.SERVER_ERROR])
def test_one_refusal_is_waited_for_and_slows_nothing_down_afterwards(outcome: Outcome) -> None:
    well = told(FRESH, *[answer()] * 60)
    refused = told(well, answer(outcome, retry_after="1"))
    assert delay_of(refused, RULES) == 1.0
    assert refused.gap == 0.0
    assert shown_delay(refused, RULES) == shown_delay(well, RULES)


def test_refusals_without_a_usable_retry_after_wait_by_our_own_measure() -> None:
    for field in ("", "junk", "0", "Tue, 14 Nov 2000 00:00:00 GMT"):
        pace, now, waits = FRESH, 0.0, []
        for _ in range(7):
            pace = after(pace, answer(Outcome.RATE_LIMITED, retry_after=field), now, WALL, RULES)
            waits.append(pace.until - now)
            now = pace.until
        assert waits[0] == 2.0
        assert waits[3:] == [10.0, 20.0, 40.0, 80.0], "doubling once it refuses again and again"
    for _ in range(60):
        pace = after(pace, answer(Outcome.RATE_LIMITED), now, WALL, RULES)
        assert pace.until - now <= DAY
        now = pace.until


def test_refusals_of_requests_from_before_the_wait_count_once() -> None:
    pace = after(FRESH, answer(Outcome.RATE_LIMITED, retry_after="5"), 0.0, WALL, RULES)
    again = after(pace, answer(Outcome.RATE_LIMITED, retry_after="5"), 0.5, WALL, RULES)
    assert again.control == pace.control
    assert again.refusals == 1
    assert again.until == 5.5


def test_a_refused_host_has_one_request_in_flight_until_it_answers() -> None:
    refused = told(FRESH, answer(Outcome.RATE_LIMITED))
    assert refused.refusals
    assert not told(refused, answer()).refusals


def test_a_page_that_refuses_again_while_others_are_clean_is_at_fault_itself() -> None:
    well = told(FRESH, *[answer()] * 10)
    once = told(well, answer(Outcome.SERVER_ERROR, retry_after="1"))
    pace, now = told(once, *[answer()] * 10), 1000.0
    for attempt in (2, 3, 4):
        pace = after(pace, answer(Outcome.SERVER_ERROR, retry_after="1"), now, WALL, RULES, attempt=attempt)
        assert pace.until == now + 1.0, "but it is waited for as it says"
        now += 600.0
    assert pace.gap == 0.0
    assert pace.refusals == once.refusals - 1, "a clean answer came between, and these are no refusals in a row"


def test_a_refusal_on_a_second_try_counts_where_first_tries_are_refused_too() -> None:
    pace = told(FRESH, *[answer(Outcome.SERVER_ERROR, retry_after="1")] * 2)
    again = after(pace, answer(Outcome.SERVER_ERROR, retry_after="1"), 1000.0, WALL, RULES, attempt=2)
    assert again.refusals == 3


def test_retries_of_broken_pages_one_after_another_are_no_refusals_in_a_row_of_a_host_that_is_well() -> None:
    refused = answer(Outcome.SERVER_ERROR, retry_after="1")
    pace, now = FRESH, 0.0
    for number in range(24):
        # The last three first tries are refused, so no run of clean answers speaks for the host.
        is_broken = number % 3 == 2 or number > 20
        pace, now = after(pace, refused if is_broken else answer(), now, WALL, RULES), now + 5.0
    gap = pace.gap
    for _ in range(20):
        now = max(now, pace.until) + 1.0
        pace = after(pace, refused, now, WALL, RULES, attempt=2)
        assert pace.until == now + 1.0, "the wait that the host asked for, and no back-off"
    assert pace.gap <= gap
    assert after(pace, refused, pace.until, WALL, RULES, attempt=1).until > pace.until + 4.0, "a first try counts"


def test_refused_retries_count_where_most_first_tries_are_refused() -> None:
    refused = answer(Outcome.SERVER_ERROR, retry_after="1")
    pace, now = FRESH, 0.0
    for number in range(20):
        pace, now = after(pace, refused if number % 5 else answer(), now, WALL, RULES), now + 5.0
    for _ in range(6):
        now = pace.until + 1.0
        pace = after(pace, refused, now, WALL, RULES, attempt=2)
    assert pace.until == now + 20.0, "our own wait, which a page that was refused before does not lengthen further"


@pytest.mark.parametrize(("count", "most"), [(6, 60.0), (20, 360.0), (40, 6_600.0)])
def test_a_block_of_broken_pages_costs_a_host_minutes_and_not_days(count: int, most: float) -> None:
    """Before a page comes clean, nothing tells it from a host that refuses everything."""
    refused = answer(Outcome.SERVER_ERROR, retry_after="1")
    pace, now = told(FRESH, *[answer()] * 20), 1000.0
    for _ in range(count):
        pace = after(pace, refused, now, WALL, RULES)
        now = max(now + max(delay_of(pace, RULES), pace.gap), pace.until)
    assert now - 1000.0 < most
    until = pace.until
    for _ in range(100):
        pace, now = after(pace, answer(), now, WALL, RULES), now + max(delay_of(pace, RULES), pace.gap)
    assert pace.until <= until, "what came clean is waited for no more"
    assert pace.gap <= 2.0 * delay_of(pace, RULES)


def test_broken_pages_in_a_row_are_not_their_hosts_fault_until_there_are_twenty() -> None:
    refused = answer(Outcome.SERVER_ERROR, retry_after="1")
    pace, now, waits = told(FRESH, answer()), 100.0, []
    for _ in range(22):
        pace = after(pace, refused, now, WALL, RULES)
        waits.append(pace.until - now)
        now = pace.until
    assert waits == [1.0, 1.0, 5.0, 10.0, *[20.0] * 16, 40.0, 80.0]
    well = after(pace, answer(), now, WALL, RULES)
    assert (well.refusals, well.broken) == (0, 0), "a clean page ends the doubt"


def test_a_429_is_never_taken_for_its_pages_fault() -> None:
    pace, now = told(FRESH, answer()), 100.0
    for _ in range(7):
        pace = after(pace, answer(Outcome.RATE_LIMITED, retry_after="1"), now, WALL, RULES)
        now = pace.until
    assert pace.refusals == 7
    mixed = told(FRESH, *[answer(Outcome.SERVER_ERROR, retry_after="1")] * 8)
    again = told(mixed, answer(Outcome.RATE_LIMITED, retry_after="1"), now=mixed.until)
    assert (mixed.refusals, again.refusals) == (5, 6)


def test_a_host_that_asks_for_more_than_our_own_wait_gets_it_from_broken_pages_too() -> None:
    pace = told(FRESH, *[answer(Outcome.SERVER_ERROR, retry_after="90")] * 8)
    assert after(pace, answer(Outcome.SERVER_ERROR, retry_after="90"), 5000.0, WALL, RULES).until == 5090.0


def test_an_hour_after_the_last_refusal_nothing_is_left_of_it() -> None:
    pace = told(FRESH, *[answer(Outcome.RATE_LIMITED)] * 6)
    assert pace.gap > 1.0
    late = pace.until + 3601.0
    assert after(pace, answer(), late, WALL, RULES).control is None


def test_what_slows_a_host_down_is_named() -> None:
    assert shown_delay(FRESH, RULES) == (1.0, Reason.SETTING)
    assert shown_delay(told(FRESH, answer(elapsed=2.0)), RULES) == (10.0, Reason.LATENCY)
    assert shown_delay(told(FRESH, answer(elapsed=2.0)), PaceRules(delay=3.0)) == (3.0, Reason.SETTING)
    assert shown_delay(with_crawl_delay(FRESH, 7.0), RULES) == (7.0, Reason.ROBOTS)
    assert shown_delay(told(FRESH, *[answer(Outcome.SERVER_ERROR)] * 10), RULES)[1] is Reason.ERRORS
    assert shown_delay(told(FRESH, *[answer(Outcome.RATE_LIMITED)] * 6), RULES)[1] is Reason.REFUSALS


def test_errors_on_a_fifth_of_the_replies_halve_the_rate_and_it_comes_back_with_their_end() -> None:
    well = told(FRESH, *[answer(elapsed=0.4)] * 20)
    cycle = delay_of(well, RULES) + 0.4
    ill = told(well, *([answer(elapsed=0.4)] * 4 + [answer(Outcome.SERVER_ERROR, elapsed=0.4)]) * 4)
    assert delay_of(ill, RULES) + 0.4 == pytest.approx(2 * cycle)
    assert delay_of(told(ill, *[answer(elapsed=0.4)] * 20), RULES) + 0.4 == pytest.approx(cycle)


def test_errors_on_most_replies_quarter_the_rate_and_no_more() -> None:
    well = told(FRESH, *[answer(elapsed=0.4)] * 20)
    ill = told(well, *[answer(Outcome.SERVER_ERROR, elapsed=0.4)] * 100)
    assert delay_of(ill, RULES) + 0.4 == pytest.approx(4 * (delay_of(well, RULES) + 0.4))


def test_errors_halve_the_rate_also_where_no_delay_is_set() -> None:
    rules = PaceRules(delay=0.0)
    ill = told(FRESH, *([answer(elapsed=0.4)] * 4 + [answer(Outcome.SERVER_ERROR, elapsed=0.4)]) * 4, rules=rules)
    assert delay_of(ill, rules) == pytest.approx(0.4)


def test_rare_errors_change_nothing() -> None:
    pace = told(FRESH, *([answer()] * 19 + [answer(Outcome.SERVER_ERROR)]) * 10)
    assert delay_of(pace, RULES) == 1.0


@given(elapsed=st.floats(allow_nan=True, allow_infinity=True), outcome=st.sampled_from(list(Outcome)))
def test_no_answer_makes_the_delay_leave_its_range(elapsed: float, outcome: Outcome) -> None:
    pace = told(FRESH, answer(outcome, elapsed), answer(outcome, elapsed))
    assert 1.0 <= delay_of(pace, RULES) <= 300.0
