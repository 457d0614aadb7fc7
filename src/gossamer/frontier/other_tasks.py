"""Tasks that come from elsewhere than from links: pages whose links are announced again, and probes of trap families.

Place in the flow: the component takes them when it brings in what is due, tells of commits, and asks for them before a crawl
ends by itself. All that moves does so in groups of the ledger: a kill finds each task in one place.
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gossamer.frontier.traps.contract import Traps, placed
from gossamer.values.task import Family, SetAside, Task

if TYPE_CHECKING:
    from gossamer.frontier.component import Frontier

#: Pages that are announced at once; when all are committed the ledger notes how far it is.
TAKEN: Final = 256

#: One fetch in so many is a probe: traps take less than one request in a hundred, however many there are.
SHARE: Final = 128

#: Probes of one family, in all, before the crawl ends, and how many of them when nothing else is left. In these its newest URLs are
#: asked for: what ends does so there.
LAST, LAST_NEWEST = 20, 8

#: One probe in so many asks for the oldest URL of a family, the others for its newest.
OLDEST: Final = 4

#: Tasks that come back at once: a group stays some ten milliseconds long.
RETURNED_AT_ONCE: Final = 1_000

#: Families of which a probe is sent in one round when nothing else is left.
ROUND: Final = 1_000


class DepthReopening:
    """Visited pages whose links are announced again, because the limit of depth rose.

    Some pages at a time go through the ring to the commit, as visits that were not fetched, and the next ones when all of these
    are committed. So they wait for their slots as tasks do, and the crawl does not end before.
    """

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._waiting: deque[Task] = deque()
        self._in_flight = 0

    @property
    def is_under_way(self) -> bool:
        """Whether pages have yet to be announced again."""
        return bool(self._waiting or self._in_flight or self._frontier.ledger.depths.is_owing)

    @property
    def is_searching(self) -> bool:
        """Whether the next look at the ledger need not wait for anything."""
        return not (self._waiting or self._in_flight) and self._frontier.ledger.depths.is_owing

    def take(self, most: int) -> list[Task]:
        """At most so many pages; none while there is nothing to announce, or the search for them has to go on."""
        if self.is_searching:
            depths = self._frontier.ledger.depths
            self._waiting.extend(depths.owing(TAKEN))
            if not self._waiting:
                depths.announced()
        taken: list[Task] = []
        while self._waiting and len(taken) < most:
            taken.append(self._waiting.popleft())
        self._in_flight += len(taken)
        return taken

    def committed(self) -> None:
        """Note that the links of one page are queued."""
        self._in_flight -= 1
        if not self._in_flight and not self._waiting:
            self._frontier.ledger.depths.announced()


class TrapProbes:
    """Sets tasks of trap families aside, brings back those of freed ones, and asks for one of a family now and then."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._traps: Sequence[Traps] = ()
        self._leaving: dict[Family, list[Task]] = {}
        self._returning: deque[Family] = deque()
        self._probes: set[str] = set()
        """URLs of probes that are queued: they are not set aside again. After a kill they are, which loses nothing."""
        self._since = 0
        self._last: Family | None = None

    def begin(self) -> None:
        """Go on from what the ledger holds."""
        self._traps = [gate for gate in self._frontier.gates.get("fetch", ()) if isinstance(gate, Traps)]
        rows = self._frontier.ledger.aside()
        self._returning.extend(row.family for row in rows if row.count and not self._is_suspect(row.family))

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
        """Write down what :meth:`takes` took."""
        if not self._leaving:
            return
        leaving, self._leaving = self._leaving, {}
        with self._frontier.ledger.group() as group:
            for family, tasks in leaving.items():
                group.set_aside(family, [task for task in tasks if group.done(task.identity)], known=True)

    def committed(self, count: int) -> None:
        """Note that so many visits were committed."""
        self._since += count

    def step(self) -> bool:
        """Queue what is to be fetched by now: some of what was freed, and a probe where one is due. False for nothing."""
        for one in self._traps:
            self._returning += one.returning()
        if self._returning:
            return self._bring_back(self._returning[0])
        if self._since < SHARE or not self._frontier.ledger.counters().get("set_aside"):
            return False
        self._since = 0
        row = self._next()
        return row is not None and self._probe([row], last=False)

    def last_round(self) -> bool:
        """Nothing is queued or in flight: queue what was freed, or a probe of every family that has not had its last. False for
        neither: the crawl ends."""
        if not self._frontier.ledger.counters().get("set_aside"):
            return False
        if self.step():
            return True
        rows: list[SetAside] = []
        for row in self._frontier.ledger.aside():
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
        with self._frontier.ledger.group() as group:
            count = len(group.bring_back(family, RETURNED_AT_ONCE))
        if count < RETURNED_AT_ONCE:
            self._returning.popleft()
        return bool(count or self._returning)

    def _next(self) -> SetAside | None:
        """The family whose turn it is."""
        for start in (self._last, None) if self._last else (None,):
            for row in self._frontier.ledger.aside(start):
                if self._is_probed(row):
                    self._last = row.family
                    return row
        return None

    def _probe(self, rows: Sequence[SetAside], *, last: bool) -> bool:
        tasks: list[Task] = []
        if rows:
            with self._frontier.ledger.group() as group:
                for row in rows:
                    newest = row.probes % OLDEST != OLDEST - 1 or (last and row.last_probes < LAST_NEWEST)
                    tasks += group.bring_back(row.family, 1, newest=newest, probe=True, last=last)
        self._probes.update(task.url for task in tasks)
        return bool(tasks)
