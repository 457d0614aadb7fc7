"""Hosts whose names turned out to have no address, until the ledger is told.

Place in the flow: the frontier gathers them as look-ups end, and writes all of a turn in one group: a page may name thousands.
"""

import msgspec

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.politeness import Politeness
from gossamer.model.errors import DiskFull
from gossamer.model.outcome import Outcome


class Nameless:
    """Names that are still to be written down."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __repr__(self) -> str:
        return f"<Nameless {len(self._names)} to be written>"

    def add(self, name: str) -> None:
        """This name has no address."""
        self._names.append(name)

    def write(self, ledger: Ledger, politeness: Politeness, now: float) -> None:
        """Count each as a failure of its host, with what is known of the host; `now` is in seconds since the epoch."""
        if not self._names:
            return
        try:
            with ledger.group() as group:
                group.count(f"outcome:{Outcome.DNS_FAILED}", len(self._names))
                for name in self._names:
                    state = group.host_state(name)
                    counters = {**state.counters, "errors": state.counters.get("errors", 0) + 1}
                    note, first = politeness.note(name), state.first_seen or now
                    group.host(
                        msgspec.structs.replace(state, note=note, counters=counters, first_seen=first, last_seen=now)
                    )
        except DiskFull:
            return  # they are written down when there is room again
        self._names.clear()
