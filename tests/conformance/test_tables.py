"""Our tables, and what follows them, keep the promises of their contracts."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.contracts.feeding import FeedBatch, FeedConsumer, FeedMark
from gossamer.query.item_files import ItemFile
from gossamer.query.triples.store import TripleStore
from gossamer.rdf.terms import XSD
from gossamer.stores.tables.catalog import shipped
from gossamer.testing import check_feed_consumer, check_table

COLUMNS = ("kind", "url", "data", "visit")


@pytest.mark.parametrize("name", [table.name for table in shipped() if table.rows])
def test_a_table_that_ships(name: str) -> None:
    [table] = [one for one in shipped() if one.name == name]
    check_table(table)


def item_row(number: int) -> tuple[Any, ...]:
    return ("k", f"http://a.test/{number}", f'{{"n":{number},"text":"=1\\n,"}}', f"v-{number}")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_item_file_misses_no_item_and_has_none_twice(tmp_path: Path, form: str) -> None:
    file = tmp_path / f"items.{form}"

    def kept() -> list[Any]:
        if not file.exists():
            return []
        with file.open(newline="") as lines:
            return [msgspec.json.decode(line) for line in lines] if form == "jsonl" else list(csv.DictReader(lines))

    check_feed_consumer(lambda: ItemFile(tmp_path / "crawl", file), kept, COLUMNS, item_row)


GRAPH_COLUMNS = ("graph", "subject", "predicate", "object", "datatype", "language", "visit")

# In a process of its own: the threads of a store that was opened here would not be there in a process that is forked.
_GRAPHS = """
import sys, pyoxigraph
for quad in pyoxigraph.Store(sys.argv[1]):
    print(quad.graph_name.value, quad.object.value)
"""


def triple_row(number: int) -> tuple[Any, ...]:
    return (f"http://a.test/{number:06}", "_:b1", "http://a.test/p", str(number), XSD + "integer", "", f"run-{number}")


def graphs(directory: Path) -> list[str]:
    """What is in the store of a crawl, in the order of its rows."""
    place = directory / "triples/store"
    if not (place / "CURRENT").exists():
        return []
    done = subprocess.run([sys.executable, "-c", _GRAPHS, place], capture_output=True, text=True, check=True)
    return sorted(done.stdout.splitlines())


def test_the_triple_store_misses_no_triple_and_has_none_twice(tmp_path: Path) -> None:
    def make() -> FeedConsumer:
        return TripleStore(tmp_path).consumers()[0]

    check_feed_consumer(make, lambda: graphs(tmp_path), GRAPH_COLUMNS, triple_row, step=7)


class Forgetful:
    """Keeps rows first and its mark in a second step, without cutting back: a kill between the two doubles rows."""

    table = "items"
    columns = COLUMNS
    rows_at_once = 1_000

    def __init__(self, directory: Path) -> None:
        self._rows, self._mark = directory / "rows", directory / "mark"

    def mark(self) -> FeedMark:
        return msgspec.json.decode(self._mark.read_bytes(), type=FeedMark) if self._mark.exists() else FeedMark()

    def rebuild(self, generation: int) -> None:
        self._rows.unlink(missing_ok=True)
        self._keep(FeedMark(generation))

    def take(self, batch: FeedBatch) -> None:
        with self._rows.open("ab") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in batch.rows)
        self._keep(batch.mark)

    def _keep(self, mark: FeedMark) -> None:
        fresh = self._mark.with_name("fresh")
        fresh.write_bytes(msgspec.json.encode(mark))
        fresh.replace(self._mark)


def test_the_suite_finds_a_consumer_that_doubles_rows(tmp_path: Path) -> None:
    def make() -> FeedConsumer:
        return Forgetful(tmp_path)

    def kept() -> list[Any]:
        rows = tmp_path / "rows"
        return rows.read_bytes().splitlines() if rows.exists() else []

    with pytest.raises(AssertionError, match="twice"):
        check_feed_consumer(make, kept, COLUMNS, item_row)
