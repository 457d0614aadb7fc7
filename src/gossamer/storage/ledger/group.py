"""A group: all consequences of some visits, staged in memory, then written in one batch (design promise 1).

Nothing outside the group changes before the write, so a group that fails leaves the ledger as it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Links, Tallied
from gossamer.storage.ledger.depth import KeptLinks
from gossamer.storage.ledger.host_rows import LedgerHosts
from gossamer.storage.ledger.keys import OWN_PREFIX, LedgerKeys
from gossamer.storage.ledger.queues import HostQueues, QueueChanges
from gossamer.storage.ledger.seen import KeptFingerprints, SeenContents, SeenUrls
from gossamer.storage.ledger.spaces import KeptSpaces, StagedSpaces
from gossamer.storage.ledger.store import Batch
from gossamer.storage.ledger.waiting import AsideChanges, AsideTasks, Due
from gossamer.values.hosts import registered_domain
from gossamer.values.ledger_rows import DocumentRow, HostState, Meeting, document_row
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.request_identity import identity_of
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of
from gossamer.values.visit import HTML_TYPES, Location, Visit

_encoder = msgspec.msgpack.Encoder()


class Parts(msgspec.Struct, frozen=True):
    """The parts of a ledger that a group stages changes for."""

    keys: LedgerKeys
    seen: SeenUrls
    queues: HostQueues
    hosts: LedgerHosts
    contents: SeenContents
    links: KeptLinks
    fingerprints: KeptFingerprints
    spaces: KeptSpaces
    aside: AsideTasks


class LedgerGroup:
    """An open group. Contract: `Group`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._seen = parts.seen
        self._queues = parts.queues
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
        self._spaces = StagedSpaces(parts.spaces)
        self._disowned: list[str] = []
        self._undone: list[bytes] = []
        self._given_up: list[str] = []
        self._aside = AsideChanges(parts.aside)

    # -- what is met

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new to the ledger and to this group, in order, each once; at depth 0."""
        staged, found = self._new, []
        for url, key, known in self._seen.weigh(urls):
            if known is None and url not in staged:
                staged[url] = key
                found.append(url)
        return found

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        """Check and put with depths: which of these tasks are new, and which are known at a greater depth.

        Where depths are not kept, none is known at a greater depth.
        """
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
        """The lowest depth that a task's URL was met at: its own, where none is kept."""
        known = self._depths.get(task.identity)
        if known is None:
            known = self._seen.depths([task.identity])[0]
        return task.depth if known is None else min(known, task.depth)

    def links(self, url: str, links: Links) -> None:
        """Keep a visited page's links, each with its relation, as far as they passed every rule but depth."""
        self._links[url] = links

    def links_of(self, url: str) -> Links | None:
        """The links of a page, kept or staged here; None where it was not visited."""
        staged = self._links.get(url)
        return self._parts.links.of(url) if staged is None else staged

    def first(self, digest: str, url: str) -> str:
        """Check and put: empty if `digest` is new (it belongs to `url` if this group is kept), otherwise whose it is."""
        known = self._owners.get(digest) or self._parts.contents.owner(digest)
        if not known:
            self._owners[digest] = url
        return known

    # -- tasks

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks, each behind those of its level and host; first attempts count as discovered."""
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
        """Queue a task from a time on, in seconds since the epoch.

        A first attempt counts as discovered now, unless it is `known`: it was queued before.
        """
        self.changes.delayed.append((task, due))
        if task.request is not None:
            self.changes.requests.append(task)
        self.counts["discovered"] += task.attempt == 1 and not known

    def woken(self, due: Iterable[Due]) -> None:
        """Queue what was to be queued later: its time has come."""
        pushed = self.changes.pushed
        for key, task in due:
            self.changes.woken.append(key)
            pushed.setdefault((task.host, task.level), []).append(task)

    def set_aside(self, family: Family, tasks: Iterable[Task], *, known: bool = False) -> int:
        """Put tasks of a family behind everything else; returns how many.

        Args:
            family: what is suspected of being a trap.
            tasks: first attempts among them count as discovered.
            known: they were queued before, and count as discovered already; their flights are to be ended by `done`.
        """
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
        """Queue tasks of a family that were set aside before this group, at most so many; returns them.

        Args:
            family: whose tasks.
            most: how many.
            newest: those that were set aside last.
            probe: they are counted as fetched to see whether there is anything new.
            last: they are counted as fetched when nothing else was left.
        """
        tasks = self._aside.take(family, most, newest=newest, probe=probe, last=last)
        for task in tasks:
            self.changes.pushed.setdefault((task.host, task.level), []).append(task)
            if self.tally("host", task.host, 1) == 1:
                self.counts["hosts"] += 1
        self.counts["set_aside"] -= len(tasks)
        return tasks

    def begun(self, task: Task) -> None:
        """A task in flight is about to be sent, and may not be sent again by another process."""
        self.changes.begun.append(task.identity)

    def done(self, identity: str) -> bool:
        """End a flight without a row, as for a task that is not to be fetched any more; False where there is none."""
        ended = self.changes.ended
        staged = ended.get(identity, 0)
        if self._queues.flights(identity) <= staged:
            return False
        ended[identity] = staged + 1
        return True

    def give_up(self, task: Task) -> bool:
        """End a flight as if its task had never been met: its URL is new when it is met again. False where there is none."""
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
        """Keep the row of a task that was popped, end its flight and add it to the counters.

        A document that a mobile crawler brought was not popped: the manager of crawlers lets it come once.

        Returns:
            False, and nothing is kept, where the task is not in flight: its visit was committed before.
        """
        identity = visit.task.identity
        if visit.response.brought is None and not self.done(identity):
            return False
        self._rows[self._parts.keys.url(identity)] = _encoder.encode(document_row(visit, location))
        self.tried(visit)
        if visit.simhash and self._parts.fingerprints.is_claimed(visit.simhash, visit.url) and not visit.discarded:
            self._originals[visit.simhash] = visit.url
        response = visit.response
        counts = self.counts
        counts["pages"] += visit.is_page
        counts["troubled"] += bool(visit.trouble)
        counts["needs_browser"] += visit.is_page and visit.needs_browser
        counts["raised"] += bool(visit.errors)
        counts["documents"] += response.outcome is Outcome.OK and bool(response.body) and not visit.duplicate_of
        if location is not None:
            self.written(location.file, location.offset + location.length)
        return True

    def tried(self, visit: Visit) -> None:
        """Add a request to the counters, whatever becomes of its task."""
        response, counts = visit.response, self.counts
        counts["visits"] += 1
        counts[f"outcome:{response.outcome}"] += 1
        counts["fetched"] += response.outcome in ANSWERED
        counts["bytes"] += len(response.body)

    def disown(self, digest: str) -> None:
        """Forget whose a document is: who meets its bytes next owns them."""
        self._disowned.append(digest)

    def undo(self, row: DocumentRow) -> None:
        """Forget the row of a URL and queue it again, as it was found; what was counted as kept counts no more.

        A request that was no plain GET is not repeated: it stays done, and its answer is nowhere.
        """
        if row.mark:
            lost = msgspec.structs.replace(row, location=None, duplicate_of="")
            self._rows[self._parts.keys.url(identity_of(row.url, row.mark))] = _encoder.encode(lost)
            return
        task = Task(row.url, host_of(row.url), row.depth, row.source, row.relation)
        self.changes.pushed.setdefault((task.host, task.level), []).append(task)
        self._undone.append(self._parts.keys.url(row.url))
        self.counts["pages"] -= row.outcome in (Outcome.OK, Outcome.TRUNCATED) and row.mime in HTML_TYPES
        self.counts["documents"] -= row.outcome is Outcome.OK and row.bytes > 0 and not row.duplicate_of

    # -- hosts, and what else is kept

    def host(self, state: HostState) -> None:
        """Keep the state of a host, in the place of the one before."""
        self._hosts[state.host] = state

    def host_state(self, name: str) -> HostState:
        """The state of a host, kept or staged here; an empty one where there is none."""
        return self._hosts.get(name) or self._parts.hosts.states([name])[0]

    def robots(self, site: str, host: str, data: bytes) -> None:
        """Keep the robots bytes of a site of this host."""
        self._robots[site, host] = data

    def learnt(self, host: str, what: str, data: bytes) -> None:
        """Keep what a watcher has learnt of a host, by its name for it; counted as `learnt:NAME`."""
        self._learnt[host, what] = data
        self.counts[f"learnt:{what}"] += 1

    def tally(self, what: Tallied, name: str, add: int = 0) -> int:
        """Add to the tally of a host or registered domain; returns what it is then, kept and staged here."""
        count = self._tallies.get((what, name))
        if count is None:
            count = self._parts.hosts.tally(what, name)
        if add:
            count += add
            self._tallies[what, name] = count
        return count

    def meta(self, name: str, value: bytes) -> None:
        """Keep a small value under a name of the caller's own."""
        self._own[name] = value

    def written(self, file: str, end: int) -> None:
        """Everything in `file` that this group points to lies before byte `end`."""
        self.ends[file] = max(end, self.ends.get(file, 0))

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter of the caller's own."""
        self.counts[name] += number

    def put(self, space: Space, host: str | None, key: bytes, value: bytes) -> bool:
        """Stage an entry of a space; False, and nothing but a count of `full:OWNER`, where it would break a bound."""
        is_staged = self._spaces.put(space, host, key, value)
        if not is_staged:
            self.counts[f"full:{space.owner}"] += 1
        return is_staged

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        """The value of a key of a space, kept or staged here; None where there is none."""
        return self._spaces.get(space, host, key)

    def delete(self, space: Space, host: str | None, key: bytes = b"") -> None:
        """Stage the end of an entry of a space."""
        self._spaces.delete(space, host, key)

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """The keys of a space under a host that begin with `prefix`, kept or staged here, in order."""
        return self._spaces.scan(space, host, prefix, start)

    # -- the end

    def write(self, batch: Batch) -> None:
        """Put everything but tasks and counters into a batch."""
        self._seen.put(self._new, self._depths, batch)
        self._seen.put(self._lowered, self._depths, batch)
        self._seen.drop(self._given_up, batch)
        for key in self._undone:
            batch.delete("documents", key)
        for key, row in self._rows.items():
            batch.put("documents", key, row)
        self._parts.contents.drop(self._disowned, batch)
        self._parts.links.put(self._links, batch)
        self._parts.contents.put(self._owners, batch)
        self._parts.fingerprints.put(self._originals, batch)
        self._parts.hosts.put(self._hosts, self._robots, self._learnt, self._tallies, batch)
        self._aside.write(batch)
        for name, value in self._own.items():
            batch.put("meta", OWN_PREFIX + name.encode(), value)
        self._spaces.write(batch)

    def applied(self) -> None:
        self._seen.applied(self._new, self._depths)
        self._seen.applied(self._lowered, self._depths)
        self._seen.dropped(self._given_up)
        self._parts.contents.dropped(self._disowned)
        self._parts.contents.applied(self._owners)
        self._parts.fingerprints.applied(self._originals)
        self._parts.hosts.applied(self._hosts, self._tallies)
