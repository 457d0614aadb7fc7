"""All settings of the layers of politeness, and what they come to for one host.

Place in the flow: :mod:`provider` makes the rules of the settings; :mod:`gates` goes by them.
"""

from math import inf

import msgspec

from gossamer.model.host_table import HostTable
from gossamer.services.politeness import circuit
from gossamer.services.politeness.pace import PaceRules
from gossamer.services.politeness.places import Share
from gossamer.services.politeness.retries import WAITS


class GateRules(msgspec.Struct, frozen=True):
    """All settings of the layers."""

    pace: PaceRules = PaceRules()
    per_host: int = 1
    domain: Share = Share()
    address: Share = Share()
    domain_on_loopback: Share = Share(gap=0.0)
    address_on_loopback: Share = Share(live=inf, gap=0.0)
    """This machine is ours, and all of a simulated web lives on one address (design question 12)."""
    pages_per_second: float | None = None
    bytes_per_second: float | None = None
    waits: tuple[float, ...] = WAITS
    """Seconds before the second and each further try, of a page or of a host; none is no retry."""
    delays: HostTable[float] = HostTable()
    """Hosts with a delay of their own, in seconds; below 0 it follows the latency."""
    lives: HostTable[int] = HostTable()
    """Hosts with a number of live requests of their own."""
    strikes: int = circuit.STRIKES
    """Failures in a row after which a host is only probed."""


def pace_of(host: str, rules: GateRules) -> PaceRules:
    """How fast a host is asked."""
    delay = rules.delays.get(host) if len(rules.delays) else None
    return rules.pace if delay is None else msgspec.structs.replace(rules.pace, delay=None if delay < 0 else delay)


def live_of(host: str, rules: GateRules) -> int:
    """How many requests of a host may be live."""
    return (rules.lives.get(host) if len(rules.lives) else None) or rules.per_host
