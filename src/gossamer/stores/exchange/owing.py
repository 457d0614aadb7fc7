"""What agents owe each other, as it lies in the space of the ledger: one form for all outboxes.

Place in the flow: :mod:`outbox` and :mod:`files` stage it in the group of a visit, and read it again when it is to go.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from gossamer.contracts.designating import Designation
from gossamer.contracts.exchanging import OwedTask
from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import OWED
from gossamer.model.digest_claims import CLAIM
from gossamer.model.task import Task

#: Bytes of a key. It is no secret's hash, so that it must be too long for anybody to find two URLs with the same one.
_KEY_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Task).decode


def stage_owed(tasks: Sequence[Task], designation: Designation, group: Group) -> list[OwedTask]:
    """Stage tasks of other agents' hosts; what has no room is counted as `cut:owed`. Returns what was staged."""
    owed: list[OwedTask] = []
    for task in tasks:
        one = OwedTask(designation.owner(task.host), task, owed_key(task), _encode(task))
        is_new = group.get(OWED, task.host, one.key) is None
        if group.put(OWED, task.host, one.key, one.value):
            group.count("owed", is_new)
            group.count("owed_claims", is_new and task.relation == CLAIM)
            owed.append(one)
        else:
            group.count("cut:owed")
    return owed


def owed_key(task: Task) -> bytes:
    """The key of a task in the spaces of what is owed, under its host."""
    return blake2b(task.identity.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def owed_task(value: bytes) -> Task:
    """The task of an entry."""
    return _decode(value)
