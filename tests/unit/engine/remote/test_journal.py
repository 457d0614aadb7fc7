"""Journals keep frames in order until they are acknowledged, and the numbering for ever."""

from pathlib import Path

import pytest

from gossamer.engine.errors import ConnectorError, WiringError
from gossamer.engine.remote.journal import FileJournal, KeptFrame, MemoryJournal


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryJournal:
    return MemoryJournal() if request.param == "memory" else FileJournal(tmp_path / "journal", "urls")


def test_frames_are_kept_until_they_are_acknowledged(journal: MemoryJournal) -> None:
    assert journal.open().acknowledged == 0
    journal.append(1, 3, b"one")
    journal.append(4, 4, b"two")
    journal.commit()
    assert [journal.payload(first) for first in (1, 4)] == [b"one", b"two"]
    journal.acknowledged(2)
    assert journal.payload(1) == b"one", "acknowledged in part"
    journal.acknowledged(3)
    with pytest.raises((KeyError, ConnectorError)):
        journal.payload(1)
    assert journal.payload(4) == b"two"
    journal.close()


def test_a_file_goes_on_where_its_process_was_killed(tmp_path: Path) -> None:
    before = FileJournal(tmp_path / "journal", "urls")
    stream = before.open().stream
    before.append(1, 10, b"ten items")
    before.append(11, 12, b"two items")
    before.commit()
    before.acknowledged(10)
    before.append(13, 13, b"not committed")
    before.close()
    after = FileJournal(tmp_path / "journal", "urls")
    loaded = after.open()
    assert (loaded.stream, loaded.acknowledged) == (stream, 10)
    assert list(loaded.frames) == [KeptFrame(11, 12, 9)]
    after.close()


def test_a_file_serves_one_connector_and_one_process(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal", "urls", fsync=True)
    journal.open()
    with pytest.raises(WiringError, match="another process"):
        FileJournal(tmp_path / "journal", "urls").open()
    journal.close()
    with pytest.raises(WiringError, match="holds items of urls"):
        FileJournal(tmp_path / "journal", "pages").open()
    (tmp_path / "text").write_text("this is no database, however long it is" * 100)
    with pytest.raises(WiringError, match="cannot be opened"):
        FileJournal(tmp_path / "text", "urls").open()
    with pytest.raises(ConnectorError, match="not open"):
        journal.commit()


def test_streams_differ() -> None:
    assert MemoryJournal().open().stream != MemoryJournal().open().stream
