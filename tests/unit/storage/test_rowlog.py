"""The JSON log."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.engine.files import TAIL_BYTES
from gossamer.storage.logs import DELETED, LOG_PATH, summed
from gossamer.storage.recovery import unreadable_lines
from gossamer.storage.tables.log import JsonLog, JsonLogSheet
from gossamer.testing.storage import unanswered, visit
from gossamer.values.visit import Item, Location


def rows(directory: Path) -> list[Any]:
    found = [msgspec.json.decode(line) for line in (directory / LOG_PATH).read_bytes().splitlines()]
    assert all(row.pop("line_sum") for row in found)
    return found


def log(directory: Path) -> JsonLog:
    return JsonLog(JsonLogSheet(directory=str(directory)))


def test_a_page_line_bears_the_columns_of_the_pages_table(tmp_path: Path) -> None:
    log(tmp_path).append([visit()], [Location("warc/x.warc.gz", 7, 9)])
    [row] = rows(tmp_path)
    assert row == {
        "event": "page",
        "url": "http://a.test/",
        "host": "a.test",
        "domain": "a.test",
        "status": 200,
        "outcome": "ok",
        "fetched_at": "2023-11-14T22:13:20.250000Z",
        "elapsed_ms": 125.0,
        "bytes": 8,
        "depth": 0,
        "attempt": 1,
        "relation": "seed",
        "mime": "text/html",
        "ip": "127.0.0.1",
        "digest": visit().digest,
        "warc_file": "warc/x.warc.gz",
        "warc_offset": 7,
        "warc_length": 9,
    }


def test_nothing_to_say_leaves_no_file(tmp_path: Path, run: Any) -> None:
    one = log(tmp_path / "new")
    one.append([], [])
    run(one.stop())
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("torn", [b'{"url":', b"x" * (3 * TAIL_BYTES), b""])
def test_a_torn_last_line_is_cut_back(tmp_path: Path, run: Any, torn: bytes) -> None:
    first = log(tmp_path)
    first.append([visit()], [None])
    run(first.stop())
    with (tmp_path / LOG_PATH).open("ab") as file:
        file.write(torn)
    log(tmp_path).append([unanswered()], [None])
    assert [row["url"] for row in rows(tmp_path)] == ["http://a.test/", "http://a.test/gone"]


def test_a_file_of_nothing_but_a_torn_line_becomes_empty(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / LOG_PATH).write_bytes(b"torn")
    log(tmp_path).append([visit()], [None])
    assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize("value", [{1, 2}, 1 << 80, object(), "\ud800", ["\udfff"], {"\ud800": 1}, float("nan")])
def test_no_item_stops_the_log(tmp_path: Path, value: object) -> None:
    one = msgspec.structs.replace(visit(), items=(Item("k\ud800", "http://a.test/", value),))
    log(tmp_path).append([one], [None])
    page, item = rows(tmp_path)
    assert (page["event"], item["event"], item["kind"]) == ("page", "item", "k\ufffd")


def test_an_item_that_no_json_can_hold_stops_no_log_and_is_told(tmp_path: Path) -> None:
    value: list[object] = []
    value.append(value)
    log(tmp_path).append([msgspec.structs.replace(visit(), items=(Item("k", "u", value),))], [None])
    assert rows(tmp_path)[1]["data"] == {"unwritable": True}


def test_a_changed_byte_of_a_line_is_found_whichever_it_is(tmp_path: Path) -> None:
    log(tmp_path).append([visit(), visit()], [None, None])
    path = tmp_path / LOG_PATH
    data = path.read_bytes()
    assert list(unreadable_lines(path, len(data))) == []
    for place in range(len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert list(unreadable_lines(path, len(data))), data[place:]


def test_lines_of_older_programs_and_those_that_were_deleted_have_no_sum_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    old, gone = b'{"event":"page","url":"http://a.test/"}\n', DELETED + b"      \n"
    new = summed(b'{"event":"page"}')
    path.write_bytes(old + gone + new + gone + b"{}  \n" + b"   \n" + old)
    assert [number for number, _, _ in unreadable_lines(path, 1 << 20)] == [7], "behind a sum each line has one"
