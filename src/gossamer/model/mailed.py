"""Mail: tasks that waited on a master's disk until their agent was back.

Place in the flow: the agent that has found such a task owes it no more, and may be the one that it is for. So mail travels under a
relation of its own, and the agent looks whether it has the task (:mod:`gossamer.stages.commit.receiving`): that it has met the URL
says nothing.
"""

import msgspec

from gossamer.model.digest_claims import CLAIM
from gossamer.model.judged import fault_of
from gossamer.model.orders import ORDER
from gossamer.model.task import Task

#: The relation of a task that carries another one which waited as mail (:attr:`gossamer.model.task.Task.relation`).
MAILED = "mailed"

#: Precedes the carried task, in the place of a URL.
_SCHEME = "mailed:"


def as_mailed(task: Task) -> Task:
    """The task as it travels as mail. Orders and claims may come any number of times, and travel as they are."""
    if task.relation in (ORDER, CLAIM):
        return task
    return Task(_SCHEME + msgspec.json.encode(task).decode(), task.host, relation=MAILED)


def mailed_task(task: Task) -> Task | None:
    """The task that another one carries; None where it carries none that can be kept, as a master of another version may send."""
    try:
        carried = msgspec.json.decode(task.url.removeprefix(_SCHEME), type=Task)
    except (msgspec.DecodeError, RecursionError):
        return None
    return carried if carried.host == task.host and not fault_of(carried) else None
