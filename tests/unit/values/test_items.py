"""Items: what can be one, what cannot be written and where it stands, and the numbers that people write."""

import dataclasses
import datetime
import decimal
import enum
from typing import Any

import msgspec
import pytest

from gossamer.values.items import UnwritableItem, as_item, number_in, plain
from gossamer.values.visit import Item


@dataclasses.dataclass
class Price:
    amount: decimal.Decimal
    currency: str


@dataclasses.dataclass
class Book:
    title: str
    price: Price
    tags: set[str] = dataclasses.field(default_factory=set)


class Film(msgspec.Struct):
    title: str
    year: int


class Colour(enum.Enum):
    RED = "red"


class Validated:
    """Behaves as a pydantic object does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def model_dump(self, *, mode: str = "python") -> dict[str, Any]:
        return {"name": self.name, "mode": mode}


def test_dicts_dataclasses_structs_and_validated_objects_are_items_called_by_their_class() -> None:
    book = as_item(Book("A", Price(decimal.Decimal("12.50"), "GBP"), {"x"}), "http://a.test/")
    assert book == Item(
        "Book", "http://a.test/", {"title": "A", "price": {"amount": "12.50", "currency": "GBP"}, "tags": ["x"]}
    )
    assert as_item(Film("B", 1999), "u") == Item("Film", "u", {"title": "B", "year": 1999})
    assert as_item(Validated("C"), "u") == Item("Validated", "u", {"name": "C", "mode": "json"})
    assert as_item({"when": datetime.date(2026, 1, 2), "colour": Colour.RED, 3: b"x"}, "u").value == {
        "when": "2026-01-02",
        "colour": "red",
        "3": "eA==",
    }
    assert as_item(Item("kind", "", 1), "u") == Item("kind", "u", 1)


def test_attrs_objects_are_items_too() -> None:
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Shop:
        name: str

    assert as_item(Shop("A"), "u") == Item("Shop", "u", {"name": "A"})


@pytest.mark.parametrize(
    ("thing", "place"),
    [
        ({"a": {"b": [1, object()]}}, "item.a.b[1]: a object"),
        (Book("A", Price(decimal.Decimal(1), object())), "Book.price.currency: a object"),  # type: ignore[arg-type]
        (Film("A", lambda: 1), "Film.year: a function"),  # type: ignore[arg-type]
        (Item("kind", "u", [{"x": type}]), "kind[0].x: a type"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_with_its_place(thing: object, place: str) -> None:
    with pytest.raises(UnwritableItem) as refused:
        as_item(thing, "u")
    assert place in str(refused.value)


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    with pytest.raises(UnwritableItem, match="again"):
        plain(endless, "item")


@pytest.mark.parametrize("thing", [5, "text", b"", object(), [1]])
def test_what_is_no_item_is_refused_with_what_would_be(thing: object) -> None:
    with pytest.raises(TypeError, match="yield a dict"):
        as_item(thing, "u")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("£12.50", 12.5),
        ("12,50 €", 12.5),
        ("1.234,56 €", 1234.56),
        ("$1,234.56", 1234.56),
        ("1,250", 1250.0),
        ("1.250", 1250.0),
        ("0.125", 0.125),
        ("0,125", 0.125),
        ("1 234 567,8", 1234567.8),
        ("1\u00a0234", 1234.0),
        ("CHF 1'234.50", 1234.5),
        ("3 for 2", 3.0),
        ("-4.5", -4.5),
        ("\u22124", -4.0),
        ("ISBN-10", 10.0),
        ("12.", 12.0),
        ("3,1.2'19", 31.219),
        ("1,234,567", 1234567.0),
        ("In stock (22 available)", 22.0),
        ("7", 7.0),
        ("1.5", 1.5),
        ("none", None),
        ("", None),
        ("\u0664", None),
    ],
)
def test_the_number_of_a_text_is_the_one_that_a_person_reads(text: str, number: float | None) -> None:
    assert number_in(text) == number


def test_a_long_run_of_digits_is_read_in_bounded_time() -> None:
    assert number_in("9" * 100_000) is not None
