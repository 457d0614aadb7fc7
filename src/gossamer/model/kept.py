"""What the ledger keeps beside tasks: a row for each fetched URL, and what is known of a host."""

import msgspec

from gossamer.model.outcome import Outcome
from gossamer.model.visit import Location, Visit


class DocumentRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last committed visit of a URL. New columns go to the end, with a default: old rows stay readable."""

    url: str
    outcome: Outcome
    status: int
    fetched_at: float
    """Seconds since the epoch when the request was sent."""
    depth: int
    attempt: int
    relation: str
    source: str
    bytes: int
    """Length of the body as archived."""
    mime: str = ""
    digest: str = ""
    duplicate_of: str = ""
    location: Location | None = None
    """Where the archive keeps the answer; None where there is none."""


class HostState(msgspec.Struct, frozen=True, array_like=True):
    """What must not be forgotten of a host when the process ends (DESIGN 4.3)."""

    host: str
    next_allowed: float = 0.0
    """Seconds since the epoch before which it must not be asked: wall time, since it outlives the process."""
    state: str = ""
    """A word of the politeness or robots machine, as `asking` or `broken`."""
    counters: dict[str, int] = {}
    robots: bytes | None = None
    """Whatever the robots machine keeps. None, when a state is written: as it was before."""


def document_row(visit: Visit, location: Location | None) -> DocumentRow:
    """The row of a visit and of the record that keeps its answer."""
    task, response = visit.task, visit.response
    return DocumentRow(
        url=task.url,
        outcome=response.outcome,
        status=response.status,
        fetched_at=response.started,
        depth=task.depth,
        attempt=task.attempt,
        relation=task.relation,
        source=task.source,
        bytes=len(response.body),
        mime=response.mime,
        digest=visit.digest,
        duplicate_of=visit.duplicate_of,
        location=location,
    )
