"""Bodies and fields of requests that are no plain GET, until these are done: in the queues they wait as URL and mark alone.

Place in the flow: a group that queues such a task keeps what it sends, and a task that is popped gets it back. So a body of a
megabyte is in memory while its task is in flight, and not before. A task that may not be sent twice is noted as begun before it is
handed out: a process that finds the note of another one says so in the task, and the request ends as `interrupted`.
"""

from collections.abc import Iterable, Mapping

import msgspec

from gossamer.storage.ledger.keys import LedgerKeys
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """New fields go to the end, with a default."""

    tasks: int
    """How many tasks wait for it, or are in flight."""
    begun: bytes
    """The session that was about to send it; empty where none was."""
    request: Requested


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class KeptRequests:
    """Requests by identity."""

    def __init__(self, store: RocksStore, keys: LedgerKeys, session: bytes) -> None:
        """`session` names this opening of the ledger: no other one has it."""
        self._store = store
        self._keys = keys
        self._session = session

    def whole(self, task: Task) -> Task:
        """A task that was popped, with all that it sends."""
        if task.request is None:
            return task
        kept = self._of(task.identity)
        if kept is None:  # nothing but a mark is left of it: it is not sent, rather than sent as something else
            return msgspec.structs.replace(task, request=msgspec.structs.replace(task.request, was_begun=True))
        was_begun = bool(kept.begun) and kept.begun != self._session
        return msgspec.structs.replace(task, request=msgspec.structs.replace(kept.request, was_begun=was_begun))

    def write(self, pushed: Iterable[Task], ended: Mapping[str, int], begun: Iterable[str], batch: Batch) -> None:
        """Put the requests of new tasks into a batch, and drop those for which no task waits any more.

        Args:
            pushed: tasks with a request, each as often as it is queued.
            ended: identity -> how many of its flights have ended.
            begun: identities of those that are about to be sent.
            batch: what is written.
        """
        changed: dict[str, _Kept | None] = {}

        def known(identity: str) -> _Kept | None:
            return changed[identity] if identity in changed else self._of(identity)

        for identity in begun:
            kept = known(identity)
            if kept is not None:
                changed[identity] = _Kept(kept.tasks, self._session, kept.request)
        for identity, count in ended.items():
            kept = known(identity)
            if kept is not None:
                changed[identity] = _Kept(kept.tasks - count, b"", kept.request)
        for task in pushed:
            assert task.request is not None
            kept = known(task.identity)
            request = msgspec.structs.replace(task.request, was_begun=False)
            changed[task.identity] = _Kept(1 if kept is None else kept.tasks + 1, b"", request)
        for identity, kept in changed.items():
            key = self._keys.url(identity)
            if kept is None or kept.tasks <= 0:
                batch.delete("requests", key)
            else:
                batch.put("requests", key, _encode(kept))

    def _of(self, identity: str) -> _Kept | None:
        data = self._store.get("requests", self._keys.url(identity))
        return None if data is None else _decode(data)


def as_queued(task: Task) -> Task:
    """The task as it lies in a queue: of what it sends, the mark alone."""
    if task.request is None:
        return task
    return msgspec.structs.replace(task, request=Requested(task.request.mark))
