"""Every whole record of a damaged file is found, no other is, and what takes the place of a damaged one moves nothing."""

import gzip
import os
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.storage.archive.reading import Gap, Span, fill, gaps, scan
from gossamer.storage.archive.warc import WarcArchive, WarcSheet
from gossamer.testing.storage import visit

AT = "2026-03-01T12:00:00Z"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A file with five answers."""
    stores = WarcArchive(WarcSheet(directory=str(tmp_path)))
    for number in range(5):
        stores.append([visit(f"http://a.test/{number}", os.urandom(300))])
    [path] = tmp_path.glob("warc/*.warc.gz")
    return path


def spans(path: Path) -> list[Span]:
    return [found for found in scan(path) if isinstance(found, Span)]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def test_a_sound_file_has_no_gap_and_all_of_it_is_records(archive: Path) -> None:
    found = list(scan(archive))
    assert gaps(archive) == []
    assert [one.offset for one in found] == [0, *(one.end for one in found[:-1])]
    assert found[-1].end == archive.stat().st_size


def test_one_flipped_byte_costs_one_record(archive: Path) -> None:
    before = spans(archive)
    for damaged in before:
        flip(archive, damaged.offset + damaged.length // 2)
        assert gaps(archive) == [Gap(damaged.offset, damaged.length)]
        assert spans(archive) == [one for one in before if one != damaged]
        flip(archive, damaged.offset + damaged.length // 2)


def test_a_destroyed_beginning_costs_one_record(archive: Path) -> None:
    before = spans(archive)
    flip(archive, before[2].offset)
    assert gaps(archive) == [Gap(before[2].offset, before[2].length)]


@pytest.mark.parametrize("length", ["\u00b2", "9" * 19, "9" * 5_000])
def test_a_record_whose_length_is_no_number_that_can_be_is_a_gap(tmp_path: Path, length: str) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(f"WARC/1.1\r\nContent-Length: {length}\r\n\r\nab\r\n\r\n".encode()))
    assert gaps(path) == [Gap(0, path.stat().st_size)]


def test_a_torn_end_is_a_gap(archive: Path) -> None:
    last = spans(archive)[-1]
    os.truncate(archive, last.end - 5)
    assert gaps(archive) == [Gap(last.offset, last.length - 5)]


def test_a_body_that_looks_like_records_is_none_where_its_own_record_ends_well(tmp_path: Path) -> None:
    inner = WarcArchive(WarcSheet(directory=str(tmp_path / "inner")))
    inner.append([visit("http://forged.test/", os.urandom(100))])
    [forged] = (tmp_path / "inner").glob("warc/*")
    outer = WarcArchive(WarcSheet(directory=str(tmp_path)))
    outer.append([visit("http://a.test/", forged.read_bytes())])
    [path] = tmp_path.glob("warc/*.warc.gz")
    assert {one.fields.get("warc-target-uri") for one in spans(path)} == {None, "http://a.test/"}


def test_what_takes_the_place_of_a_damaged_record_is_one_and_moves_no_other(archive: Path) -> None:
    before = spans(archive)
    flip(archive, before[3].offset + 30)
    [gap] = gaps(archive)
    assert fill(archive, gap, AT)
    after = spans(archive)
    assert gaps(archive) == []
    assert [(one.offset, one.length) for one in after] == [(one.offset, one.length) for one in before]
    assert [one.kind for one in after if one not in before] == ["metadata"]
    with archive.open("rb") as file:
        records = [record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)]
    assert len(records) == len(before)


def test_a_gap_that_is_too_short_for_a_record_is_left_alone(archive: Path) -> None:
    data = archive.read_bytes()
    assert not fill(archive, Gap(10, 40), AT)
    assert archive.read_bytes() == data
