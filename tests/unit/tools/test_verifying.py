"""`verify` tells a directory that agrees with itself from one that does not, whatever was changed in it."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import ENDED
from gossamer.engine.sheet import build
from gossamer.storage.contract import Space
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.storage.ledger.store import RocksStore
from gossamer.testing.fakeweb import FakeWeb
from tools.verifying import Verified, verify


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that ended well."""
    directory = tmp_path_factory.mktemp("sound") / "crawl"
    with FakeWeb.tree(2, 4) as web:
        asyncio.run(Crawl([web.url("/")], build(all_options(), {"output": str(directory), "delay": 0})).run())
    return directory


@pytest.fixture
def crawl(sound: Path, tmp_path: Path) -> Path:
    """A copy to be broken."""
    return Path(shutil.copytree(sound, tmp_path / "crawl"))


def test_a_crawl_that_ended_well_agrees_with_itself(crawl: Path) -> None:
    told = verify(crawl)
    assert (told.findings, told.notes) == ([], [])
    assert told.rows == 21
    assert told.records >= 21
    assert told.lines == told.records


def archive(crawl: Path) -> Path:
    (path,) = crawl.glob("warc/*.warc.gz")
    return path


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def flip_a_byte_of_the_archive(crawl: Path) -> None:
    flip(archive(crawl), archive(crawl).stat().st_size // 2)


def tear_the_archive(crawl: Path) -> None:
    data = archive(crawl).read_bytes()
    archive(crawl).write_bytes(data[:-10])


def lose_an_archive_file(crawl: Path) -> None:
    archive(crawl).unlink()


def append_to_the_archive(crawl: Path) -> None:
    data = archive(crawl).read_bytes()
    archive(crawl).write_bytes(data + data)


def lose_a_line_of_the_log(crawl: Path) -> None:
    path = crawl / "logs" / "crawl.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def repeat_a_line_of_the_log(crawl: Path) -> None:
    path = crawl / "logs" / "crawl.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[-1]]))


def change_a_line_of_the_log(crawl: Path) -> None:
    path = crawl / "logs" / "crawl.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"outcome":"ok"', b'"outcome":"xx"', 1))


def lose_the_tables(crawl: Path) -> None:
    shutil.rmtree(crawl / "tables")


def with_ledger(crawl: Path, change: Callable[[RocksStore], None]) -> None:
    (ledger,) = ledgers_of(crawl)
    ledger.open()
    change(ledger._store)
    ledger.close()


def lose_a_row(crawl: Path) -> None:
    def change(store: RocksStore) -> None:
        key, _ = next(store.scan("documents", b"", b"\xff" * 32))
        batch = store.batch()
        batch.delete("documents", key)
        store.write(batch)

    with_ledger(crawl, change)


def misplace_a_row(crawl: Path) -> None:
    def change(store: RocksStore) -> None:
        for key, value in store.scan("documents", b"", b"\xff" * 32):
            row = msgspec.msgpack.decode(value)
            if row[12] is not None:
                row[12]["offset"] += 1
                batch = store.batch()
                batch.put("documents", key, msgspec.msgpack.encode(row))
                store.write(batch)
                return

    with_ledger(crawl, change)


def miscount(crawl: Path) -> None:
    (ledger,) = ledgers_of(crawl)
    ledger.open()
    with ledger.group() as group:
        group.count("pages")
    ledger.close()


def lose_an_entry_of_a_space(crawl: Path) -> None:
    space = Space("plug-in")
    (ledger,) = ledgers_of(crawl)
    ledger.open()
    ledger.spaces.open(space)
    with ledger.group() as group:
        group.put(space, "a.test", b"key", b"value")
    where = ledger.spaces.where(space, "a.test", b"key")
    ledger.close()

    def change(store: RocksStore) -> None:
        batch = store.batch()
        batch.delete(*where)
        store.write(batch)

    assert verify(crawl).is_whole
    with_ledger(crawl, change)


def damage_the_ledger(crawl: Path) -> None:
    for path in crawl.glob("state/agent-00/ledger/*.sst"):
        flip(path, 40)
    for path in crawl.glob("state/agent-00/ledger/MANIFEST-*"):
        flip(path, 40)


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_byte_of_the_archive,
        tear_the_archive,
        lose_an_archive_file,
        append_to_the_archive,
        lose_a_line_of_the_log,
        repeat_a_line_of_the_log,
        change_a_line_of_the_log,
        lose_the_tables,
        lose_a_row,
        misplace_a_row,
        miscount,
        lose_an_entry_of_a_space,
        damage_the_ledger,
    ],
)
def test_whatever_is_broken_is_found(damage: Callable[[Path], None], crawl: Path) -> None:
    damage(crawl)
    assert not verify(crawl).is_whole


def test_what_a_kill_left_behind_the_commits_is_a_note_and_no_finding(crawl: Path) -> None:
    (ledger,) = ledgers_of(crawl)
    ledger.open()
    ledger.abandon()
    for path in (archive(crawl), crawl / "logs" / "crawl.jsonl"):
        with path.open("ab") as file:
            file.write(b"torn")
    told: Verified = verify(crawl)
    assert told.findings == []
    assert any("next start cuts 4 uncommitted bytes off" in note for note in told.notes)
    with ledger.looking():
        assert ledger.meta(ENDED)
