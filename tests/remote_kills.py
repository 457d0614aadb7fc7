"""Kills either end of a remote connector under load, and counts the items: none may be lost or doubled.

A driver runs two processes of this module: a producer that counts from 1 on, through a journal in a file, and a
consumer that keeps sum, count and its position in one SQLite transaction. It kills one or both at random moments with
SIGKILL and starts them again. Then it tells the producer to end, waits for the end, and compares::

    python -m tests.remote_kills 500        # number of kills

Used by the tests with few kills and by `gossamer dev` with many.
"""

import argparse
import asyncio
import contextlib
import itertools
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.engine import processes
from gossamer.engine.component import Consumer, Producer
from gossamer.engine.ends import In, Out
from gossamer.engine.remote.links import Exchange
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import NoSettings
from gossamer.engine.transports import Opening, open_connector

_SCHEMA = """
CREATE TABLE IF NOT EXISTS result
    (count INTEGER NOT NULL, sum INTEGER NOT NULL, disorder INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS position (stream TEXT PRIMARY KEY, number INTEGER NOT NULL);
"""

#: Seconds until a kill, at most. Every other kill comes so long after items have arrived, the rest meet a start.
_LONGEST_WAIT = 0.5

#: Seconds between looks at whether items arrive.
_LOOK = 0.02

#: Seconds for what is left after the last kill.
_PATIENCE = 120

#: A file that tells the producer to end; it looks after so many numbers.
_ENOUGH = "enough"
_LOOKS_AFTER = 1000


class Count(msgspec.Struct, frozen=True):
    """An item: a number, and as many bytes of ballast as real items have."""

    number: int
    ballast: str


class KeptTally(msgspec.Struct, frozen=True):
    """The state that the consumer has kept."""

    count: int
    sum: int
    disorder: int
    """Items that did not follow their predecessor."""
    last: int


class KillReport(msgspec.Struct, frozen=True):
    """The result of a run."""

    sent: int
    """Items that the producer's journal has numbered, and whose acknowledgement it has seen."""
    tally: KeptTally
    producer_kills: int
    consumer_kills: int

    @property
    def exact(self) -> bool:
        """Whether items were counted, and none was lost, doubled or out of order."""
        return self.sent > 0 and self.tally == KeptTally(self.sent, self.sent * (self.sent + 1) // 2, 0, self.sent)


class Counter(Producer[NoSettings]):
    """Continues to count where the journal ends: `passed` of a sending side covers all its lives."""

    outbox: Out[Count]
    enough: Path

    def produce(self) -> Iterator[Count]:
        for number in itertools.count(self.outbox.connector.statistics().passed + 1):
            if number % _LOOKS_AFTER == 0 and self.enough.exists():
                return
            yield Count(number, f"ballast-{number % 97:040d}")


class TallyKeeper(Consumer[NoSettings]):
    """Keeps results and position together, in its own transaction."""

    inbox: In[Count]
    batch = 500
    path = ""

    async def start(self) -> None:
        """Continue from the kept state."""
        self.database = sqlite3.connect(self.path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=OFF")
        self.database.executescript(_SCHEMA)
        if not self.database.execute("SELECT 1 FROM result").fetchone():
            self.database.execute("INSERT INTO result VALUES (0, 0, 0, 0)")
        self.inbox.resume(dict(self.database.execute("SELECT stream, number FROM position").fetchall()))

    async def stop(self) -> None:
        self.database.close()

    def consume_many(self, items: list[Count]) -> None:
        """Add up the items and keep the position, both or neither."""
        execute = self.database.execute
        execute("BEGIN")
        (last,) = execute("SELECT last FROM result").fetchone()
        disorder = 0
        for item in items:
            disorder += item.number != last + 1
            last = item.number
        execute(
            "UPDATE result SET count = count + ?, sum = sum + ?, disorder = disorder + ?, last = ?",
            (len(items), sum(item.number for item in items), disorder, last),
        )
        for position in self.inbox.position().items():
            execute("INSERT OR REPLACE INTO position VALUES (?, ?)", position)
        execute("COMMIT")


async def _end(side: str, folder: Path) -> None:
    """One of the two processes: a component and its side of the connector."""
    opening = Opening(
        name="counts",
        item_type=Count,
        address=f"unix:{folder}/socket",
        side="send" if side == "producer" else "receive",
        options={"journal": str(folder / "journal"), "batch": 100, "linger": _PATIENCE} if side == "producer" else {},
        exchange=Exchange(),
    )
    connector = open_connector(opening)
    await connector.start()
    component: Counter | TallyKeeper
    if side == "producer":
        component = Counter()
        component.enough = folder / _ENOUGH
        component.bind({}, {"outbox": Out("outbox", connector)})
    else:
        component = TallyKeeper()
        component.path = str(folder / "results")
        component.bind({"inbox": In("inbox", connector)}, {})
    await component.start()
    await Runner(component).run()
    await component.stop()
    await connector.stop()


def _row(database: Path, query: str) -> tuple[int, ...]:
    with contextlib.closing(sqlite3.connect(database)) as opened:
        row: tuple[int, ...] = opened.execute(query).fetchone()
        return row


def _await_arrivals(folder: Path) -> None:
    """Return when the consumer has kept more than now."""
    before, deadline = None, time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            (count,) = _row(folder / "results", "SELECT count FROM result")
        except (sqlite3.OperationalError, TypeError):
            count = 0  # the consumer has not made its tables yet
        if before is not None and count > before:
            return
        before = count if before is None else before
        time.sleep(_LOOK)
    raise TimeoutError("no items arrive any more")


def kill_both_ends(folder: Path, kills: int, seed: int = 1) -> KillReport:
    """Run producer and consumer, killing one or both `kills` times.

    Args:
        folder: an empty folder with a short path.
        kills: number of kills.
        seed: of the random moments and victims.

    Raises:
        subprocess.TimeoutExpired: a process hangs.
        TimeoutError: no items arrive any more.
        RuntimeError: a process failed by itself.
    """
    chance = random.Random(seed)
    running: dict[str, subprocess.Popen[bytes]] = {}
    killed = {"producer": 0, "consumer": 0}

    def start(side: str) -> None:
        command = processes.command("tests.remote_kills", "--end", side, str(folder))
        running[side] = subprocess.Popen(command, env=processes.environment())

    try:
        start("producer")
        start("consumer")
        for number in range(kills):
            if number % 2 == 0:
                _await_arrivals(folder)
            time.sleep(chance.uniform(0.0, _LONGEST_WAIT))
            for side in chance.choice((["producer"], ["consumer"], ["producer", "consumer"])):
                running[side].kill()
                running[side].wait()
                killed[side] += 1
                start(side)
        (folder / _ENOUGH).touch()
        for side in ("producer", "consumer"):
            if running[side].wait(_PATIENCE):
                raise RuntimeError(f"the {side} failed")
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    (sent,) = _row(folder / "journal", "SELECT acknowledged FROM stream")
    tally = KeptTally(*_row(folder / "results", "SELECT count, sum, disorder, last FROM result"))
    return KillReport(sent, tally, killed["producer"], killed["consumer"])


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--end", nargs=2, metavar=("SIDE", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.end:
        side, folder = arguments.end
        asyncio.run(_end(side, Path(folder)))
        return
    with tempfile.TemporaryDirectory(prefix="gossamer-") as name:
        outcome = kill_both_ends(Path(name), arguments.kills, arguments.seed)
    sys.stdout.write(f"{outcome}\n")
    sys.exit(0 if outcome.exact else 1)


if __name__ == "__main__":
    main()
