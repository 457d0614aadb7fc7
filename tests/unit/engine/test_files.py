"""Append files: a group whole or not at all."""

from pathlib import Path

import pytest

from gossamer.engine.files import AppendFile


def test_appends_go_on_where_the_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    first = AppendFile(path, fresh=True)
    assert (first.append(b"one"), first.append(b"two", sync=True)) == (0, 3)
    first.close()
    second = AppendFile(path, fresh=False)
    assert second.tail(2) == b"wo"
    assert second.append(b"!") == 6
    second.close()
    assert path.read_bytes() == b"onetwo!"


def test_a_fresh_file_is_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    with pytest.raises(FileExistsError):
        AppendFile(tmp_path / "a", fresh=True)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match=r"."):
        AppendFile(tmp_path / "a", fresh=False)
    assert (tmp_path / "target").read_bytes() == b"precious"


def test_a_full_disk_leaves_nothing_of_the_group(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    file = AppendFile(tmp_path / "a", fresh=True)
    file.append(b"x" * 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
        with pytest.raises(OSError, match=r"too large"):
            file.append(b"y" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert file.append(b"z") == 1000
    file.close()
    assert (tmp_path / "a").read_bytes() == b"x" * 1000 + b"z"
