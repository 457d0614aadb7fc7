"""Our tables, and what follows them, keep the promises of their contracts."""

import csv
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import _duckdb
import msgspec
import pytest

from gossamer.query.item_files import ItemFile, ItemLayout
from gossamer.storage.tables.contract import FeedBatch, FeedConsumer, FeedMark, FeedPlace, shipped
from gossamer.testing import check_feed_consumer, check_table
from gossamer.testing.feeding import killed_after

COLUMNS = ("kind", "url", "data", "visit")


@pytest.mark.parametrize("name", [table.name for table in shipped() if table.rows])
def test_a_table_that_ships(name: str) -> None:
    [table] = [one for one in shipped() if one.name == name]
    check_table(table)


def item_row(number: int) -> tuple[Any, ...]:
    return ("k", f"http://a.test/{number}", f'{{"n":{number},"text":"=1\\n,"}}', f"v-{number}")


#: A file that is written when a crawl stops holds what was taken by then: it is asked for before each look.
FORMS = ("jsonl", "csv", "json", "parquet", "xlsx")

#: Lines between two kills of an item file.
STEPS = (41, pytest.param(7, marks=pytest.mark.long))


def rows_of(file: Path) -> list[Any]:
    """The rows of an item file, by a reader that is not ours where there is one."""
    if file.suffix == ".csv":
        with file.open(newline="") as lines:
            return list(csv.DictReader(lines))
    if file.suffix == ".jsonl":
        return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    if file.suffix == ".json":
        found: list[Any] = msgspec.json.decode(file.read_bytes())
        return found
    if file.suffix == ".xlsx":
        with zipfile.ZipFile(file) as book:
            return re.findall(rb"(?s)<row .*?</row>", book.read("xl/worksheets/sheet1.xml"))[1:]
    return _duckdb.connect().execute(f"SELECT * FROM '{file}'").fetchall()


@pytest.mark.forks
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("form", FORMS)
def test_an_item_file_misses_no_item_and_has_none_twice(tmp_path: Path, form: str, step: int) -> None:
    file = tmp_path / f"items.{form}"

    def kept() -> list[Any]:
        ItemFile(tmp_path / "crawl", file).finish()
        return rows_of(file) if file.exists() else []

    check_feed_consumer(lambda: ItemFile(tmp_path / "crawl", file), kept, COLUMNS, item_row, step=step)


@pytest.mark.forks
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("form", FORMS)
def test_a_key_makes_no_item_lost_when_its_file_is_killed(tmp_path: Path, form: str, step: int) -> None:
    file, layout = tmp_path / f"items.{form}", ItemLayout(key=("n",))

    def kept() -> list[Any]:
        ItemFile(tmp_path / "crawl", file).finish()
        return rows_of(file) if file.exists() else []

    check_feed_consumer(lambda: ItemFile(tmp_path / "crawl", file, layout), kept, COLUMNS, item_row, step=step)


@pytest.mark.parametrize("form", FORMS)
def test_an_item_whose_key_the_file_has_is_left_out_and_counted(tmp_path: Path, form: str) -> None:
    file, layout = tmp_path / f"items.{form}", ItemLayout(key=("text",))
    first = ItemFile(tmp_path / "crawl", file, layout)
    first.take(FeedBatch(COLUMNS, [item_row(1), item_row(2)], FeedMark(0, {"a": FeedPlace("r", 1, 2)})))
    later = ItemFile(tmp_path / "crawl", file)
    later.take(FeedBatch(COLUMNS, [item_row(3)], FeedMark(0, {"a": FeedPlace("r", 1, 3)})))
    assert later.finish() == [f"{file}: 2 items were left out, since an earlier one has the same text"]
    assert len(rows_of(file)) == 1


@pytest.mark.forks
@pytest.mark.parametrize("form", ["json", "parquet", "xlsx"])
def test_a_file_that_cannot_grow_is_the_old_or_the_new_one_wherever_its_writing_is_killed(
    tmp_path: Path, form: str
) -> None:
    file = tmp_path / f"items.{form}"
    one = ItemFile(tmp_path / "crawl", file)
    one.take(FeedBatch(COLUMNS, [item_row(1)], FeedMark(0, {"a": FeedPlace("r", 1, 1)})))
    one.finish()
    before = file.read_bytes()
    one.take(FeedBatch(COLUMNS, [item_row(2)], FeedMark(0, {"a": FeedPlace("r", 1, 2)})))
    for lines in range(1, 400, 19):
        killed_after(lines, lambda: ItemFile(tmp_path / "crawl", file).finish())
        now = file.read_bytes()
        assert now == before or len(rows_of(file)) == 2
    one.finish()
    assert len(rows_of(file)) == 2


def test_a_parquet_file_has_a_type_for_each_field(tmp_path: Path) -> None:
    file = tmp_path / "items.parquet"
    one = ItemFile(tmp_path / "crawl", file)
    values = [
        '{"n":1,"f":1,"t":"a","b":true,"l":[1],"m":1,"big":99999999999999999999,"T":"x","q\\"uote":"="}',
        '{"f":1.5,"m":"x"}',
    ]
    rows = [("k", "http://a.test/", value, "v") for value in values]
    one.take(FeedBatch(COLUMNS, rows, FeedMark(0, {"a": FeedPlace("r", 1, 2)})))
    one.finish()
    told = _duckdb.connect().execute(f"DESCRIBE SELECT * FROM '{file}'").fetchall()
    kinds = {name: kind for name, kind, *_ in told}
    assert (kinds["n"], kinds["f"], kinds["t"], kinds["b"]) == ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN")
    assert (kinds["l"], kinds["m"], kinds["big"], kinds["T_2"]) == ("JSON", "JSON", "JSON", "VARCHAR")
    assert 'q"uote' in kinds


def test_a_spreadsheet_holds_no_formula_and_no_link(tmp_path: Path) -> None:
    file = tmp_path / "items.xlsx"
    one = ItemFile(tmp_path / "crawl", file)
    data = '{"a":"=1+1","b":"http://a.test/","c":2.5,"d":true,"e":"' + "x" * 40_000 + '"}'
    one.take(FeedBatch(COLUMNS, [("k", "u", data, "v")], FeedMark(0, {"a": FeedPlace("r", 1, 1)})))
    assert one.finish() == [
        f"{file}: 1 cells were longer than a spreadsheet takes, and are cut; `gossamer query` has them whole"
    ]
    with zipfile.ZipFile(file) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        assert "<f>" not in sheet
        assert "hyperlink" not in sheet
        assert "<t>=1+1</t>" in sheet
        assert "<v>2.5</v>" in sheet
        assert not [name for name in book.namelist() if "_rels/sheet" in name]


def test_a_file_of_an_older_layout_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    one = ItemFile(tmp_path / "crawl", file)
    one.take(FeedBatch(COLUMNS, [item_row(1)], FeedMark(0, {"a": FeedPlace("r", 1, 1)})))
    [note] = (tmp_path / "crawl" / "state" / "item-files").glob("*.json")
    note.write_bytes(note.read_bytes().replace(b'"version":1', b'"version":0'))
    again = ItemFile(tmp_path / "crawl", file)
    assert again.mark() == FeedMark()
    assert not file.read_bytes()


def test_the_triple_store_misses_no_triple_and_has_none_twice(tmp_path: Path) -> None:
    """In a process of its own: here, another test may have opened a store already, whose threads a fork does not have."""
    script = Path(__file__).with_name("triple_store_promises.py")
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "promises are kept" in done.stdout


class Forgetful:
    """Keeps rows first and its mark in a second step, without cutting back: a kill between the two doubles rows."""

    table = "items"
    columns = COLUMNS
    rows_at_once = 1_000

    def __init__(self, directory: Path) -> None:
        self._rows, self._mark = directory / "rows", directory / "mark"

    def mark(self) -> FeedMark:
        return msgspec.json.decode(self._mark.read_bytes(), type=FeedMark) if self._mark.exists() else FeedMark()

    def rebuild(self, generation: int) -> None:
        self._rows.unlink(missing_ok=True)
        self._keep(FeedMark(generation))

    def take(self, batch: FeedBatch) -> None:
        with self._rows.open("ab") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in batch.rows)
        self._keep(batch.mark)

    def _keep(self, mark: FeedMark) -> None:
        fresh = self._mark.with_name("fresh")
        fresh.write_bytes(msgspec.json.encode(mark))
        fresh.replace(self._mark)


def test_the_suite_finds_a_consumer_that_doubles_rows(tmp_path: Path) -> None:
    def make() -> FeedConsumer:
        return Forgetful(tmp_path)

    def kept() -> list[Any]:
        rows = tmp_path / "rows"
        return rows.read_bytes().splitlines() if rows.exists() else []

    with pytest.raises(AssertionError, match="twice"):
        check_feed_consumer(make, kept, COLUMNS, item_row)
