"""What of a host outlives the process, so that a restart or a hand-over knocks no earlier (fault 93).

Place in the flow: :mod:`gates` writes and reads notes; the committer keeps them in the ledger beside the host's queue.
Monotonic clocks begin anew with the machine, and wall clocks jump (fault 94). So a note holds how long there was still
to *wait* when it was written, and of the wall clock only when that was: a clock set back makes nobody wait longer than
the note says, and one set forward shortens a wait by as much as it jumped, which no process can tell from time passed.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from gossamer.services.politeness.circuit import Circuit
from gossamer.services.politeness.pace import Pace


class HostNote(msgspec.Struct, frozen=True, gc=False):
    """One host, as the ledger keeps it."""

    written: float
    """Seconds since the epoch."""
    rest: float
    """Seconds of the usual delay that were still to wait; while a request was live, the whole delay."""
    pace: Pace
    """`until` is in seconds from `written`."""
    circuit: Circuit | None = None
    """Of its name; notes of earlier versions have that of the whole host here. `until` is in seconds from `written`."""
    circuits: dict[str, Circuit] = {}
    """Of its endpoints, likewise."""


def written(
    rest: float, pace: Pace, circuit: Circuit | None, circuits: Mapping[str, Circuit], *, now: float, wall: float
) -> HostNote:
    """A note of this state, taken at monotonic `now` and wall time `wall`."""
    return HostNote(
        written=wall,
        rest=max(0.0, rest),
        pace=_shifted_pace(pace, -now),
        circuit=_shifted_circuit(circuit, -now),
        circuits={endpoint: _shifted_circuit(one, -now) for endpoint, one in circuits.items()},
    )


def read(note: HostNote, *, now: float, wall: float) -> tuple[float, Pace, Circuit | None, dict[str, Circuit]]:
    """Rest, pace and circuits of a note, with instants on the clock that says `now`."""
    passed = max(0.0, wall - note.written)
    return (
        max(0.0, note.rest - passed),
        _shifted_pace(note.pace, now - passed, not_before=now),
        _shifted_circuit(note.circuit, now - passed, not_before=now),
        {endpoint: _shifted_circuit(one, now - passed, not_before=now) for endpoint, one in note.circuits.items()},
    )


def _shifted_pace(pace: Pace, by: float, not_before: float = 0.0) -> Pace:
    until = pace.until + by if pace.until else 0.0
    known = pace.control
    if known is not None:
        known = msgspec.structs.replace(known, last=known.last + by, since=known.since + by)
    # Who stops and starts again is away for a while: that says nothing of the time between two answers.
    return msgspec.structs.replace(pace, until=until if until > not_before else 0.0, seen=0.0, control=known)


C = TypeVar("C", Circuit, Circuit | None)


def _shifted_circuit(circuit: C, by: float, not_before: float = 0.0) -> C:
    if circuit is None:
        return circuit
    if not circuit.until:
        return circuit
    # The instant of a probe that is due is kept, if only as "now": it is what tells a probe from a late failure.
    return msgspec.structs.replace(circuit, until=max(not_before, circuit.until + by))
