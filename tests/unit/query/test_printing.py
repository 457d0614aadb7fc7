"""Rows as text: nothing in a cell becomes a line, a formula, or a command to the terminal."""

import csv
import datetime
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from gossamer.query.printing import CELL, write_csv, write_rows
from gossamer.testing.storage import HOSTILE_TEXTS

Write = Callable[..., int]


def written(form: str, rows: list[tuple[object, ...]], **options: Any) -> str:
    out = io.StringIO()
    assert write_rows(form, ["a", "b"], rows, out, **options) == len(rows)
    return out.getvalue()


def test_a_table_is_aligned_by_what_is_seen() -> None:
    text = written("table", [("x", 1), ("日本", None), ("long one", True)])
    assert text.splitlines() == ["a         b", "--------  ----", "x         1", "日本", "long one  true"]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_cell_is_one_line_without_commands(text: str) -> None:
    shown = written("table", [(text, 1)])
    assert shown.count("\n") == 3
    assert shown.replace("\n", "").isprintable()


def test_a_table_cuts_what_is_too_long() -> None:
    assert len(written("table", [("x" * 999, 1)]).splitlines()[2]) < CELL + 10


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_csv_starts_no_formula_unless_asked(cell: str) -> None:
    [_, [safe, _]] = csv.reader(io.StringIO(written("csv", [(cell, "b")]), newline=""))
    [_, [raw, _]] = csv.reader(io.StringIO(written("csv", [(cell, "b")], raw=True), newline=""))
    assert (safe, raw) == (f"'{cell}", cell)


def test_csv_keeps_numbers_quotes_and_lines() -> None:
    text = written("csv", [(-5, 'say "x",\nthen y')])
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ["-5", 'say "x",\nthen y']]


def test_a_csv_cell_of_json_is_quoted_once() -> None:
    rows = [('"say \\"x\\""', ["a", 'b"']), ('{"a": "b"}', {"k": 2}), ("17", []), (None, None), ('"=1+1"', None)]
    text = written("csv", rows, types=["JSON", "VARCHAR[]"])
    [_, *cells] = csv.reader(io.StringIO(text, newline=""))
    assert cells == [
        ['say "x"', '["a","b\\""]'],
        ['{"a": "b"}', '{"k":2}'],
        ["17", "[]"],
        ["", ""],
        ["'=1+1", ""],
    ]


class Terminal(io.StringIO):
    """What says that a person reads it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_csv_on_a_terminal_has_no_character_that_it_would_obey(text: str) -> None:
    out = Terminal()
    write_csv([text], [(text,), ("\u202egnp.exe\x1b[2J",)], out)
    assert out.getvalue().replace("\r\n", "").isprintable()


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_csv_in_a_file_has_every_character_and_quotes_those_that_are_not_plain(text: str) -> None:
    out = written("csv", [(text, "x")], raw=True)
    [_, [cell, _]] = csv.reader(io.StringIO(out, newline=""))
    assert cell == text
    assert text.isprintable() or '"' in out


def test_csv_with_one_column_has_a_line_for_an_empty_cell() -> None:
    out = io.StringIO()
    write_csv(["a"], [("",), (None,)], out)
    assert list(csv.reader(io.StringIO(out.getvalue(), newline=""))) == [["a"], [""], [""]]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_json_lines_are_printable_and_whole(text: str) -> None:
    shown = written("jsonl", [(text, None)])
    assert shown.endswith("\n")
    assert shown[:-1].isprintable()
    assert json.loads(shown) == {"a": text, "b": None}


def test_instants_are_utc_and_no_number_is_none() -> None:
    shown = written("jsonl", [(datetime.datetime(2026, 3, 1, 12), float("nan"))])  # noqa: DTZ001  # as DuckDB has it
    assert json.loads(shown) == {"a": "2026-03-01T12:00:00.000000Z", "b": None}
