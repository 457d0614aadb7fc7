"""Whether the frontier hands out, waits, or is at its end: the one place that weighs everything that a crawl may still wait for.

Place in the flow: the frontier asks before each task, when it has nothing to hand out, and when something was committed; it acts on
the answers. :mod:`stopping` knows the limits, :mod:`prospects` what waits in the queues, :mod:`lent` what is with crawlers
elsewhere, :mod:`announcing` and :mod:`probing` what comes before a crawl ends by itself.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from math import inf
from typing import Final

from gossamer.frontier.host_turns import Aside
from gossamer.frontier.limits import USUAL, Failures, RetriesWaiting, Stopping
from gossamer.frontier.lookups import HostAddresses
from gossamer.frontier.other_tasks import Announcing, LentOut, Probing
from gossamer.frontier.politeness.retries import WAITS
from gossamer.frontier.sheet import FrontierUses
from gossamer.frontier.slots import Slots

# What is to be expected of what is left in the queues, when none of it can be handed out now.
#
# Place in the flow: the frontier asks here whether that is worth staying alive for (:mod:`lingering` says for how long),
# and what waits when the crawl ends.

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


class GoingOn:
    """Says how the frontier goes on."""

    def __init__(
        self,
        uses: FrontierUses,
        sources: set[str],
        slots: Slots,
        addresses: HostAddresses,
        lent: LentOut,
        stopping: Stopping,
        prospects: Prospects,
        stir: Callable[[], None],
    ) -> None:
        """Nothing is handed out yet.

        Args:
            uses: the frontier's providers.
            sources: inputs that may bring tasks yet, as the frontier keeps them.
            slots: knows what is under way.
            addresses: knows which look-ups are.
            lent: knows what is with crawlers elsewhere.
            stopping: knows the limits.
            prospects: knows what waits.
            stir: called when there are new tasks in the queues.
        """
        self._uses = uses
        self._sources = sources
        self._slots = slots
        self._addresses = addresses
        self._lent = lent
        self._stopping = stopping
        self._prospects = prospects
        self._stir = stir
        self._announcing: Announcing | None = None
        self._probing: Probing | None = None
        self.is_paused = False
        """A person has said so: nothing is handed out for now."""
        self.is_draining = False
        """Nothing is handed out any more; what is in flight is committed."""
        self.has_lingered = False
        """It drains because all that was left waits for longer than it lingers."""

    def __repr__(self) -> str:
        return f"<GoingOn{', draining' if self.is_draining else ''}{', paused' if self.is_paused else ''}>"

    def begin(self, announcing: Announcing, probing: Probing) -> None:
        """The ledger is open: these say what has to be announced again, and probed."""
        self._announcing, self._probing = announcing, probing

    # -- handing out

    def may_hand_out(self, now: float) -> bool:
        """Whether one more task may go out; `now` is monotonic. A limit that is reached drains the frontier."""
        if self.is_draining or self.is_paused or self._slots.free <= 0:
            return False
        has_more = len(self._uses.queues) > 0 or self._prospects.comes_back or self._lent.is_out
        allowed = self._stopping.allows(self._slots.taken + self._lent.pages, has_more, now)
        self.is_draining = bool(self._stopping.reached)
        return allowed

    def room(self) -> int | None:
        """Pages that are nobody's yet: neither had, nor in flight, nor lent; None where there is no limit."""
        return self._stopping.room(self._slots.taken + self._lent.pages)

    # -- waiting

    def is_worth_waiting(self, now: float) -> bool:
        """Whether anything may come when nothing can be handed out now; if not, the frontier drains, or probes once more."""
        if not self._is_idle:
            return True
        if self._prospects.is_hopeless:
            self.is_draining = True
            return False
        if not self._prospects.is_over(now):
            return True
        if not self._probes_last():
            self.has_lingered = self.is_draining = True
        return False

    @property
    def _is_idle(self) -> bool:
        """Whether all that happens is that queued tasks wait."""
        is_busy = self._slots.taken or len(self._addresses) or self.is_announcing or self._lent.is_out
        return not is_busy and not self._sources and len(self._uses.queues) > 0

    @property
    def is_announcing(self) -> bool:
        """Whether links of visited pages have yet to be announced again."""
        return self._announcing is not None and not self._announcing.is_over

    def is_at_rest(self) -> bool:
        """Whether the crawl would end now if other agents brought nothing more. What was set aside is probed before that."""
        if not self._prospects.is_sown or self._slots.taken or len(self._addresses) or self._lent.is_out:
            return False
        if self.is_draining:
            return True
        queued = len(self._uses.queues)
        if queued and (self._stopping.is_short_of_pages(0) or self._stopping.is_short_of_bytes(0)):
            return False  # it goes on as soon as it may have more
        if self._prospects.comes_back:
            return False
        if queued and not (self._prospects.is_hopeless or self._prospects.is_over(self._uses.clock.monotonic())):
            return False
        return not self._probes_last()

    # -- the end

    @property
    def has_nothing_left(self) -> bool:
        """Whether nothing is under way, and nothing is to come or nothing more is to go out."""
        if self._slots.taken:
            return False
        is_fed = self._sources or len(self._uses.queues) or self._prospects.comes_back or self._lent.is_out
        return self.is_draining or not is_fed

    def ends(self) -> bool:
        """Whether the frontier ends when it has nothing left; one that was not told to end probes first what was set aside."""
        return self.is_draining or not self._probes_last()

    def _probes_last(self) -> bool:
        """Before a crawl ends by itself, queue what was freed of what is set aside, or probe it; False for nothing."""
        if self._probing is None or not self._probing.last_round():
            return False
        self._stir()
        return True
