"""Whether the frontier hands out, waits, or is at its end: the one place that weighs everything that a crawl may still wait for;
and the tasks that come from elsewhere than from links: pages whose links are announced again, and probes of trap families.

Place in the flow: :mod:`dispatch` asks before each task, the component when nothing can be handed out and when something was
committed. :mod:`limits` has the limits that a person sets. The component takes the other tasks when it brings in what is due, and
they are asked for before a crawl ends by itself. All that moves does so in groups of the ledger: a kill finds each task in one
place.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Final

from gossamer.engine.sheet import show_bytes
from gossamer.frontier.limits import USUAL, RetriesWaiting
from gossamer.frontier.politeness.retries import WAITS
from gossamer.frontier.traps.contract import Traps
from gossamer.values.task import Family, SetAside, Task

if TYPE_CHECKING:
    from gossamer.frontier.frontier import Frontier

#: Hosts whose reason to wait is told.
TOLD: Final = 20


class Termination:
    """Decides how the frontier goes on."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self.sources = {"seeds"}
        """Inputs that may bring tasks yet."""
        self.is_paused = False
        """A person has said so: nothing is handed out for now."""
        self.is_draining = False
        """Nothing is handed out any more; tasks in flight are committed."""
        self.has_lingered = False
        """It drains because all that was left waits for longer than it lingers."""
        self._has_told_memory = False
        self.alarm = Alarm(frontier)

    # -- handing out

    def may_hand_out(self, now: float) -> bool:
        """Whether one more task may go out; `now` is monotonic. A limit that is reached drains the frontier."""
        frontier = self._frontier
        if self.is_draining or self.is_paused or frontier.slots.taken >= frontier.sheet.concurrency:
            return False
        if not frontier.totals.is_limited:
            return True
        has_more = len(frontier.queues) > 0 or self._comes_back or self._is_lent
        allowed = frontier.totals.allows(self._reserved, has_more, now)
        self.is_draining = bool(frontier.totals.reached)
        if frontier.totals.is_over_memory and not self._has_told_memory:
            self._has_told_memory = True
            used, most = map(show_bytes, (frontier.totals.memory, frontier.sheet.memory or 0))
            frontier.report(
                f"the agent and its processes use {used} of the {most} that --memory allows: one page is asked for at a time until "
                "they use less"
            )
        return allowed

    def room(self) -> int | None:
        """Pages of the limit that are still free: neither fetched, nor in flight, nor lent; None where there is no limit."""
        return self._frontier.totals.room(self._reserved)

    @property
    def _reserved(self) -> int:
        """Pages that may come of tasks in flight, and of mobile crawlers on their way."""
        lenders = self._frontier.lent.get("hosts", ())
        return self._frontier.slots.taken + (sum(lender.pages for lender in lenders) if lenders else 0)

    @property
    def _is_lent(self) -> bool:
        lenders = self._frontier.lent.get("hosts", ())
        return bool(lenders) and any(lender.is_out for lender in lenders)

    # -- waiting

    def wait(self, until: float, now: float, steady: float) -> None:
        """Nothing can be handed out before `until`: drain if nothing ever can, or else ask again when something may.

        Args:
            until: a monotonic instant.
            now: monotonic seconds.
            steady: the same instant, in seconds since the epoch.
        """
        frontier = self._frontier
        is_idle = not (frontier.slots.taken or self.sources or self._is_busy or frontier.reopening.is_under_way)
        is_idle = is_idle and len(frontier.queues) > 0
        if is_idle and self._is_hopeless():
            self.is_draining = True
        elif is_idle and self._is_too_late(now):
            if not self._probes_last():
                self.has_lingered = self.is_draining = True
        else:
            queues = frontier.queues
            due = min(queues.next_due(), queues.next_rest(), self._next_visit() if frontier.revisits else inf)
            at = min(until, due - steady + now)
            if frontier.totals.is_limited:
                at = min(at, frontier.totals.ends_at())
            if at < self.alarm.at:
                self.alarm.set(at)

    @property
    def _is_busy(self) -> bool:
        slots = self._frontier.slots
        return bool(slots.taken or slots.wants or len(self._frontier.lookups) or self._is_lent)

    @property
    def _has_all_seeds(self) -> bool:
        """Whether only other agents may still bring tasks."""
        return self.sources <= {"arrived"}

    def _next_visit(self) -> float:
        """The time at which a known page is due for another visit, in seconds since the epoch; infinite where none will be."""
        known = self._frontier.revisits.get("due", ())
        return min(revisits.next_due() for revisits in known) if known else inf

    @property
    def _comes_back(self) -> bool:
        """Whether known pages are visited again soon enough for the crawl to stay alive for them."""
        stay, due = self._frontier.sheet.stay, self._next_visit()
        return due < inf and (stay == "forever" or due - self._frontier.clock.steady() <= stay)

    def _is_hopeless(self) -> bool:
        """Whether everything that is left belongs to hosts that have used up their chances, or to seeds that no server serves."""
        if self._comes_back:
            return False
        linger = self._frontier.sheet.linger
        if linger != "forever" and linger <= USUAL and self._frontier.totals.is_unserved:
            return True
        return self.is_only_spent()

    def is_only_spent(self) -> bool:
        """Whether all hosts that wait have used up their chances, and no other will come. `O(n)` where it is so."""
        frontier = self._frontier
        # Spent endpoints are asked at such distances that no page's own retry is as far away.
        if not self._has_all_seeds or frontier.queues.next_due() - frontier.clock.steady() <= WAITS[-1]:
            return False
        return all(map(frontier.politeness.is_spent, frontier.turns.names()))

    def _is_too_late(self, now: float) -> bool:
        """Whether all that is left is retried later than the crawl lingers; `now` is monotonic. `O(n)` where it is so."""
        frontier, linger = self._frontier, self._frontier.sheet.linger
        if linger == "forever" or self._comes_back:
            return False
        if frontier.queues.next_due() - frontier.clock.steady() <= linger:
            return False
        return all(frontier.politeness.retry_wait(name, now) > linger for name in frontier.turns.names())

    def waiting(self) -> RetriesWaiting | None:
        """Retries that are due later, as things are; None where there are none. `O(n)` in the hosts that have tasks."""
        frontier = self._frontier
        queues, steady, now = frontier.queues, frontier.clock.steady(), frontier.clock.monotonic()

        def retries() -> Iterator[float]:
            return (frontier.politeness.retry_wait(name, now) for name in frontier.turns.names())

        first, urls = min(queues.next_due(), steady + min(retries(), default=inf)), len(queues)
        if first <= steady:
            # A host could be asked now: it ended for another reason, and what is queued there waits for no retry.
            first = min(queues.next_due(), steady + min((wait for wait in retries() if wait > 0.0), default=inf))
            urls = min(urls, max(len(frontier.failures), 1))
        if first == inf:
            return None
        due = datetime.fromtimestamp(max(first, steady), UTC).isoformat(timespec="seconds")
        others = (name for name in frontier.turns.names() if frontier.politeness.retry_wait(name, now) > 0.0)
        return RetriesWaiting(urls, due.replace("+00:00", "Z"), frontier.failures.reasons(others, TOLD))

    # -- the end

    def is_at_rest(self) -> bool:
        """Whether the crawl would end now if other agents brought nothing more. Tasks set aside are probed before that."""
        if not self._has_all_seeds or self._is_busy:
            return False
        if self.is_draining:
            return True
        queued, totals = len(self._frontier.queues), self._frontier.totals
        if queued and (totals.is_short_of_pages(0) or totals.is_short_of_bytes(0)):
            return False  # it goes on as soon as it may have more
        if self._comes_back:
            return False
        if queued and not (self._is_hopeless() or self._is_too_late(self._frontier.clock.monotonic())):
            return False
        return not self._probes_last()

    def end_if_done(self) -> None:
        """End the crawl if nothing is under way, and nothing is to come or nothing more is to go out."""
        frontier = self._frontier
        if frontier.slots.taken:
            return
        if not self.is_draining:
            if self.sources or len(frontier.queues) or self._comes_back or self._is_lent:
                return
            if frontier.reopening.is_under_way:
                if not self.is_paused:
                    frontier.signal("tasks")
                return
            if self._probes_last():
                return
        for lender in frontier.lent.get("hosts", ()):
            lender.end()
        frontier.finish()

    def _probes_last(self) -> bool:
        """Before a crawl ends by itself, queue what was freed of what is set aside, or probe it; False for nothing."""
        if not self._frontier.probes.last_round():
            return False
        self._frontier.stir()
        return True


class Alarm:
    """Asks for tasks again, once: the frontier's only timer."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self.at = inf
        """The monotonic instant at which it rings."""
        self._task: asyncio.Task[None] | None = None

    def set(self, at: float) -> None:
        self.cancel()
        self.at = at
        self._task = asyncio.create_task(self._ring())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task, self.at = None, inf

    async def _ring(self) -> None:
        clock = self._frontier.clock
        await clock.sleep(max(0.0, self.at - clock.monotonic()))
        self._task, self.at = None, inf
        self._frontier.signal("tasks")


# -- tasks that come from elsewhere

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
        return not (self._waiting or self._in_flight) and self._frontier.ledger.depths.is_owing

    def take(self, most: int) -> list[Task]:
        """At most so many pages; none while the search for them has to go on."""
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
        self._in_flight -= 1
        if not self._in_flight and not self._waiting:
            self._frontier.ledger.depths.announced()


class TrapProbes:
    """Sets tasks of trap families aside, brings back those of freed ones, and asks for one of a family now and then."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._traps: Sequence[Traps] = ()
        self.leaving: dict[Family, list[Task]] = {}
        """Tasks that were taken and are to be written down, by :meth:`flush`."""
        self._returning: deque[Family] = deque()
        self._probes: set[str] = set()
        """URLs of probes that are queued: they are not set aside again. After a kill they are, which loses nothing."""
        self.since = 0
        """Visits that were committed since the last probe."""
        self._last: Family | None = None

    def begin(self) -> None:
        self._traps = [gate for gate in self._frontier.gates.get("fetch", ()) if isinstance(gate, Traps)]
        rows = self._frontier.ledger.aside()
        self._returning.extend(row.family for row in rows if row.count and not self._is_suspect(row.family))

    def _is_suspect(self, family: Family) -> bool:
        return any(one.is_suspect(family) for one in self._traps)

    def takes(self, task: Task) -> bool:
        if not self._traps:
            return False
        family: Family | None = None
        for one in self._traps:
            family = family or one.place("fetch", (task,))[0]
        if family is None:
            return False
        if task.url in self._probes:
            self._probes.discard(task.url)
            return False
        self.leaving.setdefault(family, []).append(task)
        return True

    def flush(self) -> None:
        leaving, self.leaving = self.leaving, {}
        with self._frontier.ledger.group() as group:
            for family, tasks in leaving.items():
                group.set_aside(family, [task for task in tasks if group.done(task.identity)], known=True)

    def step(self) -> bool:
        """Queue what is to be fetched by now: some of what was freed, and a probe where one is due. False for nothing."""
        for one in self._traps:
            self._returning += one.returning()
        if self._returning:
            family = self._returning[0]
            if self._is_suspect(family):
                # It was suspected again meanwhile: what comes back would only be set aside once more.
                self._returning.popleft()
                return True
            with self._frontier.ledger.group() as group:
                count = len(group.bring_back(family, RETURNED_AT_ONCE))
            if count < RETURNED_AT_ONCE:
                self._returning.popleft()
            return bool(count or self._returning)
        if self.since < SHARE or not self._frontier.ledger.counters().get("set_aside"):
            return False
        self.since = 0
        for start in (self._last, None) if self._last else (None,):
            for row in self._frontier.ledger.aside(start):
                if self._is_probed(row):
                    self._last = row.family
                    return self._probe([row], last=False)
        return False

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

    def _probe(self, rows: Sequence[SetAside], *, last: bool) -> bool:
        tasks: list[Task] = []
        if rows:
            with self._frontier.ledger.group() as group:
                for row in rows:
                    newest = row.probes % OLDEST != OLDEST - 1 or (last and row.last_probes < LAST_NEWEST)
                    tasks += group.bring_back(row.family, 1, newest=newest, probe=True, last=last)
        self._probes.update(task.url for task in tasks)
        return bool(tasks)
