"""Rows of texts are read as DuckDB reads them."""

import json
from pathlib import Path

import pytest

from gossamer.query.engine import connect
from gossamer.query.feeds import TextRows, is_textual
from gossamer.query.schema import select_from_log, tables_that_ship
from gossamer.storage.tables.contract import ColumnSpec, TableSpec

FRAMES = TableSpec(
    "frames",
    columns=(
        ColumnSpec("page", "VARCHAR"),
        ColumnSpec("name", "VARCHAR", is_many=True),
        ColumnSpec("kind", "VARCHAR", is_many=True, fill="plain"),
        ColumnSpec("note", "VARCHAR", fill="none"),
        ColumnSpec("number", "BIGINT"),
    ),
)
LINES = [
    {"page": "a", "name": ["x", "", 'é"\n\u2028'], "kind": ["1", None, "3"], "note": "n", "number": 3},
    {"page": "b", "name": ["y"], "number": 1},
    {"page": "c", "name": []},
    {"page": None, "name": ["z", "w"], "kind": ["only"]},
    {"page": "d", "name": ["last"], "unknown": {"of": ["another", "version"]}},
]
COLUMNS = ("kind", "page", "note", "name")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "frames.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def test_they_are_those_of_duckdb(log: Path, tmp_path: Path) -> None:
    assert is_textual(FRAMES, COLUMNS)
    read = [row for rows, _ in TextRows(FRAMES, COLUMNS).of(log, 0, log.stat().st_size) for row in rows]
    with connect(str(tmp_path)) as connection:
        chosen = ", ".join(COLUMNS)
        assert read == connection.execute(f"SELECT {chosen} FROM ({select_from_log(FRAMES, [log])})").fetchall()
    assert len(read) == 7


def test_lines_are_read_from_one_byte_to_another(log: Path) -> None:
    first, second = (len(json.dumps(line)) + 1 for line in LINES[:2])
    rows = TextRows(FRAMES, ("page",))
    assert list(rows.of(log, first, first + second)) == [([("b",)], second)]
    assert list(rows.of(log, 0, first + second - 1)) == [([("a",)] * 3, first)], "the second line is not committed"


def test_a_line_of_another_shape_is_told_with_its_place(log: Path) -> None:
    log.write_text('{"page": "a", "name": ["x"]}\n{"page": "b", "name": 7}\n')
    with pytest.raises(ValueError, match=r"frames\.jsonl is damaged before byte 54: .*name"):
        list(TextRows(FRAMES, ("page", "name")).of(log, 0, 100))


@pytest.mark.parametrize("columns", [("number",), ("page", "number"), ("lost",), ()])
def test_what_is_no_text_is_left_to_duckdb(columns: tuple[str, ...]) -> None:
    assert not is_textual(FRAMES, columns)


def test_triples_are_texts_and_pages_are_not() -> None:
    tables = tables_that_ship()
    assert is_textual(tables["triples"], tables["triples"].names)
    assert not is_textual(tables["pages"], tables["pages"].names)
    assert not is_textual(tables["links"], tables["links"].names), "its log leaves rows out, or has numbers"
