"""What the index has of a document beside its own words: texts of links to it, its rank, the types of things on it.

Place in the flow: `gossamer index` calls :func:`add_extras` after the feed, with what the tables say then. Only documents of
which they say something else than the index has are written again, out of what the index keeps of them.
"""

import hashlib
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from gossamer.query.database import Database
from gossamer.query.places import RANKS, table_names
from gossamer.query.search.fields import PLAIN_WEIGHT
from gossamer.query.search.index import SearchIndex, written

#: Different texts of links to a page that are indexed, and characters of one.
ANCHORS, ANCHOR = 50, 100
#: Types of things of a page.
TYPES = 100

#: Documents that are compared at once, and committed.
AT_ONCE = 5_000

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def add_extras(directory: Path, index: SearchIndex) -> int:
    """Bring what the tables say into the index; returns how many documents that changed."""
    changed = 0
    with Database(directory) as database:
        rank = "ranks" if RANKS[0] in table_names(directory) else "(SELECT NULL AS url, NULL AS importance WHERE false)"
        database.keep(
            "link_texts",
            f"SELECT target AS url, list_sort(array_agg(anchor))[:{ANCHORS}] AS anchors FROM "
            f"(SELECT DISTINCT target, trim(anchor[:{ANCHOR}]) AS anchor FROM links WHERE anchor <> '' AND source <> target) "
            "GROUP BY 1",
        )
        database.keep(
            "thing_types",
            f"SELECT graph AS url, list_sort(array_agg(DISTINCT object))[:{TYPES}] AS types FROM triples "
            f"WHERE predicate = '{_TYPE}' GROUP BY 1",
        )
        answer = database.ask(
            "SELECT p.url, a.anchors, t.types, r.importance FROM pages p LEFT JOIN link_texts a USING (url) "
            f"LEFT JOIN thing_types t USING (url) LEFT JOIN {rank} r USING (url) WHERE p.warc_file IS NOT NULL"
        )
        rows = iter(answer)
        while some := list(islice(rows, AT_ONCE)):
            told = {url: _extras(*values) for url, *values in some}
            changed += index.change({url: one["extras"] for url, one in told.items()}, partial(_with, told))
            index.keep_changes()
    return changed


def _extras(anchors: list[str] | None, types: list[str] | None, importance: float | None) -> dict[str, Any]:
    """What a document has of them, with a number that tells them apart; 0 for none, as a document has that was just fetched."""
    plain = {"anchors": anchors or [], "type": types or [], "weight": PLAIN_WEIGHT + round(importance or 0.0, 3)}
    is_none = not anchors and not types and plain["weight"] == PLAIN_WEIGHT
    digest = 0 if is_none else int.from_bytes(hashlib.sha256(msgspec.json.encode(plain)).digest()[:7], "big")
    return {**plain, "extras": digest}


def _with(told: Mapping[str, Mapping[str, Any]], url: str, old: tantivy.Document) -> tantivy.Document:
    kept = {name: values if name == "host" else values[0] for name, values in old.to_dict().items()}
    return written({**kept, **told[url]})
