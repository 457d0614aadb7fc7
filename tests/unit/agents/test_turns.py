"""Turns at addresses: one agent at a time, whoever dies, and whatever is told twice."""

from gossamer.agents.lending import SHORT_TURN, TURN, Lent, PlaceTurns

HERE = "192.0.2.1"


def granted(told: dict[str, Lent], agent: str) -> tuple[int, float]:
    return told[agent].granted[HERE]


def test_an_address_goes_from_one_agent_to_the_other_and_the_gap_goes_along() -> None:
    turns = PlaceTurns(0.25)
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
    turns = PlaceTurns(0.25)
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
    turns = PlaceTurns(0.25)
    turns.hear("a", "1", [HERE], {}, 1.0)
    assert granted(turns.decide(1.0), "a")
    turns.hear("b", "1", [HERE], {}, 1.1)
    turns.hear("a", "2", [], {}, 1.2)
    number, wait = granted(turns.decide(1.2), "b")
    assert (number, round(wait, 3)) == (2, 0.25)


def test_an_address_that_nobody_asks_is_forgotten() -> None:
    turns = PlaceTurns(0.25)
    turns.hear("a", "1", [HERE], {}, 1.0)
    number, _ = granted(turns.decide(1.0), "a")
    turns.hear("a", "1", [], {HERE: (number, 0.25)}, 2.0)
    turns.decide(2.1)
    assert repr(turns) == "<PlaceTurns of 1 places>"
    turns.decide(2.3)
    assert repr(turns) == "<PlaceTurns of 0 places>"


def test_a_lender_that_comes_anew_takes_no_turn_from_who_has_it_and_opens_nothing_too_soon() -> None:
    turns = PlaceTurns(0.25)
    turns.take_over({"a": {HERE: 7}, "b": {}}, 9, 50.0)
    turns.hear("a", "1", [], {}, 50.0)
    turns.hear("b", "1", [HERE, "192.0.2.2"], {}, 50.0)
    told = turns.decide(50.0)
    number, wait = told["b"].granted["192.0.2.2"]
    assert (number, round(wait, 3)) == (10, 0.25), "whoever asked there last may have died since"
    assert HERE not in told["b"].granted, "another agent has the turn"
    assert turns.decide(50.0 + TURN)["a"].recalled == [HERE]
    turns.hear("a", "1", [], {HERE: (7, 0.1)}, 53.0)
    assert granted(turns.decide(53.0), "b")[0] == 11


def test_turns_of_an_agent_that_dies_after_it_was_taken_over_are_free_after_a_gap() -> None:
    turns = PlaceTurns(0.25)
    turns.take_over({"a": {HERE: 7}}, 0, 50.0)
    turns.hear("a", "1", [], {}, 50.0)
    turns.hear("b", "1", [HERE], {}, 51.0)
    turns.hear("a", "2", [], {}, 51.0)
    number, wait = granted(turns.decide(51.0), "b")
    assert (number, round(wait, 3)) == (8, 0.25)


def test_an_address_follows_soon_where_agents_take_turns_at_domains_too() -> None:
    turns = PlaceTurns(0.25, has_domains=True)
    for agent in ("a", "b"):
        turns.hear(agent, "1", [HERE, "@example.org"], {}, 10.0)
    turns.decide(10.0)
    for agent in ("a", "b"):
        turns.hear(agent, "1", [HERE, "@example.org"], {}, 10.5)
    assert turns.decide(10.0 + SHORT_TURN)["a"].recalled == [HERE]
    assert set(turns.decide(10.0 + TURN)["a"].recalled) == {HERE, "@example.org"}
