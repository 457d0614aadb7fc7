"""Conformance suite for stores of robots answers: run it over an implementation of your own.

Each check is one promise of `contracts.robots_answers`. A broken promise raises an AssertionError that names it.
"""

from collections.abc import Callable

from gossamer.contracts.robots_answers import RobotsAnswers

_NOW = 1_700_000_000.0


def check_robots_answers(make: Callable[[], RobotsAnswers]) -> None:
    """Check that a store of robots answers keeps its promises.

    Args:
        make: returns a started store. Each call opens the same place, as another crawl would.
    """
    one, two = make(), make()
    assert one.find("a") == b"", "there is nothing, and something was found"
    one.keep("a", b"\0state", _NOW)
    assert two.find("a") == b"\0state", "what one crawl keeps, another one does not find"
    assert two.find("a ") == two.find("A") == b"", "a name stands for another one"
    two.keep("a", b"later", _NOW + 1)
    assert one.find("a") == b"later", "the earlier of two states was found"
    assert one.claim("b", _NOW) == 0.0, "nobody asks, and somebody is told to wait"
    assert one.claim("b", _NOW) == 0.0, "whoever has said that it asks is told to wait for itself"
    one.release("b")
    two.release("never claimed")
    assert two.claim("b", _NOW) == 0.0, "whoever asks no more still keeps others waiting"
    two.release("b")
