"""Every invariant of the kill loop can fail: a good history passes, and each breach of it is told by name."""

from collections.abc import Callable

import msgspec
import pytest

from tools.killing.agents import Killed, lives_of, pace_of_others
from tools.killing.judging import Hit, How, Judgement, Life, assign, few_refetched, judge

A, B, ROBOTS = "http://a.sim/", "http://a.sim/b", "http://a.sim/robots.txt"
LAST = '{"state":"finished"}'


def hit(url: str, start: float, end: float | None = None, status: int = 200, *, abandoned: bool = False) -> Hit:
    return Hit(url, "a.sim", start, start + 0.1 if end is None else end, status, abandoned)


def history() -> tuple[list[Hit], list[Life]]:
    """robots.txt and a page kept; a second page in flight at the kill, and asked for again after it."""
    hits = [hit(ROBOTS, 1.0), hit(A, 2.0), hit(B, 3.0, 3.9, abandoned=True), hit(B, 5.0)]
    lives = [
        Life(0, How.WORKING, began=0.5, ended=3.5, code=-9, counters={"fetched": 1, "pages": 1}, done={A}),
        Life(1, How.END, began=4.0, ended=6.0, code=0, said=LAST, counters={"fetched": 2, "pages": 2}, done={A, B}),
    ]
    return hits, lives


def judged(hits: list[Hit], lives: list[Life], *, concurrency: int = 1) -> Judgement:
    return judge(assign(hits, lives), lives, {A, B}, delay=0.5, concurrency=concurrency)


def test_a_history_in_which_everything_holds_passes() -> None:
    told = judged(*history())
    assert told.breaches == {}
    assert (told.refetched, told.restarts) == ([1], [0.5, 1.0])


def test_a_request_that_a_kill_cut_off_ended_with_its_life() -> None:
    hits, lives = history()
    hits[2] = hit(B, 3.0, 5.5, abandoned=True)
    assert not judged(hits, lives).breaches


def test_what_the_server_read_before_an_agent_was_back_was_sent_by_the_dead_one() -> None:
    lives = lives_of([Killed("agent-00", at=3.0, back=0.7)])
    hits = assign([hit(A, 2.0), hit(B, 3.01, 3.03), hit(B, 3.8)], lives)
    told = Judgement()
    few_refetched(hits, lives, 1, told)
    assert (told.refetched, told.breaches) == ([1], {})
    again = assign([*hits, hit(B, 4.5)], lives)
    few_refetched(again, lives, 1, told)
    assert told.breaches == {"I2 few are fetched twice": [f"{B} was asked for twice in life 1"]}


Change = Callable[[list[Hit], list[Life]], None]


def lose_a_page(hits: list[Hit], lives: list[Life]) -> None:
    del hits[3]
    lives[1].counters["fetched"] = 1


def forget_a_row(hits: list[Hit], lives: list[Life]) -> None:
    lives[1].done = {A}


def fetch_twice_in_a_life(hits: list[Hit], lives: list[Life]) -> None:
    hits.append(hit(B, 5.8))


def refetch_too_many(hits: list[Hit], lives: list[Life]) -> None:
    hits[1:1] = [hit("http://a.sim/c", 1.6, 1.61)]
    hits.append(hit("http://a.sim/c", 5.8))


def refetch_what_is_kept(hits: list[Hit], lives: list[Life]) -> None:
    hits.append(hit(A, 5.8))


def lose_count(hits: list[Hit], lives: list[Life]) -> None:
    lives[1].counters["fetched"] = 5


def count_backwards(hits: list[Hit], lives: list[Life]) -> None:
    lives[0].counters["pages"] = 3


def ask_two_at_once(hits: list[Hit], lives: list[Life]) -> None:
    hits[1] = hit(A, 2.0, 3.2)


def ask_too_early(hits: list[Hit], lives: list[Life]) -> None:
    hits[1] = hit(A, 2.0, 2.8)


def ask_too_early_after_the_kill(hits: list[Hit], lives: list[Life]) -> None:
    lives[1].began = 3.6
    hits[3] = hit(B, 3.8)


def ask_before_robots(hits: list[Hit], lives: list[Life]) -> None:
    hits[0], hits[1] = hit(A, 1.0), hit(ROBOTS, 2.0)


def end_without_a_word(hits: list[Hit], lives: list[Life]) -> None:
    lives[1].said = '{"state":"incomplete"}'


def leave_a_queue(hits: list[Hit], lives: list[Life]) -> None:
    lives[1].queued = 1


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (lose_a_page, "I1 nothing is lost"),
        (forget_a_row, "I1 nothing is lost"),
        (fetch_twice_in_a_life, "I2 few are fetched twice"),
        (refetch_too_many, "I2 few are fetched twice"),
        (refetch_what_is_kept, "I3 what is kept is not fetched again"),
        (lose_count, "I6 counts agree"),
        (count_backwards, "I7 counters grow"),
        (ask_two_at_once, "I9 few live requests a host"),
        (ask_too_early, "I9 no host is asked too early"),
        (ask_too_early_after_the_kill, "I9 no host is asked too early"),
        (ask_before_robots, "I10 robots.txt first"),
        (end_without_a_word, "I14 the end is told truly"),
        (leave_a_queue, "I14 the end is told truly"),
    ],
)
def test_each_breach_is_told_by_its_name(change: Change, invariant: str) -> None:
    hits, lives = history()
    change(hits, lives)
    assert invariant in judged(hits, lives).breaches


def test_what_failed_in_passing_may_be_asked_for_again() -> None:
    hits, lives = history()
    hits[1:1] = [msgspec.structs.replace(hit(A, 1.3), start=1.6, end=1.62, status=500)]
    hits[2] = hit(A, 2.2)
    lives[0].counters["fetched"], lives[1].counters["fetched"] = 2, 3
    assert judged(hits, lives).breaches == {}


def test_a_host_that_allows_two_may_be_asked_twice_at_once_and_not_three_times() -> None:
    hits, lives = history()
    hits[1] = hit(A, 2.0, 3.2)
    told = judge(assign(hits, lives), lives, {A, B}, delay=0.0, concurrency=1, per_host=2)
    assert told.breaches == {}
    hits[2:2] = [hit("http://a.sim/c", 2.9, 3.3)]
    told = judge(assign(hits, lives), lives, {A, B}, delay=0.0, concurrency=1, per_host=2)
    assert "I9 few live requests a host" in told.breaches


def test_the_pace_of_the_others_counts_while_an_agent_is_away() -> None:
    kills = [Killed("agent-00", 10.0, 2.0), Killed("supervisor", 11.0, 5.0), Killed("agent-01", 30.0, 1.0)]
    starts = {
        "agent-00": [9.0, *(29.0 + step / 10 for step in range(20))],
        "agent-01": [*(8.0 + step / 5 for step in range(15)), 40.0],
    }
    # Ten before and five after the first kill, and ten each at the last one.
    assert pace_of_others(kills, starts) == 15 / 20
    assert pace_of_others([Killed("agent-00", 100.0, 1.0), Killed("agent-01", 10.0)], starts) is None
