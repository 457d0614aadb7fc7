"""Why a host is not asked now: the word that people read, made from what the host has taught.

Place in the flow: :mod:`gates` knows until when each host waits; `status` and progress show the reasons. Nothing is decided here.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from gossamer.services.politeness.circuit import Circuit
from gossamer.services.politeness.pace import Pace


class HeldBy(StrEnum):
    """What makes a host wait for longer than its usual delay."""

    DNS_FAILED = "dns_failed"
    """Its name has no address."""
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


def why_held(
    pace: Pace, name: Circuit | None, endpoints: Mapping[str, Circuit], now: float
) -> tuple[HeldBy | None, float]:
    """Why a host waits, and until when; None where nothing but its usual delay is against a request.

    Args:
        pace: what its answers have taught.
        name: the circuit of its name.
        endpoints: those of its endpoints.
        now: on the clock of the circuits and of the pace.
    """
    if name is not None and name.until > now:
        return HeldBy.DNS_FAILED, name.until
    first = min(endpoints.values(), key=lambda one: one.until, default=None)
    if first is not None and first.until > now:
        # What is held without having failed has a robots.txt that is out of reach.
        return HeldBy.UNREACHABLE if first.is_open else HeldBy.ROBOTS_UNREACHABLE, first.until
    if pace.until > now:
        # A name that is not found while our own network seems down leaves no circuit.
        return HeldBy.REFUSALS if pace.refusals else HeldBy.DNS_FAILED, pace.until
    return None, 0.0
