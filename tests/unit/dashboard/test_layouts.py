"""Layouts of pictures: kept for a user, bounded, and never the reason for which a page does not show."""

import stat
from pathlib import Path

import msgspec
import pytest

from gossamer.dashboard.sites import KEPT, Layout, read_layout, write_layout
from gossamer.values.errors import UsageError


def test_a_layout_is_as_it_was_left(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "layouts"
    kept = write_layout(folder, "c-1", b'{"places": {"frontier": [1.5, -2]}, "is_still": true}')
    assert read_layout(folder, "c-1") == kept == Layout({"frontier": (1.5, -2.0)}, is_still=True)
    assert read_layout(folder, "c-2") == Layout()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["c-1.json"], "nothing half is left"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"places": {"a": [1]}}',
        b'{"places": {"a": [1e300, 0]}}',
        b'{"places": {"": [0, 0]}}',
        b'{"more": 1}',
        msgspec.json.encode({"places": {str(number): (0, 0) for number in range(5_001)}}),
    ],
)
def test_what_is_no_layout_is_refused_and_changes_nothing(tmp_path: Path, body: bytes) -> None:
    write_layout(tmp_path, "c", b'{"is_still": true}')
    with pytest.raises(UsageError):
        write_layout(tmp_path, "c", body)
    assert read_layout(tmp_path, "c").is_still


def test_a_damaged_layout_is_none(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(b"{")
    assert read_layout(tmp_path, "c") == Layout()


def test_layouts_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(KEPT + 5):
        (tmp_path / f"old-{number}.json").touch()
    write_layout(tmp_path, "new", b"{}")
    assert len(list(tmp_path.iterdir())) == KEPT
    assert (tmp_path / "new.json").exists()
