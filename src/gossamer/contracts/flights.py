"""Keeps track of tasks between hand-out and commit, by their identities. Suite: `gossamer.testing.check_flights`.

Frontier and committer share it (one process, design question 1): a visit that comes a second time, because a link resent it
after a kill, has no flight any more and is dropped.
"""

from typing import Protocol


class Flights(Protocol):
    """Promise: for every departure exactly one arrival is accepted."""

    def depart(self, identity: str) -> None:
        """This task was handed out."""
        ...

    def arrive(self, identity: str) -> bool:
        """Its visit is about to be committed: True the first time after a departure, False otherwise."""
        ...
