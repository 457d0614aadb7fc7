"""The commit and its queueing on fakes: who is told what, in which order, and what becomes of a page."""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import msgspec
import pytest

from gossamer.engine.errors import ComponentFailed
from gossamer.frontier.order import HostBreadthFirst
from gossamer.parsing.filters import ConstraintFilter, ConstraintSheet
from gossamer.storage.commit.commit_stage import Commit
from gossamer.storage.commit.queueing import MAX_SITEMAPS, Choosers, CommitSheet, TaskQueueing
from gossamer.storage.ledger.contract import Group
from gossamer.testing.clock import FakeClock
from gossamer.testing.components import Stand
from gossamer.testing.storage import visit
from gossamer.values.ledger_rows import HostState
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.task import DONE, GONE, KEEP, Answer, Disposition, RetryDecision, Task
from gossamer.values.visit import Link, Location, Record, Visit

Run = Callable[..., Any]


class Staged:
    """A group of a ledger that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.counted: dict[str, int] = {}
        self.tallies: dict[tuple[str, str], int] = {}
        self.pushed: list[Task] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **_: self.told.append((name, *arguments))

    def first(self, digest: str, url: str) -> str:
        return ""

    def host_state(self, name: str) -> HostState:
        return HostState(name)

    def count(self, name: str, number: int = 1) -> None:
        self.counted[name] = self.counted.get(name, 0) + number

    def tally(self, what: str, name: str, add: int = 0) -> int:
        self.tallies[what, name] = self.tallies.get((what, name), 0) + add
        return self.tallies[what, name]

    def push(self, tasks: Sequence[Task]) -> None:
        self.pushed += tasks

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        return [one for one in self.told if one[0] in names]


class World:
    """Everything that a commit uses: archive, keeper, ledger and those who decide, all noting what happens in `events`."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.groups: list[Staged] = []
        self.rules: dict[str, RetryDecision] = {}
        self.flown: set[str] = set()
        self.depths = SimpleNamespace(limit=None)
        self.errors: list[OSError] = []
        """What the next writes of the keeper raise, one each."""

    # flights, politeness, robots

    def arrive(self, identity: str) -> bool:
        return not (identity in self.flown or self.flown.add(identity))

    def received(self, url: str, size: int) -> None:
        pass

    def ruling(self, answer: Answer) -> RetryDecision:
        return self.rules.get(answer.url, DONE)

    def note(self, host: str) -> bytes:
        return b""

    def delay(self, host: str) -> float:
        return 0.0

    def delay_reason(self, host: str) -> str:
        return "setting"

    # archive and ledger

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        self.events.append("archive")
        return [Location("warc/a", 0, 1) for _ in visits]

    def take_back(self) -> None:
        self.events.append("archive back")

    def ends(self) -> Mapping[str, int]:
        return {"warc/a": 1}

    @contextmanager
    def group(self) -> Iterator[Staged]:
        staged = Staged()
        yield staged
        self.groups.append(staged)
        self.events.append("group")

    async def settle(self) -> None:
        self.events.append("settled")

    def counters(self) -> Mapping[str, int]:
        return {}

    # seen, traversal, prioritizer

    def offer(self, urls: Sequence[str]) -> list[str]:
        return [url for url in urls if not url.endswith("/old")]

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        return urgency + 1

    def levels(self, tasks: Sequence[Task], standings: Sequence[Any]) -> Sequence[int]:
        return [3] * len(tasks)


class Keeping:
    """A keeper that notes what happens, and fails as the world says."""

    def __init__(self, world: World) -> None:
        self.world = world

    def stage(self, records: Sequence[Record], group: Group) -> None:
        self.world.events.append("keeper")
        if self.world.errors:
            raise self.world.errors.pop(0)

    def take_back(self) -> None:
        self.world.events.append("keeper back")

    def ends(self) -> Mapping[str, int]:
        return {"rows/a": 2}

    def committed(self, ends: Mapping[str, int]) -> None:
        self.world.events.append("keeper told")


def commit(world: World, *, keepers: int = 1, **settings: Any) -> Commit:
    made = Commit(CommitSheet(**settings))
    for role in ("archive", "ledger", "seen", "flights", "politeness", "robots", "traversal", "prioritizer"):
        setattr(made, role, world)
    given = {"visits": [Keeping(world) for _ in range(keepers)]}
    for role, table in {"keepers": given, "watchers": {}, "gates": {}, "task_gates": {}, "goals": {}}.items():
        setattr(made, role, table)
    made.clock = FakeClock()
    return made


def passed(run: Run, world: World, *visits: Visit, **settings: Any) -> list[Any]:
    """What a commit tells the frontier of these visits."""

    async def body() -> list[Any]:
        async with Stand(commit(world, **settings)) as stand:
            await stand.give("inbox", *visits)
            return await stand.made("committed")

    return list(run(body()))


def test_the_frontier_hears_of_a_visit_only_when_everything_of_it_is_kept(run: Run) -> None:
    world = World()
    [told] = passed(run, world, visit())
    assert world.events == ["archive", "keeper", "group", "settled", "keeper told"]
    assert (told.task.url, told.is_page, told.bytes) == ("http://a.test/", True, 8)
    [group] = world.groups
    assert group.of("written") == [("written", "warc/a", 1), ("written", "rows/a", 2)]


def test_a_visit_that_arrives_twice_is_committed_once(run: Run) -> None:
    world = World()
    assert len(passed(run, world, visit(), visit())) == 1
    assert [len(group.of("visited")) for group in world.groups] == [1]


def test_a_group_that_fails_is_taken_back_from_those_alone_that_were_written_to(run: Run) -> None:
    world = World()
    world.errors = [OSError(errno.EIO, "Input/output error")]

    async def body() -> None:
        async with Stand(commit(world, keepers=2)) as stand:
            await stand.give("inbox", visit())
            with pytest.raises(ComponentFailed, match="cannot keep 1 visits"):
                await stand.wait()
            assert await stand.made("committed") == []

    run(body())
    assert world.events == ["archive", "keeper", "archive back", "keeper back"]
    assert world.groups == []


def test_while_the_disk_is_full_two_groups_wait_as_one_and_each_is_written_once_when_there_is_room(run: Run) -> None:
    world = World()
    world.errors = [OSError(errno.ENOSPC, "No space left on device")] * 2
    told: list[str] = []

    async def body() -> None:
        stage = commit(world, disk_wait=10.0)
        stage.report = told.append  # type: ignore[method-assign]
        async with Stand(stage, workers=2, report=told.append) as stand:
            for number in range(2):
                await stand.give("inbox", visit(number))
                assert await stand.made("committed") == []
            await stage.clock.advance(9.0)  # type: ignore[attr-defined]
            assert world.groups == []
            await stage.clock.advance(11.0)  # type: ignore[attr-defined]
            assert len(await stand.made("committed")) == 2

    run(body())
    assert len(world.groups) == 2
    assert [line.partition(" (")[0] for line in told] == [
        "the disk is full",
        "there is room on the disk again; the crawl goes on",
    ]


@pytest.mark.parametrize(
    ("ruling", "told", "is_kept"),
    [
        (DONE, ["visited"], False),
        (KEEP, ["tried"], True),
        (RetryDecision(Disposition.RETRY, 30.0), ["tried", "done", "later"], False),
        (GONE, ["visited"], False),
    ],
)
def test_what_politeness_rules_becomes_of_the_page(
    run: Run, ruling: RetryDecision, told: list[str], is_kept: bool
) -> None:
    world = World()
    world.rules["http://a.test/"] = ruling
    [answer] = passed(run, world, visit(outcome=Outcome.CONNECT_FAILED))
    [group] = world.groups
    assert [name for name, *_ in group.of("visited", "tried", "done", "later")] == told
    assert answer.is_kept is is_kept
    if ruling.what is Disposition.RETRY:
        [(_, again, due)] = group.of("later")
        assert (again.attempt, due) == (2, FakeClock().steady() + 30.0)
    if ruling is GONE:
        assert answer.outcome is Outcome.GONE_AFTER_RETRIES


def test_a_request_that_may_have_been_carried_out_is_not_sent_again(run: Run) -> None:
    world = World()
    world.rules["http://a.test/"] = RetryDecision(Disposition.RETRY, 30.0)
    given = visit(outcome=Outcome.TIMED_OUT)
    task = msgspec.structs.replace(given.task, request=Requested(method="POST"))
    for is_met, told in ((True, "visited"), (False, "later")):
        response = msgspec.structs.replace(given.response, is_met=is_met)
        world.flown.clear()
        passed(run, world, msgspec.structs.replace(given, task=task, response=response))
        assert world.groups[-1].of("visited", "later")[-1][0] == told


# -- queueing


def queueing(staged: Staged, *gates: Any, hosts: Sequence[Any] = (), **settings: Any) -> TaskQueueing:
    world: Any = World()
    group: Any = staged
    return TaskQueueing(CommitSheet(**settings), Choosers(world, world, world, gates, hosts=hosts), group)


def found(*urls: str) -> Visit:
    return msgspec.structs.replace(visit(), new=tuple(Task(url, url.split("/")[2], depth=1) for url in urls))


def test_tasks_wait_at_the_level_that_prioritizer_and_traversal_choose() -> None:
    staged = Staged()
    queued = queueing(staged).queued(found("http://a.test/1", "http://a.test/old"))
    assert [(task.url, task.level) for task in staged.pushed] == [("http://a.test/1", 4)]
    assert list(queued.new) == staged.pushed


def test_what_the_gate_refuses_is_counted_by_its_rule_and_not_queued() -> None:
    class NoTwos:
        def judge_tasks(self, gate: str, tasks: Sequence[Task]) -> Sequence[str]:
            return ["twos" if task.url.endswith("2") else "" for task in tasks]

    staged = Staged()
    queued = queueing(staged, NoTwos()).queued(found("http://a.test/1", "http://a.test/2"))
    assert [task.url for task in staged.pushed] == ["http://a.test/1"]
    assert (queued.rejected, staged.counted["cut:twos"]) == ({"twos": 1}, 1)


def test_a_filter_that_calls_something_else_its_place_sets_nothing_aside() -> None:
    class InTown:
        place = "Oslo"

        def judge_tasks(self, gate: str, tasks: Sequence[Task]) -> Sequence[str]:
            return [""] * len(tasks)

    staged = Staged()
    queueing(staged, InTown()).queued(found("http://a.test/1"))
    assert [task.url for task in staged.pushed] == ["http://a.test/1"]


def test_a_watcher_that_calls_something_else_learnt_is_no_learner_and_not_broken(run: Run) -> None:
    class Counting:
        def __init__(self) -> None:
            self.learnt = 0

        def observe(self, visit: Visit) -> str:
            self.learnt += 1
            return ""

    async def body() -> Mapping[str, int]:
        watched = commit(World())
        watched.watchers = {"visits": [Counting()]}
        async with Stand(watched) as stand:
            await stand.give("inbox", visit())
            await stand.made("committed")
            return stand.component.metrics.counters

    assert not [name for name in run(body()) if name.startswith("broken:")]


def test_links_that_the_strategy_does_not_go_after_are_counted_by_its_name() -> None:
    staged = Staged()
    world: Any = World()
    group: Any = staged
    hosts = TaskQueueing(CommitSheet(), Choosers(world, HostBreadthFirst(), world, ()), group)
    queued = hosts.queued(found("http://a.test/1", "http://b.test/2", "http://c.test/3"))
    assert [task.url for task in queued.new] == ["http://a.test/1"]
    assert (queued.rejected, staged.counted["cut:strategy"]) == ({"strategy": 2}, 2)


@pytest.mark.parametrize(
    ("settings", "queued", "cut"),
    [
        ({"max_per_host": 1}, ["http://a.b.test/1", "http://c.b.test/1"], "budget:host"),
        ({"max_per_domain": 2}, ["http://a.b.test/1", "http://a.b.test/2"], "budget:domain"),
    ],
)
def test_a_host_and_a_domain_queue_no_more_than_their_budget(
    settings: dict[str, int], queued: list[str], cut: str
) -> None:
    staged = Staged()
    done = queueing(staged, **settings).queued(found("http://a.b.test/1", "http://a.b.test/2", "http://c.b.test/1"))
    assert [task.url for task in staged.pushed] == queued
    assert (done.rejected, staged.counted[f"cut:{cut}"]) == ({cut: 1}, 1)


def test_sitemaps_of_any_host_are_queued_and_no_more_than_a_hundred() -> None:
    staged = Staged()
    named = ["http://b.test/s.xml", "http://[", "ftp://a.test/x", "/own.xml", *(f"/{n}" for n in range(MAX_SITEMAPS))]
    queueing(staged).announce(named, "http://a.test")
    assert staged.pushed[:2] == [
        Task("http://b.test/s.xml", "b.test", 0, "http://a.test/robots.txt", "sitemap elsewhere"),
        Task("http://a.test/own.xml", "a.test", 0, "http://a.test/robots.txt", "sitemap"),
    ]
    assert len(staged.pushed) == MAX_SITEMAPS - 2, "two of the first hundred are no URL of the web"
    assert staged.counted["cut:sitemaps"] == 4


def test_a_sitemap_of_a_host_that_the_crawl_must_not_ask_is_not_queued() -> None:
    staged = Staged()
    never = ConstraintFilter(ConstraintSheet(never=("test.b",)))
    queueing(staged, hosts=[never]).announce(["http://b.test/s.xml", "/own.xml"], "http://a.test")
    assert [task.url for task in staged.pushed] == ["http://a.test/own.xml"]
    assert sum(count for name, count in staged.counted.items() if name.startswith("cut:")) == 1


@pytest.mark.parametrize("wants", [False, True])
def test_links_between_hosts_are_counted_only_for_a_prioritizer_that_wants_it(wants: bool) -> None:
    class Noting:
        wants_in_degree = wants
        told: ClassVar[list[int]] = []

        def levels(self, tasks: Sequence[Task], standings: Sequence[Any]) -> Sequence[int]:
            self.told += [standing.in_degree for standing in standings]
            return [0] * len(tasks)

    Noting.told.clear()
    staged, world = Staged(), cast(Any, World())
    group: Any = staged
    of_one = TaskQueueing(CommitSheet(), Choosers(world, world, Noting(), ()), group)
    links = tuple(Link(url) for url in ("http://a.test/2", "http://b.test/1", "http://b.test/2", "http://c.test/old"))
    for _ in range(2):
        of_one.queued(msgspec.structs.replace(found("http://a.test/2", "http://b.test/1"), links=links))
    assert Noting.told == ([0, 2, 0, 4] if wants else [0, 0, 0, 0])
    counted = {name: number for (what, name), number in staged.tallies.items() if what == "linked"}
    assert counted == ({"a.test": 0, "b.test": 4, "c.test": 2} if wants else {})
