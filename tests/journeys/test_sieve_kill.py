"""A process that offers tasks to a sieve and pushes what comes out is killed again and again; every URL is queued once.

The ledger is the witness: a counter of each group says what was offered, its queues what came out.
"""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.seen.providers import LedgerSieve, SieveSheet

KILLS = 12

CHILD = """
import random, sys
from gossamer.values.task import Task
from gossamer.storage.ledger.ledger import RocksLedger, LedgerSheet
from gossamer.storage.seen.providers import LedgerSieve, SieveSheet

directory, seed = sys.argv[1:]
chance = random.Random(seed)
ledger, sieve = RocksLedger(LedgerSheet(directory=directory)), LedgerSieve(SieveSheet(directory=directory, capacity=50, recent=20))
ledger.open()
sieve.ledger = ledger
sieve.open()
print("open", flush=True)
while True:
    begun = ledger.counters().get("offered", 0)
    numbers = [*range(begun, begun + chance.randrange(30)), *(chance.randrange(begun + 1) for _ in range(20))]
    with ledger.group() as group:
        sieve.offer([Task(f"http://h{n % 7}.test/{n}", f"h{n % 7}.test") for n in numbers], group)
        group.count("offered", max([begun, *(n + 1 for n in numbers)]) - begun)
        group.push(sieve.drain(group, 40))
    if chance.random() < 0.1:
        sieve.flush()
"""


def check(directory: Path) -> int:
    """Reopen after a kill, let everything come out, and compare; returns how many URLs were offered."""
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    sieve = LedgerSieve(SieveSheet(directory=str(directory), capacity=50, recent=20))
    ledger.open()
    sieve.ledger = ledger
    sieve.open()
    while len(sieve):
        sieve.flush()
        asyncio.run(sieve.merged())
        with ledger.group() as group:
            group.push(sieve.drain(group))
    offered = ledger.counters().get("offered", 0)
    discovered = ledger.counters().get("discovered", 0)
    queued = [task.url for state in ledger.queues.admit(0.0, 100) for task in ledger.queues.pop(state, 10**6)]
    assert len(queued) == discovered == offered, "a URL was lost or doubled"
    assert set(queued) == {f"http://h{n % 7}.test/{n}" for n in range(offered)}
    assert sieve.sieve.seen == offered
    sieve.close()
    ledger.abandon()
    return offered


@pytest.mark.long
def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    chance = random.Random(4)
    offered = 0
    for kill in range(KILLS):
        command = [sys.executable, "-c", CHILD, str(tmp_path), str(kill)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            if kill % 5:
                assert child.stdout.readline() == b"open\n"
            try:
                # Every fifth kill meets the start; the others come while groups are written and logs are merged.
                child.wait(chance.uniform(0.05, 0.6))
                raise AssertionError("the child ended by itself")
            except subprocess.TimeoutExpired:
                child.kill()
        if kill % 3 == 2:
            offered = check(tmp_path)
    assert offered > 500
