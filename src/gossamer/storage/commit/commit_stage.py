"""The commit: the one place where a visit's consequences become durable, in groups (design promise 1).

Place in the flow: the last stage; :mod:`gossamer.storage.commit.queueing` decides which links become tasks, and keeps the states of
hosts.

The archive is written first, since it says where the answers lie; then each keeper keeps what it keeps, whatever that is
(:mod:`gossamer.storage.archive.contract`); then everything goes into the ledger in one batch that knows where all their
bytes end: new URLs and their tasks, what becomes of the page, what was learnt of its host. Only after that the frontier
learns that the slots are free, and subscribers see the records. A failure before the batch is written leaves the
ledger as it was, and bytes without an owner: the next start cuts them off.

A visit whose body is on disk is a group of its own: the archive lays it down first, while a second worker goes on with
what is small.

Behind the commit, the tally at the end of the records arrow feeds progress (which hosts are slow) and metrics (which kinds of
documents came), and decides nothing. Where a wiring has more than one subscriber of records, a copy stands before the tally; each
subscriber has a connector of its own, so none takes items from another (:func:`gossamer.crawls.builder.with_subscriber`). An
*application* is a program of the user's own that says which URLs to fetch next (row P1). It stands in a process that a person
starts (`process = "outside"`), sends tasks, and receives each committed visit with its document; `examples/04-own-application` is
such a program. Of several agents each sends its visits, and the first one takes the tasks: it brings those of the others' hosts
there as it does with links.
"""

import errno
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

import msgspec

from gossamer.engine.component import AsynchronousFilter, Consumer, Filter
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.files import Point, crash_at
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import NoSettings
from gossamer.expressions.contract import Goal, TaskFilter, VisitFilter, refusal
from gossamer.frontier.contract import Flights, Politeness, Prioritizer, Traversal
from gossamer.frontier.robots.contract import RobotsGate
from gossamer.frontier.traps.contract import Learner, Learnt, Watcher, keeps
from gossamer.storage.archive.contract import Archive, Keeper, has_copy
from gossamer.storage.commit.queueing import Choosers, CommitSheet, Ended, TaskQueueing, stage_hosts, stage_robots
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.body import StoredBody
from gossamer.values.errors import DiskFull
from gossamer.values.instants import VisitIds
from gossamer.values.outcome import Outcome
from gossamer.values.task import DONE, KEEP, Committed, Disposition, RetryDecision, Task
from gossamer.values.visit import Location, Record, Visit, answer_of, given_up, of_request

W = TypeVar("W")

#: A keeper, and where the files end that it has written.
_Ends = tuple[Keeper, Mapping[str, int]]


class Commit(Filter[CommitSheet]):
    """Writes groups of visits, each visit once."""

    inbox: In[Visit]
    committed: Out[Committed]
    records: Out[Record]
    archive: Uses[Archive]
    ledger: Uses[Ledger]
    seen: Uses[SeenSet]
    flights: Uses[Flights]
    politeness: Uses[Politeness]
    robots: Uses[RobotsGate]
    traversal: Uses[Traversal]
    prioritizer: Uses[Prioritizer]
    keepers: UsesMany[Keeper]
    watchers: UsesMany[Watcher]
    gates: UsesMany[VisitFilter]
    task_gates: UsesMany[TaskFilter]
    goals: UsesMany[Goal]

    #: Small groups: a slot is free only after its group's commit (design promise 1 asks for about half the slots).
    batch = 32

    def __init__(self, sheet: CommitSheet | None = None) -> None:
        super().__init__(sheet)
        self._since = 0.0
        self._large: deque[tuple[Ended, Receipt | None]] = deque()
        self._is_laying = False
        self._ids = VisitIds(0)
        self._learnt: dict[tuple[str, str], Learnt] = {}
        """Lessons of watchers that no group has kept yet, by host and name."""
        self._starved = 0
        """Groups that wait for room on the disk."""
        self.metrics.gauge("waits_for_disk", lambda: self._starved)
        self.metrics.gauge("pages", lambda: self.ledger.counters().get("pages", 0))
        self.metrics.gauge("bytes", lambda: self.ledger.counters().get("bytes", 0))

    async def start(self) -> None:
        self._since = self.clock.monotonic()
        self._ids = VisitIds(self.clock.now())

    async def filter_many(self, visits: list[Visit]) -> None:
        """Commit a group; a visit that a link sent twice has no flight any more and is dropped."""
        arrived = [visit for visit in visits if self.flights.arrive(visit.task.identity)]
        self.metrics.counters["repeated"] += len(visits) - len(arrived)
        if pages := [visit.task for visit in arrived if visit.is_announcement]:
            await self._announce(pages)
        group = [self._ended(visit) for visit in arrived if not visit.is_announcement]
        large = [ended for ended in group if type(ended.visit.response.body) is StoredBody]
        if large:
            group = [ended for ended in group if type(ended.visit.response.body) is not StoredBody]
        if group:
            await self._commit(group)
        if large:
            await self._commit_large(large)

    async def _announce(self, pages: Sequence[Task]) -> None:
        """Queue what visited pages link to: nothing else of them is kept once more."""

        async def write() -> None:
            with self.ledger.group() as staged:
                queueing = self._queueing(staged)
                for page in pages:
                    queueing.announce_again(page)
            await self.ledger.settle()

        await self._in_the_end(write, f"the links of {len(pages)} pages")
        await self.committed.send_many([Committed(page, Outcome.OK, is_kept=False) for page in pages])

    async def _commit_large(self, large: Sequence[Ended]) -> None:
        """Commit large visits one by one. A worker that finds another at it leaves them to that one, and is free."""
        receipt = current.get()
        for ended in large:
            if receipt is not None:
                receipt.hold()
            self._large.append((ended, receipt))
        if self._is_laying:
            return
        self._is_laying = True
        try:
            while self._large:
                ended, receipt = self._large.popleft()
                token = current.set(receipt)
                try:
                    await self._commit([ended])
                finally:
                    current.reset(token)
                if receipt is not None:
                    receipt.release()
        finally:
            self._is_laying = False

    async def _commit(self, group: list[Ended]) -> None:
        decided = [ended.visit for ended in group]

        async def write() -> tuple[list[Record], list[_Ends]]:
            """Write the group, and say where the files of each keeper end now. Where archive, a keeper or the ledger fails, those
            that were written to take it back: what the others wrote last belongs to a group that is kept."""
            for ended, visit in zip(group, decided, strict=True):
                ended.visit = visit  # a try that failed has decided more of it
                if type(visit.response.body) is StoredBody:
                    await self.archive.lay(visit)
            stores: list[Archive | Keeper] = []
            try:
                written = self._written(group, stores)
            except Exception:
                for store in stores:
                    store.take_back()
                raise
            await self.ledger.settle()
            return written

        records, ends = await self._in_the_end(write, f"{len(group)} visits")
        for keeper, those in ends:
            keeper.committed(those)
        answers = [
            Committed(
                task=ended.visit.task,
                outcome=ended.visit.response.outcome,
                is_page=ended.visit.is_page
                and ended.ruling.what is Disposition.DONE
                and not ended.visit.task.is_revisit,
                bytes=0 if ended.site else len(ended.visit.response.body),
                is_kept=ended.ruling.what is Disposition.KEEP and not ended.site,
                site=ended.site,
                is_goal=ended.is_goal,
                is_brought=ended.visit.response.brought is not None,
            )
            for ended in group
        ]
        await self.committed.send_many(answers)
        await self.records.send_many(records)

    async def _in_the_end(self, write: Callable[[], Awaitable[W]], what: str) -> W:
        """Write `what`, all or nothing, when there is room: while the disk is full the crawl waits, since no slot gets free. Raises
        ComponentFailed: it cannot be written. The crawl stops: given once more, the group would count as repeated."""
        is_waiting = False
        while True:
            try:
                written = await write()
            except Exception as error:
                if not is_full(error):
                    why = f"{type(error).__name__}: {error}"
                    raise ComponentFailed(f"component {self.name!r} cannot keep {what}: {why}") from error
                if not is_waiting:
                    is_waiting = True
                    self._starved += 1
                    self.metrics.count("disk_full")
                    why = str(error) if isinstance(error, DiskFull) else f"the disk is full ({error}); make room"
                    if self._starved == 1:  # groups that wait together are one wait to a person
                        self.report(f"{why}: the crawl waits, and goes on by itself")
                await self.clock.sleep(self.sheet.disk_wait)
            else:
                if is_waiting:
                    self._starved -= 1
                    if not self._starved:
                        self.report("there is room on the disk again; the crawl goes on")
                return written

    def _ended(self, visit: Visit) -> Ended:
        """Decide what becomes of the visit's page, and give it its id. The visit may be quicker than its answer to politeness."""
        visit = msgspec.structs.replace(visit, id=self._ids.next())
        response = visit.response
        if response.brought is not None:
            # No request of ours: nothing waits for its answer, and its host is as free as before.
            return self._judged(visit, DONE)
        answer = answer_of(visit.task, response)
        self.politeness.received(answer.identity, len(response.body))
        ruling = of_request(self.politeness.ruling(answer), visit.task, response)
        if visit.again is not None:
            ruling = RetryDecision(Disposition.RETRY, visit.again)
        if visit.task.is_want:
            ruling = DONE  # the page goes on without it, and makes it anew when it is rendered again
        elif visit.rendered is not None and visit.rendered.how == "interrupted":
            ruling = KEEP
        if visit.is_robots:
            site = visit.task.source
            return Ended(visit, ruling, site, self.robots.learned(site, response, self.clock.steady()))
        if ruling.what is Disposition.GONE:
            visit = given_up(visit)
        return self._judged(visit, ruling)

    def _written(self, group: Sequence[Ended], written: list[Archive | Keeper]) -> tuple[list[Record], list[_Ends]]:
        keepers = self.keepers.get("visits", ())
        with self.ledger.group() as staged:
            queueing = self._queueing(staged)
            orders = 0
            for ended in group:
                self._decide(ended, staged, queueing)
                orders += len(ended.visit.orders)
            written.append(self.archive)
            locations = self.archive.append([ended.visit for ended in group])
            crash_at(Point.ARCHIVE_WRITTEN)  # passed once more for each keeper
            records = [Record(ended.visit, where) for ended, where in zip(group, locations, strict=True)]
            if orders and not any(getattr(keeper, "takes_orders", False) for keeper in keepers):
                staged.count("orders_refused", orders)
            for keeper in keepers:
                written.append(keeper)
                keeper.stage(records, staged)
                crash_at(Point.ARCHIVE_WRITTEN)
            for ended, location in zip(group, locations, strict=True):
                self._stage(ended, location, staged, queueing)
            self._stage_learnt(staged)
            stage_hosts(group, staged, self.politeness, self.clock.now())
            ends = [(keeper, keeper.ends()) for keeper in keepers]
            for those in (self.archive.ends(), *(those for _, those in ends)):
                for file, end in those.items():
                    staged.written(file, end)
            now = self.clock.monotonic()
            staged.count("elapsed_ms", round(1000 * (now - self._since)))
        self._since = now
        self._learnt.clear()
        return records, ends

    def _judged(self, visit: Visit, ruling: RetryDecision) -> Ended:
        """A visit of a page, marked if its body is to be kept out of the archive, and whether it is a goal of the crawl."""
        gates, goals, is_goal = self.gates.get("store"), self.goals.get("visits"), False
        if goals and visit.is_answered:
            for goal in goals:
                try:
                    is_goal = is_goal or goal.is_reached(visit)
                except Exception as error:
                    self.metrics.count(f"broken:{type(goal).__name__}:{type(error).__name__}")
        # A rule for documents does not hold for parts of one.
        is_whole = visit.is_answered and not visit.is_part and not visit.is_robots
        if gates and is_whole and (rule := refusal(gates, "store", visit)):
            self.metrics.count(f"barred:{rule}")
            visit = msgspec.structs.replace(visit, barred={**visit.barred, "store": rule})
        return Ended(visit, ruling, is_goal=is_goal)

    def _queueing(self, staged: Group) -> TaskQueueing:
        gates = self.task_gates.get("schedule", ())
        limit = self.ledger.depths.limit
        hosts = self.task_gates.get("announce", ())
        choosers = Choosers(self.seen, self.traversal, self.prioritizer, gates, limit, hosts)
        return TaskQueueing(self.sheet, choosers, staged)

    def _decide(self, ended: Ended, staged: Group, queueing: TaskQueueing) -> None:
        """Decide to which URL the document belongs, what watchers find in it, and which of its tasks are queued."""
        visit = ended.visit
        # No document of its URL, or not yet, or a part of one.
        is_own = visit.task.is_marked or visit.again is not None or visit.is_part
        if visit.digest and visit.response.outcome is Outcome.OK and visit.response.body and not is_own:
            # One that is kept out of the archive owns no digest: those that are kept would refer to a body that is not there.
            owner = staged.first(visit.shown_digest, visit.url) if has_copy(visit) else visit.duplicate_of
            if visit.rendered is not None and visit.rendered.dom and has_copy(visit):
                rendered = msgspec.structs.replace(visit.rendered, answer_of=staged.first(visit.digest, visit.url))
                visit = msgspec.structs.replace(visit, rendered=rendered)
            if owner != visit.duplicate_of:
                visit = msgspec.structs.replace(visit, duplicate_of=owner)
        if ended.uncovered is None:
            ended.uncovered = self._uncovered(visit)
        for name in ended.uncovered:
            staged.count(f"found:{name}")
        if visit.near_duplicate_of and visit.discarded:
            staged.count("cut:near-duplicate")
        ended.visit = queueing.queued(visit)

    def _uncovered(self, visit: Visit) -> Sequence[str]:
        """The names of all that watchers find in this visit; they are counted with its host, for `why`."""
        found: list[str] = []
        if visit.task.is_marked:
            return found  # what an answer to a form says, its URL does not
        for watcher in self.watchers.get("visits", ()):
            try:
                name = watcher.observe(visit)
            except Exception as error:
                # The lesson of this watcher is lost, and nothing else.
                self.metrics.count(f"broken:{type(watcher).__name__}:{type(error).__name__}")
                continue
            if name:
                found.append(name)
        return found

    def _stage_learnt(self, staged: Group) -> None:
        for watcher in self.watchers.get("visits", ()):
            if not keeps(type(watcher), Learner):
                continue
            try:
                for one in cast(Learner, watcher).learnt():
                    self._learnt[one.host, one.what] = one
            except Exception as error:
                self.metrics.count(f"broken:{type(watcher).__name__}:{type(error).__name__}")
        for one in self._learnt.values():
            staged.learnt(one.host, one.what, one.data)

    def _stage(self, ended: Ended, location: Location | None, staged: Group, queueing: TaskQueueing) -> None:
        visit = ended.visit
        task = visit.task
        if ended.lesson is not None:
            stage_robots(ended.site, ended.lesson, visit.response, staged, self.robots, self.clock.now())
            if self.sheet.sitemaps:
                queueing.announce(ended.lesson.sitemaps, ended.site)
        elif ended.ruling.what is Disposition.KEEP:
            staged.tried(visit)
        elif ended.ruling.what in (Disposition.RETRY, Disposition.POSTPONE):
            staged.tried(visit)
            staged.done(task.identity)
            again = msgspec.structs.replace(task, attempt=task.attempt + (ended.ruling.what is Disposition.RETRY))
            staged.later(again, self.clock.steady() + ended.ruling.wait, known=True)
        else:
            if visit.response.brought is not None:
                queueing.brought(task)
            staged.visited(visit, location)


def is_full(error: BaseException) -> bool:
    """Whether this error, or what caused it, is that there is no room: the disk's, or that of a quota."""
    while True:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return True
        if isinstance(error, DiskFull):
            return True
        if error.__cause__ is None:
            return False
        error = error.__cause__


class CopyRecords(Filter[NoSettings]):
    """Sends every record to two subscribers, at the pace of the slower one."""

    inbox: In[Record]
    outbox: Out[Record]
    copy: Out[Record]

    async def filter_many(self, records: list[Record]) -> None:
        await self.outbox.send_many(records)
        await self.copy.send_many(records)


#: Hosts whose pace is remembered: progress shows a handful, and memory must not grow with the crawl.
SLOWEST_HOSTS = 32

#: Media types that are counted by name: a server may invent as many as it likes.
COUNTED_TYPES = 100


class Tally(Consumer[NoSettings]):
    """Counts committed documents by media type, and remembers the slowest hosts."""

    records: In[Record]

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self.slowest: dict[str, float] = {}
        self.listener: Callable[[Record], None] | None = None
        """Called with each record."""

    def consume(self, record: Record) -> None:
        if self.listener is not None:
            self.listener(record)
        visit = record.visit
        counters = self.metrics.counters
        if visit.is_answered:
            kind = f"type:{visit.response.mime or 'none'}"
            counters[kind if kind in counters or len(counters) < COUNTED_TYPES else "type:other"] += 1
        # A moving average for each host; the table is bounded by forgetting the fastest.
        host, elapsed = visit.task.host, visit.response.elapsed
        self.slowest[host] = 0.8 * self.slowest.get(host, elapsed) + 0.2 * elapsed
        if len(self.slowest) > SLOWEST_HOSTS:
            del self.slowest[min(self.slowest, key=self.slowest.__getitem__)]


# Never run: it tells the wiring which items flow.


class Application(AsynchronousFilter[NoSettings]):
    """Stands for an application of yours in another process: it receives records of the crawl and sends URLs."""

    records: In[Record]
    urls: Out[Task]

    optional = frozenset({"urls"})

    def on_records(self, record: Record) -> None:
        raise NotImplementedError('an application is a program of its own; give this component process = "outside"')

    def take_urls(self, free: int) -> Iterable[Task]:
        """Tasks that are new to it; a URL that was fetched before is not fetched again."""
        raise NotImplementedError('an application is a program of its own; give this component process = "outside"')
