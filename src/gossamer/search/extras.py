"""What the index has of a document beside its own words, and the forward index of its terms.

Place in the flow: `gossamer index` calls :func:`add_extras` after the feed, with what the tables say then; `gossamer index --terms`
calls :func:`write_terms` when the index is up to date.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from gossamer.engine.files import scratch
from gossamer.query.database import Database
from gossamer.query.engine import PARQUET, connect
from gossamer.query.schema import LARGEST_LINE
from gossamer.search.fields import CJK, PLAIN_WEIGHT, analyzers
from gossamer.search.index import SearchIndex, written
from gossamer.storage.checksums import changing
from gossamer.storage.tables.places import RANKS, table_names

#: Different texts of links to a page that are indexed, and characters of one.
ANCHORS, ANCHOR = 50, 100
# Texts of links to a document, its rank, the types of things on it. Only documents of which the tables say something else than the
# index has are written again, out of what the index keeps of them.


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


# The forward index: the table `terms`, which says of each document how often each term stands in its title and text. Texts and
# analyzers are the index's own, so a row is there exactly where a question for the term finds the document.


def write_terms(index: SearchIndex, target: Path) -> int:
    """Write the table whole or not at all; returns its rows. Raises OSError: there is no room for it."""
    made = analyzers()
    words, characters = made["words"], made["cjk"]
    with scratch() as folder, connect(folder) as connection:
        rows, fresh = Path(folder, "rows.jsonl"), target.with_name(f"{target.name}.new")
        with rows.open("wb") as file:
            for url, title, text in index.texts():
                counts = Counter(term for part in (title, text) for term in words.analyze(part))
                if CJK.search(title) or CJK.search(text):
                    # As words they are whole sentences, and among the terms of the index too.
                    counts.update(characters.analyze(f"{title}\n{text}"))
                told = {"url": url, "terms": list(counts), "counts": list(counts.values())}
                file.write(msgspec.json.encode(told) + b"\n")
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(folder, "out").symlink_to(target.parent.resolve())
        done = connection.execute(
            "COPY (SELECT url, unnest(terms) AS term, unnest(counts) AS count FROM "
            f"read_json('{rows}', format = 'newline_delimited', maximum_object_size = {LARGEST_LINE}, "
            "columns = {'url': 'VARCHAR', 'terms': 'VARCHAR[]', 'counts': 'INTEGER[]'})) "
            f"TO '{folder}/out/{fresh.name}' ({PARQUET})"
        ).fetchone()
        with changing(target.parent):
            fresh.replace(target)
    return int(done[0]) if done else 0
