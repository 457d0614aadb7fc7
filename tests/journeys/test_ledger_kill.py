"""A process that pushes, pops and commits is killed again and again; after each kill the ledger agrees with its witness.

The child writes what it was *told* to a file of its own before and after each step: what was acknowledged must be kept,
what was never begun must not be there, and of a step that the kill interrupted all or nothing.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier

KILLS = 12
LONG_KILLS = 36

#: Bounds so tight that hosts move all the time, and buffers so small that tables are written within the test.
SHEET = {
    "held": 5,
    "turn": 4,
    "buffered": 8,
    "refill": 3,
    "recent": 50,
    "cache": 1 << 20,
    "buffers": 1 << 20,
    "log": 1 << 20,
}

CHILD = """
import json, random, sys, time
from gossamer.values.task import Task
from gossamer.storage.ledger.ledger import RocksLedger, LedgerSheet
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.storage import visit

directory, seed, sheet = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
chance = random.Random(seed)
ledger = RocksLedger(LedgerSheet(directory=directory, **sheet))
ledger.open()
queues = LedgerFrontier()
queues.ledger = ledger
witness = open(directory + "/witness", "a", buffering=1)
number = int(seed) * 1_000_000
held, flying = [], []
print("open", flush=True)
while True:
    new = [f"http://h{chance.randrange(40)}.test/{number + n}" for n in range(chance.randrange(30))]
    number += len(new)
    ended = [flying.pop(chance.randrange(len(flying))) for _ in range(chance.randrange(len(flying) + 1))]
    # One line, one write: what the next group will do.
    witness.write(" ".join(["begin", *("+" + url for url in new), *("-" + task.url for task in ended)]) + "\\n")
    with ledger.group() as group:
        assert group.offer(new + new[:3]) == new
        tasks = [Task(url, url.split("/")[2], level=chance.randrange(3)) for url in new]
        for task in tasks[::9]:
            group.later(task, time.time() + chance.uniform(-0.1, 0.2))
        group.push(task for number, task in enumerate(tasks) if number % 9)
        for task in ended:
            assert group.visited(visit(task.url), None), task
    witness.write("done\\n")
    queues.wake(time.time())
    held += [state.host for state in queues.admit(time.time(), 3)]
    while held and len(flying) < 16:
        tasks = queues.pop(held[0], 2)
        flying += tasks
        held.append(held.pop(0)) if tasks else held.pop(0)
    if chance.random() < 0.1 and held:
        queues.rest(held.pop(), time.time() + chance.random())
    if chance.random() < 0.02:
        ledger.checkpoint(f"at-{number}")
"""


class Witness:
    """What the child's file says: URLs that are surely kept, and what the last group may have done."""

    def __init__(self, path: Path) -> None:
        self.pushed: set[str] = set()
        self.ended: set[str] = set()
        begun: tuple[set[str], set[str]] | None = None
        for line in path.read_text().splitlines():
            if line == "done" and begun is not None:
                self._keep(begun)
                begun = None
            elif line.startswith("kept ") and begun is not None:
                if line == "kept yes":
                    self._keep(begun)
                begun = None
            elif line.startswith("begin"):
                words = line.split()[1:]
                begun = {w[1:] for w in words if w[0] == "+"}, {w[1:] for w in words if w[0] == "-"}
        self.last = begun

    def _keep(self, group: tuple[set[str], set[str]]) -> None:
        self.pushed |= group[0]
        self.ended |= group[1]


def check(directory: Path) -> tuple[int, int]:
    """Reopen after a kill and compare; returns how many URLs were pushed and ended."""
    path = directory / "witness"
    text = path.read_text()
    if text and not text.endswith("\n"):  # a torn line was never followed by a group
        path.write_text(text[: text.rfind("\n") + 1])
    witness = Witness(path)
    ledger = RocksLedger(LedgerSheet(directory=str(directory), **SHEET))  # type: ignore[arg-type]
    ledger.open()
    counters = ledger.counters()
    if witness.last is not None:
        with path.open("a") as file:
            pushed, ended = witness.last
            # Counters decide, and everything else must then agree with them: all of the group or nothing.
            sums = counters.get("discovered", 0), counters.get("visits", 0)
            kept = sums == (len(witness.pushed) + len(pushed), len(witness.ended) + len(ended))
            file.write(f"kept {'yes' if kept else 'no'}\n")
            if kept:
                witness.pushed |= pushed
                witness.ended |= ended
            else:
                assert ledger.seen.unseen(sorted(pushed)) == sorted(pushed)
    assert (counters.get("discovered", 0), counters.get("visits", 0)) == (len(witness.pushed), len(witness.ended))
    assert ledger.seen.unseen(sorted(witness.pushed)) == [], "a URL was forgotten"
    assert {row.url for row in ledger.documents()} == witness.ended
    assert len(ledger.queues) == len(witness.pushed) - len(witness.ended)
    assert drained(ledger) == Counter(witness.pushed - witness.ended), "a task was lost or doubled"
    ledger.abandon()
    return len(witness.pushed), len(witness.ended)


def drained(ledger: RocksLedger) -> Counter[str]:
    """All tasks that come out. Their flights never end, and nothing is committed but where hosts are."""
    queues = LedgerFrontier()
    queues.ledger = ledger
    found: Counter[str] = Counter()
    # Hosts of which something is in flight stay held: no more of them than there are hosts.
    ledger.queues.limits = LedgerSheet(held=1_000, turn=10**9, buffered=8, refill=3)
    while queues.wake(time.time() + 10):
        pass
    while states := queues.admit(time.time() + 10):
        for state in states:
            while tasks := queues.pop(state.host, 50):
                found.update(task.url for task in tasks)
    return found


#: Where a child kills itself, and at which passing: every second kill.
CRASHES = ["before-commit:40", "after-commit:60", "checkpoint:1", "recovery:1", "recovery:3", "after-commit:1"]


def killed(directory: Path, kill: int, crash: str, chance: random.Random) -> None:
    """Run a child until it is killed: at a crash point, or at some instant."""
    command = [sys.executable, "-c", CHILD, str(directory), str(kill + 1), json.dumps(SHEET)]
    environment = {**os.environ, "GOSSAMER_CRASH": crash}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        if crash:
            watch = threading.Timer(60, child.terminate)
            watch.start()
            code = child.wait()
            watch.cancel()
            assert code == -signal.SIGKILL, f"{crash} was never passed"
            return
        assert child.stdout is not None
        if kill % 5:
            assert child.stdout.readline() == b"open\n"
        try:
            # Every fifth kill meets the start; the others come while groups are written.
            child.wait(chance.uniform(0.05, 0.6))
            raise AssertionError("the child ended by itself")
        except subprocess.TimeoutExpired:
            child.kill()


@pytest.mark.long
@pytest.mark.parametrize("kills", [KILLS, LONG_KILLS])
def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path, kills: int) -> None:
    chance = random.Random(4)
    for kill in range(kills):
        killed(tmp_path, kill, CRASHES[kill // 2 % len(CRASHES)] if kill % 2 else "", chance)
        if (tmp_path / "witness").exists():
            pushed, ended = check(tmp_path)
    assert pushed > ended > 1_000
