"""What a problem of a crawl is: what is wrong, how one can see it, and the command that helps.

Place in the flow: rules (:mod:`~gossamer.assembly.control.problem_rules`) find them, and `status`, `watch` and the dashboard show
them, the worst first.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

Severity = Literal["halt", "loss", "slow", "note"]
"""`halt`: the crawl does nothing, or soon will. `loss`: pages are missing. `slow`: it could be faster. `note`: worth knowing."""

#: In this order problems are told.
_ORDER: tuple[Severity, ...] = ("halt", "loss", "slow", "note")


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong, or slower than it could be."""

    what: str
    """One word for it, as `disk_low`."""
    severity: Severity
    reason: str
    """What is wrong, in one clause."""
    evidence: str
    """The figures that show it."""
    command: str = ""
    """A command that helps or tells more, ready for a shell; empty where none does."""
    share: float = 0.0
    """How much of the crawl it touches, from 0 to 1; among problems of one severity the greater share comes first."""
    hosts: list[str] = []
    """Some of the hosts that it is about."""


def ranked(problems: Iterable[Problem]) -> list[Problem]:
    """The same problems, the worst first."""
    return sorted(problems, key=lambda one: (_ORDER.index(one.severity), -one.share))
