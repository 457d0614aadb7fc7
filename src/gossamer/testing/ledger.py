"""Conformance suites for ledgers and task queues: run them over an implementation of your own."""

from collections.abc import Callable

from gossamer.contracts.ledger import Ledger, TaskQueues
from gossamer.model.kept import HostState
from gossamer.model.task import Task
from gossamer.model.visit import Location
from gossamer.testing.storing import unanswered, visit

#: Closes what is open as a kill would, and opens it again: the ledger and its queues. At first it opens them empty.
Reopen = Callable[[], tuple[Ledger, TaskQueues]]


class _Broken(Exception):
    """What a failing stage raises inside a group."""


def _task(number: int, host: str = "a.test") -> Task:
    return Task(f"http://{host}/{number}", host, depth=number, source="http://s.test/", relation="a href")


def _held(queues: TaskQueues, now: float = 0.0) -> list[str]:
    return [state.host for state in queues.admit(now)]


def check_ledger(reopen: Reopen) -> None:
    """A ledger, empty at first, keeps its promises and those of its groups."""
    ledger, queues = reopen()
    assert dict(ledger.counters()) == {} and dict(ledger.committed_ends()) == {} and len(queues) == 0
    one, two = visit("http://a.test/1", b"abc"), unanswered("http://a.test/2")
    try:
        with ledger.group() as group:
            assert group.offer([one.url]) == [one.url]
            group.push([one.task])
            group.written("logs/crawl.jsonl", 5)
            raise _Broken
    except _Broken:
        pass
    assert len(queues) == 0 and dict(ledger.committed_ends()) == {}, "a group that raised left something"
    with ledger.group() as group:
        assert group.offer([one.url, two.url, one.url]) == [one.url, two.url], "new URLs, in order, each once"
        assert group.offer([two.url]) == [], "a group knows what it was offered"
        group.push([one.task, two.task])
        assert not group.visited(one, None), "a visit was kept whose task was never popped"
    assert _held(queues) == ["a.test"]
    assert [task.url for task in queues.pop("a.test", 2)] == [one.url, two.url]
    with ledger.group() as group:
        assert group.visited(one, Location("warc/1.warc.gz", 100, 20))
        assert not group.visited(one, None), "a visit was kept twice"
        assert group.visited(two, None)
        group.host(HostState("a.test", 12.5, "asking", {"fetched": 2}, b"rules"))
        group.written("logs/crawl.jsonl", 7)
    for _ in range(2):
        counted = dict(ledger.counters())
        assert (counted["visits"], counted["pages"], counted["fetched"], counted["bytes"]) == (2, 1, 1, 3)
        assert (counted["outcome:ok"], counted["outcome:connect_failed"], counted["discovered"]) == (1, 1, 2)
        assert dict(ledger.committed_ends()) == {"warc/1.warc.gz": 120, "logs/crawl.jsonl": 7}
        with ledger.group() as group:
            assert group.offer([one.url, two.url]) == [], "a URL was forgotten"
        ledger, queues = reopen()
    with ledger.group() as group:
        group.push([_task(3)])
    [state] = queues.admit(0.0)
    assert (state.next_allowed, state.state, state.counters) == (12.5, "asking", {"fetched": 2}), "a host was forgotten"


def check_task_queues(reopen: Reopen, *, hosts: int = 40, tasks: int = 30) -> None:
    """Task queues, empty at first, keep their promises.

    Args:
        reopen: opens them, at first empty.
        hosts: how many there are; more than are held at once.
        tasks: of each host; more than its turn.
    """
    ledger, queues = reopen()
    names = [f"h{number}.test" for number in range(hosts)]
    for start in range(0, tasks, 7):
        with ledger.group() as group:
            group.push(_task(n, name) for n in range(start, min(start + 7, tasks)) for name in names)
    assert len(queues) == hosts * tasks
    out: dict[str, list[Task]] = {name: [] for name in names}
    turns = 0
    while len(queues):
        turns += 1
        assert turns < 10 * hosts * tasks, "a host with tasks is never admitted"
        flying = []
        for name in _held(queues):
            while popped := queues.pop(name, 3):
                assert all(task.host == name for task in popped), "a task of another host"
                flying += popped
        if turns % 3 == 0 and turns < 3 * hosts:
            ledger, queues = reopen()
            continue  # what was in flight comes again, before those behind it
        with ledger.group() as group:
            assert all(group.visited(visit(task.url), None) for task in flying)
        for task in flying:
            out[task.host].append(task)
    for name in names:
        assert out[name] == [_task(n, name) for n in range(tasks)], (
            f"tasks of {name} got lost, doubled, or out of order"
        )
    _check_rest(ledger, queues)


def _check_rest(ledger: Ledger, queues: TaskQueues) -> None:
    with ledger.group() as group:
        group.push([_task(1, "rest.test"), _task(2, "rest.test")])
    assert "rest.test" in _held(queues)
    queues.rest("rest.test", 50.0)
    assert queues.pop("rest.test") == [], "a host that rests was handed out"
    with ledger.group() as group:
        group.push([_task(3, "rest.test")])
    assert "rest.test" not in _held(queues, 49.0), "a host came before its rest was over"
    assert "rest.test" in _held(queues, 51.0), "a host whose rest is over did not come"
    assert [task.depth for task in queues.pop("rest.test", 9)] == [1, 2, 3]
