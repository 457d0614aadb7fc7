"""What a queue's keeper and a crawler tell each other: URLs on lease, and that the crawler is still there.

A *life* is one process of a crawler, from its start to its end. A lease belongs to a life: who begins a new one has forgotten
what the old one had in hand, and says so by its name.
"""

import msgspec

from gossamer.model.task import Task


class LeasedTask(msgspec.Struct, frozen=True, gc=False):
    """A task for the crawler of one life, and for no other."""

    task: Task
    life: str


class LeaseRenewal(msgspec.Struct, frozen=True, gc=False):
    """The crawler is there: it keeps what it has, and takes more."""

    life: str
