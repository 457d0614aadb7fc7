"""A spider with labels, user data and forms that is killed: its items are those of a clean run."""

from pathlib import Path

from tools.killing import spiders


def test_the_items_of_a_spider_that_was_killed_are_those_of_a_clean_run(tmp_path: Path) -> None:
    told = spiders.run(12, tmp_path, seed=3, listings=20)
    assert told.wrong == []
    assert told.kills == 12
