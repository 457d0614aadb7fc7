"""A group: all consequences of some visits, staged in memory, then written in one batch (design promise 1).

Nothing outside the group changes before the write, so a group that fails leaves the ledger as it was.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gossamer.storage.contract import KEY_BYTES, Space
from gossamer.storage.ledger.contract import Links, Tallied
from gossamer.storage.ledger.layout import OWN_PREFIX, STATE, TALLIES
from gossamer.storage.ledger.queues import QueueChanges
from gossamer.storage.ledger.reader import LedgerReader
from gossamer.storage.ledger.spaces import Where
from gossamer.storage.ledger.store import Batch
from gossamer.storage.ledger.waiting import AsideChanges, Due
from gossamer.values.hosts import registered_domain
from gossamer.values.ledger_rows import DocumentRow, HostState, Meeting
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.request_identity import identity_of
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of
from gossamer.values.visit import Location, Visit

_encoder = msgspec.msgpack.Encoder()


class LedgerGroup:
    """An open group. Contract: `Group`."""

    def __init__(self, ledger: LedgerReader) -> None:
        self._ledger = ledger
        self._seen = ledger.seen
        self.changes = QueueChanges()
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.ends: dict[str, int] = {}
        self._new: dict[str, bytes] = {}
        self._lowered: dict[str, bytes] = {}
        self._depths: dict[str, int] = {}
        self._rows: dict[bytes, bytes] = {}
        self._links: dict[str, Links] = {}
        self._owners: dict[str, str] = {}
        self._originals: dict[int, str] = {}
        self._hosts: dict[str, HostState] = {}
        self._robots: dict[tuple[str, str], bytes] = {}
        self._learnt: dict[tuple[str, str], bytes] = {}
        self._tallies: dict[tuple[Tallied, str], int] = {}
        self._own: dict[str, bytes] = {}
        self._disowned: list[str] = []
        self._undone: list[bytes] = []
        self._given_up: list[str] = []
        self._aside = AsideChanges(ledger.shelf)
        self._kept = ledger.spaces
        # A look at the store costs several times one at this: the pages of a group share their host, and all share what has none.
        self._read: dict[Where, bytes | None] = {}
        self._values: dict[Where, bytes | None] = {}
        self._used: dict[Where, int] = {}

    # -- what is met

    def offer(self, urls: Sequence[str]) -> list[str]:
        staged, found = self._new, []
        for url, key, known in self._seen.weigh(urls):
            if known is None and url not in staged:
                staged[url] = key
                found.append(url)
        return found

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        best: dict[str, Task] = {}
        for task in tasks:
            identity = task.identity
            known_task = best.get(identity)
            if known_task is None or task.depth < known_task.depth:
                best[identity] = task
        keeps, staged, depths = self._seen.keeps_depths, self._new, self._depths
        found = Meeting([], [])
        least = min((task.depth for task in best.values()), default=0) if keeps else 0
        for url, key, kept in self._seen.weigh(list(best), least):
            task = best[url]
            known = depths.get(url, 0 if url in staged else kept)
            if known is None:
                staged[url] = key
                found.new.append(task)
            elif keeps and task.depth < known:
                if url not in staged:
                    self._lowered[url] = key
                found.nearer.append(task)
            else:
                continue
            if keeps:
                depths[url] = task.depth
        return found

    def depth_of(self, task: Task) -> int:
        known = self._depths.get(task.identity)
        if known is None:
            known = self._seen.depths([task.identity])[0]
        return task.depth if known is None else min(known, task.depth)

    def links(self, url: str, links: Links) -> None:
        self._links[url] = links

    def links_of(self, url: str) -> Links | None:
        staged = self._links.get(url)
        return self._ledger.page_links.of(url) if staged is None else staged

    def first(self, digest: str, url: str) -> str:
        known = self._owners.get(digest) or self._ledger.contents.owner(digest)
        if not known:
            self._owners[digest] = url
        return known

    # -- tasks

    def push(self, tasks: Iterable[Task]) -> None:
        pushed, discovered = self.changes.pushed, 0
        for task in tasks:
            lane = task.host, task.level
            queue = pushed.get(lane)
            if queue is None:
                pushed[lane] = [task]
            else:
                queue.append(task)
            discovered += task.attempt == 1
            if task.request is not None:
                self.changes.requests.append(task)
        self.counts["discovered"] += discovered

    def later(self, task: Task, due: float, *, known: bool = False) -> None:
        self.changes.delayed.append((task, due))
        if task.request is not None:
            self.changes.requests.append(task)
        self.counts["discovered"] += task.attempt == 1 and not known

    def woken(self, due: Iterable[Due]) -> None:
        pushed = self.changes.pushed
        for key, task in due:
            self.changes.woken.append(key)
            pushed.setdefault((task.host, task.level), []).append(task)

    def set_aside(self, family: Family, tasks: Iterable[Task], *, known: bool = False) -> int:
        those = list(tasks)
        count = self._aside.put(family, those)
        self.changes.requests += [task for task in those if task.request is not None]
        self.counts["set_aside"] += count
        if not known:
            self.counts["discovered"] += sum(task.attempt == 1 for task in those)
        return count

    def bring_back(
        self, family: Family, most: int, *, newest: bool = False, probe: bool = False, last: bool = False
    ) -> list[Task]:
        tasks = self._aside.take(family, most, newest=newest, probe=probe, last=last)
        for task in tasks:
            self.changes.pushed.setdefault((task.host, task.level), []).append(task)
            if self.tally("host", task.host, 1) == 1:
                self.counts["hosts"] += 1
        self.counts["set_aside"] -= len(tasks)
        return tasks

    def begun(self, task: Task) -> None:
        self.changes.begun.append(task.identity)

    def done(self, identity: str) -> bool:
        ended = self.changes.ended
        staged = ended.get(identity, 0)
        if self._ledger.queues.flights(identity) <= staged:
            return False
        ended[identity] = staged + 1
        return True

    def give_up(self, task: Task) -> bool:
        identity = task.identity
        if not self.done(identity):
            return False
        self._given_up.append(identity)
        self.counts["discovered"] -= 1
        self._untally("host", task.host)
        self._untally("domain", registered_domain(task.host))
        return True

    def _untally(self, what: Tallied, name: str) -> None:
        if self.tally(what, name):  # of domains nothing is counted where they have no budget
            self.tally(what, name, -1)

    def visited(self, visit: Visit, location: Location | None) -> bool:
        task, response, identity = visit.task, visit.response, visit.task.identity
        if response.brought is None and not task.is_want and not self.done(identity):
            return False
        row = DocumentRow(
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
            mark="" if task.request is None else task.request.mark,
        )
        self._rows[self._ledger.keys.url(identity)] = _encoder.encode(row)
        self.tried(visit)
        if visit.simhash and self._ledger.fingerprints.is_claimed(visit.simhash, visit.url) and not visit.discarded:
            self._originals[visit.simhash] = visit.url
        counts = self.counts
        is_page = visit.is_page
        counts["pages"] += is_page
        counts["troubled"] += bool(visit.trouble)
        counts["needs_browser"] += is_page and visit.needs_browser
        counts["raised"] += bool(visit.errors)
        counts["documents"] += response.outcome is Outcome.OK and bool(response.body) and not visit.duplicate_of
        if location is not None:
            self.written(location.file, location.offset + location.length)
        return True

    def tried(self, visit: Visit) -> None:
        response, counts = visit.response, self.counts
        counts["visits"] += 1
        counts[f"outcome:{response.outcome}"] += 1
        counts["fetched"] += response.outcome in ANSWERED
        counts["bytes"] += len(response.body)

    def disown(self, digest: str) -> None:
        """Forget whose a document is: who meets its bytes next owns them."""
        self._disowned.append(digest)

    def undo(self, row: DocumentRow) -> None:
        if row.mark:  # a request that was no plain GET is not repeated: it stays done, and its answer is nowhere
            lost = msgspec.structs.replace(row, location=None, duplicate_of="")
            self._rows[self._ledger.keys.url(identity_of(row.url, row.mark))] = _encoder.encode(lost)
            return
        task = Task(row.url, host_of(row.url), row.depth, row.source, row.relation)
        self.changes.pushed.setdefault((task.host, task.level), []).append(task)
        self._undone.append(self._ledger.keys.url(row.url))
        self.counts["pages"] -= row.outcome in (Outcome.OK, Outcome.TRUNCATED) and row.mime in HTML_TYPES
        self.counts["documents"] -= row.outcome is Outcome.OK and row.bytes > 0 and not row.duplicate_of

    # -- hosts, and what else is kept

    def host(self, state: HostState) -> None:
        self._hosts[state.host] = state

    def host_state(self, name: str) -> HostState:
        return self._hosts.get(name) or self._ledger.host_states([name])[0]

    def robots(self, site: str, host: str, data: bytes) -> None:
        self._robots[site, host] = data

    def learnt(self, host: str, what: str, data: bytes) -> None:
        self._learnt[host, what] = data
        self.counts[f"learnt:{what}"] += 1

    def tally(self, what: Tallied, name: str, add: int = 0) -> int:
        count = self._tallies.get((what, name))
        if count is None:
            count = self._ledger.tally(what, name)
        if add:
            count += add
            self._tallies[what, name] = count
        return count

    def meta(self, name: str, value: bytes) -> None:
        self._own[name] = value

    def written(self, file: str, end: int) -> None:
        self.ends[file] = max(end, self.ends.get(file, 0))

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] += number

    def put(self, space: Space, host: str | None, key: bytes, value: bytes) -> bool:
        where = self._kept.where(space, host, key)
        known = self._value(where)
        counter, used = self._counted(space, host)
        used += len(value) + len(key) if known is None else len(value) - len(known)
        most = space.common_bytes if host is None else space.host_bytes
        if len(key) > KEY_BYTES or len(value) > space.value_bytes or used > most:
            self.counts[f"full:{space.owner}"] += 1
            return False
        self._values[where] = value
        self._used[counter] = used
        return True

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        return self._value(self._kept.where(space, host, key))

    def delete(self, space: Space, host: str | None, key: bytes = b"") -> None:
        where = self._kept.where(space, host, key)
        known = self._value(where)
        if known is not None:
            counter, used = self._counted(space, host)
            self._values[where] = None
            self._used[counter] = used - len(key) - len(known)

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        family, low = self._kept.where(space, host, prefix)
        skip = len(low) - len(prefix)
        staged = {
            key[skip:]: value
            for (of, key), value in self._values.items()
            if of == family and key.startswith(low) and key[skip:] >= start
        }
        kept = (entry for entry in self._kept.scan(space, host, prefix, start) if entry[0] not in staged)
        changed = sorted((key, value) for key, value in staged.items() if value is not None)
        yield from heapq.merge(kept, changed)

    def _value(self, where: Where) -> bytes | None:
        if where in self._values:
            return self._values[where]
        if where not in self._read:
            self._read[where] = self._kept.value(where)
        return self._read[where]

    def _counted(self, space: Space, host: str | None) -> tuple[Where, int]:
        where = self._kept.where_used(space, host)
        used = self._used.get(where)
        return where, int.from_bytes(self._kept.value(where) or b"") if used is None else used

    # -- the end

    def write(self, batch: Batch) -> None:
        self._seen.put(self._new, self._depths, batch)
        self._seen.put(self._lowered, self._depths, batch)
        if self._undone or self._given_up or self._disowned:
            self._drop(batch)
        for key, row in self._rows.items():
            batch.put("documents", key, row)
        if self._links:
            self._ledger.page_links.put(self._links, batch)
        self._ledger.contents.put(self._owners, batch)
        if self._originals:
            self._ledger.fingerprints.put(self._originals, batch)
        ledger, host_key = self._ledger, self._ledger.keys.host
        for name, state in self._hosts.items():
            batch.put("hosts", host_key(name) + STATE, _encoder.encode(state))
        for (site, host), data in self._robots.items():
            batch.put("hosts", ledger.robots_key(site, host), data)
        for (host, what), data in self._learnt.items():
            batch.put("hosts", ledger.learnt_key(host, what), data)
        for (tallied, name), count in self._tallies.items():
            batch.put("hosts", host_key(name) + TALLIES[tallied], count.to_bytes(8))
        self._aside.write(batch)
        for name, value in self._own.items():
            batch.put("meta", OWN_PREFIX + name.encode(), value)
        for where, used in self._used.items():
            self._values[where] = used.to_bytes(8) if used else None
        for (family, place), kept in self._values.items():
            batch.change(family, place, kept)

    def _drop(self, batch: Batch) -> None:
        self._seen.drop(self._given_up, batch)
        for key in self._undone:
            batch.delete("documents", key)
        self._ledger.contents.drop(self._disowned, batch)

    def applied(self) -> None:
        if self._values:
            self._kept.applied(self._values)
        self._seen.applied(self._new, self._depths)
        self._seen.applied(self._lowered, self._depths)
        if self._given_up or self._disowned:
            self._seen.dropped(self._given_up)
            self._ledger.contents.dropped(self._disowned)
        self._ledger.contents.applied(self._owners)
        if self._originals:
            self._ledger.fingerprints.applied(self._originals)
        self._ledger.hosts_applied(self._hosts, self._tallies)
