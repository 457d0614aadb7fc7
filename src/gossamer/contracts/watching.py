"""Watchers: what learns from every visit that is committed, and decides nothing about it (MISSION S13).

Suite: `gossamer.testing.check_watcher`.
"""

from typing import Protocol

from gossamer.model.visit import Visit


class Watcher(Protocol):
    """Looks on.

    Promises:
        1. Memory is bounded, whatever is shown to it.
        2. It changes nothing: what it has learnt is asked for elsewhere.
        3. It takes every visit, also those without an answer; what it says of them are few names, since they are counted under.
    """

    def observe(self, visit: Visit) -> str:
        """Learn from a visit that is about to be committed; what it uncovered, by a counted name, or an empty string.

        The visit's tasks are those that the URL-seen test had not seen; not all of them need be new after all.
        """
        ...
