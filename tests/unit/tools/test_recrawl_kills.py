"""The judge of the kill loop of recrawls sees what must not be."""

from tools.killing import Told
from tools.killing.spiders import LEAST, MOST, judge

END = 100.0


def judged(times: list[float], deaths: tuple[float, ...] = ()) -> Told:
    told = Told()
    judge(told, {"/a": times}, list(deaths), 0.0, END)
    return told


def regular() -> list[float]:
    return [MOST * n + 0.5 for n in range(int(END / MOST))]


def test_a_page_that_comes_in_time_is_right() -> None:
    assert judged(regular()).wrong == []


def test_a_page_that_comes_too_soon_is_wrong_but_where_a_kill_lies_between() -> None:
    [wrong] = judged(sorted([*regular(), 5 * MOST + 0.5 + LEAST / 2])).wrong
    assert f"came again after {LEAST / 2:.2f} s" in wrong
    told = judged(sorted([*regular(), 5 * MOST + 0.5 + LEAST / 2]), (5 * MOST + 0.6,))
    assert told.wrong == [] and told.figures["again"] == 1


def test_a_page_that_does_not_come_is_forgotten() -> None:
    [wrong] = judged(regular()[:4]).wrong
    assert "did not come for" in wrong
