"""Which of a page's links become tasks that wait for their turn, and at which level; and what is kept of its host.

Place in the flow: the commit asks for each visit of a group, while the group is open. A link that is refused here is offered again
another time, or counted. Of hosts it keeps figures of their visits, the notes of politeness, and the answer of robots.txt
(:func:`stage_hosts`, :func:`stage_robots`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from math import inf
from typing import Annotated, cast

import msgspec

from gossamer.engine.sheet import Sheet, setting
from gossamer.expressions.contract import TaskFilter, verdicts_on
from gossamer.frontier.contract import LEFT, Politeness, Prioritizer, TaskStanding, Traversal
from gossamer.frontier.robots.contract import Lesson, RobotsGate
from gossamer.frontier.traps.contract import Traps, keeps
from gossamer.storage.ledger.contract import Group, Tallied, announced, behind
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.hosts import HostTable, registered_domain
from gossamer.values.outcome import ANSWERED, ERRORS, Outcome
from gossamer.values.settings import MaxPerHost, Sitemaps
from gossamer.values.task import SITEMAP, Family, RetryDecision, Task, sitemap_relation, sooner, task_of, with_level
from gossamer.values.url import canonical, host_of, scheme_of
from gossamer.values.visit import CUTS_OF_PAGES, Response, Visit


class CommitSheet(Sheet, frozen=True):
    again: Annotated[bool, setting("Let URLs be fetched again, without a URL-seen test (for random walks).")] = False
    sitemaps: Sitemaps = False
    max_by_host: Annotated[
        dict[str, Annotated[int, msgspec.Meta(ge=1)]],
        setting(
            "Queue at most this many URLs of these hosts, as `*.example.org`, instead of `max_per_host`; cut the rest."
        ),
    ] = msgspec.field(default_factory=dict)
    max_per_host: MaxPerHost = 1_000_000
    max_per_domain: (
        Annotated[int, setting("Queue at most this many URLs of a registered domain; cut the rest.", unit="URLs", ge=1)]
        | None
    ) = 4_000_000
    disk_wait: Annotated[
        float, setting("While the disk is full, try again to write after this many seconds.", unit="s", gt=0)
    ] = 1.0  # soon enough for a person who makes room, and far from busy waiting

    def __post_init__(self) -> None:
        try:
            HostTable(self.max_by_host)
        except UsageError as error:
            raise ValueError(f"setting 'max_by_host': {error}") from None


class Ended(msgspec.Struct):
    """A visit on its way into the ledger."""

    visit: Visit
    ruling: RetryDecision
    site: str = ""
    """Of a robots.txt request: the site that it was made for."""
    lesson: Lesson | None = None
    """The lesson of its answer: learnt once, however often the group must be written."""
    uncovered: Sequence[str] | None = None
    """The names of all that watchers found in the visit, likewise; None before they were asked."""
    is_goal: bool = False
    """The crawl ends with it."""


def stage_hosts(group: Sequence[Ended], staged: Group, politeness: Politeness, now: float) -> None:
    """Keep what these visits say of their hosts; `now` is in seconds since the epoch."""
    by_host: dict[str, list[Ended]] = {}
    for ended in group:
        by_host.setdefault(ended.visit.task.host, []).append(ended)
    for name, those in by_host.items():
        state = staged.host_state(name)
        counters, address = dict(state.counters), state.address
        for ended in those:
            visit, response = ended.visit, ended.visit.response
            found = [("visits", 1), ("bytes", len(response.body))] if not visit.is_robots else []
            if found and visit.is_page:
                found.append(("pages", 1))
            if found and response.outcome in ERRORS:
                found.append(("errors", 1))
            for figure, number in (*found, *zip(ended.uncovered or (), repeat(1))):
                counters[figure] = counters.get(figure, 0) + number
            address = response.address or address
        fresh = msgspec.structs.replace(
            state,
            note=politeness.note(name),
            counters=counters,
            first_seen=state.first_seen or now,
            last_seen=now,
            address=address,
            delay=politeness.delay(name),
            delay_reason=politeness.delay_reason(name),
        )
        staged.host(fresh)


def stage_robots(site: str, lesson: Lesson, response: Response, staged: Group, robots: RobotsGate, now: float) -> None:
    """Keep the answer for robots.txt. A site that does not answer counts like any other fetch that failed."""
    host = host_of(site)
    state = staged.host_state(host)
    staged.robots(site, host, robots.state(site))
    staged.count("robots")
    outcome = response.outcome
    if outcome in (Outcome.SERVER_ERROR, Outcome.RATE_LIMITED) and not lesson.settled:
        outcome = Outcome.ROBOTS_UNREACHABLE
    if outcome not in ANSWERED:  # otherwise it did what it was made for
        staged.count(f"outcome:{outcome}")
        if outcome in ERRORS:
            errors = state.counters.get("errors", 0) + 1
            state = msgspec.structs.replace(state, counters={**state.counters, "errors": errors})
    staged.host(msgspec.structs.replace(state, robots_state=lesson.state, robots_date=now))


#: Sitemaps of one robots.txt that are fetched: an index of sitemaps holds 50,000, so no site needs more.
MAX_SITEMAPS = 100

#: The standing of every new URL beside its task, for a prioritizer that does not ask which hosts link to its host.
_STANDING = TaskStanding()


class Choosers(msgspec.Struct, frozen=True):
    """The parts that choose."""

    seen: SeenSet
    traversal: Traversal
    prioritizer: Prioritizer
    gates: Sequence[TaskFilter]
    limit: int | None = None
    """Of depth; None where there is none."""
    hosts: Sequence[TaskFilter] = ()
    """Filters for the hosts of sitemaps, which no page links to."""


@lru_cache(maxsize=8)  # the settings of a crawl are the same for every group
def _budgets(by_host: tuple[tuple[str, int], ...]) -> HostTable[int]:
    return HostTable(dict(by_host))


class TaskQueueing:
    """Puts tasks into the queues of one open group."""

    def __init__(self, sheet: CommitSheet, choosers: Choosers, staged: Group) -> None:
        self._sheet = sheet
        self._budgets = _budgets(tuple(sheet.max_by_host.items()))
        self._staged = staged
        self._by = choosers
        self._counts_links = getattr(choosers.prioritizer, "wants_in_degree", False)

    def queued(self, visit: Visit) -> Visit:
        """The visit with its tasks that are queued, each at its level."""
        rejected = dict(visit.rejected)
        for rule in CUTS_OF_PAGES:
            if number := rejected.get(rule, 0):
                self._staged.count(f"cut:{rule}", number)
        if self._counts_links:  # those to other hosts, whether their URLs are new or not
            for host in map(host_of, (link.url for link in visit.links)):
                if host and host != visit.task.host:
                    self._staged.tally("linked", host, 1)
        offered = self._offered(visit, rejected)
        if not offered:
            return msgspec.structs.replace(visit, new=(), rejected=rejected) if visit.new else visit
        return msgspec.structs.replace(visit, new=tuple(self._pushed(offered, rejected)), rejected=rejected)

    def received(self, tasks: Sequence[Task], is_stray: Callable[[Task], bool] = lambda task: False) -> int:
        """Queue what other agents found, as far as it is new here; returns how many are queued.

        What is known is not queued again, so that a task may come as often as it will; but for one that is a stray: it was seen
        here, and was never queued.
        """
        rejected: dict[str, int] = {}
        passing = self._passing(tasks, rejected)
        offered = self._new(passing)
        queued = self._pushed(offered, rejected)
        known = {task.identity for task in offered}
        strays = {task.identity: task for task in passing if task.identity not in known and is_stray(task)}
        return len(queued) + self.taken_back(list(strays.values()))

    def taken_back(self, tasks: Sequence[Task]) -> int:
        """Queue what was seen here, owed, and is ours by now; returns how many are queued."""
        if not tasks:
            return 0
        rejected: dict[str, int] = {}
        passing = self._passing(tasks, rejected)
        if self._by.limit is not None:
            passing = [msgspec.structs.replace(task, depth=self._staged.depth_of(task)) for task in passing]
        return len(self._pushed(passing, rejected))

    def brought(self, task: Task) -> None:
        """Make the URL of a document that a mobile crawler brought a known one: few of them were found here before."""
        if self._by.limit is None:
            is_new = bool(self._by.seen.offer([task.identity]))
        else:
            is_new = bool(self._staged.meet([task]).new)
        if is_new:
            self._staged.count("discovered")
            if self._staged.tally("host", task.host, 1) == 1:
                self._staged.count("hosts")

    def announce_again(self, page: Task) -> None:
        """Queue what a visited page links to, as far as it is new and near enough by now: the limit of depth rose."""
        limit = self._by.limit
        if limit is None:
            return
        rejected: dict[str, int] = {}
        page = msgspec.structs.replace(page, depth=self._staged.depth_of(page))
        near = [task for task in behind(page, self._staged) if task.depth <= limit]
        self._pushed(self._announced(near, page, limit, rejected), rejected)

    def _pushed(self, offered: Sequence[Task], rejected: dict[str, int]) -> list[Task]:
        """Queue new tasks, but for those that are set aside or beyond a budget; returns what is queued."""
        crawled = offered if self._sheet.again else self._crawled(offered, rejected)
        levelled = self._levelled(self._within_budgets(crawled, rejected))
        self._staged.push(levelled)
        return levelled

    def _levelled(self, tasks: Sequence[Task]) -> list[Task]:
        standings = [_STANDING] * len(tasks)
        if self._counts_links:
            standings = [TaskStanding(in_degree=self._staged.tally("linked", task.host)) for task in tasks]
        urgencies = self._by.prioritizer.levels(tasks, standings)
        level = self._by.traversal.level
        return [
            with_level(one, sooner(one, level(one, urgency))) for one, urgency in zip(tasks, urgencies, strict=True)
        ]

    def _crawled(self, tasks: Sequence[Task], rejected: dict[str, int]) -> Sequence[Task]:
        """Those that are not set aside; the others are, and are counted by the trap's name."""
        families: Sequence[Family | None] = ()
        for gate in self._by.gates:
            if keeps(
                type(gate), Traps
            ):  # the first that suspects a task has it; one of a stranger may have another `place`
                places = cast(Traps, gate).place("schedule", tasks)
                families = [one or other for one, other in zip(families, places, strict=True)] if families else places
        if not any(families):
            return tasks
        aside: dict[Family, list[Task]] = {}
        kept = []
        for task, family in zip(tasks, families, strict=True):
            # A form that is sent is no part of an endless site, whatever its URL is.
            if family is None or task.is_marked:
                kept.append(task)
            else:
                aside.setdefault(family, []).append(task)
        for family, those in aside.items():
            count = self._staged.set_aside(family, self._levelled(those))
            rejected[family.why] = rejected.get(family.why, 0) + count
            self._staged.count(f"aside:{family.why}", count)
        return kept

    def announce(self, sitemaps: Sequence[str], site: str) -> None:
        """Queue the sitemaps of a site, wherever they lie; what they list passes scope and filters like any link."""
        tasks: dict[str, Task] = {}
        own = host_of(site)
        if len(sitemaps) > MAX_SITEMAPS:
            self._staged.count("cut:sitemaps", len(sitemaps) - MAX_SITEMAPS)
        for text in sitemaps[:MAX_SITEMAPS]:
            try:
                url = canonical(text, site + "/")
            except UnreadableUrl:
                continue
            if scheme_of(url) in ("http", "https"):
                host = host_of(url)
                relation = sitemap_relation(SITEMAP, is_elsewhere=host != own)
                tasks[url] = Task(url, host, 0, site + "/robots.txt", relation)
        for url, verdict in zip(list(tasks), verdicts_on(self._by.hosts, "schedule", [*tasks.values()]), strict=True):
            if verdict:
                self._staged.count(f"cut:{verdict}")
                del tasks[url]
        self._staged.push(self._new(tasks.values()))

    def _new(self, tasks: Iterable[Task]) -> list[Task]:
        """Those that are new, each once."""
        if self._by.limit is not None:
            return announced(tasks, self._staged, self._by.limit)
        by_identity = {task.identity: task for task in tasks}
        return [by_identity[identity] for identity in self._by.seen.offer(list(by_identity))]

    def _offered(self, visit: Visit, rejected: dict[str, int]) -> Sequence[Task]:
        """The visit's tasks that are followed and new. A task that the gate refuses is not offered: it may pass another time."""
        limit = self._by.limit
        if limit is None or visit.is_robots:
            if not visit.new:
                return ()
            passing = self._passing(visit.new, rejected)
            tasks = {task.identity: task for task in self._followed(passing, visit.task, rejected)}
            new = list(tasks) if self._sheet.again else self._by.seen.offer(list(tasks))
            return [tasks[identity] for identity in new]
        # A nearer way to this page may have been found while it was in flight: its links are counted from there.
        source, depth = visit.task, self._staged.depth_of(visit.task)
        self._staged.links(source.identity, [(link.url, link.relation, link.request) for link in visit.links])
        met: Sequence[Task] = visit.new
        if depth != source.depth:
            nearest = msgspec.structs.replace(source, depth=depth)
            met = [task_of(nearest, link.url, link.relation, link.request) for link in visit.links]
        near = [task for task in met if task.depth <= limit]
        if len(near) < len(met):
            rejected["depth"] = len(met) - len(near)
        return self._announced(near, source, limit, rejected)

    def _announced(self, near: Sequence[Task], source: Task, limit: int, rejected: dict[str, int]) -> list[Task]:
        """Those of a page's tasks that are gone after and new, and what lies behind them if they are nearer than before."""

        def passing(tasks: Sequence[Task]) -> Sequence[Task]:
            return self._followed(self._passing(tasks, rejected), source, rejected)

        return announced(passing(near), self._staged, limit, passing)

    def _followed(self, tasks: Sequence[Task], source: Task, rejected: dict[str, int]) -> Sequence[Task]:
        followed = self._by.traversal.follow(tasks, source)
        if left := len(tasks) - len(followed):
            rejected[LEFT] = rejected.get(LEFT, 0) + left
            self._staged.count(f"cut:{LEFT}", left)
        return followed

    def _passing(self, tasks: Sequence[Task], rejected: dict[str, int]) -> Sequence[Task]:
        verdicts = verdicts_on(self._by.gates, "schedule", tasks)
        if verdicts.count("") == len(tasks):
            return tasks
        for verdict in filter(None, verdicts):
            rejected[verdict] = rejected.get(verdict, 0) + 1
            self._staged.count(f"cut:{verdict}")
        return [task for task, verdict in zip(tasks, verdicts, strict=True) if not verdict]

    def _within_budgets(self, tasks: Sequence[Task], rejected: dict[str, int]) -> list[Task]:
        """Those that their hosts and domains may queue, which are then counted; the budget counts those that it cuts."""
        rooms: dict[str, tuple[_Room, _Room | None]] = {}
        domains: dict[str, _Room] = {}
        kept: list[Task] = []
        for task in tasks:
            found = rooms.get(task.host)
            if found is None:
                most = self._budgets.get(task.host) if self._sheet.max_by_host else None
                room = _Room(self._staged, "host", task.host, self._sheet.max_per_host if most is None else most)
                whole = None
                if self._sheet.max_per_domain is not None:
                    name = registered_domain(task.host)
                    if (whole := domains.get(name)) is None:
                        whole = domains[name] = _Room(self._staged, "domain", name, self._sheet.max_per_domain)
                found = rooms[task.host] = room, whole
            room, whole = found
            if not room.left:
                cut = "budget:host"
            elif whole is not None and not whole.left:
                cut = "budget:domain"
            else:
                room.take()
                if whole is not None:
                    whole.take()
                kept.append(task)
                continue
            rejected[cut] = rejected.get(cut, 0) + 1
            self._staged.count(f"cut:{cut}")
        new = sum(room.count() for room, _ in rooms.values())
        if new:
            self._staged.count("hosts", new)
        for whole in domains.values():
            whole.count()
        return kept


class _Room:
    """How much a host or domain may still queue: a batch asks the ledger once for each, not for each of its URLs."""

    __slots__ = ("_before", "_is_first", "_name", "_staged", "_taken", "_what", "left")

    def __init__(self, staged: Group, what: Tallied, name: str, most: int | None) -> None:
        self._staged = staged
        self._what = what
        self._name = name
        self._taken = 0
        self._is_first = False
        self._before = staged.tally(what, name)
        self.left: float = inf if most is None else max(0, most - self._before)

    def take(self) -> None:
        if not self._taken:
            after = self._staged.tally(self._what, self._name, 1)
            self._is_first = after == 1
            if after != self._before + 1:
                self.left = inf  # another agent keeps this tally, and cuts there
        self._taken += 1
        self.left -= 1

    def count(self) -> bool:
        """Add what was taken to the tally; True where it is all that was ever taken."""
        if self._taken > 1:
            self._staged.tally(self._what, self._name, self._taken - 1)
        return self._is_first
