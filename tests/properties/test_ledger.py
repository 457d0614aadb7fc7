"""Ledger and task queues against a model in memory, through pushes, pops, commits, failures, kills and reopenings."""

import itertools
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task

HOSTS = [f"h{n}.test" for n in range(5)]
URLS = [f"http://{host}/{n}" for host in HOSTS for n in range(12)]
#: A file system in memory where there is one: each example opens a store many times, which waits for the disk.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

#: Few levels, so that lanes have neighbours; the first, the last, and one next to the first.
LEVELS = [0, 1, 255]

BATCH = st.lists(st.sampled_from(URLS), max_size=12)

#: URL, attempt, level.
Queued = tuple[str, int, int]


class Failed(Exception):
    """A group that is not to be kept."""


def host_of(url: str) -> str:
    return url.split("/")[2]


def task_of(one: Queued) -> Task:
    url, attempt, level = one
    return Task(url, host_of(url), 2, "http://s.test/", "a href", attempt, level)


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="gossamer-", dir=MEMORY)
        # Bounds so tight that every host leaves the window, and every buffer is dropped, again and again.
        self.sheet = LedgerSheet(
            directory=self.folder, held=2, turn=3, buffered=4, refill=2, recent=5, cache=1 << 20, buffers=1 << 20
        )
        self.now = 1_000.0
        self.order = 0
        self.seen: set[str] = set()
        self.unfinished: dict[str, list[Queued]] = {host: [] for host in HOSTS}
        self.flying: list[Queued] = []
        self.held: set[str] = set()
        self.resting: dict[str, float] = {}
        self.later: list[tuple[float, int, Queued]] = []
        self.states: dict[str, HostState] = {}
        self.counters: Counter[str] = Counter()
        self.ends: dict[str, int] = {}
        self.open()

    def open(self) -> None:
        self.ledger = RocksLedger(self.sheet)
        self.ledger.open()
        self.queues = LedgerFrontier()
        self.queues.ledger = self.ledger
        self.flying.clear()
        self.held.clear()

    @rule(
        urls=BATCH,
        ends=st.sets(st.integers(0, 9)),
        again=st.booleans(),
        fails=st.booleans(),
        end=st.integers(0, 99),
        levels=st.lists(st.sampled_from(LEVELS), min_size=1, max_size=5),
        delays=st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=5),
    )
    def group(
        self,
        urls: list[str],
        ends: set[int],
        again: bool,
        fails: bool,
        end: int,
        levels: list[int],
        delays: list[int | None],
    ) -> None:
        ended = [self.flying[index] for index in ends if index < len(self.flying)]
        state = HostState(HOSTS[end % 5], b"note", {"fetched": end}, delay=float(end))
        level, delay = itertools.cycle(levels), itertools.cycle(delays)
        pushed: list[Queued] = []
        later: list[tuple[float, Queued]] = []
        try:
            with self.ledger.group() as group:
                new = group.offer(urls)
                assert new == list(dict.fromkeys(url for url in urls if url not in self.seen))
                assert group.offer(new) == []
                begun = [(url, 1, next(level)) for url in new]
                for url, attempt, _ in ended:
                    assert group.done(url)
                    if again:
                        begun.append((url, attempt + 1, next(level)))
                assert not group.done("http://never.test/")
                for one in begun:
                    seconds = next(delay)
                    if seconds is None:
                        pushed.append(one)
                    else:
                        later.append((self.now + seconds, one))
                        group.later(task_of(one), self.now + seconds)
                group.push(map(task_of, pushed))
                group.host(state)
                group.written("warc/a.warc.gz", end)
                group.count("own", 2)
                if fails:
                    raise Failed
        except Failed:
            return
        self.seen.update(new)
        for one in ended:
            self.flying.remove(one)
            self.unfinished[host_of(one[0])].remove(one)
        for one in pushed:
            self.unfinished[host_of(one[0])].append(one)
        for due, one in later:
            self.later.append((due, self.order, one))
            self.order += 1
        self.states[state.host] = state
        self.counters.update({"own": 2, "discovered": len(new)})
        self.ends["warc/a.warc.gz"] = max(end, self.ends.get("warc/a.warc.gz", 0))

    @rule(seconds=st.integers(0, 4))
    def wake(self, seconds: int) -> None:
        self.now += seconds
        due = sorted(entry for entry in self.later if entry[0] <= self.now)
        assert self.queues.wake(self.now) == len(due)
        self.later = [entry for entry in self.later if entry[0] > self.now]
        for _, _, one in due:
            self.unfinished[host_of(one[0])].append(one)

    @rule(seconds=st.integers(0, 4), most=st.integers(1, 3))
    def admit(self, seconds: int, most: int) -> None:
        self.now += seconds
        for state in self.queues.admit(self.now, most):
            assert state.host not in self.held, "a host that is held came again"
            assert self.resting.pop(state.host, 0.0) <= self.now, "a host came while it rests"
            self.held.add(state.host)
            assert state == self.states.get(state.host, HostState(state.host))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), most=st.integers(1, 4))
    def pop(self, data: st.DataObject, most: int) -> None:
        host = data.draw(st.sampled_from(sorted(self.held)))
        self.popped(host, most)

    def popped(self, host: str, most: int) -> list[Queued]:
        got = [(task.url, task.attempt, task.level) for task in self.queues.pop(host, most)]
        waiting = [one for one in self.unfinished[host] if one not in self.flying]
        waiting.sort(key=lambda one: one[2])  # it keeps the order of pushes
        assert got == waiting[: len(got)], "tasks of a host come by level, and in the order of their pushes"
        if got:
            assert len(got) == min(most, len(waiting))
        else:
            self.held.discard(host)
        self.flying += got
        return got

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.flying))
        self.queues.put_back(task_of(one))
        self.flying.remove(one)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), seconds=st.integers(0, 6))
    def rest(self, data: st.DataObject, seconds: int) -> None:
        host = data.draw(st.sampled_from(sorted(self.held)))
        self.queues.rest(host, self.now + seconds)
        self.held.discard(host)
        self.resting[host] = self.now + seconds

    @rule(killed=st.booleans())
    def reopen(self, killed: bool) -> None:
        if killed:
            self.ledger.abandon()
            # Whoever lay down since the last commit is found where it was before: held.
            self.resting.clear()
        else:
            self.ledger.close()
            in_flight = {host_of(url) for url, _, _ in self.flying}
            self.resting = {host: until for host, until in self.resting.items() if host not in in_flight}
        self.open()

    @invariant()
    def nothing_is_lost_and_nothing_doubled(self) -> None:
        assert len(self.queues) == sum(map(len, self.unfinished.values())) - len(self.flying) + len(self.later)
        assert self.queues.next_due() == min((due for due, _, _ in self.later), default=float("inf"))
        in_flight = {host_of(url) for url, _, _ in self.flying}
        asleep = [until for host, until in self.resting.items() if host not in in_flight]
        assert self.queues.next_rest() <= min(asleep, default=float("inf"))
        assert self.ledger.counters() == {name: n for name, n in self.counters.items() if n}
        assert self.ledger.committed_ends() == self.ends
        assert self.ledger.seen.unseen(URLS) == [url for url in URLS if url not in self.seen]
        assert self.ledger.queues.buffered <= 4
        assert self.ledger.queues.held <= 2

    def teardown(self) -> None:
        try:
            self.drain()
        finally:
            self.ledger.close()
            shutil.rmtree(self.folder)

    def drain(self) -> None:
        """Everything that is queued comes out, within so many rounds that a host which is stuck shows."""
        self.now += 1_000
        self.wake(0)
        for _ in range(400):
            if not any(self.unfinished.values()):
                break
            self.admit(0, 3)
            for host in sorted(self.held):
                self.popped(host, 4)
            with self.ledger.group() as group:
                for url, _, _ in self.flying:
                    assert group.done(url)
            for one in self.flying:
                self.unfinished[host_of(one[0])].remove(one)
            self.flying.clear()
        assert not any(self.unfinished.values()), "tasks that never came out"


TestLedgerAgainstModel = LedgerMachine.TestCase
# Each case opens a store on the disk, so that the suite tries a quarter of what a property usually gets.
TestLedgerAgainstModel.settings = settings(
    max_examples=settings.default.max_examples // 4, stateful_step_count=30, deadline=None
)
