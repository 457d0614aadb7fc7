"""The ledger keeps everything that a crawl must not forget (design promise 1). Suites: `gossamer.testing.check_ledger`,
`check_depths`, `check_task_queues`.

A :class:`Group` holds all consequences of some visits, and is kept as a whole or not at all. :class:`Ledger` reads what groups have
kept, :class:`TaskQueues` hands out tasks, :class:`Depths` knows the limit of depth. :func:`announced` applies that limit: frontier
(for seeds) and commit call it inside an open group.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from gossamer.storage.contract import Spaces, SpacesGroup
from gossamer.values.ledger_rows import DocumentRow, HostState, Meeting
from gossamer.values.request_identity import Requested
from gossamer.values.task import Family, SetAside, Task, task_of
from gossamer.values.visit import Location, Visit

#: The tallies: URLs queued of a host, or of a registered domain; links to a host from pages of other hosts.
Tallied = Literal["host", "domain", "linked"]

#: Each link of a page: its URL, its relation, and what is asked for there beside the URL.
Links = Sequence[tuple[str, str, Requested | None]]


class Group(SpacesGroup, Protocol):
    """The consequences of a group of visits, staged until its `with` block ends: then all are kept, or none.

    Promises:
        1. Nothing is kept when the block raises, or the process dies before it ends.
        2. Everything that is met is check-and-put: entries that are new to the store and to this group come out, in order, each
           once. One that came out counts as seen, with its owner, exactly if the group is kept.
        3. If depths are kept, the known depth of a URL is the lowest at which it was met.
        4. A task that is set aside is in no queue and not in flight, and survives the process like queued tasks. Each is brought
           back once. The counter `set_aside` holds their number.
    """

    # -- what is new

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Those of `urls` that are new, in order, each once; at depth 0."""

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        """Which tasks are new, and which are known at a greater depth; none of these where depths are not kept."""

    def first(self, digest: str, url: str) -> str:
        """Empty if a document's digest is new (it now belongs to `url`), otherwise the URL that it belongs to."""

    def depth_of(self, task: Task) -> int:
        """The lowest depth that a task's URL was met at: its own, where none is kept."""

    def links(self, url: str, links: Links) -> None:
        """Keep a visited page's links, as far as they passed every rule but depth."""

    def links_of(self, url: str) -> Links | None:
        """The links of a page, kept or staged here; None where it was not visited."""

    # -- tasks that begin and end

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks, each behind those of its host and level. Never blocks, whatever their number."""

    def later(self, task: Task, due: float, *, known: bool = False) -> None:
        """Queue a task from a time on, in seconds since the epoch; `known` where it was queued before."""

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep the row of a task that was popped and end its flight; False, and nothing, where it is not in flight.

        What a mobile crawler brought (`visit.response.brought`) was not popped, and has no flight to end.
        """

    def tried(self, visit: Visit) -> None:
        """Add a request to the counters, whatever becomes of its task."""

    def done(self, identity: str) -> bool:
        """End a flight without a row; False where there is none."""

    def give_up(self, task: Task) -> bool:
        """End a flight as if its task had never been met: if its URL is found again, it is new. False if there is no
        flight."""

    def undo(self, row: DocumentRow) -> None:
        """Forget the row of a URL and queue it again, as it was found, and take it out of the counters of kept documents."""

    def begun(self, task: Task) -> None:
        """Note that a task in flight is about to be sent, and may not be sent again: see promise 4 of the ledger."""

    def set_aside(self, family: Family, tasks: Iterable[Task], *, known: bool = False) -> int:
        """Set tasks aside; returns how many. `known`: they were queued before, so that they are discovered already."""

    def bring_back(
        self, family: Family, most: int, *, newest: bool = False, probe: bool = False, last: bool = False
    ) -> list[Task]:
        """Queue at most so many tasks that were set aside before this group, the oldest or the newest; returns them.

        `probe`: they are fetched to see whether there is anything new; `last`: nothing else was left.
        """

    # -- facts of other parts

    def host(self, state: HostState) -> None:
        """Keep the state of a host."""

    def host_state(self, name: str) -> HostState:
        """The state of a host, kept or staged here; an empty one where there is none."""

    def robots(self, site: str, host: str, data: bytes) -> None:
        """Keep the robots bytes of a site of this host."""

    def learnt(self, host: str, what: str, data: bytes) -> None:
        """Keep what a watcher has learnt of this host, by the watcher's name for it, in the place of what was kept before."""

    def tally(self, what: Tallied, name: str, add: int = 0) -> int:
        """Add to the tally of a host or registered domain; returns what it is then, kept and staged here."""

    def meta(self, name: str, value: bytes) -> None:
        """Keep a small value under a name of the caller's own."""

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter of the caller's own."""

    def written(self, file: str, end: int) -> None:
        """A file of the crawl directory holds what this group points to, up to byte `end`."""


class Depths(Protocol):
    """How deep a crawl goes, and which visited pages have links that a lower limit has cut.

    Promises:
        1. Whatever limits held one after the other, with a kill at any instant: when nothing is owing and the queues are empty, the
           pages that were announced are those of a crawl that had the last limit, or a greater one, from the beginning.
        2. `owing` gives the same pages until `announced`, also to another process after a kill. To announce a page twice does
           nothing.
    """

    @property
    def limit(self) -> int | None:
        """Links from the nearest seed that are followed; None where depths are not kept, and there is no limit."""

    @property
    def is_owing(self) -> bool:
        """Whether there may be pages whose links have to be announced."""

    def owing(self, most: int) -> Sequence[Task]:
        """Some of these pages, at most so many and perhaps none, each at its lowest depth; their relation is `announced`."""

    def announced(self) -> None:
        """The links of the pages that `owing` gave last are queued, as far as they are new."""


class Ledger(Protocol):
    """Keeps what a crawl must not forget.

    Promises:
        1. After the `with` block of a group, everything that it staged survives the death of the process.
        2. After `settle`, it survives what the durability setting names.
        3. A URL is seen exactly if its task is queued, set aside, in flight, owed to another agent
           (:data:`~gossamer.storage.contract.OWED`), or done. A request that is no plain GET is known by
           :attr:`gossamer.values.task.Task.identity` in the place of its URL.
        4. A request that was noted as begun, and whose flight did not end before the process did, is popped with
           `request.was_begun` set: it is not sent.
    """

    @property
    def spaces(self) -> Spaces:
        """The spaces in which owners keep data of their own."""

    @property
    def depths(self) -> Depths:
        """The limit of depth."""

    @property
    def is_clean(self) -> bool:
        """Whether the last process that had it open ended with nothing in flight, or there was none."""

    def group(self) -> AbstractContextManager[Group]:
        """Open a group; one at a time."""

    async def settle(self) -> None:
        """Return when every group so far is as durable as the setting asks."""

    def sync(self) -> None:
        """Make every group so far survive a power cut, whatever the setting asks. Blocks for as long as the disk takes."""

    def counters(self) -> Mapping[str, int]:
        """Sums over all kept groups, by name; `outcome:WORD` for each outcome."""

    def committed_ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> the byte at which what is kept of it ends. Bytes behind it were never committed."""

    def host_states(self, names: Sequence[str]) -> list[HostState]:
        """The states of hosts, in order; an empty one for a host of which nothing is kept."""

    def hosts(self) -> Iterator[HostState]:
        """The states of all hosts of which one is kept."""

    def robots(self, site: str, host: str) -> bytes | None:
        """The robots bytes of a site of this host; None where nothing is kept."""

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        """The lessons of a watcher about hosts, in order; None where none is kept under its name."""

    def tally(self, what: Tallied, name: str) -> int:
        """How many were counted of a host or registered domain."""

    def aside(self, after: Family | None = None) -> Iterator[SetAside]:
        """Families of which tasks are set aside, or were, in a fixed order; those behind `after`, where it is given."""

    def meta(self, name: str) -> bytes | None:
        """The value that is kept under a name; None where there is none."""

    def put_meta(self, name: str, value: bytes) -> None:
        """Keep a value under a name, without a group."""

    def links_of(self, url: str) -> Links | None:
        """The links of a visited page; None where it was not visited, or depths are not kept."""

    def document(self, url: str) -> DocumentRow | None:
        """The row of the last committed visit of a canonical URL; None where there was none.

        Inside a group that is open, it is the row before that group.
        """

    def depth_of(self, urls: Sequence[str]) -> list[int | None]:
        """The lowest depth that each URL was met at; None where it was never met, or depths are not kept."""


class TaskQueues(Protocol):
    """Queues tasks by host, and lets hosts take turns. The scheduler holds a host from `admit` until `pop` gives
    nothing or `rest`.

    Promises:
        1. Every pushed task is popped: the lowest level of its host first, and in a level in the order of pushes. That holds
           also for what is pushed while its host is held.
        2. A popped task whose visit was not kept is popped again after the store is reopened, before those behind it.
        3. A host with tasks that is not held is admitted, sooner or later, also after reopening.
        4. A task for later is queued by the first `wake` at or after its time, not before.
        5. Memory is bounded by settings, whatever the number of hosts and tasks.
    """

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds: they have tasks, or may have. `now` is wall time, in seconds."""

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host, now in flight. If there are none, the host is no longer held, and is
        admitted again at its turn."""

    def put_back(self, task: Task) -> None:
        """A popped task is not in flight after all: it is popped again before those behind it."""

    def rest(self, host: str, until: float) -> None:
        """Release this host; it is admitted again after `until` (wall time, in seconds), not before."""

    def next_rest(self) -> float:
        """When the next resting host may be admitted; infinite where none rests. A host rests when its last flight has ended."""

    def next_due(self) -> float:
        """When the next task of `Group.later` is due; infinite where there is none."""

    def wake(self, now: float) -> int:
        """Queue tasks that are due, some at a time, in a group of its own; returns how many."""

    def __len__(self) -> int:
        """Tasks that are not popped, those for later among them."""


# Shortest depths: without them the first way to a page would decide its depth, so which pages a crawl with `--depth` reaches would
# depend on which server was quicker (design question 4). A page that was visited at a greater depth is not fetched again: its links
# were kept, and are announced anew, nearer.

Passing = Callable[[list[Task]], Sequence[Task]]
"""Leaves out the tasks that are not followed, from whichever page they come."""


def announced(tasks: Iterable[Task], group: Group, limit: int, passing: Passing = list) -> list[Task]:
    """Those of `tasks`, and of what lies behind them now, that are new and at most `limit` links from a seed. `passing` judges
    what lies behind `tasks`; these were judged.

    It ends: a page's depth can only become less, so each is announced again at most `limit` times in a whole crawl.
    """
    found: list[Task] = []
    todo: Sequence[Task] = [task for task in tasks if task.depth <= limit]
    while todo:
        meeting = group.meet(todo)
        found += meeting.new
        todo = passing([child for task in meeting.nearer for child in behind(task, group) if child.depth <= limit])
    return found


def behind(task: Task, group: Group) -> Iterable[Task]:
    """The links of a page as tasks; none where it was not visited yet, since then its own visit will announce them."""
    for link in group.links_of(task.identity) or ():
        yield task_of(task, *link)
