"""What a kill tore is taken away to the byte, and nothing else is."""

import os
import shutil
from pathlib import Path

import pytest

from gossamer.storage.archive.warc import WarcArchive, WarcSheet
from gossamer.storage.logs import LOG_PATH
from gossamer.storage.recovery import QUARANTINE, QUARANTINE_BYTES, find_losses, restore
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.storage.tables.places import DECLARED
from gossamer.testing.storage import visit
from gossamer.values.errors import CrawlDirectoryError


def written(directory: Path, agent: str = "agent-00") -> tuple[WarcArchive, TableLog]:
    """Stores of an agent that keeps everything."""
    tables = TableLogSheet(directory=str(directory), agent=agent, tables=("pages", "links", "items"))
    return WarcArchive(WarcSheet(directory=str(directory), agent=agent)), TableLog(tables)


def commit(stores: tuple[WarcArchive, TableLog], *urls: str) -> dict[str, int]:
    """Write a group; the ends that a ledger would note with it."""
    archive, rows = stores
    visits = [visit(url) for url in urls]
    rows.append(visits, archive.append(visits))
    return {**archive.ends(), **rows.ends()}


def sizes(directory: Path) -> dict[str, int]:
    # Declarations of tables and marks for those who follow rows are no part of what commits.
    beside = {"open", "last", "committed", "sums.json"}
    found = (
        path for path in directory.rglob("*") if path.is_file() and path.name not in beside and path.suffix != DECLARED
    )
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in found}


def test_every_file_is_cut_back_to_what_was_committed(tmp_path: Path) -> None:
    stores = written(tmp_path)
    ends = commit(stores, "http://a.test/1", "http://a.test/2")
    assert sizes(tmp_path) == ends
    torn = commit(stores, "http://a.test/3")
    assert set(torn) == set(ends)
    done = restore(tmp_path, ends)
    left = {name: size for name, size in sizes(tmp_path).items() if not name.startswith(QUARANTINE)}
    assert left == ends
    assert done.cut == {name: torn[name] - end for name, end in ends.items()}
    assert done.removed == ()
    assert len((tmp_path / LOG_PATH).read_bytes().splitlines()) == 2


def test_the_tail_stands_in_the_quarantine(tmp_path: Path) -> None:
    stores = written(tmp_path)
    ends = commit(stores, "http://a.test/1")
    commit(stores, "http://a.test/2")
    [path] = tmp_path.glob("warc/*")
    name = f"warc/{path.name}"
    tail = path.read_bytes()[ends[name] :]
    restore(tmp_path, ends)
    [aside] = (tmp_path / QUARANTINE).glob(f"{path.name}*")
    assert aside.read_bytes() == tail


def test_a_file_of_which_nothing_was_committed_goes(tmp_path: Path) -> None:
    first = written(tmp_path)
    ends = commit(first, "http://a.test/1")
    later = commit(written(tmp_path), "http://a.test/2")
    done = restore(tmp_path, ends)
    assert set(done.removed) == set(later) - set(ends)
    assert set(done.cut) == {LOG_PATH}
    assert not [name for name in done.removed if (tmp_path / name).exists()]


def test_other_agents_files_are_left_alone(tmp_path: Path) -> None:
    ends = commit(written(tmp_path, "agent-00"), "http://a.test/1")
    others = commit(written(tmp_path, "agent-01"), "http://a.test/2")
    before = sizes(tmp_path)
    restore(tmp_path, {**ends, LOG_PATH: others[LOG_PATH]}, "agent-00")
    assert sizes(tmp_path) == before


def test_restoring_twice_is_restoring_once(tmp_path: Path) -> None:
    stores = written(tmp_path)
    ends = commit(stores, "http://a.test/1")
    commit(stores, "http://a.test/2")
    restore(tmp_path, ends)
    before = sizes(tmp_path)
    again = restore(tmp_path, ends)
    assert (again.cut, again.removed) == ({}, ())
    assert sizes(tmp_path) == before


def test_a_file_that_lost_committed_bytes_is_refused(tmp_path: Path) -> None:
    ends = commit(written(tmp_path), "http://a.test/1")
    [path] = tmp_path.glob("warc/*")
    with path.open("r+b") as file:
        file.truncate(ends[f"warc/{path.name}"] - 1)
    with pytest.raises(CrawlDirectoryError, match="were committed; bring it back"):
        restore(tmp_path, ends)


def test_the_quarantine_is_bounded(tmp_path: Path) -> None:
    stores = written(tmp_path)
    ends = commit(stores, "http://a.test/0")
    aside = tmp_path / QUARANTINE
    aside.mkdir()
    for age in range(1, 5):
        old = aside / f"torn-{age}"
        with old.open("wb") as file:
            file.truncate(QUARANTINE_BYTES // 3)  # a hole: it takes no room on the disk
        os.utime(old, (1e9 - age, 1e9 - age))
    for n in range(12):
        commit(written(tmp_path), f"http://a.test/{n}")
        restore(tmp_path, ends)
    kept = {path.name: path.stat().st_size for path in aside.iterdir()}
    assert sum(kept.values()) <= QUARANTINE_BYTES
    assert {name for name in kept if name.startswith("torn")} == {"torn-1", "torn-2"}, "the oldest leave first"
    assert len(kept) > 12, "what was cut off last is there"


def test_a_planted_link_is_neither_followed_nor_cut(tmp_path: Path) -> None:
    ends = commit(written(tmp_path), "http://a.test/1")
    [path] = tmp_path.glob("warc/*")
    precious = tmp_path / "precious"
    precious.write_bytes(b"x" * 9_000)
    path.unlink()
    path.symlink_to(precious)
    with pytest.raises(CrawlDirectoryError, match="is a link to"):
        restore(tmp_path, ends)
    assert precious.stat().st_size == 9_000


def spread(directory: Path) -> tuple[WarcArchive, list[Path]]:
    """An archive over three disks, a file for each group."""
    disks = [directory / "disk-1", directory / "disk-2"]
    sheet = WarcSheet(directory=str(directory / "crawl"), disks=tuple(map(str, disks)), rotate_bytes=1)
    return WarcArchive(sheet), disks


def test_an_archive_on_several_disks_is_cut_back_too(tmp_path: Path) -> None:
    archive, disks = spread(tmp_path)
    ends: dict[str, int] = {}
    for number in range(3):
        archive.append([visit(f"http://a.test/{number}")])
        ends |= archive.ends()
    assert all(len(list(disk.iterdir())) == 1 for disk in disks)
    for path in (tmp_path / "crawl" / "warc").iterdir():
        with path.open("ab") as file:
            file.write(b"torn")
    archive.append([visit("http://a.test/never")])
    done = restore(tmp_path / "crawl", ends, disks=disks)
    assert (set(done.cut), done.lost) == (set(ends), ())
    assert {f"warc/{path.name}": path.stat().st_size for path in (tmp_path / "crawl" / "warc").iterdir()} == ends
    assert sum(len(list(disk.iterdir())) for disk in disks) == 2


def test_a_lost_disk_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    archive, disks = spread(tmp_path)
    ends: dict[str, int] = {}
    for number in range(3):
        archive.append([visit(f"http://a.test/{number}")])
        ends |= archive.ends()
    [lost] = disks[0].iterdir()
    shutil.rmtree(disks[0])
    done = restore(tmp_path / "crawl", ends, disks=disks)
    assert (done.cut, done.removed, done.lost) == ({}, (), (f"warc/{lost.name}",))


def test_the_log_that_another_agent_committed_is_left_alone(tmp_path: Path) -> None:
    ends = commit(written(tmp_path, "agent-00"), "http://a.test/1")
    others = commit(written(tmp_path, "agent-01"), "http://a.test/2")
    log = others.pop(LOG_PATH)
    ends[LOG_PATH] = log
    before = sizes(tmp_path)
    done = restore(tmp_path, others, "agent-01", others=ends)
    assert (done.cut, done.removed) == ({}, ())
    assert sizes(tmp_path) == before


def test_a_log_that_two_agents_committed_is_cut_behind_both(tmp_path: Path) -> None:
    first = commit(written(tmp_path, "agent-00"), "http://a.test/1")
    stores = written(tmp_path, "agent-01")
    second = commit(stores, "http://a.test/2")
    torn = commit(stores, "http://a.test/3")
    restore(tmp_path, second, "agent-01", others=first)
    restore(tmp_path, first, "agent-00", others=second)
    assert (tmp_path / LOG_PATH).stat().st_size == second[LOG_PATH] < torn[LOG_PATH]


def test_an_agent_whose_name_is_in_the_prefix_of_another_is_another(tmp_path: Path) -> None:
    archive = WarcArchive(WarcSheet(directory=str(tmp_path), agent="agent-01", prefix="old-agent-00-files"))
    archive.append([visit("http://a.test/1")])
    before = sizes(tmp_path)
    assert restore(tmp_path, {}, "agent-00").removed == ()
    assert sizes(tmp_path) == before


def test_every_committed_file_that_is_missing_is_named(tmp_path: Path) -> None:
    ends = commit(written(tmp_path), "http://a.test/1")
    for name in ends:
        (tmp_path / name).unlink()
    assert [(loss.file, loss.committed, loss.size) for loss in find_losses(tmp_path, ends)] == [
        (name, ends[name], None) for name in sorted(ends)
    ]
    with pytest.raises(CrawlDirectoryError, match=r"logs/crawl\.jsonl is missing.*--accept-loss$"):
        restore(tmp_path, ends)


def test_a_row_log_that_became_a_table_may_be_gone(tmp_path: Path) -> None:
    ends = commit(written(tmp_path), "http://a.test/1")
    rows = {name for name in ends if name.startswith("state/")}
    for name in rows:
        (tmp_path / name).unlink()
    assert find_losses(tmp_path, ends, lambda missing: rows) == []
    restore(tmp_path, ends, are_tables=lambda missing: rows)
