"""Watchers: parts that learn from every committed visit, and decide nothing about it (row S13).

Suites: `gossamer.testing.check_watcher`, `check_learner`.
"""

from collections.abc import Iterable
from typing import Protocol, TypeGuard, runtime_checkable

import msgspec

from gossamer.model.visit import Visit


class Learnt(msgspec.Struct, frozen=True):
    """Facts that were learned about a host, as the ledger keeps them."""

    host: str
    what: str
    """The watcher's name for it, the same for all hosts."""
    data: bytes
    """All of it, in a form of the watcher's own; it replaces what was kept before."""


class Watcher(Protocol):
    """Looks on.

    Promises:
        1. Memory is bounded for any sequence of visits.
        2. It changes nothing; other parts ask for its findings.
        3. It takes every visit, also those without an answer; what it says of them are few names, since they are counted under.
    """

    def observe(self, visit: Visit) -> str:
        """Learn from a visit that is about to be committed; what it uncovered, by a counted name, or an empty string.

        The visit's tasks are those that the URL-seen test had not seen; not all of them need be new after all.
        """
        ...


@runtime_checkable
class Learner(Watcher, Protocol):
    """A watcher whose knowledge outlives the process: the committer keeps it with the visits that it was learnt from.

    Promises:
        1. What is kept of one host is bounded, whatever the host does.
        2. It is given only when it has changed.
        3. One that finds in the ledger what another gave decides as that one did; what it cannot read, it never knew.
    """

    def learnt(self) -> Iterable[Learnt]:
        """What has changed since this was last asked."""
        ...


#: Classes of watchers, and whether they are learners.
_known: dict[type, bool] = {}


def is_learner(watcher: object) -> TypeGuard[Learner]:
    """Whether a watcher is a learner, by its class: this is asked for each group, and to compare with a protocol takes 10 us."""
    kind = type(watcher)
    is_one = _known.get(kind)
    if is_one is None:
        is_one = _known[kind] = issubclass(kind, Learner)
    return is_one
