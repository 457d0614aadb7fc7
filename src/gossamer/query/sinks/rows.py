"""Values for the columns of a mapping, made of a crawl's rows: each is what every database, and JSON, can hold.

Place in the flow: sinks of databases (:mod:`sink`) and webhooks (:mod:`webhook`) make by it what they hand on.
"""

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gossamer.query.sinks.mapping import CRAWL, SinkTable

Row = tuple[Any, ...]


def columns_of(to: SinkTable) -> tuple[str, ...]:
    """The columns of the crawl's table that a mapping needs: those that it names, and those by which rows are judged."""
    named = {source.partition(".")[0] for source in to.columns.values()} - {CRAWL}
    if to.kind:
        named.add("kind")
    if to.page:
        named.add("visit")
    if to.gone != "put":
        named |= {"outcome", "change", "url"}
    if to.changes:
        named.add("change")
    return tuple(sorted(named))


def row_maker(
    table: SinkTable, crawl: str, columns: Sequence[str], instant: Callable[[datetime.datetime], Any]
) -> Callable[[Row], Row]:
    """What makes the values for a mapping's columns of a row of the crawl.

    Args:
        table: the mapping.
        crawl: the crawl's id.
        columns: what the values of the crawl's rows are.
        instant: makes what is handed on of an instant with its zone.
    """
    places = {name: place for place, name in enumerate(columns)}
    parts = [source.split(".") for source in table.columns.values()]
    plan = [(places.get(column, -1), column == CRAWL, path) for column, *path in parts]

    def made(row: Row) -> Row:
        values = []
        for place, is_crawl, path in plan:
            value = crawl if is_crawl else row[place] if place >= 0 else None
            if path:
                value = _taken(value, path)
            if type(value) is str:
                values.append(value if value.isascii() and "\0" not in value else _clean(value))
            elif isinstance(value, datetime.datetime):
                values.append(instant(value if value.tzinfo else value.replace(tzinfo=datetime.UTC)))
            else:
                values.append(_clean(value))
        return tuple(values)

    return made


def _taken(value: Any, path: Sequence[str]) -> Any:
    """A field out of JSON; None where it is not there."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        return None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return msgspec.json.encode(found).decode() if isinstance(found, dict | list) else found


def _clean(value: Any) -> Any:
    """What every database takes: no NUL and no half of a surrogate pair in texts, and JSON as a text."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, enc_hook=str).decode()
    return value
