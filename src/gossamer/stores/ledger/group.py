"""A group: all consequences of some visits, staged in memory, then written in one batch (DESIGN 4.1).

Nothing outside the group changes before the write, so a group that fails leaves the ledger as it was.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from gossamer.model.kept import HostState, document_row
from gossamer.model.outcome import ANSWERED, Outcome
from gossamer.model.task import Task
from gossamer.model.visit import Location, Visit
from gossamer.stores.ledger.keys import ROBOTS, STATE, Keys
from gossamer.stores.ledger.queues import HostQueues
from gossamer.stores.ledger.seen import SeenUrls
from gossamer.stores.ledger.store import Batch

_encoder = msgspec.msgpack.Encoder()


class LedgerGroup:
    """An open group. Contract: `ledger.Group`."""

    def __init__(self, keys: Keys, seen: SeenUrls, queues: HostQueues) -> None:
        self._keys = keys
        self._seen = seen
        self._queues = queues
        self.new: dict[str, bytes] = {}
        self.pushed: dict[str, list[Task]] = {}
        self.ended: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self.ends: dict[str, int] = {}
        self._rows: dict[bytes, bytes] = {}
        self._hosts: dict[str, HostState] = {}

    def __repr__(self) -> str:
        return f"<LedgerGroup {len(self.new)} new, {sum(self.ended.values())} ended>"

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new to the ledger and to this group, in order, each once."""
        staged, found = self.new, []
        for url, key in self._seen.unseen(urls):
            if url not in staged:
                staged[url] = key
                found.append(url)
        return found

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks behind those of their hosts; first attempts count as discovered."""
        pushed, discovered = self.pushed, 0
        for task in tasks:
            queue = pushed.get(task.host)
            if queue is None:
                pushed[task.host] = [task]
            else:
                queue.append(task)
            discovered += task.attempt == 1
        self.counts["discovered"] += discovered

    def done(self, url: str) -> bool:
        """End a flight without a row, as for a task that is not to be fetched any more; False where there is none."""
        staged = self.ended.get(url, 0)
        if self._queues.flights(url) <= staged:
            return False
        self.ended[url] = staged + 1
        return True

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep the row of a task that was popped, end its flight and add it to the counters.

        Returns:
            False, and nothing is kept, where the task is not in flight: its visit was committed before.
        """
        if not self.done(visit.url):
            return False
        self._rows[self._keys.url(visit.url)] = _encoder.encode(document_row(visit, location))
        response = visit.response
        counts = self.counts
        counts["visits"] += 1
        counts[f"outcome:{response.outcome}"] += 1
        counts["fetched"] += response.outcome in ANSWERED
        counts["bytes"] += len(response.body)
        counts["pages"] += visit.is_page
        counts["documents"] += response.outcome is Outcome.OK and bool(response.body) and not visit.duplicate_of
        if location is not None:
            self.written(location.file, location.offset + location.length)
        return True

    def host(self, state: HostState) -> None:
        """Keep the state of a host; its robots bytes stay as they were where the state has None."""
        before = self._hosts.get(state.host)
        if before is not None and state.robots is None:
            state = msgspec.structs.replace(state, robots=before.robots)
        self._hosts[state.host] = state

    def written(self, file: str, end: int) -> None:
        """What this group points to lies in `file` before byte `end`."""
        self.ends[file] = max(end, self.ends.get(file, 0))

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter of the caller's own."""
        self.counts[name] += number

    def write(self, batch: Batch) -> None:
        """Put fingerprints, rows and host states into a batch."""
        self._seen.put(self.new.values(), batch)
        for key, row in self._rows.items():
            batch.put("documents", key, row)
        for name, state in self._hosts.items():
            host = self._keys.host(name)
            if state.robots is not None:
                batch.put("hosts", host + ROBOTS, state.robots)
            batch.put("hosts", host + STATE, _encoder.encode(msgspec.structs.replace(state, robots=None)))
