"""The circuit of an endpoint, or of a name: five failures to connect in a row open it, then single probes decide (fault 26).

Place in the flow: :mod:`gates` keeps a circuit for each name that was not found, and for each endpoint (scheme, host, port)
whose last try failed. While a circuit is open nothing is asked before `until`, then one request alone: the probe. The pages
are kept all the while. After the three waits of the retry table it is *spent*: its pages still wait, and probes still go out at
doubling distances while the crawl runs, but the crawl need not stay alive for it (design question 7, design question 12).
"""

from collections.abc import Sequence

import msgspec

from gossamer.model.outcome import ANSWERED, Outcome
from gossamer.services.politeness.retries import WAITS, host_wait

#: Failures in a row that open a circuit (fault 26): fewer are a hiccup.
STRIKES = 5

#: Outcomes that say "nobody there who speaks to us": a strike each.
STRIKING = frozenset(
    {
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.TLS_FAILED,
        Outcome.TIMED_OUT,
        Outcome.PROTOCOL_FAILED,
    }
)

#: Outcomes that close it.
CLOSING = ANSWERED | {Outcome.TOO_SLOW}


class Circuit(msgspec.Struct, frozen=True, gc=False):
    """A name or endpoint that failed. Whoever has no circuit is well."""

    strikes: int = 0
    probes: int = 0
    """Probes that failed since it opened."""
    until: float = 0.0
    """Monotonic seconds of the next probe."""

    is_open: bool = False
    """Only probes go out."""

    def is_spent(self, waits: Sequence[float] = WAITS) -> bool:
        """The retries of the host are used up."""
        return self.is_open and self.probes >= len(waits)


def after(
    circuit: Circuit | None, outcome: Outcome, now: float, waits: Sequence[float] = WAITS, limit: int = STRIKES
) -> Circuit | None:
    """The circuit after a request with this outcome; None is closed and without a strike. `limit` strikes open it."""
    if outcome in CLOSING:
        return None
    if outcome not in STRIKING:
        return circuit
    if circuit is None or not circuit.is_open:
        strikes = 1 if circuit is None else circuit.strikes + 1
        if strikes < limit:
            return Circuit(strikes=strikes)
        return Circuit(strikes=strikes, until=now + host_wait(0, waits), is_open=True)
    if now < circuit.until:
        # Failures of requests that were under way when it opened: the same trouble, not a new probe.
        return circuit
    probes = circuit.probes + 1
    return Circuit(circuit.strikes, probes, now + host_wait(probes, waits), is_open=True)
