"""What a crawl ships, how often it asks its store, and what it does when that fails or belongs to another one."""

import asyncio
import contextlib
import os
import shutil
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.waiting import awaited

from gossamer.analysis.verifying import verify
from gossamer.backup.contract import Stat, Store, StoreFailed, StoreRefused
from gossamer.backup.elsewhere import CrawlInStore, bring_back, gone_elsewhere, is_store, read_here, standing_of_store
from gossamer.backup.head import PART_BYTES, AgentInStore, owned
from gossamer.backup.one_agent import bring_agent_back, claimed
from gossamer.backup.opening import FolderStore, open_store, probe
from gossamer.backup.publisher import Publisher, PublisherSheet
from gossamer.crawls.control.at_rest import out_of_date, standing_at_rest
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.engine.sheet import build
from gossamer.storage.archive.reading import opened
from gossamer.storage.archive.warc import WarcArchive
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.mailbox.retaining import StorePoint, point_path
from gossamer.storage.members import write_members
from gossamer.storage.recovery import find_losses, restore
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.request_identity import requested
from gossamer.values.task import Task

WARC = "warc/example-agent-00-20261128000000-00000.warc.gz"

#: Bytes after which a checkpoint is due.
LIMIT = 1 << 20


class Counted(FolderStore):
    """Counts its requests, and fails when it is told to."""

    asked = 0
    fails = refuses = False
    loses = b""
    """It forgets these bytes once, as soon as it has them."""

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        self.asked += 1
        if self.fails:
            raise StoreFailed("the store is out of reach")
        if self.refuses:
            raise StoreRefused("the store: AccessDenied")
        tag = super().put(key, data, expect)
        if data == self.loses:
            self.loses = b""
            self.delete([key])
        return tag

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        self.asked += 1
        return super().get(key, start, length)

    def read(self, key: str) -> tuple[bytes, Stat]:
        self.asked += 1
        return super().read(key)

    def stat(self, key: str) -> Stat:
        self.asked += 1
        return super().stat(key)

    def delete(self, keys: Sequence[str]) -> None:
        self.asked += 1
        super().delete(keys)


class Growing(WarcArchive):
    """An archive that writes the one file."""

    def open_files(self) -> list[str]:
        return [WARC]


class Crawled:
    """A crawl directory with a ledger, a growing archive file and a publisher."""

    def __init__(
        self,
        folder: Path,
        name: str = "crawl",
        *,
        opened: Callable[..., Store] | None = None,
        **settings: float | str,
    ) -> None:
        self.folder, self.store = folder / name, Counted(folder / "store", is_new=opened is None)
        (self.folder / "warc").mkdir(parents=True, exist_ok=True)
        (self.folder / "crawl.toml").write_text("# a wiring\n")
        self.ledger = RocksLedger(LedgerSheet(directory=str(self.folder)))
        self.said: list[str] = []
        self.ended = 0
        self.publisher = Publisher(
            build(
                PublisherSheet,
                {"directory": str(self.folder), "url": str(folder / "store"), "bytes": LIMIT}
                | {"every": 3600, "lease": 3600, **settings},
            )
        )
        self.publisher.ledger = self.ledger
        self.publisher.opened = opened or (lambda url, is_new: self.store)
        self.publisher.report = self.said.append
        self.publisher.lapsed = self._end

    def _end(self) -> None:
        self.ended += 1

    def commit(self, data: bytes, name: str = WARC) -> None:
        path = self.folder / name
        with path.open("ab") as file:
            file.write(data)
        with self.ledger.group() as group:
            group.count("fetched")
            group.written(name, path.stat().st_size)

    async def publish(self) -> dict[str, int]:
        """What one publication counted."""
        before = dict(self.publisher.metrics.counters)
        asked = self.store.asked
        await self.publisher.publish()
        after = self.publisher.metrics.counters
        return {
            "requests": self.store.asked - asked,
            **{name: after[name] - before.get(name, 0) for name in ("objects", "bytes", "checkpoints")},
        }


@contextlib.asynccontextmanager
async def crawled(
    folder: Path, name: str = "crawl", opened: Callable[..., Store] | None = None, **settings: float | str
) -> AsyncIterator[Crawled]:
    one = Crawled(folder, name, opened=opened, **settings)
    one.ledger.open()
    try:
        await one.publisher.start()
        try:
            yield one
        finally:
            await one.publisher.stop()
    finally:
        one.ledger.close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def options(**given: object) -> CrawlOptions:
    return all_options()(**given)  # type: ignore[arg-type]


def back(folder: Path, name: str, **given: object) -> Path:
    bring_back(str(folder / "store"), str(folder / name), options(**given))
    return folder / name


def test_an_owner_says_what_the_store_has_of_it_and_what_no_checkpoint_covers(tmp_path: Path) -> None:
    async def run() -> None:
        async with crawled(tmp_path) as one:
            first = one.publisher.stored_agent()
            assert (first.published, first.owner) == (None, 1)
            one.commit(b"twelve bytes")
            assert one.publisher.stored_agent().uncovered == 12
            await one.publish()
            now = one.publisher.stored_agent()
            assert now.uncovered == 0
            assert now.published is not None
            assert now.is_alive
        async with crawled(tmp_path) as one:
            assert one.publisher.stored_agent().owner == 2

    asyncio.run(run())


def test_only_what_came_since_is_shipped_and_nothing_costs_no_request(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a" * 100_000)
            first = await one.publish()
            assert first["bytes"] > 100_000
            assert 0 < one.publisher.metrics.counters["ledger_bytes"] < first["bytes"] - 100_000
            nothing = await one.publish()
            assert nothing["objects"] == 0
            assert nothing["requests"] == 0
            one.commit(b"b" * 10)
            with (one.folder / WARC).open("ab") as file:
                file.write(b"torn, and never committed")
            later = await one.publish()
            assert 0 < later["bytes"] < 100_000, "of a file that has grown, only what came since"
        found = AgentInStore(one.store, "agent-00")
        found.read()
        assert sum(part.size for part in found.checkpoint().files[WARC]) == 100_010

    asyncio.run(body())


def test_parts_on_their_way_take_no_memory_that_stays_with_the_process(tmp_path: Path) -> None:
    """The allocator keeps what was freed, for each thread: 8 MB for each that has shipped a part."""

    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1" * PART_BYTES * 2)
            tracemalloc.start()
            try:
                assert (await one.publish())["bytes"] > 2 * PART_BYTES
                assert tracemalloc.get_traced_memory()[1] < PART_BYTES // 4
            finally:
                tracemalloc.stop()
        assert (back(tmp_path, "new") / WARC).stat().st_size == 2 * PART_BYTES

    asyncio.run(body())


def test_a_checkpoint_names_only_what_is_in_the_store_and_what_none_names_is_removed(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            for number in range(4):
                one.commit(b"%d" % number)
                (one.folder / "state" / "samples").write_text(f"replaced {number} times")
                await one.publish()
                place = AgentInStore(one.store, "agent-00")
                place.read()
                there = set(one.store.list("agents/"))
                assert place.head is not None
                assert there == {place.head.checkpoint, "agents/agent-00/head.json", *place.checkpoint().keys}

    asyncio.run(body())


def test_what_owners_left_that_were_killed_is_removed_by_the_next_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        one.store.put("agents/agent-00/data/000001/shipped-and-never-named", b"x")
        async with crawled(tmp_path) as one:
            await one.publish()
            place = AgentInStore(one.store, "agent-00")
            head = place.read()
            assert head is not None
            named = {head.checkpoint, *place.checkpoint().keys}
            assert {*one.store.list("agents/")} == {"agents/agent-00/head.json", *named}

    asyncio.run(body())


def test_a_file_that_was_damaged_is_shipped_anew(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"0123456789")
        (tmp_path / "crawl" / WARC).write_bytes(b"01")
        async with crawled(tmp_path) as one:
            one.ledger.give_up_ends({WARC: 2})
            one.commit(b"and what came after the damage")
            await one.publish()
        assert (back(tmp_path, "new") / WARC).read_bytes() == b"01and what came after the damage"

    asyncio.run(body())


def test_a_deletion_at_rest_reaches_the_store_with_the_next_checkpoint(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a secret")
        with (one.folder / WARC).open("r+b") as file:
            file.write(b"********")
        (one.folder / "state" / "deleted.jsonl").write_text("{}\n")
        async with crawled(tmp_path) as one:
            await one.publish()
        data = [one.store.get(key) for key in one.store.list("agents/")]
        assert not any(b"a secret" in found for found in data)
        assert any(b"********" in found for found in data)

    asyncio.run(body())


def test_a_crawl_that_fetched_nothing_leaves_nothing_in_its_store(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            pass
        assert list(one.store.list("agents/")) == []

    asyncio.run(body())


def test_a_crawl_goes_on_in_an_empty_folder_and_its_old_owner_ends_and_changes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as old:
            old.commit(b"published")
            await old.publish()
            old.commit(b"lost")
            with pytest.raises(CrawlDirectoryError, match="is owned by process"):
                back(tmp_path, "early")
            assert not (tmp_path / "early").exists()
            back(tmp_path, "new", take_over=True)
            assert (tmp_path / "new" / WARC).read_bytes() == b"published"
            async with crawled(tmp_path, "new") as new:
                assert new.ledger.committed_ends()[WARC] == len(b"published")
                assert not new.ledger.is_clean, "so that every host waits its whole delay"
                before = sorted(new.store.list("agents/"))
                await old.publish()
                assert [line for line in old.said if "belongs to another process" in line] == old.said
                assert old.publisher.rest("a.test", 0.0) > 0.0
                assert sorted(key for key in new.store.list("agents/") if key in before) == before
                new.commit(b", and more")
        assert (await asyncio.to_thread(back, tmp_path, "third") / WARC).read_bytes() == b"published, and more"
        with pytest.raises(CrawlDirectoryError, match="the crawl went on elsewhere"):
            async with crawled(tmp_path):
                pass

    asyncio.run(body())


def test_an_owner_that_cannot_reach_its_store_for_a_lease_asks_no_host_and_says_so_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
            assert one.publisher.rest("a.test", 0.0) == 0.0
            one.store.fails = True
            await one.publish()
            await one.publish()
            assert len(one.said) == 1
            assert "out of reach" in one.said[0]
            one.publisher.heard -= 3600
            assert one.publisher.rest("a.test", 0.0) > 0.0
            one.store.fails = False
            await one.publish()
            assert one.publisher.rest("a.test", 0.0) == 0.0
            assert "can be reached again" in one.said[-1]
            one.store.fails = True
        assert "is in" in one.said[-1]
        assert "the last checkpoint was not published" in one.said[-1]

    asyncio.run(body())


def test_a_checkpoint_is_due_as_soon_as_so_much_was_written_and_none_is_before(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path, every=3600, lease=3.0) as one:
            await one.publish()
            one.commit(b"a" * 1000)
            for _ in range(2):  # beats, and nothing is due
                heard = one.publisher.heard
                while one.publisher.heard == heard:
                    await asyncio.sleep(0.05)
            assert one.publisher.metrics.counters["checkpoints"] == 1
            one.commit(b"a" * LIMIT)
            while one.publisher.metrics.counters["checkpoints"] == 1:
                await asyncio.sleep(0.05)
            assert one.publisher.metrics.snapshot()["bytes_since_checkpoint"] == 0

    asyncio.run(asyncio.wait_for(body(), HUNG_AFTER))


def test_a_crawl_whose_store_is_too_slow_asks_no_host_until_that_has_caught_up(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a" * (4 * LIMIT - 1))
            one.publisher._look_behind()
            assert one.publisher.rest("a.test", 0.0) == 0.0
            one.commit(b"a")
            one.publisher._look_behind()
            assert one.publisher.rest("a.test", 0.0) > 0.0
            one.publisher._look_behind()
            await one.publish()
            assert one.publisher.rest("a.test", 0.0) == 0.0
            slower, caught_up = one.said
            assert "is slower than the crawl" in slower
            assert "has caught up" in caught_up

    asyncio.run(body())


def test_an_owner_whose_store_is_away_waits_for_it_and_makes_nothing_in_its_place(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
            await one.publish()
            (tmp_path / "store").rename(tmp_path / "away")
            await one.publish()
            assert not (tmp_path / "store").exists()
            (tmp_path / "store").mkdir()  # where it was mounted
            one.commit(b"2")
            await one.publish()
            assert "it was emptied, or its disk is away" in " ".join(one.said) or "No such file" in one.said[0]
            assert one.ended == 0
            shutil.rmtree(tmp_path / "store")
            (tmp_path / "away").rename(tmp_path / "store")
            await one.publish()
            assert "can be reached again" in one.said[-1]
        assert (back(tmp_path, "new") / WARC).read_bytes() == b"12"

    asyncio.run(body())


def test_an_owner_that_begins_again_while_its_store_is_away_asks_no_host_until_it_is_there_and_says_so_once(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        (tmp_path / "store").rename(tmp_path / "away")
        async with crawled(tmp_path, opened=open_store, lease=3.0) as one:
            failures = one.publisher.metrics.counters
            await awaited(lambda: failures["failures"] > 2)
            assert one.publisher.rest("a.test", 0.0) > 0.0
            assert [line for line in one.said if "asking no host until it is there" in line] == one.said
            assert one.publisher.stored_agent().is_away
            assert not (tmp_path / "store").exists()
            (tmp_path / "away").rename(tmp_path / "store")
            await one.publisher.sure()
            one.commit(b"2")
            assert "can be reached again" in one.said[-1]
            assert (one.publisher.stored_agent().owner, one.publisher.stored_agent().is_away) == (2, False)
        assert (back(tmp_path, "new") / WARC).read_bytes() == b"12"

    asyncio.run(asyncio.wait_for(body(), HUNG_AFTER))


def test_an_owner_that_begins_again_and_is_refused_by_its_store_ends_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
            one.store.refuses = True
            await one.publish()
            assert "trying again" in one.said[-1], "an owner at work goes on: its rights may come back"
            one.store.refuses = False
        store = Counted(tmp_path / "store")
        store.refuses = True
        with pytest.raises(StoreRefused):
            async with crawled(tmp_path, opened=lambda *_, **__: store):
                pass

    asyncio.run(asyncio.wait_for(body(), HUNG_AFTER))


def test_an_owner_that_begins_again_ends_before_its_store_is_there_if_it_is_told_to(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        (tmp_path / "store").rename(tmp_path / "away")
        async with crawled(tmp_path, opened=open_store):
            pass
        (tmp_path / "away").rename(tmp_path / "store")
        assert (back(tmp_path, "new") / WARC).read_bytes() == b"1"

    asyncio.run(asyncio.wait_for(body(), HUNG_AFTER))


def test_an_owner_that_begins_again_after_its_crawl_went_on_elsewhere_finds_that_when_its_store_is_there(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        back(tmp_path, "new")
        async with crawled(tmp_path, "new", opened=open_store):
            pass
        (tmp_path / "store").rename(tmp_path / "away")
        async with crawled(tmp_path, opened=open_store, lease=3.0) as one:
            (tmp_path / "away").rename(tmp_path / "store")
            await awaited(lambda: one.ended)
            assert "the crawl went on elsewhere" in one.said[-1]
            assert one.publisher.rest("a.test", 0.0) > 0.0

    asyncio.run(asyncio.wait_for(body(), HUNG_AFTER))


def test_an_agent_that_joins_while_the_store_is_away_makes_none_in_its_place(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        write_members(one.folder, ("agent-00", "agent-01"))
        one.folder.joinpath("state", "agent-00").mkdir(exist_ok=True)
        (tmp_path / "store").rename(tmp_path / "away")
        opened = list[bool]()

        def open_(url: str, is_new: bool) -> Store:
            opened.append(is_new)
            return open_store(url, is_new=is_new)

        async with crawled(tmp_path, opened=open_):
            assert opened == [False]
            assert not (tmp_path / "store").exists()

    asyncio.run(asyncio.wait_for(body(), HUNG_AFTER))


def test_an_owner_whose_store_goes_away_while_it_begins_knows_its_crawl_when_it_is_back(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        before = owned(one.folder, "agent-00")
        assert before is not None
        (tmp_path / "store").rename(tmp_path / "away")
        with pytest.raises(StoreFailed, match="its disk may be away"):
            claimed(FolderStore(tmp_path / "store"), one.folder, "agent-00", 3.0, 0.0)
        # Other agents would take a lower number for news of fewer checkpoints than those that they know of.
        noted = owned(one.folder, "agent-00")
        assert noted is not None
        assert noted.count == before.count > 0
        (tmp_path / "away").rename(tmp_path / "store")
        async with crawled(tmp_path) as one:
            assert one.publisher.stored_agent().owner == 2

    asyncio.run(body())


def test_a_crawl_that_begins_anew_while_its_store_is_away_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path, opened=lambda url, is_new: FolderStore(tmp_path / "store")):
            pass

    with pytest.raises(StoreFailed, match="its disk may be away"):
        asyncio.run(body())


def test_a_crawl_that_was_lost_before_its_first_checkpoint_leaves_its_store_free(tmp_path: Path) -> None:
    async def body() -> None:
        lost = AgentInStore(FolderStore(tmp_path / "store", is_new=True), "agent-00")
        lost.read()
        lost.claim("lost", "process that was killed", 3600.0)
        with pytest.raises(CrawlDirectoryError, match="owned by process that was killed"):
            async with crawled(tmp_path):
                pass
        os.utime(tmp_path / "store" / "agents" / "agent-00" / "head.json", (1e9, 1e9))
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        assert (back(tmp_path, "new") / WARC).read_bytes() == b"1"

    asyncio.run(body())


def test_a_store_that_holds_another_crawl_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1")
        with pytest.raises(CrawlDirectoryError, match="holds a crawl already"):
            async with crawled(tmp_path, "another"):
                pass

    asyncio.run(body())


def test_a_crawl_goes_on_only_into_an_empty_folder_and_from_a_store_that_holds_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            with pytest.raises(UsageError, match="holds no checkpoint of its crawl yet"):
                back(tmp_path, "new", take_over=True)
            one.commit(b"1")

    asyncio.run(body())
    with pytest.raises(UsageError, match="is not empty"):
        back(tmp_path, "crawl")
    with pytest.raises(UsageError, match="with -o"):
        bring_back(str(tmp_path / "store"), "", options())
    with pytest.raises(UsageError, match="holds no crawl"):
        bring_back(str(tmp_path / "nothing"), str(tmp_path / "new"), options())
    given = bring_back(str(tmp_path / "store"), str(tmp_path / "new"), options())
    assert given.output == str(tmp_path / "new")
    assert given.store == str(tmp_path / "store")


def test_readers_get_the_last_checkpoint_and_of_documents_only_the_parts_that_they_read(
    cache: Path, tmp_path: Path
) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"1" * PART_BYTES + b"2" * PART_BYTES)
            await one.publish()
            place, _ = await asyncio.to_thread(read_here, str(tmp_path / "store"))
            assert (place / "crawl.toml").exists()
            assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) < PART_BYTES
            found = AgentInStore(one.store, "agent-00")
            found.read()
            first = found.checkpoint().files[WARC][0]
            (tmp_path / "store" / first.key).write_bytes(b"3" * PART_BYTES)
            with opened(place / WARC) as file:
                file.seek(PART_BYTES + 7)
                assert file.read(5) == b"22222"
                assert file.seek(0, os.SEEK_END) == 2 * PART_BYTES
                file.seek(0)
                with pytest.raises(CrawlDirectoryError, match=f"{first.digest} has other bytes than were shipped"):
                    file.read(5)
            assert verify(place).findings == []
            (tmp_path / "store" / first.key).unlink()
            is_missing = f"{WARC}: the store {tmp_path / 'store'} is damaged: {first.key} is missing"
            assert verify(place).findings == [is_missing]
            with opened(place / WARC) as file, pytest.raises(CrawlDirectoryError, match=f"{first.digest} is missing"):
                file.read(5)
            one.commit(b"4")
            await one.publish()
            await asyncio.to_thread(read_here, str(tmp_path / "store"))
            with opened(place / WARC) as file:
                file.seek(2 * PART_BYTES)
                assert file.read() == b"4"
            with RocksLedger(LedgerSheet(directory=str(place))).looking() as ledger:
                assert ledger.counters()["fetched"] == 2

    asyncio.run(body())
    assert is_store(str(tmp_path / "store"))
    assert is_store("s3://bucket/x")
    assert not is_store(str(tmp_path / "crawl"))


def test_archive_files_that_are_in_the_store_leave_the_disk_and_are_read_and_published_all_the_same(
    tmp_path: Path,
) -> None:
    earlier, later = WARC, WARC.replace("00000.warc", "00001.warc")

    async def body() -> None:
        async with crawled(tmp_path, keep_local=3) as one:
            one.commit(b"old")
            one.commit(b"new", later)
            await one.publish()
            assert not (one.folder / earlier).exists()
            assert (one.folder / later).read_bytes() == b"new"
            assert opened(one.folder / earlier).read() == b"old"
            assert find_losses(one.folder, one.ledger.committed_ends()) == []
            one.commit(b"er", later)
            await one.publish()
            found = AgentInStore(one.store, "agent-00")
            found.read()
            assert {earlier, later} <= set(found.checkpoint().files)
        async with crawled(tmp_path, keep_local=3) as one:  # it knows its file in another life, too
            assert restore(one.folder, {earlier: 3}).lost == ()
            assert opened(one.folder / earlier).read() == b"old"
        here = back(tmp_path, "whole", take_over=True)
        assert (here / earlier).read_bytes() == b"old"
        far = back(tmp_path, "small", take_over=True, keep_local=5)
        assert not (far / earlier).exists()
        assert opened(far / earlier).read() == b"old"

    asyncio.run(body())


def test_an_archive_file_on_another_disk_leaves_that_disk(tmp_path: Path) -> None:
    async def body() -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        async with crawled(tmp_path, keep_local=0) as one:
            (one.folder / WARC).symlink_to(disk / Path(WARC).name)
            one.commit(b"on another disk")
            await one.publish()
            assert list(disk.iterdir()) == []
            assert opened(one.folder / WARC).read() == b"on another disk"

    asyncio.run(body())


def on_a_disk(one: Crawled, disk: Path, name: str = WARC) -> None:
    disk.mkdir(exist_ok=True)
    (one.folder / name).symlink_to(disk / Path(name).name)


def test_a_disk_of_the_archive_that_is_lost_is_named_and_what_the_store_has_of_it_is_read_there(tmp_path: Path) -> None:
    disk = tmp_path / "disk"

    async def body() -> None:
        async with crawled(tmp_path) as one:
            on_a_disk(one, disk)
            one.commit(b"on another disk")
            await one.publish()
            shutil.rmtree(disk)
            await one.publish()
            assert [line for line in one.said if f"1 archive file lay on a disk that is not there, as {WARC}" in line]
            assert opened(one.folder / WARC).read() == b"on another disk"
            assert find_losses(one.folder, one.ledger.committed_ends()) == []
            one.commit(b"later", WARC.replace("00000.warc", "00001.warc"))
            await one.publish()
            assert len(one.said) == 1
        assert (back(tmp_path, "again") / WARC).read_bytes() == b"on another disk"

    asyncio.run(body())


def test_a_crawl_that_begins_without_a_disk_of_its_archive_reads_the_store(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            on_a_disk(one, tmp_path / "disk")
            one.commit(b"on another disk")
        shutil.rmtree(tmp_path / "disk")
        (tmp_path / "disk").symlink_to(tmp_path / "disk")  # an error that is no missing file
        async with crawled(tmp_path) as one:
            assert len(one.said) == 1
            assert opened(one.folder / WARC).read() == b"on another disk"

    asyncio.run(body())


def test_a_disk_that_comes_back_has_what_no_checkpoint_had_and_the_store_keeps_the_rest_meanwhile(
    tmp_path: Path,
) -> None:
    disk, away = tmp_path / "disk", tmp_path / "away"

    async def body() -> None:
        async with crawled(tmp_path) as one:
            on_a_disk(one, disk)
            one.commit(b"shipped")
            await one.publish()
            one.commit(b" and not yet")
            disk.rename(away)
            one.commit(b"elsewhere", WARC.replace("00000.warc", "00001.warc"))
            for _ in range(2):
                await one.publish()
            [said] = one.said
            assert "what came since can be read when the disk is back" in said
            found = AgentInStore(one.store, "agent-00")
            found.read()
            assert found.content(found.checkpoint().files[WARC]) == b"shipped"
            away.rename(disk)
            await one.publish()
            found.read()
            assert found.content(found.checkpoint().files[WARC]) == b"shipped and not yet"

    asyncio.run(body())


def test_an_archive_file_stays_that_grows_or_that_the_store_has_lost_a_part_of(tmp_path: Path) -> None:
    async def body() -> None:
        lost = WARC.replace("00000.warc", "00001.warc")
        async with crawled(tmp_path, keep_local=0) as one:
            one.publisher.archives = {"archive": [Growing()]}
            one.commit(b"it grows")
            one.commit(b"it is lost", lost)
            one.store.loses = b"it is lost"
            await one.publish()
            assert (one.folder / WARC).read_bytes() == b"it grows"
            assert (one.folder / lost).read_bytes() == b"it is lost"
            assert [line for line in one.said if f"has lost a part of {lost}" in line] == one.said
            await one.publish()
            assert opened(one.folder / lost).read() == b"it is lost"
            assert (one.folder / WARC).read_bytes() == b"it grows"
            assert not (one.folder / lost).exists()

    asyncio.run(body())


def test_a_crawl_whose_store_has_lost_an_archive_file_that_is_there_alone_does_not_go_on_as_if_it_had_it(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with crawled(tmp_path, keep_local=0) as one:
            one.commit(b"a")
            await one.publish()
        shutil.rmtree(tmp_path / "store" / "agents")
        with pytest.raises(
            CrawlDirectoryError, match=f"{WARC} is in the store .* alone, which has no checkpoint of it"
        ):
            async with crawled(tmp_path, keep_local=0):
                pass

    asyncio.run(body())


def test_what_is_sent_to_an_agent_is_not_acknowledged_while_another_process_may_have_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            await one.publisher.sure()
            one.publisher.heard -= 3600  # it was suspended for its whole lease
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(one.publisher.sure(), 0.05)
            place = one.publisher._place
            assert place is not None
            await one.publisher._in_store(place.renew)
            await asyncio.wait_for(one.publisher.sure(), HUNG_AFTER)

    asyncio.run(body())


@pytest.mark.usefixtures("cache")
def test_a_look_at_a_store_tells_who_has_the_crawl_and_how_old_its_checkpoint_is(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a" * 100)
            await one.publish()
            now = await asyncio.to_thread(standing_of_store, one.store)
            [agent] = now.stored
            assert (now.crawl, now.state) == (str(tmp_path / "store"), "elsewhere")
            assert agent.holder == f"process {os.getpid()} on {socket.gethostname()}"
            assert agent.published is not None
            assert agent.published < HUNG_AFTER
            assert (now.fetched, now.hosts) == (1, 0)
            assert {one.name: one.bytes for one in now.sizes}["archive"] == 100
            assert not [problem for problem in now.problems if problem.what == "killed"]

    asyncio.run(body())


def test_readers_of_a_place_that_another_crawl_has_by_now_get_that_crawl(cache: Path, tmp_path: Path) -> None:
    async def read(crawl: str, data: bytes) -> bytes:
        async with crawled(tmp_path, crawl) as one:
            one.commit(data)
            await one.publish()
            place, _ = await asyncio.to_thread(read_here, str(tmp_path / "store"))
            with opened(place / WARC) as file:
                return file.read()

    async def body() -> None:
        assert await read("one", b"1") == b"1"
        shutil.rmtree(tmp_path / "store")
        assert await read("other", b"22") == b"22"

    asyncio.run(body())


class Late(FolderStore):
    """A store whose clock is an hour behind this machine's."""

    def stat(self, key: str) -> Stat:
        seen = super().stat(key)
        return msgspec.structs.replace(seen, modified=seen.modified - 3600)


def test_an_owner_that_is_alive_by_the_clock_of_the_store_is_not_told_to_be_gone(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path, lease=60) as one:
            one.commit(b"a")
            await one.publish()
            [agent] = await asyncio.to_thread(lambda: CrawlInStore(Late(tmp_path / "store")).told())
            assert agent.is_alive
            _, told = probe(Late(tmp_path / "store"))
            assert told.endswith("from this machine's; that has no effect")

    asyncio.run(body())


def test_a_directory_whose_crawl_went_on_elsewhere_says_so_and_another_one_does_not(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as old:
            old.commit(b"a")
            await old.publish()
            assert gone_elsewhere(old.folder) == []
            back(tmp_path, "new", take_over=True)
            stored = gone_elsewhere(old.folder)
            assert [one.name for one in stored] == ["agent-00"]
            assert gone_elsewhere(tmp_path / "new") == []
            now = out_of_date(standing_at_rest(tmp_path / "new"), stored)
            assert (now.state, now.stored) == ("elsewhere", stored)
            assert not [problem for problem in now.problems if problem.what == "killed"]
            (tmp_path / "store").rename(tmp_path / "away")
            assert gone_elsewhere(old.folder) == []

    asyncio.run(body())


def test_an_agent_whose_folder_is_lost_goes_back_to_its_checkpoint_and_tells_the_others(tmp_path: Path) -> None:
    async def body() -> None:
        write_members(tmp_path / "crawl", ["agent-00", "agent-01"])
        async with crawled(tmp_path) as one:
            one.commit(b"a" * 100)
            await one.publish()
            one.commit(b"b" * 100)
            held = one.folder / "state" / "agent-00"
            later = one.folder / "tables" / "pages" / "agent-00-20261128000000-00000000-000009.parquet"
            later.parent.mkdir(parents=True)
            later.touch()
            held.rename(tmp_path / "lost")
            store = str(tmp_path / "store")
            with pytest.raises(CrawlDirectoryError, match="is owned by process"):
                bring_agent_back(one.folder, store, "agent-00", 3600.0, is_dead=False)
            told = bring_agent_back(one.folder, store, "agent-00", 3600.0, is_dead=True)
            assert "agent-00 has lost its ledger, and goes on from its last checkpoint" in told
            assert msgspec.json.decode(point_path(one.folder, "agent-00").read_bytes(), type=StorePoint).restored == 1
            assert not later.exists(), "its rows are fetched again"
            assert (one.folder / WARC).read_bytes() == b"a" * 100
            assert bring_agent_back(one.folder, store, "agent-01", 3600.0, is_dead=True) == "", "it never began"
            one.folder.rename(tmp_path / "again")
            held.parent.mkdir(parents=True)
            (tmp_path / "lost").rename(held)  # the lost one is still open, and closes at its old place
            again = RocksLedger(LedgerSheet(directory=str(tmp_path / "again")))
            again.open()
            assert again.counters()["fetched"] == 1
            again.close()

    asyncio.run(body())


def test_a_request_that_may_not_be_sent_twice_is_not_sent_by_a_crawl_that_has_lost_its_note_of_it(
    tmp_path: Path,
) -> None:
    posted = Task("http://a.test/order", "a.test", 0, request=requested("POST", body=b"one"))

    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a")
            await one.publish()
            with one.ledger.group() as group:
                group.push([posted])
            with one.ledger.group() as group:
                group.begun(posted)
            assert await one.publisher.may_send(posted)
            assert await one.publisher.may_send(posted), "a server that was not reached may be asked again"
            one.publisher._is_fenced = True  # its machine is lost
        back(tmp_path, "again", take_over=True)
        async with crawled(tmp_path, "again") as other:
            assert not await other.publisher.may_send(posted)
            other.commit(b"it ended as interrupted")
            await other.publish()
            assert await other.publisher.may_send(posted), "that was another one, which was asked for since"

    asyncio.run(body())


def test_crawls_that_were_read_have_as_much_of_the_disk_as_the_reader_says(tmp_path: Path, cache: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a" * 1_000)
            await one.publish()
        with pytest.raises(UsageError, match="give more by --cache"):
            read_here(str(tmp_path / "store"), 10)
        directory, _ = read_here(str(tmp_path / "store"), 10_000_000)
        other = directory.parent.with_name("read-before")
        other.mkdir()
        (other / "bytes").write_bytes(b"0" * 1_000)
        os.utime(other, (1, 1))
        (directory.parent / "checkpoint.json").unlink()
        read_here(str(tmp_path / "store"), 10_000_000)
        assert other.exists()
        (directory.parent / "checkpoint.json").unlink()
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        read_here(str(tmp_path / "store"), size + 999)
        assert not other.exists(), "what was read longest ago goes first"

    asyncio.run(body())


def test_a_crawl_that_cannot_be_brought_back_stays_as_it_was_and_leaves_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a" * 100)
        found = AgentInStore(one.store, "agent-00")
        found.read()
        [part] = found.checkpoint().files[WARC]
        (tmp_path / "store" / part.key).rename(tmp_path / "part")
        for name in ("new", "newer"):
            with pytest.raises(CrawlDirectoryError, match=f"{part.digest} is missing"):
                back(tmp_path, name)
        assert not [path.name for path in tmp_path.iterdir() if "new" in path.name]
        async with crawled(tmp_path):
            pass  # its old directory may go on
        (tmp_path / "part").rename(tmp_path / "store" / part.key)
        assert (back(tmp_path, "new") / WARC).read_bytes() == b"a" * 100

    asyncio.run(body())


def test_a_cache_that_cannot_be_written_is_told_with_its_name(tmp_path: Path, cache: Path) -> None:
    async def body() -> None:
        async with crawled(tmp_path) as one:
            one.commit(b"a")

    asyncio.run(body())
    cache.write_text("a file")
    with pytest.raises(
        CrawlDirectoryError, match=f"{cache}/gossamer/stores cannot be written, .* let XDG_CACHE_HOME name"
    ):
        read_here(str(tmp_path / "store"))
