"""Items as rows of files."""

import csv
import dataclasses
import io
import json
from typing import ClassVar, NamedTuple, TypedDict

import msgspec
import pytest

from gossamer.query.item_files import (
    MOST_COLUMNS,
    ItemLayout,
    ItemValues,
    as_object,
    columns_of,
    csv_text,
    fields_in,
    headings,
    items_of,
    key_of,
)
from gossamer.values.errors import UsageError

BOOK = ItemValues("Book", "http://a.test/1", "v1", {"title": "=1+1", "url": "http://a.test/book", "tags": ["x"]})
NUMBER = ItemValues("n", "http://a.test/2", "v2", 7)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_fields_come_first_and_keep_their_names() -> None:
    fields = fields_in([BOOK])
    assert headings(ItemLayout(), fields) == ("title", "url", "tags", "kind", "page_url", "visit", "more")
    [row] = read(csv_text([BOOK], ItemLayout(), fields, heading=True))
    assert (row["title"], row["url"], row["page_url"], row["tags"]) == (
        "'=1+1",
        "http://a.test/book",
        "http://a.test/1",
        '["x"]',
    )


def test_a_field_that_is_no_column_is_not_lost() -> None:
    [row] = read(csv_text([BOOK], ItemLayout(), ("title",), heading=True))
    assert json.loads(row["more"]) == {"url": "http://a.test/book", "tags": ["x"]}


def test_a_formula_is_left_where_that_was_chosen() -> None:
    [row] = read(csv_text([BOOK], ItemLayout(is_raw=True), ("title",), heading=True))
    assert row["title"] == "=1+1"


def test_a_value_without_fields_is_a_field() -> None:
    assert as_object(NUMBER, ItemLayout()) == {
        "value": 7,
        "kind": "n",
        "url": "http://a.test/2",
        "visit": "v2",
    }


def test_named_columns_are_all_that_is_written() -> None:
    layout = ItemLayout(columns=("title", "missing", "page_url"))
    assert as_object(BOOK, layout) == {"title": "=1+1", "missing": None, "page_url": "http://a.test/1"}
    assert csv_text([BOOK], layout, (), heading=True).splitlines()[0] == "title,missing,page_url"


def test_only_items_of_the_kind_that_was_named_are_taken() -> None:
    rows = [("Book", "u", '{"a":1}', "v"), ("Other", "u", "null", "v")]
    found = items_of(("kind", "url", "data", "visit"), rows, ItemLayout(kind="Book"))
    assert found == [ItemValues("Book", "u", "v", {"a": 1})]


def test_a_key_is_of_a_kind_and_of_all_its_fields() -> None:
    layout = ItemLayout(key=("title", "url"))
    other = msgspec.structs.replace(BOOK, kind="Other")
    assert key_of(BOOK, layout) == key_of(msgspec.structs.replace(BOOK, visit="later"), layout)
    assert key_of(BOOK, layout) != key_of(other, layout)
    assert key_of(NUMBER, layout) is None
    assert key_of(BOOK, ItemLayout()) is None


def test_hostile_names_of_fields_are_no_columns() -> None:
    data = {"": 1, "a\nb": 1, "x" * 500: 1, **{f"f{at}": at for at in range(1_000)}}
    fields = fields_in([ItemValues("k", "u", "v", data)])
    assert len(fields) == MOST_COLUMNS
    assert fields[0] == "f0"


@dataclasses.dataclass
class PlainBook:
    title: str
    price: float


class StructBook(msgspec.Struct):
    title: str
    price: float


class DictBook(TypedDict):
    title: str
    price: float


class TupleBook(NamedTuple):
    title: str
    price: float


class ModelBook:
    """As a pydantic model says its fields."""

    model_fields: ClassVar = {"title": None, "price": None}


@pytest.mark.parametrize("kind", [PlainBook, StructBook, DictBook, TupleBook, ModelBook])
def test_the_fields_of_a_type_are_columns(kind: type) -> None:
    assert columns_of(kind) == ("title", "price")


def test_a_type_without_fields_is_refused() -> None:
    with pytest.raises(UsageError, match="int declares no fields"):
        columns_of(int)
