"""Known pages that are handed to another agent are visited there in time, and by nobody else, whenever that is interrupted."""

import random
from pathlib import Path

import pytest

from gossamer.recrawl.ledger import RevisitLedger, adopt, disown, noted, release
from gossamer.recrawl.policies import FixedInterval, FixedIntervalSheet, RevisitSheet
from gossamer.recrawl.schedule import RevisitSchedule
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.moving import Arc, dropping
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.ledger.parcels import at_once, giving, head_of, taking
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.clock import FakeClock
from gossamer.values.hosts import domain_point
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response, Visit

pytestmark = pytest.mark.stores

EVERY = 1_000.0
NOW = FakeClock().steady() + 5 * EVERY
MOVED = "moves.test"
URLS = [f"http://{host}/{page}" for host in (MOVED, "www.moves.test", "stays.test") for page in range(4)]
ARCS: list[Arc] = [(domain_point(MOVED), domain_point(MOVED))]


class Agent:
    """An agent's ledger and schedule, on a clock that its test turns."""

    def __init__(self, directory: Path, name: str, *, is_planned: bool = True) -> None:
        self.name, self.is_planned = name, is_planned
        self.store = RocksLedger(LedgerSheet(directory=str(directory), agent=name))
        self.store.open()
        self.schedule = RevisitSchedule(RevisitSheet(min_interval=1.0, rate=1.0))
        self.schedule.policy = FixedInterval(FixedIntervalSheet(every=EVERY))
        self.schedule.ledger = self.schedule.store = self.store
        self.ledger = RevisitLedger()
        self.clock = FakeClock()
        self.ledger.behind, self.ledger.revisits, self.ledger.clock = self.store, self.schedule, self.clock
        if is_planned:
            self.schedule.open()
        self.queues = LedgerFrontier()
        self.queues.ledger = self.store

    @property
    def known(self) -> int:
        return self.store.counters().get("revisits:known", 0)

    @property
    def owed(self) -> int:
        counters = self.store.counters()
        return counters.get("revisits:woken", 0) - counters.get("revisits:ended", 0)

    def visit(self, urls: list[str]) -> None:
        into = self.ledger if self.is_planned else self.store
        with into.group() as group:
            group.push(Task(url, host_of(url)) for url in group.offer(urls))
        for task in self.pop():
            with into.group() as group:
                group.visited(Visit(task, Response(Outcome.OK, 200, body=b"x"), digest="D"), None)

    def pop(self) -> list[Task]:
        found: list[Task] = []
        for state in self.queues.admit(NOW):
            while tasks := self.queues.pop(state.host):
                found += tasks
        return found

    def due(self, now: float) -> list[str]:
        """What is visited again when everything has had its time."""
        while self.schedule.next_due() <= now:
            self.schedule.wake(now, len(self.queues))
        return sorted(task.url for task in self.pop())


def moves(url: str) -> bool:
    return host_of(url).endswith(MOVED)


class Interrupted(Exception):
    """A process that ends here."""


def move(directory: Path, chance: random.Random) -> None:
    """What the supervisor does, begun again where it was interrupted."""
    for step in ("give", "take", "forget"):
        while True:
            giver, taker = Agent(directory, "agent-00").store, Agent(directory, "agent-01").store
            try:
                if step == "give":
                    at_once(giving(giver, ARCS, directory / "parcel", notes=noted(giver)))
                elif step == "take":
                    at_once(taking(taker, directory / "parcel"))
                    if chance.random() < 0.4:
                        raise Interrupted
                    adopt(taker, head_of(directory / "parcel"), "agent-01")
                    if chance.random() < 0.4:
                        raise Interrupted
                else:
                    release(giver, "agent-00", ARCS)
                    if chance.random() < 0.4:
                        raise Interrupted
                    at_once(dropping(giver, ARCS))
                    if chance.random() < 0.4:
                        raise Interrupted
                break
            except Interrupted:
                pass
            finally:
                giver.abandon()
                taker.abandon()


def test_a_move_of_an_older_version_that_was_killed_is_undone(tmp_path: Path) -> None:
    share_secret(tmp_path / "state")
    old = Agent(tmp_path, "agent-00")
    old.visit(URLS)
    old.store.close()
    for name in ("copied", "parcel"):
        giver, taker = Agent(tmp_path, "agent-00").store, Agent(tmp_path, "agent-01").store
        at_once(giving(giver, ARCS, tmp_path / name, notes=noted(giver)))
        at_once(taking(taker, tmp_path / name))
        adopt(taker, head_of(tmp_path / name), "agent-01")
        if name == "copied":
            disown(taker, "agent-01", ARCS)
            at_once(dropping(taker, ARCS, spaces=False))
        giver.close()
        taker.close()
    new = Agent(tmp_path, "agent-01")
    assert (new.known, new.due(NOW)) == (8, sorted(filter(moves, URLS)))
    new.store.close()


@pytest.mark.parametrize("seed", range(6))
def test_known_pages_that_move_are_visited_by_their_new_agent_alone(tmp_path: Path, seed: int) -> None:
    share_secret(tmp_path / "state")
    old = Agent(tmp_path, "agent-00")
    old.visit(URLS)
    old.store.close()
    new = Agent(tmp_path, "agent-01")
    new.visit(["http://own.test/"])
    new.store.close()
    move(tmp_path, random.Random(seed))
    old, new = Agent(tmp_path, "agent-00"), Agent(tmp_path, "agent-01")
    assert (old.known, new.known) == (4, 9)
    assert (old.due(NOW), new.due(NOW)) == (
        sorted(url for url in URLS if not moves(url)),
        sorted(["http://own.test/", *filter(moves, URLS)]),
    )
    assert (old.owed, new.owed) == (4, 9)
    old.store.close()
    new.store.close()


def test_pages_that_wait_in_a_queue_for_another_visit_are_owed_where_they_wait(tmp_path: Path) -> None:
    share_secret(tmp_path / "state")
    old = Agent(tmp_path, "agent-00")
    old.visit(URLS)
    old.schedule.wake(NOW, 0)
    assert old.owed == len(URLS)
    old.store.close()
    move(tmp_path, random.Random(1))
    old, new = Agent(tmp_path, "agent-00"), Agent(tmp_path, "agent-01")
    assert (old.owed, new.owed, old.known, new.known) == (4, 8, 4, 8)
    assert sorted(task.url for task in new.pop()) == sorted(filter(moves, URLS))
    old.store.close()
    new.store.close()


def test_pages_that_were_visited_without_a_schedule_are_planned_by_the_agent_that_gets_them(tmp_path: Path) -> None:
    share_secret(tmp_path / "state")
    old = Agent(tmp_path, "agent-00", is_planned=False)
    old.visit(URLS)
    old.store.close()
    giver = Agent(tmp_path, "agent-00", is_planned=False).store
    taker = Agent(tmp_path, "agent-01", is_planned=False).store
    at_once(giving(giver, ARCS, tmp_path / "parcel", notes=noted(giver)))
    at_once(taking(taker, tmp_path / "parcel"))
    adopt(taker, head_of(tmp_path / "parcel"), "agent-01")
    release(giver, "agent-00", ARCS)
    at_once(dropping(giver, ARCS))
    giver.close()
    taker.close()
    new = Agent(tmp_path, "agent-01")
    assert new.due(NOW) == sorted(filter(moves, URLS))
    new.store.close()
    new = Agent(tmp_path, "agent-01")
    assert new.schedule.next_due() > 0, "it is known that all are planned"
    new.store.close()
