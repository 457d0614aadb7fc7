"""Conformance suite for state that several processes share: run it over an implementation of your own."""

from collections.abc import Callable
from contextlib import suppress

from gossamer.contracts.sharing import SharedState

_SCHEMA = "CREATE TABLE IF NOT EXISTS suite (name TEXT PRIMARY KEY, value INTEGER NOT NULL)"


class _Failed(Exception):
    """Makes a block fail, so that it is not kept."""


def check_shared_state(opened: Callable[[], SharedState]) -> None:
    """Check that a state that is open twice keeps its promises.

    Args:
        opened: opens the same state once more, as another process would.
    """
    one, other = opened(), opened()
    one.open(_SCHEMA)
    other.open(_SCHEMA)
    with one.writing() as connection:
        connection.execute("INSERT INTO suite VALUES ('a', 1)")
        assert _rows(other) == [], "others see an unfinished change"
    assert _rows(one) == _rows(other) == [("a", 1)], "a change that was written is not there for all"
    with suppress(_Failed), other.writing() as connection:
        connection.execute("UPDATE suite SET value = 2")
        raise _Failed
    assert _rows(one) == _rows(other) == [("a", 1)], "a block that failed has changed something"
    with other.writing() as connection:
        connection.execute("UPDATE suite SET value = value + 1")
    assert _rows(opened()) == [("a", 2)], "a later process does not find what was written"


def _rows(state: SharedState) -> list[tuple[str, int]]:
    return state.reading.execute("SELECT name, value FROM suite").fetchall()
