"""What is to be expected of what is left in the queues, when none of it can be handed out now.

Place in the flow: the frontier asks here whether that is worth staying alive for (:mod:`lingering` says for how long), and what
waits when the crawl ends.
"""

from datetime import UTC, datetime
from math import inf
from typing import Final

from gossamer.services.politeness.retries import WAITS
from gossamer.stages.frontier.aside import Aside
from gossamer.stages.frontier.lingering import USUAL, Failures, RetriesWaiting
from gossamer.stages.frontier.stopping import Stopping
from gossamer.stages.frontier.uses import FrontierUses

#: Hosts whose reason to wait is told.
TOLD: Final = 20


class Prospects:
    """Tasks and hosts that wait: for how long, and whether anything will come of it."""

    def __init__(self, uses: FrontierUses, sources: set[str], stopping: Stopping, failures: Failures) -> None:
        """All is to be expected.

        Args:
            uses: the frontier's providers.
            sources: inputs that may bring tasks yet, as the frontier keeps them.
            stopping: knows whether anybody ever answered.
            failures: knows why URLs are tried again.
        """
        self._uses = uses
        self._sources = sources
        self._stopping = stopping
        self._failures = failures
        self.aside = Aside(lambda: uses.politeness, self._is_all_here)
        """Hosts that are set aside."""

    def __repr__(self) -> str:
        return f"<Prospects: {self.aside!r}>"

    @property
    def is_sown(self) -> bool:
        """Whether nobody will bring tasks any more but other agents."""
        return self._sources <= {"arrived"}

    def _is_all_here(self) -> bool:
        """Whether neither a seed nor a task for later will bring another host. Endpoints that were given their chances are asked
        at such distances that no page's own retry is as far away."""
        return self.is_sown and self._uses.queues.next_due() - self._uses.clock.steady() > WAITS[-1]

    def _next_visit(self) -> float:
        """When a known page is due for another visit, in seconds since the epoch; infinite where none will be."""
        return min((revisits.next_due() for revisits in self._uses.revisits.get("due", ())), default=inf)

    @property
    def comes_back(self) -> bool:
        """Whether known pages are visited again soon enough for the crawl to stay alive for them."""
        stay, due = self._uses.sheet.stay, self._next_visit()
        return due < inf and (stay == "forever" or due - self._uses.clock.steady() <= stay)

    @property
    def is_hopeless(self) -> bool:
        """Whether everything that is left belongs to hosts that were given their chances, or to seeds that nobody serves."""
        if self.comes_back:
            return False
        linger = self._uses.sheet.linger
        if linger != "forever" and linger <= USUAL and self._stopping.is_unserved:
            return True
        return self.aside.is_only_spent()

    def is_over(self, now: float) -> bool:
        """Whether all that is left waits to be tried again for longer than the crawl lingers; `now` is monotonic."""
        linger = self._uses.sheet.linger
        if linger == "forever" or self.comes_back or self._uses.queues.next_due() - self._uses.clock.steady() <= linger:
            return False
        return self.aside.all_wait(linger, now)

    def next_due(self, now: float) -> float:
        """The monotonic instant at which a task, a host or a known page comes back from the disk; infinite where none will."""
        queues = self._uses.queues
        return min(queues.next_due(), queues.next_rest(), self._next_visit()) - self._uses.clock.steady() + now

    def waiting(self) -> RetriesWaiting | None:
        """Retries that are due later, as things are; None where there are none. `O(n)` in the hosts that have tasks."""
        uses = self._uses
        now, steady = uses.clock.monotonic(), uses.clock.steady()
        first, urls = min(uses.queues.next_due(), steady + self.aside.first_retry(now)), len(uses.queues)
        if first <= steady:
            # A host could be asked now: it ended for another reason, and what is queued there waits for no retry.
            first = min(uses.queues.next_due(), steady + self.aside.next_retry(now))
            urls = min(urls, max(len(self._failures), 1))
        if first == inf:
            return None
        due = datetime.fromtimestamp(max(first, steady), UTC).isoformat(timespec="seconds")
        hosts = self._failures.reasons(self.aside.waiting(now), TOLD)
        return RetriesWaiting(urls, due.replace("+00:00", "Z"), hosts)
