"""Whether the frontier hands out, waits, or is at its end: the one place that weighs everything that a crawl may still wait for.

Place in the flow: :mod:`dispatch` asks before each task, the component when nothing can be handed out and when something was
committed. :mod:`limits` has the limits that a person sets, :mod:`other_tasks` the tasks that come before a crawl ends by itself.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Final

from gossamer.frontier.limits import USUAL, RetriesWaiting
from gossamer.frontier.politeness.retries import WAITS

if TYPE_CHECKING:
    from gossamer.frontier.component import Frontier

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
        """Nothing is handed out any more; what is in flight is committed."""
        self.has_lingered = False
        """It drains because all that was left waits for longer than it lingers."""
        self.alarm = Alarm(frontier)

    # -- handing out

    def may_hand_out(self, now: float) -> bool:
        """Whether one more task may go out; `now` is monotonic. A limit that is reached drains the frontier."""
        frontier = self._frontier
        if self.is_draining or self.is_paused or frontier.slots.free <= 0:
            return False
        has_more = len(frontier.queues) > 0 or self._comes_back or self._is_lent
        allowed = frontier.totals.allows(self._reserved, has_more, now)
        self.is_draining = bool(frontier.totals.reached)
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
        """Whether URLs are with mobile crawlers, or wait for one."""
        lenders = self._frontier.lent.get("hosts", ())
        return bool(lenders) and any(lender.is_out for lender in lenders)

    # -- waiting

    def wait(self, until: float, now: float) -> None:
        """Nothing can be handed out before `until`: drain if nothing ever can, or else ask again when something may."""
        frontier = self._frontier
        is_idle = not (self._is_busy or frontier.reopening.is_under_way or self.sources) and len(frontier.queues) > 0
        if is_idle and self._is_hopeless():
            self.is_draining = True
        elif is_idle and self._is_too_late(now):
            if not self._probes_last():
                self.has_lingered = self.is_draining = True
        else:
            queues = frontier.queues
            due = min(queues.next_due(), queues.next_rest(), self._next_visit()) - frontier.clock.steady() + now
            self.alarm.set(min(until, due, frontier.totals.ends_at()))

    @property
    def _is_busy(self) -> bool:
        """Whether anything is under way."""
        return bool(self._frontier.slots.taken or len(self._frontier.lookups) or self._is_lent)

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
    """Asks for tasks again, once, at the earliest instant that it was set to: the frontier's only timer."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._at = inf
        self._task: asyncio.Task[None] | None = None

    def set(self, at: float) -> None:
        """Ring at this monotonic instant, unless it is to ring before."""
        if at < self._at:
            self.cancel()
            self._at = at
            self._task = asyncio.create_task(self._ring())

    def cancel(self) -> None:
        """Do not ring."""
        if self._task is not None:
            self._task.cancel()
        self._task, self._at = None, inf

    async def _ring(self) -> None:
        clock = self._frontier.clock
        await clock.sleep(max(0.0, self._at - clock.monotonic()))
        self._task, self._at = None, inf
        self._frontier.signal("tasks")
