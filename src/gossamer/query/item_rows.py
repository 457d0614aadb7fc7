"""Items as rows of a file: which fields are columns, the values of cells, and lines of JSON. Pure.

Place in the flow: :mod:`gossamer.query.item_files` keeps rows of the feed in these forms, :mod:`gossamer.query.item_tables` writes
Parquet and spreadsheets by the same columns. An item is its fields; three more values say where it comes from.
"""

import dataclasses
import io
import typing
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gossamer.query.printing import csv_cell, csv_line, json_line
from gossamer.values.errors import UsageError

#: Columns of every row beside the item's fields, and their names where the item has a field of that name.
ORIGIN = {"kind": "item_kind", "url": "page_url", "visit": "item_visit"}

#: The last column of a file whose columns are settled: as JSON, the fields that no other column holds.
_REST, _REST_ELSE = "more", "more_fields"

#: The field of an item that has none, such as a number.
VALUE = "value"

#: Columns that a file has at most: the names come from pages.
MOST_COLUMNS = 200

#: Characters of a column's name, at most. Longer ones are no fields that an author meant.
_LONGEST_NAME = 200


class ItemLayout(msgspec.Struct, frozen=True):
    """The items and fields that are written. It belongs to the file, and stays as it is when a crawl goes on."""

    kind: str = ""
    """Only items of this kind; empty for all."""
    columns: tuple[str, ...] = ()
    """Only these fields, in this order; empty for all."""
    key: tuple[str, ...] = ()
    """Fields that no two items of a kind share; empty where they may."""
    is_raw: bool = False
    """Leave cells as they are that a spreadsheet takes for a formula."""


class ItemValues(msgspec.Struct, frozen=True, array_like=True):
    """One row of the table `items`."""

    kind: str
    url: str
    visit: str
    data: Any

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the item; a value that has none is a field itself."""
        if isinstance(self.data, dict):
            return self.data
        return {} if self.data is None else {VALUE: self.data}

    @property
    def origin(self) -> tuple[str, str, str]:
        """Kind, URL and visit, in the order of :data:`ORIGIN`."""
        return (self.kind, self.url, self.visit)


def items_of(columns: Sequence[str], rows: Iterable[Sequence[Any]], layout: ItemLayout) -> list[ItemValues]:
    """The items among rows of the feed that a file takes."""
    at = {name: number for number, name in enumerate(columns)}
    found = []
    for row in rows:
        kind, data = row[at["kind"]], row[at["data"]]
        if layout.kind in ("", kind):
            value = None if data is None else msgspec.json.decode(data)
            found.append(ItemValues(kind, row[at["url"]], row[at["visit"]], value))
    return found


def fields_in(items: Iterable[ItemValues], known: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of the items' fields as they are met, no more than :data:`MOST_COLUMNS`."""
    found = dict.fromkeys(known)
    for item in items:
        if len(found) >= MOST_COLUMNS:
            break
        found |= dict.fromkeys(name for name in item.fields if 0 < len(name) <= _LONGEST_NAME and name.isprintable())
    return tuple(found)[:MOST_COLUMNS]


def headings(layout: ItemLayout, fields: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns of a file that has these fields."""
    if layout.columns:
        return layout.columns
    rest = _REST_ELSE if _REST in fields else _REST
    return (*fields, *(other if name in fields else name for name, other in ORIGIN.items()), rest)


def cells(item: ItemValues, layout: ItemLayout, fields: Sequence[str]) -> list[Any]:
    """The values of a row under :func:`headings`; what no column holds is an object in the last."""
    if layout.columns:
        return _chosen(item, layout)
    held = item.fields
    rest = {name: value for name, value in held.items() if name not in fields}
    return [*(held.get(name) for name in fields), *item.origin, rest or None]


def _chosen(item: ItemValues, layout: ItemLayout) -> list[Any]:
    known = _named(item)
    return [known.get(name) for name in layout.columns]


def _named(item: ItemValues) -> dict[str, Any]:
    """The item as one object: its fields, and behind them where it comes from."""
    held = item.fields
    origin = zip(ORIGIN.items(), item.origin, strict=True)
    return held | {other if name in held else name: value for (name, other), value in origin}


def as_object(item: ItemValues, layout: ItemLayout) -> dict[str, Any]:
    """The item as one object of JSON."""
    if layout.columns:
        return dict(zip(layout.columns, _chosen(item, layout), strict=True))
    return _named(item)


def key_of(item: ItemValues, layout: ItemLayout) -> bytes | None:
    """The key that no two items of a file share; None for an item that lacks one of its fields, and for a file without a key."""
    if not layout.key:
        return None
    known = _named(item)
    if any(known.get(name) is None for name in layout.key):
        return None
    return msgspec.json.encode([item.kind, *(known[name] for name in layout.key)], order="deterministic")


def json_text(items: Iterable[ItemValues], layout: ItemLayout) -> str:
    """One object a line."""
    return "".join(json_line(as_object(item, layout)) for item in items)


def csv_text(items: Iterable[ItemValues], layout: ItemLayout, fields: Sequence[str], *, heading: bool) -> str:
    """Lines of CSV (RFC 4180), with the names of the columns in front where the file begins."""
    out = io.StringIO()
    raw = layout.is_raw
    if heading:
        out.write(csv_line([csv_cell(name, raw) for name in headings(layout, fields)]))
    for item in items:
        out.write(csv_line([csv_cell(plain(cell), raw) for cell in cells(item, layout, fields)]))
    return out.getvalue()


def plain(value: Any) -> Any:
    """The value of one cell: lists and objects as JSON."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


def columns_of(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a type: a dataclass, a msgspec or attrs class, a pydantic model, a TypedDict.

    Raises:
        UsageError: it is a type without declared fields.
    """
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return tuple(field.encode_name for field in msgspec.structs.fields(kind))
    for attribute in ("model_fields", "__attrs_attrs__"):
        found = getattr(kind, attribute, None)
        if found:
            return tuple(found) if isinstance(found, dict) else tuple(field.name for field in found)
    if typing.is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return tuple(typing.get_type_hints(kind))
    name = getattr(kind, "__name__", repr(kind))
    raise UsageError(f"item_columns: {name} declares no fields; give a dataclass, or a list of names")
