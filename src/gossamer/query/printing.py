"""Rows as text: a table for people, CSV for spreadsheets, JSON lines for programs. Every cell was written by a stranger.

In CSV, a cell that a spreadsheet would take for a formula gets an apostrophe in front, unless it is asked for raw (fault 73);
in a table, in JSON, and in CSV on a terminal, characters that a terminal would obey are escaped (fault 70).
"""

import base64
import datetime
import itertools
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

import msgspec

from gossamer.storage.logs import printable

#: Rows by which the widths of a table are set; later ones may be wider.
MEASURED = 1_000

#: Characters of a cell that a table shows; the other forms have it whole.
CELL = 100

#: Beginnings that make a spreadsheet calculate (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_rows(
    form: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    out: TextIO,
    *,
    types: Sequence[str] = (),
    raw: bool = False,
) -> int:
    """Write rows as `csv`, `jsonl` or a table; returns how many there were."""
    if form == "csv":
        return write_csv(columns, rows, out, types=types, raw=raw)
    return (write_jsonl if form == "jsonl" else write_table)(columns, rows, out)


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> int:
    """Columns side by side; returns the number of rows."""
    remaining = iter(rows)
    head = [[_cell(value) for value in row] for row in itertools.islice(remaining, MEASURED)]
    widths = [max(map(_width, cells)) for cells in zip(columns, *head, strict=True)] if columns else []

    def line(cells: Sequence[str]) -> str:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join(padded).rstrip() + "\n"

    out.write(line([_escaped(name) for name in columns]))
    out.write("  ".join("-" * width for width in widths) + "\n")
    count = 0
    for cells in itertools.chain(head, ([_cell(value) for value in row] for row in remaining)):
        out.write(line(cells))
        count += 1
    return count


def write_csv(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    out: TextIO,
    *,
    types: Sequence[str] = (),
    raw: bool = False,
) -> int:
    """RFC 4180. On a terminal, characters that it would obey are escaped; files have them. Returns the number of rows.

    Args:
        out: where they go.
        types: of the columns, by DuckDB's names: a cell of type `JSON` that holds a text is that text, without JSON's
            quotes.
    """
    shown = _escaped if out.isatty() else str
    in_json = [at for at, kind in enumerate(types) if kind == "JSON"]
    out.write(csv_line([shown(name) for name in columns]))
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007  # the last number is the answer
        cells = list(row)
        for at in in_json:
            cells[at] = _bare(cells[at])
        out.write(csv_line([shown(csv_cell(value, raw)) for value in cells]))
    return count


def csv_line(cells: Sequence[str]) -> str:
    """Cells that hold anything but plain text are quoted: separators, line ends, controls, direction marks."""
    if len(cells) == 1 and not cells[0]:
        return '""\r\n'  # an empty line would be no row
    quoted = ('"' + cell.replace('"', '""') + '"' if _must_be_quoted(cell) else cell for cell in cells)
    return ",".join(quoted) + "\r\n"


def _must_be_quoted(cell: str) -> bool:
    return not cell.isprintable() or "," in cell or '"' in cell


def _bare(value: object) -> object:
    """A value of a JSON column as a cell that is quoted once: a text itself, anything else as its JSON."""
    if not (isinstance(value, str) and value.startswith('"')):
        return value
    try:
        return msgspec.json.decode(value, type=str)
    except msgspec.DecodeError:  # such as an escaped lone surrogate, which is no text
        return value


def write_jsonl(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> int:
    """One object a line; columns that are NULL stay, as null."""
    count = 0
    for count, text in enumerate(json_lines(columns, rows), 1):  # noqa: B007  # the last number is the answer
        out.write(text)
    return count


_encoder = msgspec.json.Encoder(enc_hook=str)


def json_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    for row in rows:
        yield json_line(dict(zip(columns, map(_json_value, row), strict=True)))


def json_line(value: object) -> str:
    return printable(_encoder.encode(value)).decode() + "\n"


def _json_value(value: object) -> object:
    """A value as a reader of JSON expects it: instants are UTC, bytes base64, and there is no NaN."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.isoformat(timespec="microseconds") + "Z"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, (list, dict)):
        return _nested(value)
    return value if isinstance(value, str) else str(value)


def _nested(value: object) -> str:
    """Lists and structures as JSON, which other programs read; maps whose keys no JSON has as Python writes them."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (TypeError, UnicodeEncodeError):
        return str(value)


def csv_cell(value: object, raw: bool = False) -> str:
    """A value as it stands in CSV; not `raw`: with an apostrophe before what a spreadsheet takes for a formula."""
    text = _text(value)
    return f"'{text}" if not raw and isinstance(value, str) and text.startswith(_FORMULA) else text


def shown(value: object) -> str:
    """A value as people read it, with every character escaped that would not show."""
    return _escaped(_text(value))


def _cell(value: object) -> str:
    text = _escaped(_text(value)[: 4 * CELL])
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _escaped(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _width(text: str) -> int:
    """Columns on a terminal: East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
