"""Queues by pages with a diversity threshold (Ridgway 2010, sections 5.1.2 and 5.2.2; row R3), in front of other task
queues.

So many tasks make a *page*. When a page begins, it is counted how many tasks each host has, a share of the page at most, the
*diversity threshold*; then the hosts are laid out evenly (:func:`spread`), and admitted in that order, each for one task at a time.
What is too much for a page steps back to a later one. The seed writes pages out as files; here tasks stay where they lie, so that
order within a host and what a kill leaves are those of the queues behind.

A host that politeness lets wait keeps no other waiting: those behind it on the page come first. Where all hosts of a page wait, the
next page is laid behind it.

Against the default (docs/benchmarks.md): politeness already keeps a host from being asked too often. A page adds fairness where
there is no delay that would do it, as on hosts of one's own.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Annotated

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.providers import QueuesFront
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task

# An even order of hosts (Ridgway 2010, section 5.1.2): the more tasks a host has on a page, the more regular its places. Pure code,
# nearly linear in the page.


def spread(counts: Mapping[str, int]) -> list[str]:
    """Each name as often as it is counted, in an order that spreads every name as far as it goes.

    The commonest name comes first and every `total / count` places from there. Each of the others begins at the first free place
    and takes steps of its own; where a place is taken, it moves on to the next free one, or back where none is left ahead.
    Names that are as common as others keep the order of `counts`.
    """
    total = sum(counts.values())
    order: list[str] = [""] * total
    ahead, behind = _FreePlaces(total, 1), _FreePlaces(total, -1)
    for name in sorted(counts, key=lambda one: -counts[one]):
        step = total / counts[name] if counts[name] else 0.0
        ideal = float(ahead.free(0))
        for _ in range(counts[name]):
            wanted = round(ideal)
            place = ahead.free(wanted) if wanted < total else total
            if place == total:
                place = behind.free(min(wanted, total - 1))
            order[place] = name
            ahead.take(place)
            behind.take(place)
            # A place that was moved moves those behind it; rounding alone does not, or the steps would drift.
            ideal = (ideal if place == wanted else place) + step
    return order


def shares(available: Mapping[str, int], room: int) -> dict[str, int]:
    """How many tasks of each host go on a page of `room` tasks: in proportion to what it has, and one at least.

    Hosts that find no room are left out, those behind first.
    """
    present = {name: count for name, count in available.items() if count}
    names = list(present)[:room]
    total = sum(present[name] for name in names)
    if total <= room:
        return {name: present[name] for name in names}
    ideal = {name: room * present[name] / total for name in names}
    taken = {name: max(1, int(ideal[name])) for name in names}
    # Their sum becomes what there is room for, where rounding went furthest first.
    missing = room - sum(taken.values())
    by_error = sorted(names, key=lambda name: taken[name] - ideal[name], reverse=missing < 0)
    while missing:
        for name in by_error:
            if missing > 0:
                taken[name] += 1
                missing -= 1
            elif missing < 0 and taken[name] > 1:
                taken[name] -= 1
                missing += 1
    return taken


class _FreePlaces:
    """Finds the next free place in one direction, and forgets nothing it has learnt on the way (union-find)."""

    def __init__(self, total: int, step: int) -> None:
        self._next = list(range(total + 1))
        self._step = step

    def free(self, place: int) -> int:
        """The free place nearest to `place` in this direction; the number of places (ahead) or -1 (behind) where none is."""
        following = self._next
        found = place
        while found >= 0 and following[found] != found:
            found = following[found]
        while place != found and place >= 0:
            following[place], place = found, following[place]
        return found

    def take(self, place: int) -> None:
        self._next[place] = place + self._step


#: The threshold of the first page, where it is tuned.
AT_FIRST = 0.1

#: Tasks that are counted to lay a page, in pages: counting takes them from the queues behind and puts them back.
COUNTED = 4


class DiverseQueuesSheet(Sheet, frozen=True):
    page: Annotated[int, setting("Lay this many tasks on a page.", unit="tasks", ge=1)] = 1_000
    threshold: (
        Annotated[
            float,
            setting(
                "Give a host at most this share of a page. If left out, the share follows the pace of the last page, "
                "so that a host comes about once a second.",
                gt=0,
                le=1,
            ),
        ]
        | None
    ) = None


class DiverseQueues(QueuesFront[DiverseQueuesSheet]):
    """Spreads hosts evenly: no host gets more than its share of a page (a run of tasks).

    Contract: `storage.ledger.contract.TaskQueues`, for any `behind` that keeps it.
    """

    ledger: Uses[Ledger]

    def __init__(self, sheet: DiverseQueuesSheet | None = None) -> None:
        super().__init__(sheet)
        self._order: deque[str] = deque()
        """The places of the page that are left, by host."""
        self._places: Counter[str] = Counter()
        """How many of them each host has."""
        self._known: dict[str, None] = {}
        """Hosts that are held behind, those first that had their places first."""
        self._granted: dict[str, int] = {}
        """Hosts that the caller holds, and how many tasks each may have before it steps back."""
        self._popped = 0
        self._tuned = AT_FIRST
        self._began: float | None = None
        self.metrics.gauge("threshold", lambda: self.threshold)
        self.metrics.gauge("stepped_back", lambda: len(self._known) - len(self._granted))

    @property
    def threshold(self) -> float:
        """Share of a page that a host may have now."""
        return self._tuned if self.sheet.threshold is None else self.sheet.threshold

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        names = self._next_places(most) or self._places_behind(most)
        if not names:
            self._lay(now)
            names = self._next_places(most) or self._places_behind(most)
        return self.ledger.host_states(names) if names else []

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host, as many as its place has."""
        granted = self._granted.get(host)
        if granted is None:
            return []
        if not granted and len(self._known) == 1:
            # No other task is there that could use the rest of the page.
            self._turn()
            granted = self._share
        tasks = self.behind.pop(host, min(most, granted)) if granted else []
        if tasks:
            self._granted[host] = granted - len(tasks)
            self._popped += len(tasks)
            return tasks
        del self._granted[host]
        if granted:
            self._forget(host)
        return tasks

    def put_back(self, task: Task) -> None:
        if task.host in self._granted:
            self._granted[task.host] += 1
        self._popped -= 1
        self.behind.put_back(task)

    def rest(self, host: str, until: float) -> None:
        self._granted.pop(host, None)
        self._forget(host)
        self.behind.rest(host, until)

    def next_due(self) -> float:
        return 0.0 if len(self._known) > len(self._granted) else self.behind.next_due()

    # -- the page

    @property
    def _share(self) -> int:
        return max(1, int(self.threshold * self.sheet.page))

    def _next_places(self, most: int) -> list[str]:
        """Hosts of the next places, up to the first that stands there for the second time or is held already."""
        names: list[str] = []
        while self._order:
            name = self._order[0]
            if names and names[-1] == name:
                self._granted[name] += 1
            elif name in self._granted or len(names) >= most:
                break
            else:
                self._granted[name] = 1
                names.append(name)
            self._order.popleft()
            self._used(name)
        return names

    def _places_behind(self, most: int) -> list[str]:
        """The next place of each host that is not held: those before it wait for politeness."""
        names = [name for name in self._places if name not in self._granted][:most]
        if not names:
            return names
        found = set(names)
        left = []
        for name in self._order:
            if name in found:
                found.discard(name)
                self._granted[name] = 1
                self._used(name)
            else:
                left.append(name)
        self._order = deque(left)
        return names

    def _used(self, name: str) -> None:
        self._places[name] -= 1
        if not self._places[name]:
            del self._places[name]

    def _lay(self, now: float) -> None:
        """Lay a page of what hosts have that are not on one already."""
        self._turn()
        names = [name for name in self._known if name not in self._granted and name not in self._places]
        names = names[: self.sheet.page]
        if len(names) < self.sheet.page:
            admitted = [state.host for state in self.behind.admit(now, self.sheet.page - len(names))]
            self._known.update(dict.fromkeys(admitted))
            names += admitted
        if not names:
            return
        most = max(1, min(self._share, COUNTED * self.sheet.page // len(names)))
        available: dict[str, int] = {}
        for name in names:
            tasks = self.behind.pop(name, most)
            for task in reversed(tasks):
                self.behind.put_back(task)
            if not tasks:  # it is held behind no more
                self._forget(name)
            available[name] = len(tasks)
        counts = shares(available, self.sheet.page)
        for name in counts:
            # Behind those that find no room: they are the first on the next page.
            del self._known[name]
            self._known[name] = None
        self._places.update(counts)
        self._order.extend(spread(counts))

    def _forget(self, name: str) -> None:
        self._known.pop(name, None)
        if self._places.pop(name, None) is not None:
            self._order = deque(other for other in self._order if other != name)

    def _turn(self) -> None:
        """A page begins: tune the threshold to the pace of the last one."""
        now = self.clock.monotonic()
        if self._began is None:
            self._began = now
        elif self._popped > 0 and now > self._began:
            self._tuned = min(1.0, (now - self._began) / self._popped)
            self._began, self._popped = now, 0
