"""A spider with labels, user data and forms that is killed: its items are those of a clean run."""

from pathlib import Path

import pytest

from tools.killing import spiders


def test_the_items_of_a_spider_that_was_killed_are_those_of_a_clean_run(tmp_path: Path) -> None:
    told = spiders.run(tmp_path, print, kills=6, seed=3, listings=20)
    assert told.wrong == []


@pytest.mark.long
def test_the_same_holds_where_several_sessions_take_turns_and_some_are_refused(tmp_path: Path) -> None:
    told = spiders.run(tmp_path, print, kills=5, seed=4, listings=14, sessions=3)
    assert told.wrong == []
    assert told.figures["log_ins"] > 3
