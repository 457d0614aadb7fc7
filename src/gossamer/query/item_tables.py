"""Items as tables: files that are written in one piece, and views with a column for each field.

Place in the flow: :mod:`gossamer.query.item_files` keeps rows while a crawl runs, and has a JSON list, a Parquet file or a
spreadsheet written here when it stops, whole beside its name, and put there at once. :mod:`gossamer.query.database` makes the views
for a question that names one, since the fields have to be looked for in all rows.
"""

import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import xlsxwriter

from gossamer.engine.files import scratch
from gossamer.query import item_files
from gossamer.query.engine import PARQUET, Connection, connect
from gossamer.query.printing import json_line
from gossamer.query.schema import LARGEST_LINE, literal

#: Reads all items from the first one on, each time that it is called.
Items = Callable[[], Iterable[item_files.ItemValues]]

#: Rows of a sheet beneath the names of its columns, and characters of a cell: the limits of the format.
SHEET_ROWS = 1_048_575
CELL_CHARACTERS = 32_767

#: Whole numbers beyond this are no longer exact in a spreadsheet.
_EXACT = 2**53

#: Whole numbers that a column of 64 bits holds.
_BIGINT = 2**63

_SQL_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


def write_whole(file: Path, items: Items, layout: item_files.ItemLayout) -> list[str]:
    """Write a file as its name says; returns what a reader of it must be told.
    Raises OSError: it cannot be written; what was there before stays."""
    fresh = file.with_name(f"{file.name}.new")
    told = WHOLE_FORMS[file.suffix](fresh, items, layout)
    fresh.replace(file)
    return told


def _write_json(target: Path, items: Items, layout: item_files.ItemLayout) -> list[str]:
    with target.open("w", encoding="utf-8", errors="replace") as file:
        file.write("[")
        for number, item in enumerate(items()):
            file.write(",\n" if number else "\n")
            file.write(json_line(item_files.as_object(item, layout)).rstrip("\n"))
        file.write("\n]\n")
    return []


# -- Parquet


def _write_parquet(target: Path, items: Items, layout: item_files.ItemLayout) -> list[str]:
    fields = item_files.fields_in(items())
    names = item_files.headings(layout, fields)
    types = _types(items, layout, fields, len(names))
    with scratch() as folder, connect(folder) as connection:
        rows, made = Path(folder, "rows.jsonl"), Path(folder, "made.parquet")
        with rows.open("wb") as file:
            for item in items():
                row = item_files.cells(item, layout, fields)
                file.write(msgspec.json.encode({f"c{at}": value for at, value in enumerate(row)}) + b"\n")
        read = ", ".join(f"'c{at}': '{kind}'" for at, kind in enumerate(types))
        chosen = ", ".join(f"c{at} AS {name}" for at, name in enumerate(_distinct(names)))
        connection.execute(
            f"COPY (SELECT {chosen} FROM read_json('{rows}', format = 'newline_delimited', columns = {{{read}}}, "
            f"maximum_object_size = {LARGEST_LINE})) TO '{made}' ({PARQUET})"
        )
        shutil.copyfile(made, target)
    return []


def _types(items: Items, layout: item_files.ItemLayout, fields: Sequence[str], count: int) -> list[str]:
    """A type for each column that holds all its values: the plain one where they have one, JSON where they do not."""
    found: list[set[str]] = [set() for _ in range(count)]
    for item in items():
        for kinds, value in zip(found, item_files.cells(item, layout, fields), strict=True):
            if value is not None:
                is_large = type(value) is int and not -_BIGINT <= value < _BIGINT
                kinds.add("JSON" if is_large else _SQL_TYPES.get(type(value), "JSON"))
    joined = ({"DOUBLE"} if kinds == {"BIGINT", "DOUBLE"} else kinds for kinds in found)
    return [kinds.pop() if len(kinds) == 1 else "JSON" if kinds else "VARCHAR" for kinds in joined]


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """The names of columns as SQL has them, told apart without regard to case, as SQL does."""
    taken: set[str] = set()
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        free = next(one for one in itertools.chain((name,), numbered) if one.lower() not in taken)
        taken.add(free.lower())
        shown = "".join(one if one.isprintable() else "_" for one in free)
        yield '"' + shown.replace('"', '""') + '"'


# -- spreadsheets


def _write_xlsx(target: Path, items: Items, layout: item_files.ItemLayout) -> list[str]:
    """Texts are written as texts: no cell is a formula or a link, whatever it begins with."""
    fields = item_files.fields_in(items())
    names = item_files.headings(layout, fields)
    cut = 0
    with scratch() as folder:
        options = {"constant_memory": True, "tmpdir": folder, "strings_to_urls": False, "strings_to_formulas": False}
        with closing(xlsxwriter.Workbook(str(target), options)) as book:
            sheets = itertools.count(1)
            sheet = _sheet(book, next(sheets), names)
            row = 0
            for item in items():
                if row == SHEET_ROWS:
                    sheet, row = _sheet(book, next(sheets), names), 0
                row += 1
                for column, value in enumerate(item_files.cells(item, layout, fields)):
                    cut += _put(sheet, row, column, value)
    return (
        [f"{cut} cells were longer than a spreadsheet takes, and are cut; `gossamer query` has them whole"]
        if cut
        else []
    )


def _sheet(book: Any, number: int, names: Sequence[str]) -> Any:
    sheet = book.add_worksheet("items" if number == 1 else f"items {number}")
    sheet.freeze_panes(1, 0)
    for column, name in enumerate(names):
        sheet.write_string(0, column, name[:CELL_CHARACTERS])
    return sheet


def _put(sheet: Any, row: int, column: int, value: Any) -> bool:
    """Write one cell; True where it had to be cut."""
    value, text = item_files.plain(value), ""
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float) and abs(value) <= _EXACT:
        sheet.write_number(row, column, value)
    elif value is not None:
        text = str(value).encode("utf-8", "replace").decode()
        sheet.write_string(row, column, text[:CELL_CHARACTERS])
    return len(text) > CELL_CHARACTERS


#: How the name of a file ends -> what writes it.
WHOLE_FORMS: dict[str, Callable[[Path, Items, item_files.ItemLayout], list[str]]] = {
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".xlsx": _write_xlsx,
}

# Views `item.KIND`. The names of their columns come from pages: they stand in SQL quoted, and in paths of JSON only where they need
# no escape.

#: The schema that the views are in.
SCHEMA = "item"

#: Kinds that have a view, the most frequent first; a processor's author has a handful.
MOST_KINDS = 200

_ASKED = re.compile(rf'(?i)\b"?{SCHEMA}"?\s*\.')

#: Names that can stand in a path of JSON and in a quoted name as they are.
_PLAIN = re.compile(r'[^"*\\\x00-\x1f\x7f]{1,200}\Z')

#: DuckDB's name of a value of JSON -> the type of a column that holds such values alone.
_VIEW_TYPES = {"VARCHAR": "VARCHAR", "BOOLEAN": "BOOLEAN", "BIGINT": "BIGINT", "UBIGINT": "UBIGINT", "DOUBLE": "DOUBLE"}
_NUMBERS = frozenset(("BIGINT", "UBIGINT", "DOUBLE"))


def asks_for_items(question: str) -> bool:
    """Whether a question names such a view."""
    return _ASKED.search(question) is not None


def make_item_views(connection: Connection) -> list[str]:
    """Make the views of what `items` shows by now; returns their names, as `item.Book`."""
    connection.execute(f"CREATE SCHEMA {SCHEMA}")
    kinds = connection.execute(
        "SELECT min(kind), lower(kind) AS name, count(*) FROM items GROUP BY name ORDER BY 3 DESC, name LIMIT ?",
        [MOST_KINDS],
    ).fetchall()
    made = []
    for kind, name, _ in kinds:
        if _PLAIN.match(kind):
            # The fields that items of the kind have, in the order in which they were first met, and the types of their values.
            rows = connection.execute(
                "SELECT key, list(DISTINCT type) FROM ("
                "SELECT number, each.id AS place, each.key AS key, each.type AS type FROM ("
                "SELECT row_number() OVER () AS number, data FROM items WHERE lower(kind) = ? AND json_type(data) = 'OBJECT'"
                ") AS objects, json_each(objects.data) AS each) GROUP BY key ORDER BY min(number), min(place) LIMIT ?",
                [name, item_files.MOST_COLUMNS],
            ).fetchall()
            # SQL knows names without regard to case: of fields that differ in nothing else the first is a column.
            fields: dict[str, tuple[str, list[str]]] = {}
            for key, types in rows:
                if _PLAIN.match(str(key)):
                    fields.setdefault(str(key).lower(), (str(key), list(types)))
            columns = [_column(*field) for field in fields.values()]
            columns += [f"{own} AS {other if own in fields else own}" for own, other in item_files.ORIGIN.items()]
            selected = f"SELECT {', '.join(columns)} FROM items WHERE lower(kind) = {literal(name)}"
            connection.execute(f'CREATE VIEW {SCHEMA}."{kind}" AS {selected}')
            made.append(f"{SCHEMA}.{kind}")
    return made


def _column(name: str, types: Sequence[str]) -> str:
    path = name.replace("'", "''")
    kinds = {one for one in types if one not in (None, "NULL")}
    if len(kinds) > 1 and kinds <= _NUMBERS:
        kinds = {"DOUBLE"}
    kind = _VIEW_TYPES.get(kinds.pop(), "JSON") if len(kinds) == 1 else "JSON"
    value = f"json_extract(data, '$.\"{path}\"')"
    if kind == "VARCHAR":
        value = f"json_extract_string(data, '$.\"{path}\"')"
    elif kind != "JSON":
        value = f"TRY_CAST({value} AS {kind})"
    return f'{value} AS "{name}"'
