"""Runs the suite of feed consumers over the triple store; `test_tables.py` starts it.

The suite forks children and kills them. RocksDB keeps threads for the whole process once a store was opened in it, and a
fork has none of them: a child that opened a store would wait for ever. So nothing opens one here before the last fork.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from gossamer.rdf.store.store import TripleStore
from gossamer.rdf.terms import XSD
from gossamer.storage.tables.contract import FeedConsumer
from gossamer.testing import check_feed_consumer

COLUMNS = ("graph", "subject", "predicate", "object", "datatype", "language", "visit")

_GRAPHS = """
import sys, pyoxigraph
for quad in pyoxigraph.Store(sys.argv[1]):
    print(quad.graph_name.value, quad.object.value)
"""


def row(number: int) -> tuple[Any, ...]:
    return (f"http://a.test/{number:06}", "_:b1", "http://a.test/p", str(number), XSD + "integer", "", f"run-{number}")


def main(directory: Path) -> None:
    def make() -> FeedConsumer:
        return TripleStore(directory).consumers()[0]

    def graphs() -> list[str]:
        """What is in the store, in the order of its rows."""
        place = directory / "triples/store"
        if not (place / "CURRENT").exists():
            return []
        done = subprocess.run([sys.executable, "-c", _GRAPHS, place], capture_output=True, text=True, check=True)
        return sorted(done.stdout.splitlines())

    check_feed_consumer(make, graphs, COLUMNS, row, step=23)
    print("promises are kept")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
