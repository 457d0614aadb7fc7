"""The sieve beyond its contract: what it does while it merges, when it fails, and after a kill at any step of a merge."""

import asyncio
import contextlib
import shutil
import threading
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.seen.providers import LedgerSieve, SieveQueues, SieveQueuesSheet, SieveSeen, SieveSheet
from gossamer.storage.seen.runs import FILE
from gossamer.storage.seen.sieve import OVERFLOW, Sieve, _Merge
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.task import Task

URLS = [f"http://h{n % 5}.test/{n}" for n in range(500)]


class Failed(Exception):
    """What a stage raises inside a group."""


class Held(Sieve[str]):
    """Its merges wait until they are let go, and can be made to fail."""

    gate: threading.Event
    broken = False

    def _merge(self, *merge: object) -> _Merge:
        self.gate.wait(HUNG_AFTER)
        if self.broken:
            raise OSError(28, "No space left on device")
        return super()._merge(*merge)  # type: ignore[arg-type]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    sieve = Held(tmp_path, str, str, SieveSheet(capacity=10, recent=5), lambda file: None)
    sieve.gate = threading.Event()
    sieve.open()
    yield sieve
    sieve.gate.set()
    sieve.close()


def drained(sieve: Sieve[str]) -> list[str]:
    found = []
    while items := sieve.take(7)[0]:
        found += items
    return found


def settled(seen: SieveSeen) -> list[str]:
    asyncio.run(seen.settle())
    found = []
    while urls := seen.drain(7):
        found += urls
    return found


def opened(directory: Path, **settings: int) -> SieveSeen:
    seen = SieveSeen(SieveSheet(directory=str(directory), **{"capacity": 10, "recent": 5, **settings}))
    seen.open()
    return seen


def test_offers_go_on_while_a_merge_runs(held: Held) -> None:
    held.offer(URLS[:12])
    held.offer(URLS[12:14])  # the merge has begun
    assert held.merging is not None
    held.offer(URLS[14:30])
    assert drained(held) == [] and held.waiting == 30
    held.gate.set()
    held.merging.result()
    held.gate.clear()  # the next merge begins while the first one's finds are taken, and would bring more
    assert drained(held) == URLS[:12]


def test_a_merge_that_lasts_too_long_is_waited_for_so_that_memory_stays_bounded(held: Held) -> None:
    held.offer(URLS[:10])
    for start in range(10, 10 + 10 * OVERFLOW, 10):
        held.offer(URLS[start : start + 10])
    letting_go = threading.Timer(0.05, held.gate.set)
    letting_go.start()
    held.offer(URLS[100:110])  # returns only because the merge was let go
    assert held.gate.is_set()
    assert held.waiting <= (OVERFLOW + 2) * 10
    letting_go.join()


def test_a_merge_that_fails_stops_the_offers_by_name_and_loses_nothing(held: Held, tmp_path: Path) -> None:
    held.broken = True
    held.gate.set()
    held.offer(URLS[:12])
    held.flush()
    for _ in range(2):
        assert held.merging is not None
        held.merging.exception()
        with pytest.raises(CrawlDirectoryError, match="cannot be merged: No space left on device"):
            held.offer(["http://more.test/"])
    shutil.copytree(tmp_path, tmp_path / "copy")
    again = Sieve(tmp_path / "copy", str, str, SieveSheet(capacity=10, recent=5), lambda file: None)
    again.open()
    again.flush()
    while again.waiting:
        merging = again.merging
        if merging is not None:
            merging.result()
        again.flush()
    assert drained(again) == URLS[:12]
    again.close()


def test_a_merge_that_found_no_room_is_made_when_there_is_some(held: Held) -> None:
    held.broken = True
    held.gate.set()
    held.offer(URLS[:12])
    held.flush()
    assert held.merging is not None
    held.merging.exception()
    held.broken = False
    with pytest.raises(CrawlDirectoryError):
        held.flush()
    held.merging.result()
    assert drained(held) == URLS[:12]


def test_of_several_offers_of_one_url_the_first_comes_out(tmp_path: Path) -> None:
    tasks = [Task("http://a.test/", "a.test", depth) for depth in (3, 1, 2)] + [Task("http://b.test/", "b.test")]
    sieve = Sieve(tmp_path, Task, lambda task: task.url, SieveSheet(capacity=10, recent=5), lambda file: None)
    sieve.open()
    sieve.offer(tasks)
    sieve.flush()
    assert sieve.merging is not None
    sieve.merging.result()
    assert sieve.take(10)[0] == [tasks[0], tasks[3]]
    sieve.close()


@pytest.mark.parametrize("step", ["log", "found", "run", "manifest"])
def test_a_kill_at_any_step_of_a_merge_loses_nothing_and_doubles_nothing(tmp_path: Path, step: str) -> None:
    """The files as they stand at each step, put together from before and after the merge."""
    before, after, killed = tmp_path / "before", tmp_path / "after", tmp_path / "killed"
    seen = opened(before, capacity=1_000)
    seen.offer(URLS[:40])
    first = settled(seen)
    seen.offer(URLS[20:80])
    seen.close()
    shutil.copytree(before, after)
    seen = opened(after, capacity=1_000)
    asyncio.run(seen.settle())
    seen.close()
    shutil.copytree(before, killed)
    home = "state/agent-00/sieve"
    made = {path.name for path in (after / home).iterdir()} - {path.name for path in (before / home).iterdir()}
    assert {name.split("-")[0] for name in made} == {"found", "run", "offers"}
    for kind in ["found", "run", "manifest"][: ["log", "found", "run", "manifest"].index(step)]:
        for name in [FILE] if kind == "manifest" else [name for name in made if name.startswith(kind)]:
            data = (after / home / name).read_bytes()
            torn = kind == step and kind != "manifest"
            (killed / home / name).write_bytes(data[: len(data) // 2] if torn else data)
    seen = opened(killed, capacity=1_000)
    assert first + settled(seen) == URLS[:80]
    seen.offer(URLS[:90])
    assert settled(seen) == URLS[80:90]
    left = {path.name for path in seen.home.iterdir()}
    seen.close()
    assert not [name for name in left if name.startswith("found-00000002")], "what was drained is removed"


def test_what_a_kill_tore_of_the_log_is_cut_off(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    seen.offer(URLS[:5])
    seen.close()
    [log] = seen.home.glob("offers-*")
    log.write_bytes(log.read_bytes() + b'"http://torn.test/')
    seen = opened(tmp_path)
    assert settled(seen) == URLS[:5]
    seen.close()


def test_what_was_drained_last_comes_again_after_a_kill_and_nothing_else(tmp_path: Path) -> None:
    seen = opened(tmp_path, capacity=1_000)
    seen.offer(URLS[:30])
    asyncio.run(seen.settle())
    assert seen.drain(10) == URLS[:10]
    assert seen.drain(10) == URLS[10:20]
    shutil.copytree(tmp_path, tmp_path / "killed")
    again = opened(tmp_path / "killed", capacity=1_000)
    assert settled(again) == URLS[10:30]
    again.close()
    seen.close()
    again = opened(tmp_path, capacity=1_000)
    assert settled(again) == URLS[20:30]
    again.close()


def test_files_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    seen.close()
    path = seen.home / FILE
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "version": 2}))
    with pytest.raises(CrawlDirectoryError, match="version 2"):
        opened(tmp_path)


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_lost_manifest_is_damage_not_a_new_sieve(tmp_path: Path, harm: str) -> None:
    seen = opened(tmp_path)
    seen.offer(URLS)
    settled(seen)
    seen.close()
    path = seen.home / FILE
    path.unlink() if harm == "missing" else path.write_bytes(b"{")
    with pytest.raises(CrawlDirectoryError, match=FILE):
        opened(tmp_path)


def test_a_url_offered_in_a_group_that_failed_is_kept_with_the_next_that_offers_it(tmp_path: Path) -> None:
    ledger, sieve = RocksLedger(LedgerSheet(directory=str(tmp_path))), LedgerSieve(SieveSheet(directory=str(tmp_path)))
    ledger.open()
    sieve.ledger = ledger
    sieve.open()
    task = Task("http://a.test/", "a.test")
    with contextlib.suppress(Failed), ledger.group() as group:
        sieve.offer([task], group)
        raise Failed
    sieve.flush()
    assert sieve.sieve.merging is None, "what is not committed is not merged"
    with ledger.group() as group:
        sieve.offer([task], group)
    sieve.close()
    ledger.abandon()
    ledger.open()
    sieve.open()
    sieve.flush()
    asyncio.run(sieve.merged())
    with ledger.group() as group:
        assert sieve.drain(group) == [task]
    assert not len(sieve)
    sieve.close()
    ledger.close()


def merged(sieve: LedgerSieve, ledger: RocksLedger, url: str) -> None:
    """One offer, merged and drained."""
    with ledger.group() as group:
        sieve.offer([Task(url, "a.test")], group)
    sieve.flush()
    asyncio.run(sieve.merged())
    with ledger.group() as group:
        assert [task.url for task in sieve.drain(group)] == [url]


@pytest.mark.parametrize("sync", [False, True])
def test_finds_stay_until_a_merge_has_noted_that_they_were_drained_for_good(tmp_path: Path, sync: bool) -> None:
    sheet = SieveSheet(directory=str(tmp_path), sync=sync)
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path), durability="power" if sync else "kill"))
    sieve = LedgerSieve(sheet)
    ledger.open()
    sieve.ledger = ledger
    sieve.open()
    for number in range(4):
        merged(sieve, ledger, f"http://a.test/{number}")
        assert (sieve.home / f"found-{number + 1:08}.jsonl").exists()
        asyncio.run(sieve.settle())
        asyncio.run(ledger.settle())
    # Without waiting for the disk the last one may go with the next merge; with it, a settling later.
    assert len(list(sieve.home.glob("found-*"))) == (2 if sync else 1)
    sieve.close()
    ledger.close()


def test_a_ledger_that_went_back_to_a_checkpoint_is_told_from_one_that_was_killed(tmp_path: Path) -> None:
    ledger, sieve = RocksLedger(LedgerSheet(directory=str(tmp_path))), LedgerSieve(SieveSheet(directory=str(tmp_path)))
    ledger.open()
    sieve.ledger = ledger
    sieve.open()
    merged(sieve, ledger, "http://a.test/1")
    ledger.checkpoint("early")
    merged(sieve, ledger, "http://a.test/2")
    sieve.close()
    ledger.abandon()
    ledger.open()
    sieve.open()
    sieve.close()
    ledger.close()
    ledger.restore("early")
    ledger.open()
    with pytest.raises(CrawlDirectoryError, match="newer than the ledger"):
        sieve.open()
    ledger.close()


@pytest.mark.parametrize("harm", ["missing", "short"])
def test_a_log_that_lost_what_was_committed_is_damage(tmp_path: Path, harm: str) -> None:
    ledger, sieve = RocksLedger(LedgerSheet(directory=str(tmp_path))), LedgerSieve(SieveSheet(directory=str(tmp_path)))
    ledger.open()
    sieve.ledger = ledger
    sieve.open()
    with ledger.group() as group:
        sieve.offer([Task("http://a.test/", "a.test")], group)
    sieve.close()
    [log] = sieve.home.glob("offers-*")
    log.unlink() if harm == "missing" else log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(CrawlDirectoryError, match="were committed: it is damaged"):
        sieve.open()
    ledger.close()


class Counted:
    """Queues, or a sieve, of which a number is known, and whether it was asked to hurry."""

    ready = False
    has_flushed = False

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def next_due(self) -> float:
        return inf

    def flush(self) -> None:
        self.has_flushed = True


@pytest.mark.parametrize(("queued", "hurries"), [(4, True), (5, False), (6, False)])
def test_what_waits_in_the_sieve_is_merged_when_few_tasks_are_queued(queued: int, hurries: bool) -> None:
    queues: Any = SieveQueues(SieveQueuesSheet(low=5))
    queues.behind, queues.sieve = Counted(queued), Counted(1)
    assert (queues.next_due() < inf) is hurries
    assert queues.sieve.has_flushed is hurries
