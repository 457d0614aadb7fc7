"""Rows that the ledger keeps beside tasks: one for each fetched URL, and what is known of a host."""

import msgspec

from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Location


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
    mark: str = ""
    """Of a request that is no plain GET: what it is known by beside its URL."""


class HostState(msgspec.Struct, frozen=True, array_like=True):
    """State of a host that outlives the process (design promise 3). Times are in seconds since the epoch."""

    host: str
    note: bytes = b""
    """The note of politeness (:mod:`gossamer.frontier.politeness.places`); nothing else reads it."""
    counters: dict[str, int] = {}
    """By name, as `pages`, `errors`, `bytes`."""
    first_seen: float = 0.0
    last_seen: float = 0.0
    address: str = ""
    """The last IP address that answered."""
    delay: float = 0.0
    """Seconds between two requests, as politeness has them now."""
    robots_state: str = ""
    """Where robots exclusion stands, in one word."""
    robots_date: float = 0.0
    """When robots.txt was last fetched."""
    delay_reason: str = ""
    """Why the delay is no shorter, in one word (:class:`gossamer.frontier.politeness.pace.Reason`)."""


class Meeting(msgspec.Struct, frozen=True):
    """The result for tasks whose URLs were met on a page."""

    new: list[Task]
    """Those whose URL was never met, in order, each once, at its lowest depth."""
    nearer: list[Task]
    """Those whose URL is known at a greater depth than theirs, likewise: to be announced again (design question 4)."""
