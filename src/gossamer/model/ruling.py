"""What becomes of a page after an answer: done, back to its queue, postponed, tried again later, or given up.

Place in the flow: politeness rules when an answer comes in; the committer makes it durable, and the frontier goes by it.
"""

from enum import Enum

import msgspec


class What(Enum):
    """What becomes of a page after an answer."""

    DONE = "done"
    """Its story ends with this outcome."""
    KEEP = "keep"
    """Back to the head of its host's queue; no try is spent."""
    POSTPONE = "postpone"
    """Back to the queue after `wait` seconds, behind other pages; no try is spent."""
    RETRY = "retry"
    """Another try after `wait` seconds; one is spent."""
    GONE = "gone"
    """Its tries are spent: `gone_after_retries`."""


class Ruling(msgspec.Struct, frozen=True, gc=False):
    """What becomes of a page, and after how many seconds it may be tried again."""

    what: What
    wait: float = 0.0


DONE = Ruling(What.DONE)
KEEP = Ruling(What.KEEP)
GONE = Ruling(What.GONE)
