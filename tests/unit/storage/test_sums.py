"""Sums of files that are written once: a byte that changed is told, and what is being written is not."""

from pathlib import Path

import pytest

from gossamer.storage.recovery import SUMS, changed_files, changing, drop_sums, sum_up


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with changing(tmp_path / "made", ("*.table", "last")):
        (tmp_path / "made").mkdir()
        for name in ("a.table", "b.table", "last", "log.jsonl"):
            (tmp_path / "made" / name).write_bytes(name.encode())
    return tmp_path / "made"


def test_a_file_that_changed_is_cut_or_is_gone_is_told_by_its_name(folder: Path) -> None:
    assert changed_files(folder) == []
    (folder / "a.table").write_bytes(b"b.table")
    (folder / "b.table").write_bytes(b"b.tab")
    (folder / "last").unlink()
    assert changed_files(folder) == [
        "a.table has other bytes than were written",
        "b.table has 5 bytes instead of 7",
        "last is missing",
    ]


def test_files_that_grow_are_not_summed_up(folder: Path) -> None:
    (folder / "log.jsonl").write_bytes(b"more")
    assert changed_files(folder) == []


def test_nothing_is_said_of_a_folder_that_somebody_writes_or_was_killed_at(folder: Path) -> None:
    drop_sums(folder)
    (folder / "a.table").write_bytes(b"half")
    assert changed_files(folder) == []
    sum_up(folder, ("*.table", "last"))
    assert changed_files(folder) == []


def test_a_change_that_fails_leaves_no_sums_that_would_be_wrong(folder: Path) -> None:
    with pytest.raises(OSError, match="full"), changing(folder):
        raise OSError("the disk is full")
    assert not (folder / SUMS).exists()


def test_sums_that_cannot_be_read_are_told(folder: Path) -> None:
    (folder / SUMS).write_bytes(b"{")
    assert changed_files(folder) == [f"{SUMS} is damaged; remove it"]


def test_a_folder_that_is_not_there_has_nothing_to_tell(tmp_path: Path) -> None:
    with changing(tmp_path / "none"):
        pass
    assert changed_files(tmp_path / "none") == []
