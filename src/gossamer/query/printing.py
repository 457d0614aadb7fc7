"""Rows as text: a table for people, CSV for spreadsheets, JSON lines for programs. Every cell was written by a stranger.

In CSV, a cell that a spreadsheet would take for a formula gets an apostrophe in front, unless it is asked for raw (fault 73);
in a table, in JSON, and in CSV on a terminal, characters that a terminal would obey are escaped (fault 70).
"""

import base64
import datetime
import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from gossamer.storage.logs import printable

if TYPE_CHECKING:
    from gossamer.query.reports import MadeReport, MadeSection

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
    numbers = itertools.count()
    counted = (row for row, _ in zip(rows, numbers, strict=False))
    if form == "csv":
        write_csv(columns, counted, out, types=types, raw=raw)
    elif form == "jsonl":
        out.writelines(json_lines(columns, counted))
    else:
        write_table(columns, counted, out)
    return next(numbers)


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    remaining = iter(rows)
    head = [[_cell(value) for value in row] for row in itertools.islice(remaining, MEASURED)]
    widths = [max(map(_width, cells)) for cells in zip(columns, *head, strict=True)] if columns else []

    def line(cells: Sequence[str]) -> str:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join(padded).rstrip() + "\n"

    out.write(line([_escaped(name) for name in columns]))
    out.write("  ".join("-" * width for width in widths) + "\n")
    out.writelines(map(line, itertools.chain(head, ([_cell(value) for value in row] for row in remaining))))


def write_csv(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO, *, types: Sequence[str] = (), raw: bool = False
) -> None:
    """RFC 4180. On a terminal, characters that it would obey are escaped; files have them. A cell of the type `JSON` that holds
    a text is that text, without JSON's quotes."""
    shown = _escaped if out.isatty() else str
    in_json = [at for at, kind in enumerate(types) if kind == "JSON"]
    out.write(csv_line([shown(name) for name in columns]))
    for row in rows:
        cells = list(row)
        for at in in_json:
            cells[at] = _bare(cells[at])
        out.write(csv_line([shown(csv_cell(value, raw)) for value in cells]))


def csv_line(cells: Sequence[str]) -> str:
    """Cells that hold anything but plain text are quoted: separators, line ends, controls, direction marks."""
    if len(cells) == 1 and not cells[0]:
        return '""\r\n'  # an empty line would be no row
    is_plain = (cell.isprintable() and "," not in cell and '"' not in cell for cell in cells)
    quoted = (
        cell if plain else '"' + cell.replace('"', '""') + '"' for cell, plain in zip(cells, is_plain, strict=True)
    )
    return ",".join(quoted) + "\r\n"


def _bare(value: object) -> object:
    """A value of a JSON column as a cell that is quoted once: a text itself, anything else as its JSON."""
    if not (isinstance(value, str) and value.startswith('"')):
        return value
    try:
        return msgspec.json.decode(value, type=str)
    except ValueError:  # such as an escaped lone surrogate, which is no text
        return value


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
        try:
            return msgspec.json.encode(value, enc_hook=str).decode()
        except (TypeError, UnicodeEncodeError):
            return str(value)  # a map whose keys no JSON has
    return value if isinstance(value, str) else str(value)


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


# Reports as one HTML file that loads nothing: tables, and bars as SVG. Texts are escaped and shown as a terminal would show
# them, without characters that reorder a line; only URLs of the web become links, and the file forbids itself scripts and
# anything from outside.

#: Bars of a plot: more are not told apart at a glance.
BARS = 20

#: Pixels: height of a bar with its gap, width of the texts and of the longest bar.
_ROW, _LABEL, _LONGEST = 20, 300, 420

#: Characters of a label.
_LABEL_LETTERS = 44

#: Schemes that a browser may follow: none that runs anything.
_LINK = re.compile(r"https?://[^\s<>\"]{1,2000}\Z")

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2em } h3 { font-size: 1em; margin-bottom: .3em }
table { border-collapse: collapse; font-size: .9em } td, th { padding: .2em .7em; text-align: left; vertical-align: top;
border-bottom: 1px solid #ddd; overflow-wrap: anywhere } td.number { text-align: right; white-space: nowrap }
.more { color: #666 } svg text { font: 12px system-ui, sans-serif; fill: #222 } svg rect { fill: #4a78b5 }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd }
svg text { fill: #ddd } td, th { border-color: #444 }
a { color: #8ab4f8 } }
"""


def page_of(reports: "Sequence[MadeReport]", crawl: str, when: str) -> str:
    """The file; `when` is the time at which the reports were asked for, for people."""
    title = f"{', '.join(report.name for report in reports)}: {shown(crawl)}"
    body = ""
    for report in reports:
        body += f'<section id="{escape(report.name)}"><h2>{escape(report.name)}</h2><p>{escape(report.doc)}</p>\n'
        for section in report.sections:
            body += f"<h3>{escape(section.title)}</h3>\n{svg_of(section)}{_table(section)}"
        body += "</section>\n"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(shown(crawl))}</h1><p>{escape(when)}</p>\n{body}</body></html>\n"
    )


def _table(section: "MadeSection") -> str:
    if not section.rows:
        return '<p class="more">none</p>\n'
    head = "".join(f"<th>{escape(name)}</th>" for name in section.columns)
    rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>\n" for row in section.rows)
    left = section.total - len(section.rows)
    more = f'<p class="more">and {left:,} more</p>\n' if left else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>\n{more}"


def _html_cell(value: Any) -> str:
    text = escape(shown(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{text}</td>'
    if isinstance(value, str) and _LINK.match(value) and value.isprintable():
        return f'<td><a rel="noreferrer nofollow" href="{escape(value)}">{text}</a></td>'
    return f"<td>{text}</td>"


def svg_of(section: "MadeSection") -> str:
    """The bars of a section; nothing where it has none."""
    if section.plot is None or not section.rows:
        return ""
    labels, values = section.columns.index(section.plot.label), section.columns.index(section.plot.value)
    bars = [(shown(row[labels]) or "none", float(row[values] or 0)) for row in section.rows[:BARS]]
    longest = max(value for _, value in bars)
    if longest <= 0:
        return ""
    width, height = _LABEL + _LONGEST + 110, _ROW * len(bars)
    drawn = "".join(_bar(number, label, value, longest) for number, (label, value) in enumerate(bars))
    said = escape(f"{section.title}: {section.plot.value} by {section.plot.label}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{said}">{drawn}</svg>\n'
    )


def _bar(number: int, label: str, value: float, longest: float) -> str:
    top, length = number * _ROW, max(1.0, value / longest * _LONGEST)
    short = label if len(label) <= _LABEL_LETTERS else f"{label[: _LABEL_LETTERS - 1]}…"
    return (
        f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end"><title>{escape(label)}</title>{escape(short)}</text>'
        f'<rect x="{_LABEL}" y="{top + 3}" width="{length:.1f}" height="{_ROW - 6}"/>'
        f'<text x="{_LABEL + length + 6:.1f}" y="{top + 14}">{value:,.10g}</text>'
    )
