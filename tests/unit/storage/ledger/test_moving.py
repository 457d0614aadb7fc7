"""Domains that are handed to another ledger are there whole, and gone where they were, whenever it is killed."""

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gossamer.storage.contract import Space
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.moving import Arc, dropping
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.ledger.parcels import Moved, at_once, giving, taking
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.testing.storage import visit
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import domain_point, registered_domain
from gossamer.values.ledger_rows import HostState
from gossamer.values.request_identity import Requested
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of

pytestmark = pytest.mark.stores

HOSTS = ["www.moves.test", "moves.test", "also.moved.test", "stays.test", "www.stays.test", "other.test"]
MOVING = {"moves.test", "moved.test"}
KEPT = Space("kept", 1, value_bytes=100, host_bytes=10_000, common_bytes=10_000)


def moves(url_or_host: str) -> bool:
    host = host_of(url_or_host) if "://" in url_or_host else url_or_host.removeprefix("*.")
    return registered_domain(host) in MOVING


ARCS: list[Arc] = sorted((domain_point(domain), domain_point(domain)) for domain in MOVING)


def opened(directory: Path, agent: str = "agent-00") -> RocksLedger:
    ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=agent, depth=9))
    ledger.open()
    ledger.spaces.open(KEPT)
    return ledger


class Filled:
    """A ledger that random work was done with, and what is in it."""

    def __init__(self, directory: Path, seed: int, *, agent: str = "agent-00", hosts: list[str] = HOSTS) -> None:
        self.random = random.Random(seed)
        self.done: set[str] = set()
        self.waiting: dict[str, tuple[int, int]] = {}
        self.aside: set[str] = set()
        self.marked: set[str] = set()
        """URLs that are asked for in another way than by a plain GET: as URLs, nobody has seen them."""
        self.hosts = hosts
        ledger = opened(directory, agent)
        for part in range(3):
            self._discover(ledger, part)
            self._fetch(ledger)
        ledger.queues.rest(hosts[0], 2_000.0)
        ledger.flush_moves()
        ledger.close()

    def _discover(self, ledger: RocksLedger, part: int) -> None:
        for host in self.hosts:
            numbers = range(part * 50, part * 50 + self.random.randint(1, 50))
            tasks = [self._task(f"http://{host}/{number}") for number in numbers]
            later = [task for task in tasks if self.random.random() < 0.1]
            aside = [task for task in tasks if task not in later and self.random.random() < 0.1]
            with ledger.group() as group:
                assert len(group.meet(tasks).new) == len(tasks)
                group.push(task for task in tasks if task not in later and task not in aside)
                for task in later:
                    group.later(task, 5.0 + part)
                group.set_aside(Family(f"*.{registered_domain(host)}", "/*"), aside)
                group.host(HostState(host, b"note"))
                group.robots(f"http://{host}", host, b"robots")
                group.learnt(host, "traps", host.encode())
                if group.tally("host", host, len(tasks)) == len(tasks):
                    group.count("hosts")
                assert group.put(KEPT, host, b"key", host.encode())
                assert group.put(KEPT, None, host.encode(), b"for all")
            self.waiting.update((task.url, (task.level, task.depth)) for task in tasks if task not in aside)
            self.aside.update(task.url for task in aside)

    def _task(self, url: str) -> Task:
        request = Requested("post", method="POST", body=b"x") if self.random.random() < 0.05 else None
        level, depth = self.random.choice((0, 3)), self.random.choice((1, 2))
        if request is not None:
            self.marked.add(url)
        return Task(url, host_of(url), depth, "http://s.test/", "a href", 1, level, request=request)

    def _fetch(self, ledger: RocksLedger) -> None:
        ledger.queues.admit(0.0, 100)
        for host in self.random.sample(self.hosts, min(3, len(self.hosts))):
            tasks = ledger.queues.pop(host, self.random.randint(1, 70))
            ended = [task for task in tasks if self.random.random() < 0.7]
            with ledger.group() as group:
                for task in ended:
                    one = msgspec.structs.replace(visit(task.url), task=task)
                    assert group.visited(one, None)
            for task in ended:
                self.done.add(task.url)
                del self.waiting[task.url]
            for task in tasks:
                if task not in ended:
                    ledger.queues.put_back(task)


def taken_from(directory: Path, *agents: str) -> Moved:
    """Let the agent `new` take what these agents have of the domains that move."""
    told = Moved()
    for agent in agents:
        parcel = written(directory, agent)
        taker = opened(directory, "new")
        try:
            one = at_once(taking(taker, parcel))
        finally:
            taker.close()
        told = Moved(told.hosts + one.hosts, told.tasks + one.tasks, told.set_aside + one.set_aside)
    return told


def written(directory: Path, agent: str) -> Path:
    """What an agent has of the domains that move, in a parcel."""
    giver, parcel = opened(directory, agent), directory / f"parcels/{agent}-new"
    at_once(giving(giver, ARCS, parcel, common=["kept"]))
    giver.close()
    return parcel


def check(ledger: RocksLedger, has: Callable[[str], bool], *parts: Filled) -> None:
    """The ledger has what these have of some hosts, and nothing else."""
    done = {url for one in parts for url in one.done if has(url)}
    waiting = {url: rest for one in parts for url, rest in one.waiting.items() if has(url)}
    aside = {url for one in parts for url in one.aside if has(url)}
    hosts = {host for one in parts for host in one.hosts}
    assert {row.url for row in ledger.documents()} == done
    assert {task.url for row in ledger.aside() for task in ledger.aside_tasks(row.family)} == aside
    assert ledger.counters().get("set_aside", 0) == len(aside)
    assert ledger.counters().get("hosts", 0) == sum(map(has, hosts))
    assert {state.host for state in ledger.hosts()} == {host for host in hosts if has(host)}
    with ledger.group() as group:
        for host in hosts:
            expected = host.encode() if has(host) else None
            assert group.get(KEPT, host, b"key") == expected
            assert ledger.learnt([host], "traps") == [expected]
            assert ledger.robots(f"http://{host}", host) == (b"robots" if has(host) else None)
            assert bool(group.tally("host", host)) is has(host)
    assert dict(ledger.spaces.scan(KEPT, None)) == {host.encode(): b"for all" for host in hosts}
    assert [one.wrong for one in ledger.spaces.figures()] == [0]
    assert len(ledger.queues) == len(waiting)
    handed = {task.url: (task.level, task.depth) for task in drained(ledger)}
    assert handed == waiting


def drained(ledger: RocksLedger) -> list[Task]:
    """Every task that is handed out, each ended."""
    found: list[Task] = []
    while True:
        with ledger.group() as group:
            group.woken(ledger.queues.delayed.due(1e6))
        hosts = ledger.queues.admit(1e6, 100)
        if not hosts:
            return found
        for host in hosts:
            while tasks := ledger.queues.pop(host, 100):
                found += tasks
                with ledger.group() as group:
                    for task in tasks:
                        assert group.done(task.identity)


@pytest.mark.parametrize("seed", range(3))
def test_domains_that_move_are_whole_in_the_new_ledger_and_gone_in_the_old_one(tmp_path: Path, seed: int) -> None:
    share_secret(tmp_path / "state")
    before = Filled(tmp_path, seed)
    taken_from(tmp_path, "agent-00")
    old = opened(tmp_path)
    at_once(dropping(old, ARCS))
    at_once(dropping(old, ARCS))  # killed behind its last step, it comes again
    old.close()
    old, new = opened(tmp_path), opened(tmp_path, "new")
    assert old.is_clean
    assert new.is_clean
    everything = (before.done | before.waiting.keys() | before.aside) - before.marked
    assert all(old.is_seen(url) for url in everything), "it has sent them, and need not send them again"
    assert all(new.is_seen(url) is moves(url) for url in everything)
    assert new.counters()["learnt:traps"], (
        "whoever keeps nothing in memory knows by this that there is something to look for"
    )
    check(new, moves, before)
    check(old, lambda url: not moves(url), before)
    old.close()
    new.close()


PARTS = {"agent-00": ["www.moves.test", "stays.test"], "agent-01": ["also.moved.test", "other.test"]}


def test_a_new_ledger_takes_from_several_that_share_a_secret(tmp_path: Path) -> None:
    share_secret(tmp_path / "state")
    share_secret(tmp_path / "state")
    assert (tmp_path / "state/secret").stat().st_mode & 0o777 == 0o600
    parts = [Filled(tmp_path, 1, agent=agent, hosts=hosts) for agent, hosts in PARTS.items()]
    told = taken_from(tmp_path, *PARTS)
    assert told.tasks == sum(moves(url) for one in parts for url in one.waiting)
    assert told.set_aside == sum(moves(url) for one in parts for url in one.aside)
    new = opened(tmp_path, "new")
    check(new, moves, *parts)
    new.close()


def test_ledgers_with_different_secrets_make_none(tmp_path: Path) -> None:
    for agent, hosts in PARTS.items():
        Filled(tmp_path, 1, agent=agent, hosts=hosts)
    with pytest.raises(CrawlDirectoryError, match="keys of its own"):
        taken_from(tmp_path, *PARTS)
    new = opened(tmp_path, "new")
    assert (len(new.queues), list(new.documents())) == (0, [])
    new.close()


class Killed(Exception):
    """The process dies."""


class DyingStore(RocksStore):
    """Writes so many batches, and dies at the next one."""

    left = 10**9

    def write(self, batch: Batch) -> None:
        if not DyingStore.left:
            raise Killed
        DyingStore.left -= 1
        super().write(batch)


class DyingLedger(RocksLedger):
    """Has such a store."""

    store_type = DyingStore


@pytest.mark.parametrize("writes", range(9))
def test_a_drop_that_is_killed_leaves_a_whole_ledger_and_can_be_repeated(tmp_path: Path, writes: int) -> None:
    before = Filled(tmp_path, 5)
    dying = DyingLedger(LedgerSheet(directory=str(tmp_path), depth=9))
    dying.open()
    DyingStore.left = writes
    with pytest.raises(Killed):
        at_once(dropping(dying, ARCS))
    DyingStore.left = 10**9
    dying.abandon()
    old = opened(tmp_path)
    at_once(dropping(old, ARCS))
    old.close()
    old = opened(tmp_path)
    check(old, lambda url: not moves(url), before)
    old.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_ledger_that_is_at_work_already_takes_domains_and_keeps_its_own(tmp_path: Path, seed: int) -> None:
    share_secret(tmp_path / "state")
    gives = Filled(tmp_path, seed)
    takes = Filled(tmp_path, seed + 10, agent="new", hosts=["own.test", "www.own.test"])
    new = opened(tmp_path, "new")
    with new.group() as group:
        assert group.put(KEPT, "moves.test", b"noted", b"by the taker")
    new.close()
    taken_from(tmp_path, "agent-00")
    new = opened(tmp_path, "new")
    with new.group() as group:
        assert group.get(KEPT, "moves.test", b"noted") == b"by the taker"
    ours = {"own.test", "www.own.test"}
    check(new, lambda url: moves(url) or (host_of(url) if "://" in url else url) in ours, gives, takes)
    new.close()


@pytest.mark.parametrize("writes", range(0, 14, 2))
def test_a_ledger_that_is_killed_while_it_takes_domains_goes_on_where_it_was(tmp_path: Path, writes: int) -> None:
    share_secret(tmp_path / "state")
    gives = Filled(tmp_path, 3)
    takes = Filled(tmp_path, 13, agent="new", hosts=["own.test"])
    dying = DyingLedger(LedgerSheet(directory=str(tmp_path), agent="new", depth=9))
    dying.open()
    parcel = written(tmp_path, "agent-00")
    DyingStore.left = writes
    with pytest.raises(Killed):
        at_once(taking(dying, parcel))
    DyingStore.left = 10**9
    dying.abandon()
    new = opened(tmp_path, "new")
    at_once(taking(new, parcel))
    at_once(taking(new, parcel))  # killed before it says so, it is asked again
    new.close()
    new = opened(tmp_path, "new")
    check(
        new,
        lambda url: moves(url) or host_of(url) == "own.test" if "://" in url else moves(url) or url == "own.test",
        gives,
        takes,
    )
    new.close()
