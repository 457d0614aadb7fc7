"""Exchange files in any order, any number of times, with a kill wherever one falls: the ledger comes to the same."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mailboxes import ByLetter

from gossamer.agents.merging import take_in
from gossamer.agents.url_exchange import UrlIntake
from gossamer.frontier.order import BreadthFirst, WeightedPrioritizer
from gossamer.storage.commit.queueing import CommitSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier, LedgerSeen
from gossamer.storage.mailbox.exchange_files import IN, FileOutbox, FileOutboxSheet
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, UrlFileWriter, new_header, new_key, write_key
from gossamer.storage.mailbox.staging import DividedLedger
from gossamer.values.task import Task

KEY = new_key(["agent-00", "agent-01", "agent-02"])

#: A file system in memory where there is one: each example opens a store several times, which waits for the disk.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

TASKS = [
    Task(f"http://a{host}.test/{page}", f"a{host}.test", 1 + page % 3, "http://b.test/")
    for host in range(3)
    for page in range(4)
]

FILES = st.lists(st.lists(st.sampled_from(TASKS), max_size=8), min_size=1, max_size=4)


class Killed(Exception):
    """The process is gone."""


class Receiver:
    """agent-00 with its ledger; it keeps what it merges as a crawl does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "state").mkdir(parents=True)
        (folder / IN).mkdir(parents=True)
        write_key(folder / EXCHANGE_KEY, KEY)

    async def merge(self, *, dies_at: int = -1) -> None:
        """Merge what lies there; die when so many groups are kept."""
        ledger, divided, seen = RocksLedger(LedgerSheet(directory=str(self.folder))), DividedLedger(), LedgerSeen()
        ledger.open()
        outbox = FileOutbox(FileOutboxSheet(agent="agent-00", directory=str(self.folder)))
        outbox.ledger, outbox.designation = ledger, ByLetter()
        divided.behind, divided.outbox, seen.ledger = ledger, outbox, ledger
        await outbox.start()
        intake = UrlIntake(CommitSheet(), divided, seen, BreadthFirst(), WeightedPrioritizer(), (), ())
        store, kept = ledger._store.write, 0

        def write(batch: object) -> None:
            nonlocal kept
            if kept == dies_at:
                raise Killed
            kept += 1
            store(batch)  # type: ignore[arg-type]

        ledger._store.write = write  # type: ignore[method-assign, assignment]
        try:
            await take_in(self.folder, outbox, intake, print)
        except Killed:
            pass
        finally:
            ledger.abandon()

    def state(self) -> tuple[object, ...]:
        """What a crawl would go by: counters, and each host's queue."""
        ledger = RocksLedger(LedgerSheet(directory=str(self.folder)))
        ledger.open()
        queues = LedgerFrontier()
        queues.ledger = ledger
        found = sorted(queued(queues))
        counters = {name: ledger.counters().get(name, 0) for name in ("discovered", "hosts")}
        ledger.abandon()
        return found, counters, len(found)


def queued(queues: LedgerFrontier) -> list[str]:
    """The URLs of all queues, each as often as it is there."""
    found: list[str] = []
    for state in queues.admit(0.0):
        while popped := queues.pop(state.host, 3):
            found += [task.url for task in popped]
    return found


def written(files: Sequence[Sequence[Task]], folder: Path) -> list[Path]:
    """Each file of another agent's, in turn."""
    made = []
    for number, tasks in enumerate(files):
        writer, header = UrlFileWriter(), new_header(KEY, f"agent-0{1 + number % 2}", "agent-00", 1.0, ())
        writer.add(tasks)
        path = folder / f"{header.sender}-{header.id}.urls"
        writer.write(path, KEY, header)
        made.append(path)
    return made


@settings(max_examples=12)
@given(FILES, st.data())
def test_files_in_any_order_and_as_often_as_one_likes_come_to_the_same_ledger(
    files: list[list[Task]], data: st.DataObject
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="gossamer-", dir=MEMORY))
    try:
        (folder / "sent").mkdir()
        paths = written(files, folder / "sent")
        at_once, one_by_one = Receiver(folder / "at-once"), Receiver(folder / "one-by-one")
        for path in paths:
            shutil.copy(path, at_once.folder / IN)
        asyncio.run(at_once.merge())
        order = data.draw(st.permutations(paths)) + data.draw(st.lists(st.sampled_from(paths), max_size=3))
        for path in order:
            shutil.copy(path, one_by_one.folder / IN)
            asyncio.run(one_by_one.merge(dies_at=data.draw(st.integers(0, 3))))
        asyncio.run(one_by_one.merge())
        assert one_by_one.state() == at_once.state()
        assert at_once.state()[0] == sorted({task.url for tasks in files for task in tasks})
    finally:
        shutil.rmtree(folder)
