"""What a ledger does when it is in use, damaged, older, newer, or gone back."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gossamer.storage.ledger import schema
from gossamer.storage.ledger.layout import SCHEMA_KEY, LedgerKeys, due_key, time_key
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.reader import FAILING
from gossamer.storage.ledger.store import RocksStore, in_memory
from gossamer.storage.ledger.waiting import Owed
from gossamer.testing.storage import visit
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task

pytestmark = pytest.mark.stores

LIMITS = LedgerSheet(cache=1 << 20, buffers=1 << 20, log=1 << 20)


def opened(directory: Path, kind: type[RocksLedger] = RocksLedger, *, existing: bool = False) -> RocksLedger:
    ledger = kind(LedgerSheet(directory=str(directory), existing=existing))
    ledger.open()
    return ledger


def keep(ledger: RocksLedger, *urls: str) -> list[str]:
    with ledger.group() as group:
        new = group.offer(urls)
        group.push(Task(url, "a.test") for url in new)
    return new


def test_a_second_opening_is_refused_and_names_the_holder(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with pytest.raises(CrawlDirectoryError, match=rf"in use by process {os.getpid()}; stop that one first"):
        opened(tmp_path)
    ledger.close()
    opened(tmp_path).close()


def test_a_killed_holder_leaves_no_lock_behind(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom gossamer.storage.ledger.ledger import RocksLedger, LedgerSheet\n"
        f"RocksLedger(LedgerSheet(directory={str(tmp_path)!r})).open()\nprint('open', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"open\n"
        with pytest.raises(CrawlDirectoryError, match=f"process {child.pid}"):
            opened(tmp_path)
        child.kill()
    opened(tmp_path).close()


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    store = RocksStore(tmp_path / "state/agent-00/ledger", LIMITS)
    batch = store.batch()
    schema.stamp(batch, schema.VERSION + 1)
    store.write(batch)
    store.close()
    with pytest.raises(CrawlDirectoryError, match="use a newer Gossamer") as refused:
        opened(tmp_path)
    assert refused.value.exit_code == 5


def test_an_older_ledger_is_migrated_step_by_step(tmp_path: Path) -> None:
    store = RocksStore(tmp_path, LIMITS, create=True)
    batch = store.batch()
    schema.stamp(batch, 1)
    store.write(batch)

    def step(store: RocksStore) -> None:
        batch = store.batch()
        batch.put(
            "meta", b"steps", (store.get("meta", b"steps") or b"") + (store.get("meta", SCHEMA_KEY) or b"") + b" "
        )
        store.write(batch)

    assert schema.migrate(store, 3, {1: step, 2: step}) == 1
    assert store.get("meta", b"steps") == b"1>2 2>3 "
    assert schema.migrate(store, 3, {}) == 3
    store.close()


@pytest.mark.parametrize("damage", ["current", "manifest", "table"])
def test_a_damaged_ledger_is_refused_and_never_begun_anew(tmp_path: Path, damage: str) -> None:
    ledger = opened(tmp_path)
    keep(ledger, "http://a.test/1")
    ledger.close()
    folder = tmp_path / "state/agent-00/ledger"
    if damage == "current":
        (folder / "CURRENT").unlink()
    elif damage == "manifest":
        for path in folder.glob("MANIFEST-*"):
            path.write_bytes(b"\x00" * 100)
    else:
        for path in folder.glob("*.sst"):
            path.write_bytes(path.read_bytes()[:50])
    for _ in range(2):
        with pytest.raises(CrawlDirectoryError, match=r"damaged.*bring it back from a copy, or"):
            opened(tmp_path)


def test_who_wants_to_go_on_where_nothing_is_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(CrawlDirectoryError, match="there is no ledger"):
        opened(tmp_path, existing=True)
    assert not (tmp_path / "state").exists()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    with pytest.raises(CrawlDirectoryError, match=r"cannot write to .*state"):
        opened(tmp_path)


def test_going_back_to_a_checkpoint_brings_back_its_state_and_keeps_later_files(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    keep(ledger, "http://a.test/1")
    ledger.checkpoint("first")
    keep(ledger, "http://a.test/2")
    ledger.checkpoint("second")
    assert ledger.checkpoints() == ["first", "second"]
    with pytest.raises(CrawlDirectoryError, match="in use"):
        ledger.restore("first")
    ledger.close()
    ledger.restore("first", {"warc/later.warc.gz": 500})
    ledger.open()
    assert ledger.committed_ends() == {"warc/later.warc.gz": 500}
    assert keep(ledger, "http://a.test/1", "http://a.test/2") == ["http://a.test/2"]
    ledger.close()
    ledger.restore("second")
    ledger.open()
    assert keep(ledger, "http://a.test/2") == []
    ledger.close()


def test_a_private_ledger_is_closed_to_others_and_so_is_what_goes_back_to_a_checkpoint_of_it(tmp_path: Path) -> None:
    def closed(path: Path) -> bool:
        return path.stat().st_mode & 0o077 == 0

    ledger = opened(tmp_path)
    assert not closed(ledger.places.ledger), "others may look at the ledger of a crawl"
    ledger.close()
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path), private=True))
    ledger.open()
    ledger.checkpoint("first")
    ledger.close()
    assert closed(ledger.places.ledger) and closed(ledger.places.checkpoints)
    ledger.restore("first")
    assert closed(ledger.places.ledger)


def test_a_new_ledger_is_opened_once_and_works_on_under_its_name(tmp_path: Path) -> None:
    class Counted(RocksStore):
        openings = 0

        def _open(self, *, create: bool = False) -> None:
            Counted.openings += 1
            super()._open(create=create)

    class Ledger(RocksLedger):
        store_type = Counted

    ledger = opened(tmp_path, Ledger)
    assert Counted.openings == 1
    keep(ledger, "http://a.test/")
    ledger._store.flush()
    with RocksLedger(LedgerSheet(directory=str(tmp_path))).looking() as other:
        assert other.seen.unseen(["http://a.test/"]) == []
    ledger.checkpoint("first")
    ledger.close()
    assert sorted(path.name for path in ledger.places.state.iterdir()) == ["checkpoints", "ledger", "lock"]
    ledger.open()
    assert keep(ledger, "http://a.test/") == []
    ledger.close()


def test_a_ledger_at_work_has_little_to_write_when_its_checkpoint_is_made_and_commits_meanwhile(tmp_path: Path) -> None:
    class Watched(RocksStore):
        flushed, waiting = 0, -1

        def flush(self) -> None:
            assert threading.current_thread() is not threading.main_thread()
            if not self.flushed:
                keep(ledger, "http://a.test/while")
            super().flush()
            self.flushed += 1

        def snapshot_to(self, path: Path) -> None:
            assert threading.current_thread() is threading.main_thread()
            self.waiting = sum(map(in_memory, self._families.values()))
            super().snapshot_to(path)

    class Ledger(RocksLedger):
        store_type = Watched

    ledger = opened(tmp_path, Ledger)
    keep(ledger, "http://a.test/before")
    made = asyncio.run(ledger.checkpoint_at_work("first"))
    store = ledger._store
    assert isinstance(store, Watched)
    assert (made.name, store.flushed, store.waiting) == ("first", 2, 0)
    with pytest.raises(UsageError, match="already"):
        asyncio.run(ledger.checkpoint_at_work("first"))
    assert store.flushed == 2, "a name that is taken costs nothing"
    ledger.close()
    ledger.restore("first")
    ledger.open()
    assert keep(ledger, "http://a.test/before", "http://a.test/while") == []
    ledger.close()


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "x" * 101])
def test_a_checkpoint_has_a_plain_name(tmp_path: Path, name: str) -> None:
    ledger = opened(tmp_path)
    with pytest.raises(UsageError, match="cannot be called"):
        ledger.checkpoint(name)
    ledger.checkpoint("taken")
    with pytest.raises(UsageError, match="already"):
        ledger.checkpoint("taken")
    ledger.close()
    with pytest.raises(UsageError, match="known: taken"):
        ledger.restore("absent")


@pytest.mark.parametrize(
    "stage", ["making", "working with what was made", "made, ledger there", "made, ledger gone", "replaced"]
)
def test_a_replacement_that_a_kill_interrupted_is_finished_at_the_next_opening(tmp_path: Path, stage: str) -> None:
    ledger = opened(tmp_path)
    keep(ledger, "http://a.test/new")
    ledger.close()
    places = ledger.places
    if stage == "making":
        places.making.mkdir()
    elif stage == "working with what was made":
        places.making.symlink_to(places.ledger.name)
    elif stage == "made, ledger there":
        shutil.copytree(places.ledger, places.made)
    elif stage == "made, ledger gone":
        places.ledger.rename(places.made)
    else:
        shutil.copytree(places.ledger, places.replaced)
    ledger.open()
    assert keep(ledger, "http://a.test/new") == []
    assert not places.making.exists() and not places.made.exists() and not places.replaced.exists()
    ledger.close()


def test_rows_and_robots_of_a_host_are_found_by_name(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    one = visit("http://a.test/1", b"abc")
    with ledger.group() as group:
        group.push([one.task])
        group.robots("http://a.test", "a.test", b"rules")
        group.host(HostState("a.test", delay=5.0))
    ledger.queues.admit(0.0, 1)
    ledger.queues.pop("a.test", 1)
    with ledger.group() as group:
        group.visited(one, None)
        group.host(HostState("a.test", delay=9.0))
    row = ledger.document(one.url)
    assert row is not None and (row.url, row.outcome, row.bytes) == (one.url, "ok", 3)
    assert [row.url for row in ledger.documents()] == [one.url]
    assert ledger.document("http://a.test/2") is None
    assert ledger.robots("http://a.test", "a.test") == b"rules"
    assert ledger.host_states(["a.test"])[0].delay == 9.0
    ledger.close()


def test_one_group_is_open_at_a_time(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with ledger.group(), pytest.raises(RuntimeError, match="one group at a time"), ledger.group():
        pass
    ledger.close()


def test_keys_of_a_domain_and_of_a_host_lie_together() -> None:
    keys = LedgerKeys(1)
    same = [keys.url(f"https://{host}.example.co.uk/{n}") for host in ("a", "b") for n in range(3)]
    assert len({key[:4] for key in same}) == 1
    assert len({key[:10] for key in same}) == 2
    assert len(set(same)) == 6
    assert keys.url("http://a.example.co.uk:8080/0")[:10] == same[0][:10], "a host goes by name"
    assert keys.url("foo://a/1")[:10] != keys.url("foo://b/1")[:10]
    assert keys.host("a.example.co.uk")[:4] == LedgerKeys(2).host("a.example.co.uk")[:4], "agents agree on domains"
    assert keys.host("a.example.co.uk") != LedgerKeys(2).host("a.example.co.uk")


def test_any_time_makes_a_key() -> None:
    times = [float("-inf"), -1.0, 0.0, 1.0, 1e9, float("inf")]
    made = [time_key(b"w", time, b"h") for time in times]
    assert made == sorted(made)
    assert all(time_key(b"w", time, b"\xff" * 20) < due_key(b"w", time) for time in times)


@pytest.mark.parametrize("due", [1.0001, 1.1, 1763690000.1234])
def test_nothing_is_due_before_its_time(due: float) -> None:
    assert time_key(b"w", due, b"") >= due_key(b"w", due - 1e-6)
    assert time_key(b"w", due, b"") < due_key(b"w", due + 0.001)


def test_looking_changes_nothing_and_needs_no_lock(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    keep(ledger, "http://a.test/1", "http://a.test/2")
    ledger.abandon()
    looked = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    for _ in range(2):
        with looked.looking():
            assert (len(looked.queues), looked.is_seen("http://a.test/1"), looked.is_clean) == (2, True, False)
    ledger = opened(tmp_path)
    assert not ledger.is_clean
    with looked.looking():
        assert len(looked.queues) == 2
    keep(ledger, "http://a.test/3")
    with looked.looking():
        assert len(looked.queues) == 3
    ledger.close()


def test_there_is_nothing_to_look_at_where_no_ledger_is(tmp_path: Path) -> None:
    with (
        pytest.raises(CrawlDirectoryError, match="no ledger"),
        RocksLedger(LedgerSheet(directory=str(tmp_path))).looking(),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_waiting_task_is_found_until_it_is_finished(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    urls = [f"http://a.test/{number}" for number in range(300)]
    keep(ledger, *urls)
    found = ledger.waiting(urls[299], 10)
    assert found is not None and (found.task.url, found.due) == (urls[299], 0.0)
    assert ledger.waiting(urls[299], 2) is None
    assert ledger.waiting("http://a.test/", 10) is None
    ledger.queues.admit(0.0, 1)
    first, second = ledger.queues.pop("a.test", 2)
    with ledger.group() as group:
        group.visited(visit(first.url), None)
    assert ledger.waiting(first.url, 10) is None
    assert ledger.waiting(second.url, 10) is not None
    with ledger.group() as group:
        group.later(Task("http://b.test/", "b.test", attempt=2), 1e9)
    later = ledger.waiting("http://b.test/", 10)
    assert later is not None and (later.task.attempt, later.due) == (2, 1e9)
    ledger.close()


def test_a_document_that_is_new_is_looked_for_on_the_disk_once(tmp_path: Path) -> None:
    asked: list[str] = []

    class Watched(RocksStore):
        def get(self, family: str, key: bytes) -> bytes | None:
            asked.append(family)
            return super().get(family, key)

    class WatchedLedger(RocksLedger):
        store_type = Watched

    ledger = opened(tmp_path, WatchedLedger)
    asked.clear()
    assert ledger.contents.claim("D" * 32, "http://a.test/1") == ""
    with ledger.group() as group:
        assert group.first("D" * 32, "http://a.test/1") == ""
    assert asked.count("contents") == 1
    ledger.close()


def test_a_claim_is_no_ownership_until_its_page_is_kept(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.contents.claim("D" * 32, "http://a.test/claims")
    with ledger.group() as group:
        assert group.first("D" * 32, "http://a.test/keeps") == "", (
            "a claim is a hint: who is kept first owns the document"
        )
    with ledger.group() as group:
        assert group.first("D" * 32, "http://a.test/claims") == "http://a.test/keeps"
    ledger.close()
    again = opened(tmp_path)
    assert again.contents.claim("D" * 32, "http://a.test/later") == "http://a.test/keeps"
    again.close()


def test_what_waits_for_its_time_is_counted_with_hosts_and_the_first_instant(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    assert ledger.queues.delayed.owed(10) == Owed()
    with ledger.group() as group:
        for number, host in enumerate(("c.test", "a.test", "b.test", "a.test")):
            group.later(Task(f"http://{host}/{number}", host), 100.0 + number)
    assert ledger.queues.delayed.owed(10) == Owed(urls=4, hosts=3, until=100.0, names=("c.test", "a.test", "b.test"))
    assert ledger.queues.delayed.owed(2) == Owed(urls=2, hosts=2, until=100.0, names=("c.test", "a.test"))
    ledger.close()


def test_the_hosts_with_the_most_errors_are_remembered_and_their_number_is_bounded(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with ledger.group() as group:
        for number in range(1_000):
            group.host(HostState(f"h{number}.test", counters={"errors": number, "visits": 2_000}))
    found = ledger.failing_hosts()
    assert max(found, key=lambda host: found[host]) == "h999.test"
    assert len(found) <= 2 * FAILING
    assert "h0.test" not in found
    ledger.close()


def test_sizes_grow_with_what_is_kept_before_it_reaches_a_table(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    before = ledger.sizes()
    keep(ledger, *(f"http://a.test/{number}" for number in range(2_000)))
    after = ledger.sizes()
    assert after["seen"] > before["seen"]
    assert after["frontier"] > before["frontier"]
    ledger.close()


@pytest.mark.parametrize(("memory", "part"), [(None, 1.0), (1 << 30, 1.0), (300_000_000, 0.296), (200_000_000, 0.197)])
def test_caches_of_a_ledger_take_an_eighth_of_the_memory_at_most(memory: int | None, part: float) -> None:
    usual = LedgerSheet()
    bounded = RocksLedger(LedgerSheet(memory=memory)).sheet
    for name in ("cache", "buffers", "recent", "held", "buffered"):
        assert getattr(bounded, name) / getattr(usual, name) == pytest.approx(part, abs=0.01)
