"""Conformance suites for ledgers, task queues and the spaces of a ledger."""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from gossamer.storage.contract import KEY_BYTES, OWED, Space
from gossamer.storage.ledger.contract import Ledger, TaskQueues
from gossamer.testing.storage import unanswered, visit
from gossamer.values.ledger_rows import HostState
from gossamer.values.request_identity import requested
from gossamer.values.task import Task
from gossamer.values.visit import Location

#: Closes what is open as a kill would, and opens it again; at first it opens an empty one.
ReopenLedger = Callable[[], Ledger]

ONE = Space("suite-one", value_bytes=20, host_bytes=60, common_bytes=29)
TWO = Space("suite-one-more", value_bytes=20, host_bytes=60)
"""Its name begins with the name of the other space, so that keys which are not kept apart would collide."""


class _Broken(Exception):
    """A failing stage raises this inside a group."""


def check_spaces(reopen: ReopenLedger) -> None:
    """Check that the spaces of a ledger, empty at first, keep their promises."""
    ledger = _opened(reopen)
    with suppress(_Broken), ledger.group() as group:
        assert group.put(ONE, "a.test", b"k", b"lost")
        assert group.get(ONE, "a.test", b"k") == b"lost", "a group knows what it stages"
        raise _Broken
    assert ledger.spaces.get(ONE, "a.test", b"k") is None, "a group that raised left something"
    with ledger.group() as group:
        assert group.get(ONE, "a.test", b"k") is None
        for key in (b"k2", b"k1", b"other", b"k1"):
            assert group.put(ONE, "a.test", key, b"of " + key)
        assert group.put(ONE, "b.test", b"", b"alone") and group.put(TWO, "a.test", b"k1", b"two")
        assert group.put(ONE, None, b"k1", b"common")
        assert ledger.spaces.get(ONE, "a.test", b"k1") is None, "a staged entry was kept before its group"
        assert list(group.scan(ONE, "a.test", b"k")) == [(b"k1", b"of k1"), (b"k2", b"of k2")]
        assert list(group.scan(ONE, "a.test", b"k", b"k2")) == [(b"k2", b"of k2")], "a scan starts where it was told to"
        group.delete(ONE, "a.test", b"k2")
        group.delete(ONE, "a.test", b"never")
        assert group.get(ONE, "a.test", b"k2") is None, "a group forgot that an entry ends"
    with ledger.group() as group:
        assert group.put(ONE, "a.test", b"k3", b"3") and group.put(ONE, "a.test", b"k0", b"0")
        group.delete(ONE, "a.test", b"k1")
        assert group.put(ONE, "a.test", b"other", b"new")
        found = list(group.scan(ONE, "a.test"))
        assert found == [(b"k0", b"0"), (b"k3", b"3"), (b"other", b"new")], "kept and staged entries, in order"
    for _ in range(2):
        _check_spaces_kept(ledger)
        ledger = _opened(reopen)
    before = list(ledger.spaces.scan(ONE, "a.test"))
    used = sum(len(key) + len(value) for key, value in before)
    with ledger.group() as group:
        assert not group.put(ONE, "a.test", b"v", b"x" * 21), "a value beyond its bound was taken"
        assert not group.put(ONE, "a.test", b"k" * (KEY_BYTES + 1), b""), "a key beyond its bound was taken"
        most = 0
        while group.put(ONE, "a.test", b"%02d" % most, b"12345678"):
            most += 1
        assert most == (60 - used) // 10, "the bytes under a host are not bounded as the owner declared"
        assert group.put(ONE, "a.test", b"00", b"1"), "an entry that becomes smaller has room"
        assert group.put(ONE, "c.test", b"00", b"12345678"), "one host's bytes were counted as another's"
        assert not group.put(ONE, None, b"k2", b"x" * 20), "what belongs to no host is not bounded"
    assert ledger.counters()["full:suite-one"] == 4, "an entry that a bound kept out was not counted"
    with ledger.group() as group:
        for key, _ in list(group.scan(ONE, "a.test")):
            group.delete(ONE, "a.test", key)
        assert list(group.scan(ONE, "a.test")) == []
        assert all(group.put(ONE, "a.test", b"%02d" % number, b"12345678") for number in range(6)), "room was lost"
    assert len(list(ledger.spaces.scan(ONE, "a.test"))) == 6
    ledger = _opened(reopen)
    figures = {one.owner: one for one in ledger.spaces.figures()}
    assert [figures[space.owner].wrong for space in (ONE, TWO)] == [0, 0], "the bytes are not those that were counted"


def _opened(reopen: ReopenLedger) -> Ledger:
    ledger = reopen()
    for space in (ONE, TWO):
        ledger.spaces.open(space)
    return ledger


def _check_spaces_kept(ledger: Ledger) -> None:
    spaces = ledger.spaces
    assert list(spaces.scan(ONE, "a.test")) == [(b"k0", b"0"), (b"k3", b"3"), (b"other", b"new")]
    assert list(spaces.scan(ONE, "a.test", b"k3")) == [(b"k3", b"3")]
    assert list(spaces.scan(ONE, "a.test", b"k", b"k1")) == [(b"k3", b"3")], "a scan starts where it was told to"
    assert list(spaces.scan(ONE, "a.test", b"k", b"a")) == list(spaces.scan(ONE, "a.test", b"k"))
    assert list(spaces.scan(TWO, "a.test")) == [(b"k1", b"two")], "two owners met"
    assert list(spaces.scan(ONE, None)) == [(b"k1", b"common")], "entries without a host lie apart"
    assert list(spaces.scan(TWO, None)) == [] and list(spaces.scan(ONE, "never.test")) == []
    assert spaces.get_many(ONE, ["b.test", "never.test", "a.test"], b"") == [b"alone", None, None]
    assert spaces.get(ONE, "b.test") == b"alone"
    told = sorted((one.owner, one.version, one.key, one.value) for one in spaces.of_host("a.test"))
    kept = [(space.owner, 1, *entry) for space in (ONE, TWO) for entry in spaces.scan(space, "a.test")]
    assert told == sorted(kept), "what is exported with a host is what lies under it, whosever it is"
    assert list(spaces.of_host("never.test")) == []
    walked = list(spaces.walk(ONE))
    assert sorted(value for _, value in walked) == [b"0", b"3", b"alone", b"new"], (
        "what lies under all hosts, each once"
    )
    for place, (mark, _) in enumerate(walked):
        assert list(spaces.walk(ONE, mark)) == walked[place + 1 :], "a walk goes on behind its mark"


#: Closes what is open as a kill would, and opens it again: the ledger and its queues. At first it opens them empty.
ReopenQueues = Callable[[], tuple[Ledger, TaskQueues]]


def _task(number: int, host: str = "a.test", level: int = 0) -> Task:
    url = f"http://{host}/{number}"
    return Task(url, host, depth=number, source="http://s.test/", relation="a href", level=level)


_KNOWN = HostState("a.test", b"note", {"pages": 2}, 1.0, 2.0, "192.0.2.1", 12.5, "known", 3.0)


def _held(queues: TaskQueues, now: float = 0.0) -> list[str]:
    return [state.host for state in queues.admit(now)]


def check_ledger(reopen: ReopenQueues) -> None:
    """Check that a ledger, empty at first, keeps its promises and those of its groups."""
    ledger, queues = reopen()
    assert dict(ledger.counters()) == {} and dict(ledger.committed_ends()) == {} and len(queues) == 0
    one, two = visit("http://a.test/1", b"abc"), unanswered("http://a.test/2")
    with suppress(_Broken), ledger.group() as group:
        assert group.offer([one.url]) == [one.url]
        group.push([one.task])
        group.written("logs/crawl.jsonl", 5)
        raise _Broken
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
        group.host(_KNOWN)
        group.robots("http://a.test:80", "a.test", b"rules")
        group.robots("https://a.test", "a.test", b"other rules")
        group.learnt("a.test", "traps", b"a calendar")
        group.learnt("a.test", "aliases", b"www.a.test")
        assert (group.tally("host", "a.test", 2), group.tally("host", "a.test", 1)) == (2, 3), "a tally adds up"
        assert group.tally("domain", "a.test", 7) == 7, "host and domain of one name are apart"
        group.meta("clean", b"yes")
        assert group.first("D" * 32, one.url) == "", "a new digest has no first URL"
        assert group.first("D" * 32, two.url) == one.url, "a group knows what it was told"
        group.written("logs/crawl.jsonl", 7)
    for _ in range(2):
        counted = dict(ledger.counters())
        assert (counted["visits"], counted["pages"], counted["fetched"], counted["bytes"]) == (2, 1, 1, 3)
        assert (counted["outcome:ok"], counted["outcome:connect_failed"], counted["discovered"]) == (1, 1, 2)
        assert dict(ledger.committed_ends()) == {"warc/1.warc.gz": 120, "logs/crawl.jsonl": 7}
        with ledger.group() as group:
            assert group.offer([one.url, two.url]) == [], "a URL was forgotten"
            assert group.first("D" * 32, two.url) == one.url, "whose a digest is was forgotten"
            assert group.host_state("a.test") == _KNOWN
        _check_kept(ledger)
        ledger, queues = reopen()
    ledger.put_meta("clean", b"no")
    with ledger.group() as group:
        group.push([_task(3)])
    assert queues.admit(0.0) == [_KNOWN], "a host was forgotten"
    assert ledger.meta("clean") == b"no"
    _check_owed(reopen)


def _check_owed(reopen: ReopenQueues) -> None:
    """Check that URLs owed to another agent count as seen, also after delivery, and that those of a failed group do not."""
    task = _task(1, "elsewhere.test")
    key = task.url.encode()
    for is_kept in (False, True):
        ledger, queues = reopen()
        ledger.spaces.open(OWED)
        before = len(queues)
        with suppress(_Broken), ledger.group() as group:
            assert group.offer([task.url]) == [task.url], "what was never kept is seen"
            assert group.put(OWED, task.host, key, b"")
            if not is_kept:
                raise _Broken
        ledger, queues = reopen()
        ledger.spaces.open(OWED)
        assert len(queues) == before, "what is owed was queued"
        assert (ledger.spaces.get(OWED, task.host, key) is not None) is is_kept, "owed exactly if its group was kept"
    for _ in range(2):
        with ledger.group() as group:
            assert group.offer([task.url]) == [], "promise 3: what is owed, or was delivered, is seen"
            group.delete(OWED, task.host, key)
        ledger, _ = reopen()
        ledger.spaces.open(OWED)
    assert ledger.spaces.get(OWED, task.host, key) is None, "what was delivered is owed"


def _check_kept(ledger: Ledger) -> None:
    assert ledger.host_states(["a.test", "b.test"]) == [_KNOWN, HostState("b.test")], "a host was forgotten"
    assert list(ledger.hosts()) == [_KNOWN], "the hosts are those of which something is kept"
    sites = "http://a.test:80", "https://a.test", "https://b.test"
    assert [ledger.robots(site, site.split("/")[2].split(":")[0]) for site in sites] == [b"rules", b"other rules", None]
    assert (ledger.tally("host", "a.test"), ledger.tally("domain", "a.test"), ledger.tally("host", "b.test")) == (
        3,
        7,
        0,
    )
    assert ledger.learnt(["b.test", "a.test"], "traps") == [None, b"a calendar"], "what was learnt was forgotten"
    assert ledger.learnt(["a.test"], "aliases") == [b"www.a.test"], "what two watchers have learnt is apart"
    assert (ledger.meta("clean"), ledger.meta("other")) == (b"yes", None)


def check_depths(reopen: ReopenQueues) -> None:
    """Check that a ledger that keeps depths, empty at first, knows the lowest depth of each URL and the links of visited pages."""
    ledger, _ = reopen()
    deep = [_task(5), _task(6), msgspec.structs.replace(_task(5), depth=4)]
    one, two = deep[2].url, deep[1].url
    asked = requested(label="shop", data=b"1")
    with ledger.group() as group:
        meeting = group.meet(deep)
        assert [(task.url, task.depth) for task in meeting.new] == [(one, 4), (two, 6)], (
            "each once, at its lowest depth"
        )
        assert meeting.nearer == []
        group.links(one, [("http://a.test/x", "a href", asked), ("http://b.test/", "redirect", None)])
        again = group.meet(msgspec.structs.replace(task, depth=3) for task in deep[:1])
        assert again.new == [] and [task.depth for task in again.nearer] == [3], "a group knows the depths it was told"
        assert group.links_of(one) and group.links_of(two) is None
    never = "http://never.test/"
    for _ in range(2):
        assert ledger.depth_of([one, two, never]) == [3, 6, None]
        assert ledger.links_of(one) == [("http://a.test/x", "a href", asked), ("http://b.test/", "redirect", None)]
        assert ledger.links_of(two) is None
        with ledger.group() as group:
            assert group.offer([one, two]) == [], "offer is for new URLs only"
            meeting = group.meet([msgspec.structs.replace(deep[0], depth=3), deep[1]])
            assert (meeting.new, meeting.nearer) == ([], []), "a depth that is not lower is not nearer"
        ledger, _ = reopen()
    with ledger.group() as group:
        meeting = group.meet(msgspec.structs.replace(task, depth=2) for task in deep[1::-1])
        assert meeting.new == []
        assert [task.url for task in meeting.nearer] == [two, one]
        assert group.meet(meeting.nearer).nearer == [], "a depth was lowered twice"
        assert group.meet([deep[1]]).nearer == [], "a greater depth is no news"
    for _ in range(2):
        assert ledger.depth_of([one, two, never]) == [2, 2, None]
        ledger, _ = reopen()


def check_task_queues(reopen: ReopenQueues, *, hosts: int = 40, tasks: int = 30) -> None:
    """Check that task queues, empty at first, keep their promises.

    Args:
        reopen: opens the queues, which are empty at first.
        hosts: number of hosts, more than are held at once.
        tasks: number of tasks of each host, more than its turn.
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
    _check_levels(ledger, queues)
    ledger, queues = _check_later(reopen, ledger, queues)


def _check_rest(ledger: Ledger, queues: TaskQueues) -> None:
    with ledger.group() as group:
        group.push([_task(1, "rest.test"), _task(2, "rest.test")])
    assert "rest.test" in _held(queues)
    assert queues.next_rest() == float("inf"), "no host rests"
    queues.rest("rest.test", 50.0)
    assert queues.next_rest() == 50.0
    assert queues.pop("rest.test") == [], "a host that rests was handed out"
    with ledger.group() as group:
        group.push([_task(3, "rest.test")])
    assert "rest.test" not in _held(queues, 49.0), "a host came before its rest was over"
    assert "rest.test" in _held(queues, 51.0), "a host whose rest is over did not come"
    assert [task.depth for task in queues.pop("rest.test", 9)] == [1, 2, 3]
    _finish(ledger, ["http://rest.test/1", "http://rest.test/2", "http://rest.test/3"])
    assert queues.pop("rest.test") == []


def _finish(ledger: Ledger, urls: list[str]) -> None:
    with ledger.group() as group:
        assert all(group.done(url) for url in urls)


def _check_levels(ledger: Ledger, queues: TaskQueues) -> None:
    name = "levels.test"
    with ledger.group() as group:
        group.push(_task(number, name, level) for number, level in enumerate([255, 3, 3, 7, 0]))
    assert name in _held(queues, 60.0)
    popped = queues.pop(name, 2)
    with ledger.group() as group:
        group.push([_task(10, name, 3), _task(11, name, 1), _task(12, name, 255)])
    _finish(ledger, [task.url for task in popped])
    for _ in range(100):  # turns: another host may come in between
        while more := queues.pop(name, 1):
            popped += more
            _finish(ledger, [task.url for task in more])
        for other in _held(queues, 60.0):
            assert other == name or not queues.pop(other)
    assert [task.depth for task in popped] == [4, 1, 11, 2, 10, 3, 0, 12], "the lowest level first, in order of pushes"
    assert [task.level for task in popped] == [0, 3, 1, 3, 3, 7, 255, 255], "a task forgot its level"


def _check_later(reopen: ReopenQueues, ledger: Ledger, queues: TaskQueues) -> tuple[Ledger, TaskQueues]:
    name = "later.test"
    assert (queues.next_due(), queues.wake(1e9)) == (float("inf"), 0)
    with ledger.group() as group:
        for number, due in enumerate([300.0, 100.0, 200.0, 200.0]):
            group.later(msgspec.structs.replace(_task(number, name, 9), attempt=2), due)
    assert len(queues) == 4
    assert queues.next_due() == 100.0
    ledger, queues = reopen()
    assert len(queues) == 4
    assert (queues.next_due(), queues.wake(99.0)) == (100.0, 0), "a task was queued before its time"
    assert name not in _held(queues, 99.0)
    assert (queues.wake(100.0), queues.next_due()) == (1, 200.0)
    with ledger.group() as group:
        group.later(_task(4, name, 9), 150.0)
    assert (queues.next_due(), queues.wake(250.0), queues.next_due()) == (150.0, 3, 300.0)
    ledger, queues = reopen()
    assert name in _held(queues, 250.0)
    popped = queues.pop(name, 9)
    assert [(task.depth, task.attempt, task.level) for task in popped] == [(1, 2, 9), (4, 1, 9), (2, 2, 9), (3, 2, 9)]
    assert (len(queues), queues.wake(300.0), len(queues)) == (1, 1, 1)
    _finish(ledger, [task.url for task in popped])
    return ledger, queues
