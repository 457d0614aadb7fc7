"""Why a host is not asked now: the word that people read, made from what the host has taught.

Place in the flow: :mod:`gates` knows until when each host waits; `status` and progress show the reasons. Nothing is decided here.
"""

from enum import StrEnum

import msgspec

from gossamer.services.politeness.circuit import Circuit
from gossamer.services.politeness.pace import Pace


class HeldBy(StrEnum):
    """What makes a host wait for longer than its usual delay."""

    UNREACHABLE = "unreachable"
    """It did not answer, and is only probed."""
    REFUSALS = "refusals"
    """It said that it is asked too often."""
    ROBOTS_UNREACHABLE = "robots_unreachable"
    """Its robots.txt is out of reach."""


class Held(msgspec.Struct, frozen=True):
    """A host that waits."""

    host: str
    seconds: float
    """For how long, if nothing changes."""
    why: str
    """A word of :class:`HeldBy`; or of :class:`~gossamer.services.politeness.pace.Reason`, for its usual delay."""


def why_held(pace: Pace, circuit: Circuit | None, now: float) -> HeldBy | None:
    """Why a host waits at monotonic `now`; None where nothing but its usual delay is against a request."""
    if circuit is not None and circuit.until > now:
        return HeldBy.UNREACHABLE
    if pace.until > now:
        return HeldBy.REFUSALS if pace.refusals else HeldBy.ROBOTS_UNREACHABLE
    return None
