"""The row logs of tables: what an agent writes with each commit."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.storage.ledger.contract import Group
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.logs import LOG_PATH, MAX_LINE_BYTES
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.storage.tables.places import closed_segments, mark_closed, segments
from gossamer.storage.tables.row_tables import MAX_FRAME_LINKS, HostRow
from gossamer.testing.storage import visit
from gossamer.values.visit import Item, Link, Location


def table_log(directory: Path, *tables: str, **values: Any) -> TableLog:
    return TableLog(msgspec.convert({"directory": str(directory), "tables": tables, **values}, TableLogSheet))


def rows(directory: Path, table: str) -> list[Any]:
    return [
        {name: value for name, value in msgspec.json.decode(line).items() if name != "line_sum"}
        for one in segments(directory)
        if one.table == table
        for line in one.path.read_bytes().splitlines()
    ]


def test_pages_and_items_are_kept_unless_told_otherwise(tmp_path: Path) -> None:
    log = TableLog(TableLogSheet(directory=str(tmp_path)))
    log.append([msgspec.structs.replace(visit(), items=(Item("k", "http://a.test/", 1),))], [Location("w", 1, 2)])
    assert [one.table for one in segments(tmp_path)] == ["items", "pages"]
    assert rows(tmp_path, "items") == [{"event": "item", "kind": "k", "url": "http://a.test/", "data": 1}]
    [page] = rows(tmp_path, "pages")
    assert (page["warc_file"], page["sha256"]) == ("w", hashlib.sha256(visit().response.body).hexdigest())
    assert len((tmp_path / LOG_PATH).read_bytes().splitlines()) == 2


def test_what_is_taken_back_has_no_end_that_another_group_could_commit(tmp_path: Path) -> None:
    log = TableLog(TableLogSheet(directory=str(tmp_path)))
    log.append([msgspec.structs.replace(visit(), items=(Item("k", "http://a.test/", 1),))], [None])
    log.take_back()
    log.append([visit()], [None])
    ends = log.ends()
    assert {name.rpartition("/")[2].partition("-")[0] for name in ends} == {"pages", "crawl.jsonl"}
    assert all((tmp_path / name).stat().st_size == end for name, end in ends.items())


def test_what_is_not_kept_or_never_comes_leaves_nothing(tmp_path: Path, run: Any) -> None:
    log = table_log(tmp_path / "new", "links", "items", log=False)
    log.append([visit()], [None])
    run(log.stop())
    assert not (tmp_path / "new").exists()


def test_a_table_that_is_named_twice_has_each_row_once(tmp_path: Path) -> None:
    table_log(tmp_path, "pages", "items", "pages").append([visit()], [None])
    assert len(rows(tmp_path, "pages")) == 1


def test_a_pages_links_are_one_frame_with_those_that_were_refused(tmp_path: Path) -> None:
    links = (Link("http://a.test/1"), Link("http://a.test/2"))
    one = msgspec.structs.replace(visit(), links=links, refused=(Link("http://b.test/", "img src", "x", True),))
    table_log(tmp_path, "links").append([visit(), one], [None, None])
    assert rows(tmp_path, "links") == [
        {
            "source": "http://a.test/",
            "target": ["http://a.test/1", "http://a.test/2", "http://b.test/"],
            "relation": ["a href", "a href", "img src"],
            "anchor": ["", "", "x"],
            "nofollow": [False, False, True],
        }
    ]


def test_a_frame_is_bounded(tmp_path: Path) -> None:
    links = tuple(Link(f"http://a.test/{n}") for n in range(2 * MAX_FRAME_LINKS + 1))
    table_log(tmp_path, "links").append([msgspec.structs.replace(visit(), links=links)], [None])
    frames = rows(tmp_path, "links")
    assert [len(frame["target"]) for frame in frames] == [MAX_FRAME_LINKS, MAX_FRAME_LINKS, 1]
    assert [url for frame in frames for url in frame["target"]] == [link.url for link in links]
    assert set(frames[0]) == {"source", "target"}


def test_an_item_that_is_too_large_is_told_and_not_kept(tmp_path: Path) -> None:
    log = table_log(tmp_path, "items")
    log.append([msgspec.structs.replace(visit(), items=(Item("k", "u", "x" * MAX_LINE_BYTES),))], [None])
    [item] = rows(tmp_path, "items")
    assert item["data"]["most"] == MAX_LINE_BYTES
    assert log.metrics.counters["items_too_large"] == 1


def test_a_segment_is_closed_by_the_next_and_a_run_by_the_next(tmp_path: Path) -> None:
    first = table_log(tmp_path, "pages", "items", segment_bytes=1)
    assert closed_segments(tmp_path) == []
    first.append([visit()], [None])
    assert closed_segments(tmp_path) == []
    first.append([visit()], [None])
    assert [one.serial for one in closed_segments(tmp_path)] == [1]
    second = table_log(tmp_path, "pages")
    second.append([visit()], [None])
    assert len(segments(tmp_path)) == 3
    assert len(closed_segments(tmp_path)) == 2
    mark_closed(tmp_path)
    assert closed_segments(tmp_path) == segments(tmp_path)


def test_ends_are_those_of_the_files(tmp_path: Path) -> None:
    log = table_log(tmp_path, "pages", "links", "items")
    log.append([msgspec.structs.replace(visit(), links=(Link("http://a.test/1"),))], [None])
    files = [*tmp_path.glob("state/agent-00/rows/*.jsonl"), tmp_path / LOG_PATH]
    assert log.ends() == {path.relative_to(tmp_path).as_posix(): path.stat().st_size for path in files}
    assert log.ends() == {}


def host_notes(count: int) -> Iterator[HostRow]:
    return (
        HostRow(host=f"h{n}.test", domain="h.test", at="2026-03-01T12:00:00.000000Z", delay=1.5) for n in range(count)
    )


def test_hosts_are_told_row_by_row_and_count_with_a_group_of_their_own(tmp_path: Path) -> None:
    log, ledger = table_log(tmp_path), RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    log.add("host_notes", host_notes(1001), ledger)
    [(file, end)] = ledger.committed_ends().items()
    assert (tmp_path / file).stat().st_size == end
    assert len(rows(tmp_path, "host_notes")) == 1001
    assert rows(tmp_path, "host_notes")[0]["delay"] == 1.5
    ledger.close()


def test_rows_whose_group_fails_are_taken_back(tmp_path: Path) -> None:
    log, ledger = table_log(tmp_path), RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()

    def refuse(group: Group) -> None:
        raise OSError("no space left")

    log.add("host_notes", host_notes(1), ledger)
    before = dict(ledger.committed_ends())
    with pytest.raises(OSError, match="no space left"):
        log.add("host_notes", host_notes(3), ledger, refuse)
    assert len(rows(tmp_path, "host_notes")) == 1
    assert (dict(ledger.committed_ends()), dict(log.ends())) == (before, {})
    ledger.close()


@pytest.mark.parametrize("noarchive", [True, False])
def test_a_page_row_says_noarchive(tmp_path: Path, noarchive: bool) -> None:
    one = msgspec.structs.replace(visit(), directives=("noarchive",) if noarchive else ())
    table_log(tmp_path, "pages").append([one], [None])
    assert rows(tmp_path, "pages")[0].get("noarchive", False) is noarchive


def test_an_agent_among_several_has_a_log_under_its_own_name(tmp_path: Path) -> None:
    log = table_log(tmp_path, "pages", log_name="agent-01")
    log.append([visit()], [None])
    assert not (tmp_path / LOG_PATH).exists()
    end = (tmp_path / "logs/agent-01.jsonl").stat().st_size
    assert log.ends()["logs/agent-01.jsonl"] == end
