"""The trie as the queue of a crawl: tasks of a host take turns at every branch of its paths (Ridgway 2010, section 4.6; row R3).

Place in the flow: `--strategy trie` puts this provider in front of the ledger's task queues. The seed's XTrie keeps URLs in files
of its own and forgets what was handed out when it is killed. Here the tasks stay in the ledger, which knows after a kill what was
in flight, and the trie holds a window of each host that the frontier holds: the tasks that the ledger has given to it. Hosts take
turns by politeness, so that a branch above the host would have no say.

Promises: a task is handed out once for each time that it was queued; what a kill leaves is popped again; the window is bounded.
Against the seed, turns are taken among `window` tasks of a host at a time: a branch that the ledger has behind them waits for the
next round.

:class:`TrieSeen` is the trie as the seen set of a crawl, and as a queue by itself.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Annotated

from gossamer.engine.sheet import Sheet, setting
from gossamer.labs.trie.chunks import Mark, key_of, prefixes_of, url_of
from gossamer.labs.trie.tree import DiskTrie
from gossamer.storage.ledger.providers import QueuesFront
from gossamer.storage.seen.logged import LoggedSeen, LoggedSeenSheet
from gossamer.values.task import Task


def segments_of(url: str) -> list[str]:
    """The branches that lead to a URL below its host: the segments of its path, then its query."""
    authority = url.find("://") + 3
    slash = url.find("/", authority)
    path, sign, query = url[slash + 1 if slash >= 0 else len(url) :].partition("?")
    return [*path.split("/"), *([sign + query] if sign else ())]


class _Branch:
    """Tasks at one place of a host's paths, and the branches below it in the order of their turns."""

    __slots__ = ("below", "tasks")

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.below: dict[str, _Branch] = {}

    def put(self, task: Task) -> None:
        here = self
        for segment in segments_of(task.url):
            here = here.below.setdefault(segment, _Branch())
        here.tasks.append(task)

    def take(self) -> Task:
        """The task whose turn it is: one that waits here, else one of the branch that has waited longest."""
        if self.tasks:
            return self.tasks.popleft()
        segment = next(iter(self.below))
        branch = self.below.pop(segment)
        task = branch.take()
        if branch.tasks or branch.below:
            self.below[segment] = branch  # behind all others
        return task

    def left(self) -> Iterator[Task]:
        """Every task that waits here and below."""
        yield from self.tasks
        for branch in self.below.values():
            yield from branch.left()


class _Window:
    """The tasks of one held host that the ledger has given away and the frontier has not got yet."""

    __slots__ = ("count", "returned", "root")

    def __init__(self) -> None:
        self.root = _Branch()
        self.returned: list[Task] = []
        """Tasks that came back: they go before all others, the last one first."""
        self.count = 0

    def take(self) -> Task:
        self.count -= 1
        return self.returned.pop() if self.returned else self.root.take()


class TrieQueuesSheet(Sheet, frozen=True):
    window: Annotated[int, setting("Let this many tasks of a host take turns.", unit="tasks", ge=1, le=10_000)] = 256
    tasks: Annotated[int, setting("Hold at most about this many tasks of all hosts.", unit="tasks", ge=1)] = 50_000


class TrieQueues(QueuesFront[TrieQueuesSheet]):
    """Hands out the tasks of a host by turns at every branch of its paths. Contract: `storage.ledger.contract.TaskQueues`, but for
    the order of tasks within a host."""

    def __init__(self, sheet: TrieQueuesSheet | None = None) -> None:
        super().__init__(sheet)
        self._windows: dict[str, _Window] = {}
        self._waiting = 0
        """Tasks in all windows."""
        self.metrics.gauge("taking_turns", lambda: self._waiting)

    def __len__(self) -> int:
        return len(self.behind) + self._waiting

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host. If there are none, the host is no longer held."""
        window = self._windows.setdefault(host, _Window())
        if not window.count:
            # Only then: a host of which the ledger gives nothing is held no more, and could be admitted twice.
            given = self.behind.pop(host, max(1, min(self.sheet.window, self.sheet.tasks - self._waiting)))
            for task in given:
                window.root.put(task)
            window.count = len(given)
            self._waiting += window.count
        if not window.count:
            del self._windows[host]
            return []
        taken = [window.take() for _ in range(min(most, window.count))]
        self._waiting -= len(taken)
        return taken

    def put_back(self, task: Task) -> None:
        window = self._windows.get(task.host)
        if window is None:
            self.behind.put_back(task)
        else:
            window.returned.append(task)
            window.count += 1
            self._waiting += 1

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more before `until`; tasks that still took turns go back to the ledger."""
        window = self._windows.pop(host, None)
        if window is not None:
            self._waiting -= window.count
            for task in [*window.root.left(), *window.returned]:
                self.behind.put_back(task)
        self.behind.rest(host, until)


# The trie as the seen set of a crawl: exact, on the disk, by prefixes, and kept with the ledger's groups.
#
# Against the ledger's own (docs/benchmarks.md): hosts and domains can be counted, listed and forgotten, and URLs are told
# apart by themselves, not by hashes. Filling and asking take several times as long.


#: How lines of the log begin that name a host to be forgotten; no URL begins so.
FORGET = "-"


class TrieSeenSheet(LoggedSeenSheet, frozen=True):
    cache: Annotated[
        int,
        setting(
            "Keep at most this many unchanged chunks in memory; each has up to 400 nodes and takes about 100 KB.",
            unit="chunks",
            restart="it is part of the set that is open",
            ge=0,
        ),
    ] = 1_000


class TrieSeen(LoggedSeen[TrieSeenSheet]):
    """Keeps every URL of the crawl in a trie on the disk. Contract: `storage.seen.contract.SeenSet`."""

    kind = "trie"

    def __len__(self) -> int:
        return len(self.trie) + len(self._staged)

    def opened(self) -> int:
        self.trie = DiskTrie(self.home, self.sheet.cache, sync=self.sheet.sync)
        self.metrics.gauge("urls", lambda: len(self))
        self.metrics.gauge("chunks", lambda: self.trie.in_memory)
        self.metrics.gauge("loads", lambda: self.trie.loads)
        return self.trie.files.manifest.log

    def abandon(self) -> None:
        """Close the files and write nothing more."""
        self.trie.close()
        super().abandon()

    def has(self, url: str) -> bool:
        return self.trie.holds(key_of(url))

    def add(self, urls: Iterable[str]) -> None:
        for url in urls:
            self.trie.put(key_of(url))

    def write(self, log: int) -> None:
        """Write the chunks that have changed."""
        self.trie.checkpoint(log)

    # -- what a set of fingerprints cannot do

    def replay(self, text: str) -> None:
        if text.startswith(FORGET):
            self._drop(text[1:])
        else:
            super().replay(text)

    def forget(self, host: str) -> int:
        """Forget a host or domain and what lies below it, as when it is handed to another agent; how many URLs those were."""
        with self.ledger.group() as group:
            self.log(f"{FORGET}{host}\n", group)
            gone = self._drop(host)
        self.since += 1
        return gone

    def _drop(self, host: str) -> int:
        return sum(map(self.trie.forget, prefixes_of(host)))

    def under(self, host: str) -> Iterator[str]:
        """Every URL of a host or domain and what lies below it: `example.org` has those of `www.example.org`."""
        self._settle()
        for prefix in prefixes_of(host):
            yield from map(url_of, self.trie.under(prefix))

    def count(self, host: str) -> int:
        return sum(1 for _ in self.under(host))


# The trie as a queue (Ridgway 2010, section 4.6, "XTrie"): URLs that wait are taken by turns at every branch.
#
# Every node knows how many URLs wait at or below it, and whose turn was last among its children. A walk from the root takes
# the next child with something to do, so that domains take turns, then their hosts, then the parts of a host's paths. In
# the seed clearing a mark asked all peers up to the root, "hundreds of nodes", and the queue was given up for that; a
# number in the place of the inherited mark takes as many steps as the key has branches.


class TrieTurns:
    """The URLs that wait in a trie."""

    def __init__(self, trie: DiskTrie) -> None:
        self._trie = trie
        self.taken: dict[str, None] = dict.fromkeys(trie.files.manifest.taken)
        """Keys of what was handed out and not finished."""
        for key in list(self.taken):
            self.put_back(url_of(key))

    def __len__(self) -> int:
        return self._trie.root.to_do

    def push(self, url: str) -> bool:
        """Queue a URL; False, and nothing, where the trie has it already, waiting or not."""
        return self._trie.put(key_of(url), Mark.TO_DO)

    def take(self) -> str | None:
        """The URL whose turn it is, which does not wait any more; None where none waits."""
        trie = self._trie
        node, path, key = trie.root, [trie.root], ""
        while node.mark != Mark.TO_DO:
            if not node.to_do:
                return None
            # The child whose turn it is, among those with something to do.
            kids = trie.kids_of(node)
            waiting = sorted(first for first, kid in kids.items() if kid.to_do)
            node.turn = next((first for first in waiting if first > node.turn), waiting[0])
            node = kids[node.turn]
            path.append(node)
            key += node.text
        node.mark = Mark.URL
        trie.add_to_do(path, -1)
        trie.trim()
        self.taken[key] = None
        return url_of(key)

    def done(self, url: str) -> bool:
        """A taken URL is finished: it never waits again. False for one that neither was taken nor waits."""
        key = key_of(url)
        if key in self.taken:
            del self.taken[key]
            return True
        return self._mark(key, Mark.TO_DO, Mark.URL)

    def put_back(self, url: str) -> bool:
        """A taken URL waits again; False for one that was not taken."""
        key = key_of(url)
        if key not in self.taken:
            return False
        del self.taken[key]
        return self._mark(key, Mark.URL, Mark.TO_DO)

    def _mark(self, key: str, before: Mark, after: Mark) -> bool:
        path = self._trie.path_to(key)
        is_so = path is not None and path[-1].mark == before
        if path is not None and is_so:
            path[-1].mark = after
            self._trie.add_to_do(path, 1 if after == Mark.TO_DO else -1)
        self._trie.trim()
        return is_so
