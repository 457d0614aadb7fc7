"""The qualification machine: what a site's answers lead to, by policy, and what is remembered (RFC 9309, 2.3)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.frontier.robots.machine import (
    DAY,
    EFFECTS,
    EVENTS,
    POLICIES,
    Act,
    Answered,
    Effect,
    RobotsEvent,
    RobotsPolicy,
    RobotsState,
    State,
    look,
    step,
    to_mermaid,
)
from gossamer.frontier.robots.rules import parse

RFC, STRICT, PAPER = (POLICIES[name] for name in ("rfc9309", "rfc9309-strict", "paper"))
RULES = parse(b"User-agent: *\nDisallow: /x").for_agent("gossamer")
WHOLE = Answered(RobotsEvent.WHOLE, 200, RULES, etag='"a"')
NOW = 1_700_000_000.0


def after(*events: RobotsEvent | Answered, policy: RobotsPolicy = RFC, site: RobotsState | None = None) -> RobotsState:
    """A site after these answers, all at the same instant."""
    site = site or RobotsState()
    for event in events:
        site = step(
            site, policy, event if isinstance(event, Answered) else Answered(event, target="http://b.test/r"), NOW
        )
    return site


def act(site: RobotsState, later: float = 0.0, policy: RobotsPolicy = RFC) -> Act:
    return look(site, policy, NOW + later).act


def test_a_new_site_is_asked_first() -> None:
    assert act(RobotsState()) is Act.FETCH


@pytest.mark.parametrize("event", [RobotsEvent.MISSING, RobotsEvent.FORBIDDEN, RobotsEvent.REFUSED, RobotsEvent.LOST])
def test_an_unavailable_robots_txt_allows_everything(event: RobotsEvent) -> None:
    assert act(after(event)) is Act.ALLOW


def test_strictly_who_asks_for_a_password_wants_no_crawler() -> None:
    assert act(after(RobotsEvent.FORBIDDEN, policy=STRICT), policy=STRICT) is Act.DENY
    assert act(after(RobotsEvent.MISSING, policy=STRICT), policy=STRICT) is Act.ALLOW


@pytest.mark.parametrize("event", [RobotsEvent.BROKEN, RobotsEvent.FAILED, RobotsEvent.CUT])
def test_an_unreachable_site_is_asked_twice_with_a_pause_then_waits(event: RobotsEvent) -> None:
    once = after(event)
    assert act(once) is Act.WAIT and look(once, RFC, NOW).until == NOW + 2.0
    assert act(once, 2.0) is Act.FETCH
    twice = after(event, site=once)
    assert twice.state is State.UNREACHABLE and twice.failures == 1
    assert look(twice, RFC, NOW).until == NOW + 10.0
    assert act(twice, 10.0) is Act.FETCH


def test_every_address_is_asked_before_the_pause_and_again_after_it() -> None:
    site, asked = RobotsState(), []
    while True:
        instruction = look(site, RFC, NOW + 2.0 if site.after > NOW else NOW, addresses=3)
        if instruction.act is not Act.FETCH:
            break
        asked.append((instruction.address, site.after - NOW if site.tries else 0.0))
        site = step(site, RFC, Answered(RobotsEvent.BROKEN, 503), NOW, addresses=3)
    assert asked == [(0, 0.0), (1, 0.0), (2, 0.0), (0, 2.0), (1, 0.0), (2, 0.0)]
    assert site.state is State.UNREACHABLE


def test_a_server_that_is_asked_too_often_is_left_alone_at_once_for_as_long_as_it_says() -> None:
    site = after(Answered(RobotsEvent.LIMITED, 429, retry_after=900.0))
    assert look(site, RFC, NOW).until == NOW + 900.0
    assert look(after(Answered(RobotsEvent.LIMITED, 429, retry_after=1e12)), RFC, NOW).until == NOW + DAY


def test_an_unreachable_robots_txt_is_asked_for_again_after_the_waits_of_a_page_and_then_ever_later() -> None:
    site, waits = RobotsState(), []
    for _ in range(12):
        site = after(RobotsEvent.LIMITED, site=site)
        waits.append(look(site, RFC, NOW).until - NOW)
    assert waits[:5] == [10.0, 600.0, 3600.0, 7200.0, 14400.0]
    assert waits[-1] == 6 * 3600.0
    assert site.failures == 12


def test_five_redirects_are_followed_and_the_sixth_means_there_is_none() -> None:
    site = after(*[RobotsEvent.MOVED] * 5)
    assert look(site, RFC, NOW).target == "http://b.test/r"
    assert act(after(RobotsEvent.MOVED, site=site)) is Act.ALLOW
    answered = after(WHOLE, site=site)
    assert act(answered) is Act.JUDGE and answered.hops == 0 and answered.target == ""


def test_an_answer_is_good_for_a_day() -> None:
    site = after(WHOLE)
    assert act(site, DAY - 1) is Act.JUDGE
    assert act(site, DAY) is Act.FETCH
    assert act(site, -30) is Act.JUDGE, "clocks are put right by seconds"
    assert act(site, -2 * DAY) is Act.FETCH, "a clock that was set back makes no answer last"


def test_a_kept_copy_is_used_while_the_site_is_unreachable() -> None:
    site = after(RobotsEvent.FAILED, RobotsEvent.FAILED, site=after(WHOLE))
    assert site.state is State.UNREACHABLE
    assert act(site) is Act.JUDGE
    assert act(site, 60.0) is Act.FETCH


def test_an_allowance_without_a_file_is_no_copy() -> None:
    assert act(after(RobotsEvent.FAILED, RobotsEvent.FAILED, site=after(RobotsEvent.MISSING))) is Act.WAIT


def test_an_unchanged_file_is_good_for_another_day_and_ends_the_trouble() -> None:
    site = after(RobotsEvent.FAILED, RobotsEvent.FAILED, site=after(WHOLE))
    site = step(site, RFC, Answered(RobotsEvent.UNCHANGED, 304), NOW + 60.0)
    assert (site.state, site.failures, site.since) == (State.QUALIFIED, 0, 0.0)
    assert site.until == NOW + 60.0 + DAY
    assert site.etag == '"a"'
    assert after(RobotsEvent.UNCHANGED).tries == 1, "without a copy 304 is a broken answer"


def test_what_lies_behind_a_redirect_is_no_copy_of_what_the_site_has() -> None:
    site = after(Answered(RobotsEvent.MOVED, 301, target="http://b.test/robots.txt"), WHOLE)
    assert site.rules == RULES
    assert (site.etag, site.modified) == ("", "")


def test_after_thirty_days_an_unreachable_robots_txt_counts_as_absent() -> None:
    site, now = after(RobotsEvent.LIMITED), NOW
    while now < NOW + 30 * DAY:
        assert look(site, RFC, now).act is Act.WAIT
        now = look(site, RFC, now).until
        site = step(site, RFC, Answered(RobotsEvent.LIMITED, 429), now)
    assert look(site, RFC, now).act is Act.ALLOW
    assert look(site, RFC, now + DAY).act is Act.FETCH, "it is still asked for"
    again = step(site, RFC, Answered(RobotsEvent.LIMITED, 429), now + DAY)
    assert look(again, RFC, now + DAY).act is Act.ALLOW


def test_after_thirty_days_a_kept_copy_stays_in_force() -> None:
    site = msgspec.structs.replace(after(RobotsEvent.LIMITED, site=after(WHOLE)), since=NOW - 30 * DAY)
    assert act(after(RobotsEvent.LIMITED, site=site)) is Act.JUDGE


def test_the_paper_disqualifies_for_the_time_being_whatever_is_unclear() -> None:
    for event in (
        RobotsEvent.CUT,
        RobotsEvent.CAPPED,
        RobotsEvent.MOVED,
        RobotsEvent.FORBIDDEN,
        RobotsEvent.REFUSED,
        RobotsEvent.LIMITED,
    ):
        assert act(after(event, policy=PAPER), policy=PAPER) is Act.WAIT, event
    assert act(after(WHOLE, policy=PAPER), policy=PAPER) is Act.JUDGE
    assert act(after(RobotsEvent.UNREADABLE, policy=PAPER), policy=PAPER) is Act.ALLOW
    stale = after(RobotsEvent.LIMITED, site=after(WHOLE, policy=PAPER), policy=PAPER)
    assert act(stale, policy=PAPER) is Act.WAIT, "a disqualified site's old rules are not used"


def test_the_paper_gives_a_site_up_after_its_failures_for_good() -> None:
    site = after(*[RobotsEvent.LIMITED] * PAPER.max_failures, policy=PAPER)
    assert site.state is State.DISQUALIFIED
    assert act(site, 400 * DAY, policy=PAPER) is Act.DENY
    assert after(WHOLE, site=site, policy=PAPER) == site


def test_a_success_sets_the_failure_count_to_zero() -> None:
    site = after(*[RobotsEvent.LIMITED] * 5, policy=PAPER)
    assert after(WHOLE, site=site, policy=PAPER).failures == 0


def test_every_policy_knows_every_event_and_every_word_is_explained() -> None:
    assert set(EVENTS) == set(RobotsEvent)
    assert set(EFFECTS) == set(Effect)
    for policy in POLICIES.values():
        assert set(policy.meanings) == set(RobotsEvent), policy.name
        assert policy.keep <= DAY


def test_the_picture_shows_every_state_and_every_event() -> None:
    for policy in POLICIES.values():
        drawn = to_mermaid(policy)
        states = set(State) if policy.max_failures else set(State) - {State.DISQUALIFIED}
        assert all(f"--> {state}" in drawn for state in states)
        assert all(str(event) in drawn for event in RobotsEvent)
        assert all(line.count(":") <= 1 for line in drawn.splitlines())


@given(
    st.sampled_from(sorted(POLICIES)),
    st.lists(st.tuples(st.sampled_from(RobotsEvent), st.floats(0, 40 * DAY), st.floats(0, 1e9)), max_size=30),
    st.integers(1, 4),
)
def test_nothing_that_happens_leaves_the_machine_or_survives_badly(
    name: str, happenings: list[tuple[RobotsEvent, float, float]], addresses: int
) -> None:
    policy, site, now = POLICIES[name], RobotsState(), NOW
    for event, passed, retry_after in happenings:
        now += passed
        before = site
        answered = Answered(event, 200, RULES if event is RobotsEvent.WHOLE else None, "http://b.test/", retry_after)
        site = step(site, policy, answered, now, addresses)
        instruction = look(site, policy, now, addresses)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(site), type=RobotsState) == site
        assert site.date == now or before.state is State.DISQUALIFIED
        assert site.failures in (before.failures, before.failures + 1, 0)
        assert site.hops <= policy.redirects and site.tries < policy.rounds * addresses
        if instruction.act is Act.WAIT:
            assert now < instruction.until <= now + DAY
        if instruction.act is Act.JUDGE:
            assert site.rules is not None
