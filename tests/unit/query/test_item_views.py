"""Items as columns of `item.KIND`."""

from pathlib import Path

import msgspec
import pytest

from gossamer.query.engine import connect
from gossamer.query.item_tables import asks_for_items, make_item_views


def views(tmp: str, items: "list[tuple[str, object]]", question: str) -> "tuple[list[str], list[tuple[object, ...]]]":
    with connect(tmp) as connection:
        connection.execute("CREATE TABLE items (kind VARCHAR, url VARCHAR, data JSON, visit VARCHAR)")
        for number, (kind, data) in enumerate(items):
            row = [kind, f"http://a.test/{number}", msgspec.json.encode(data).decode(), f"v{number}"]
            connection.execute("INSERT INTO items VALUES (?, ?, ?, ?)", row)
        make_item_views(connection)
        answer = connection.execute(question)
        return [column[0] for column in answer.description or ()], answer.fetchall()


def test_fields_are_columns_of_their_types(tmp_path: Path) -> None:
    items = [("Book", {"title": "A", "price": 12.5, "stock": 3}), ("Book", {"title": "B", "price": 4, "tags": ["x"]})]
    columns, rows = views(str(tmp_path), items, "SELECT * FROM item.Book WHERE price > 2 ORDER BY title")
    assert columns == ["title", "price", "stock", "tags", "kind", "url", "visit"]
    assert rows == [
        ("A", 12.5, 3, None, "Book", "http://a.test/0", "v0"),
        ("B", 4.0, None, '["x"]', "Book", "http://a.test/1", "v1"),
    ]


def test_a_field_called_as_the_page_keeps_its_name(tmp_path: Path) -> None:
    columns, rows = views(str(tmp_path), [("B", {"url": "u", "kind": 1})], "SELECT * FROM item.b")
    assert columns == ["url", "kind", "item_kind", "page_url", "visit"]
    assert rows == [("u", 1, "B", "http://a.test/0", "v0")]


@pytest.mark.parametrize("name", ['a"; DROP TABLE items; --', "a'b", "$.x", "/x", "a.b", "ä", "select", "*"])
def test_no_name_of_a_page_means_anything_in_sql(tmp_path: Path, name: str) -> None:
    columns, rows = views(str(tmp_path), [("k'", {name: "value", "other": 1})], 'SELECT * FROM item."k\'"')
    held = dict(zip(columns, rows[0], strict=True))
    assert held["other"] == 1
    assert held.get(name, "value") == "value"
    assert (name in held) == (name not in ("*", 'a"; DROP TABLE items; --'))


def test_fields_that_differ_in_case_alone_do_not_break_the_view(tmp_path: Path) -> None:
    _, rows = views(str(tmp_path), [("k", {"A": 1, "a": 2}), ("K", {"a": 3})], "SELECT count(*), sum(a) FROM item.k")
    assert rows in ([(2, 1)], [(2, 5)]), "neither the one field nor the other"


def test_only_a_question_that_names_a_view_has_them_made() -> None:
    assert asks_for_items("SELECT * FROM item.Book")
    assert asks_for_items('select 1 from "item" . "b"')
    assert not asks_for_items("SELECT data->>'$.item.x' FROM items".replace("item.x", "itemx"))
