"""Turns at addresses: one agent at a time, whoever dies, and whatever is told twice."""

from gossamer.assembly.agency.turns import TURN, AddressTurns, Lent

HERE = "192.0.2.1"


def granted(told: dict[str, Lent], agent: str) -> tuple[int, float]:
    return told[agent].granted[HERE]


def test_an_address_goes_from_one_agent_to_the_other_and_the_gap_goes_along() -> None:
    turns = AddressTurns(0.25)
    turns.hear("a", "1", [HERE], {}, 10.0)
    turns.hear("b", "1", [HERE], {}, 10.0)
    told = turns.decide(10.0)
    assert (granted(told, "a"), set(told)) == ((1, 0.0), {"a"})
    turns.hear("b", "1", [HERE], {}, 10.1)
    assert turns.decide(10.1) == {}, "the turn has just begun"
    told = turns.decide(10.0 + TURN)
    assert (told["a"].recalled, set(told)) == ([HERE], {"a"})
    assert turns.decide(12.1)["a"].recalled == [HERE], "it is told again until the turn has come back"
    turns.hear("a", "1", [HERE], {HERE: (1, 0.2)}, 12.5)
    told = turns.decide(12.5)
    number, wait = granted(told, "b")
    assert (number, round(wait, 3)) == (2, 0.2), "another agent has asked there just before"
    assert told["a"].noted == {HERE: 1}
    assert not told["a"].granted, "it waits for its next turn"
    assert turns.decide(12.5 + TURN)["b"].recalled == [HERE]


def test_a_grant_that_was_not_heard_is_told_again_and_an_old_return_counts_for_nothing() -> None:
    turns = AddressTurns(0.25)
    turns.hear("a", "1", [HERE], {}, 1.0)
    first = granted(turns.decide(1.0), "a")
    turns.hear("a", "1", [HERE], {}, 1.1)
    assert granted(turns.decide(1.1), "a") == first
    turns.hear("a", "1", [], {HERE: (first[0], 0.0)}, 2.0)
    turns.hear("a", "1", [HERE], {}, 2.0)
    second = granted(turns.decide(2.0), "a")
    assert second[0] != first[0]
    turns.hear("b", "1", [HERE], {}, 2.1)
    turns.hear("a", "1", [], {HERE: (first[0], 0.0)}, 2.1)
    told = turns.decide(2.1)
    assert "b" not in told, "the second turn has not ended"
    assert told["a"].noted == {HERE: first[0]}


def test_an_agent_that_died_has_no_turns_and_the_next_one_waits_a_whole_gap() -> None:
    turns = AddressTurns(0.25)
    turns.hear("a", "1", [HERE], {}, 1.0)
    assert granted(turns.decide(1.0), "a")
    turns.hear("b", "1", [HERE], {}, 1.1)
    turns.hear("a", "2", [], {}, 1.2)
    number, wait = granted(turns.decide(1.2), "b")
    assert (number, round(wait, 3)) == (2, 0.25)


def test_an_address_that_nobody_asks_is_forgotten() -> None:
    turns = AddressTurns(0.25)
    turns.hear("a", "1", [HERE], {}, 1.0)
    number, _ = granted(turns.decide(1.0), "a")
    turns.hear("a", "1", [], {HERE: (number, 0.25)}, 2.0)
    turns.decide(2.1)
    assert repr(turns) == "<AddressTurns of 1 addresses>"
    turns.decide(2.3)
    assert repr(turns) == "<AddressTurns of 0 addresses>"
