"""Items as columns: a view `item.KIND` for each kind of items, with a column for each of their fields.

Place in the flow: :mod:`database` makes these views for a question that names one, since the fields have to be looked for in all
rows. The names come from pages: they stand in SQL quoted, and in paths of JSON only where they need no escape.
"""

import re
from collections.abc import Iterable, Sequence

from gossamer.query.engine import Connection
from gossamer.query.item_rows import MOST_COLUMNS, ORIGIN

#: The schema that the views are in.
SCHEMA = "item"

#: Kinds that have a view, the most frequent first; a processor's author has a handful.
MOST_KINDS = 200

_ASKED = re.compile(rf'(?i)\b"?{SCHEMA}"?\s*\.')

#: What can stand in a path of JSON and in a quoted name as it is.
_PLAIN = re.compile(r'[^"*\\\x00-\x1f\x7f]{1,200}\Z')

#: What DuckDB calls a value of JSON -> the type that a column has which holds such values alone.
_TYPES = {"VARCHAR": "VARCHAR", "BOOLEAN": "BOOLEAN", "BIGINT": "BIGINT", "UBIGINT": "UBIGINT", "DOUBLE": "DOUBLE"}
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
            fields = _fields(connection, name)
            connection.execute(f'CREATE VIEW {SCHEMA}."{kind}" AS {_selected(name, fields)}')
            made.append(f"{SCHEMA}.{kind}")
    return made


def _fields(connection: Connection, kind: str) -> list[tuple[str, list[str]]]:
    """The fields that items of a kind have, in the order in which they were first met, and the types of their values."""
    rows = connection.execute(
        "SELECT key, list(DISTINCT type) FROM ("
        "SELECT number, each.id AS place, each.key AS key, each.type AS type FROM ("
        "SELECT row_number() OVER () AS number, data FROM items WHERE lower(kind) = ? AND json_type(data) = 'OBJECT'"
        ") AS objects, json_each(objects.data) AS each) GROUP BY key ORDER BY min(number), min(place) LIMIT ?",
        [kind, MOST_COLUMNS],
    ).fetchall()
    return [(str(key), list(types)) for key, types in rows if _PLAIN.match(str(key))]


def _selected(kind: str, fields: Sequence[tuple[str, list[str]]]) -> str:
    names = {name.lower() for name, _ in fields}
    columns = [_column(name, types) for name, types in _told_apart(fields)]
    columns += [f"{name} AS {other if name in names else name}" for name, other in ORIGIN.items()]
    quoted = kind.replace("'", "''")
    return f"SELECT {', '.join(columns)} FROM items WHERE lower(kind) = '{quoted}'"


def _told_apart(fields: Iterable[tuple[str, list[str]]]) -> Iterable[tuple[str, list[str]]]:
    """SQL knows names without regard to case: of fields that differ in nothing else the first is a column."""
    seen: set[str] = set()
    for name, types in fields:
        if name.lower() not in seen:
            seen.add(name.lower())
            yield name, types


def _column(name: str, types: Sequence[str]) -> str:
    path = name.replace("'", "''")
    kinds = {one for one in types if one not in (None, "NULL")}
    if len(kinds) > 1 and kinds <= _NUMBERS:
        kinds = {"DOUBLE"}
    kind = _TYPES.get(kinds.pop(), "JSON") if len(kinds) == 1 else "JSON"
    value = f"json_extract(data, '$.\"{path}\"')"
    if kind == "VARCHAR":
        value = f"json_extract_string(data, '$.\"{path}\"')"
    elif kind != "JSON":
        value = f"TRY_CAST({value} AS {kind})"
    return f'{value} AS "{name}"'
