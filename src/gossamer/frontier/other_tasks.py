"""What is set aside, seen from the frontier: tasks that go there, probes, and what comes back (design question 22).

Place in the flow: the frontier asks here before a task goes out, tells of commits, and asks for work when nothing else is left. All
that moves does so in groups of the ledger: a kill finds each task in one place.
"""

from collections import deque
from collections.abc import Callable, Sequence

from gossamer.frontier.seams import LentHosts
from gossamer.frontier.sheet import FrontierUses
from gossamer.frontier.traps.contract import Traps, placed
from gossamer.storage.ledger.contract import Depths, Ledger
from gossamer.values.task import Family, SetAside, Task

# Visited pages whose links are announced again because the limit of depth rose, seen from the frontier.
#
# Place in the flow: the frontier takes some pages at a time, sends each through the ring to the commit as a visit that was
# not fetched, and takes the next when all of these are committed. So they wait for their slots as tasks do, and the crawl
# does not end before.

#: Pages that are taken at once; when all are committed the ledger notes how far it is.
TAKEN = 256


class Announcing:
    """Hands out visited pages, some at a time."""

    def __init__(self, depths: Depths) -> None:
        self._depths = depths
        self._waiting: deque[Task] = deque()
        self._under_way = 0

    def __repr__(self) -> str:
        return f"<Announcing: {len(self._waiting)} pages wait, {self._under_way} are under way>"

    @property
    def is_over(self) -> bool:
        """Whether every page that has to be announced again has been."""
        return not (self._waiting or self._under_way or self._depths.is_owing)

    @property
    def is_searching(self) -> bool:
        """Whether the next look at the ledger need not wait for anything."""
        return not self._waiting and not self._under_way and self._depths.is_owing

    def take(self, most: int) -> list[Task]:
        """At most so many pages; none while there is nothing to announce, or the search for them has to go on."""
        if self.is_searching:
            self._waiting.extend(self._depths.owing(TAKEN))
            if not self._waiting:
                self._depths.announced()
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._under_way += len(taken)
        return taken

    def committed(self) -> None:
        """The links of one page are queued."""
        self._under_way -= 1
        if not self._under_way and not self._waiting:
            self._depths.announced()


# URLs that mobile crawlers have, or that wait for one, as the frontier sees them: it hands out none, and waits for them.
#
# Place in the flow: lenders (`contracts.lending.LentHosts`) are providers of the frontier. Most crawls have none, so
# that case costs least: the frontier asks before each task.


class LentOut:
    """What all lenders together have out."""

    def __init__(self, uses: FrontierUses) -> None:
        self._uses = uses

    def __repr__(self) -> str:
        return f"<LentOut by {len(self._lenders)} lenders>"

    @property
    def _lenders(self) -> Sequence[LentHosts]:
        return self._uses.lent.get("hosts", ())

    @property
    def is_out(self) -> bool:
        """Whether URLs are with crawlers elsewhere, or wait for one."""
        lenders = self._lenders
        return bool(lenders) and any(lender.is_out for lender in lenders)

    @property
    def pages(self) -> int:
        """Pages that crawlers on their way may bring."""
        lenders = self._lenders
        return sum(lender.pages for lender in lenders) if lenders else 0

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Let lenders call `told` when they have news, and ask `room` how many pages are nobody's yet."""
        for lender in self._lenders:
            lender.watch(told, room)

    def end(self) -> None:
        """The crawl ends: nothing is sent any more."""
        for lender in self._lenders:
            lender.end()


#: One fetch in so many is a probe: traps take less than one request in a hundred, however many there are.
SHARE = 128

#: Probes of one family, in all, before the crawl ends, and how many of them when nothing else is left. In these its newest URLs are
#: asked for: what ends does so there.
LAST, LAST_NEWEST = 20, 8

#: One probe in so many asks for the oldest URL of a family, the others for its newest.
OLDEST = 4

#: Tasks that come back at once: a group stays some ten milliseconds long.
RETURNED_AT_ONCE = 1_000

#: Families of which a probe is sent in one round when nothing else is left.
ROUND = 1_000


class Probing:
    """Moves tasks between the queues and what is set aside."""

    def __init__(self, ledger: Ledger, gates: Sequence[object]) -> None:
        self._ledger = ledger
        self._gates = gates
        self._traps = [gate for gate in gates if isinstance(gate, Traps)]
        self._leaving: dict[Family, list[Task]] = {}
        self._returning: deque[Family] = deque(
            row.family for row in ledger.aside() if row.count and not self._is_suspect(row.family)
        )
        self._probes: set[str] = set()
        """URLs of probes that are queued: they are not set aside again. After a kill they are, which loses nothing."""
        self._since = 0
        self._last: Family | None = None

    def __repr__(self) -> str:
        return f"<Probing: {len(self._probes)} probes are queued, {len(self._returning)} families come back>"

    def _is_suspect(self, family: Family) -> bool:
        return any(one.is_suspect(family) for one in self._traps)

    def takes(self, task: Task) -> bool:
        """Whether a task that was popped is set aside, by :meth:`flush`, instead of being fetched."""
        if not self._traps:
            return False
        family = placed(self._traps, "fetch", (task,))[0]
        if family is None:
            return False
        if task.url in self._probes:
            self._probes.discard(task.url)
            return False
        self._leaving.setdefault(family, []).append(task)
        return True

    def flush(self) -> None:
        """Write what was taken."""
        if not self._leaving:
            return
        leaving, self._leaving = self._leaving, {}
        with self._ledger.group() as group:
            for family, tasks in leaving.items():
                group.set_aside(family, [task for task in tasks if group.done(task.identity)], known=True)

    def committed(self, count: int) -> None:
        """So many visits were committed."""
        self._since += count

    def step(self) -> bool:
        """Queue what is to be fetched by now: some of what was freed, and a probe where one is due. False for nothing."""
        for one in self._traps:
            self._returning += one.returning()
        if self._returning:
            return self._bring_back(self._returning[0])
        if self._since < SHARE or not self._ledger.counters().get("set_aside"):
            return False
        self._since = 0
        row = self._next()
        return row is not None and self._probe([row], last=False)

    def last_round(self) -> bool:
        """Nothing is queued or in flight: queue what was freed, or a probe of every family that has not had its last. False for
        neither: the crawl ends."""
        if not self._ledger.counters().get("set_aside"):
            return False
        if self.step():
            return True
        rows: list[SetAside] = []
        for row in self._ledger.aside():
            if self._is_probed(row) and (row.last_probes < LAST_NEWEST or row.probes < LAST):
                rows.append(row)
                if len(rows) == ROUND:
                    break
        return self._probe(rows, last=True)

    def _is_probed(self, row: SetAside) -> bool:
        return row.count > 0 and not any(one.is_confirmed(row.family) for one in self._traps)

    def _bring_back(self, family: Family) -> bool:
        if self._is_suspect(family):
            # It was suspected again meanwhile: what comes back would only be set aside once more.
            self._returning.popleft()
            return True
        with self._ledger.group() as group:
            count = len(group.bring_back(family, RETURNED_AT_ONCE))
        if count < RETURNED_AT_ONCE:
            self._returning.popleft()
        return bool(count or self._returning)

    def _next(self) -> SetAside | None:
        """The family whose turn it is."""
        for start in (self._last, None) if self._last else (None,):
            for row in self._ledger.aside(start):
                if self._is_probed(row):
                    self._last = row.family
                    return row
        return None

    def _probe(self, rows: Sequence[SetAside], *, last: bool) -> bool:
        tasks: list[Task] = []
        if rows:
            with self._ledger.group() as group:
                for row in rows:
                    newest = row.probes % OLDEST != OLDEST - 1 or (last and row.last_probes < LAST_NEWEST)
                    tasks += group.bring_back(row.family, 1, newest=newest, probe=True, last=last)
        self._probes.update(task.url for task in tasks)
        return bool(tasks)
