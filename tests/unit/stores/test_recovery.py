"""What a kill tore is taken away to the byte, and nothing else is."""

import shutil
from pathlib import Path

import pytest

from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores import recovery
from gossamer.stores.recovery import QUARANTINE, restore
from gossamer.stores.rowlog import LOG_PATH
from gossamer.stores.tablelog import TableLog, TableLogSheet
from gossamer.stores.warc import WarcArchive, WarcSheet
from gossamer.testing.storing import visit


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
    found = (path for path in directory.rglob("*") if path.is_file() and path.name != "open")
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


def test_the_quarantine_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "QUARANTINE_BYTES", 3_000)
    stores = written(tmp_path)
    ends = commit(stores, "http://a.test/0")
    for n in range(12):
        commit(written(tmp_path), f"http://a.test/{n}")
        restore(tmp_path, ends)
    kept = sum(path.stat().st_size for path in (tmp_path / QUARANTINE).iterdir())
    assert 0 < kept <= 3_000


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
