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
    assert one.find("a") == b"", "nothing was kept, but something was found"
    one.keep("a", b"\0state", _NOW)
    assert two.find("a") == b"\0state", "another crawl does not find what one crawl kept"
    assert two.find("a ") == two.find("A") == b"", "the answer under one name was found under another"
    two.keep("a", b"later", _NOW + 1)
    assert one.find("a") == b"later", "the earlier of two states was found"
    assert one.claim("b", _NOW) == 0.0, "somebody is told to wait although nobody asks"
    assert one.claim("b", _NOW) == 0.0, "a crawl that said that it asks is told to wait for itself"
    one.release("b")
    two.release("never claimed")
    assert two.claim("b", _NOW) == 0.0, "a crawl that has stopped asking still keeps others waiting"
    two.release("b")
