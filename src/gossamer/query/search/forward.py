"""The forward index: the table `terms`, which says of each document how often each term stands in its title and text.

Place in the flow: `gossamer index --terms` calls :func:`write_terms` after the index is up to date. Texts and analyzers are the
index's own, so a row is there exactly where a question for the term finds the document.
"""

from collections import Counter
from pathlib import Path

import msgspec

from gossamer.query.engine import PARQUET, connect
from gossamer.query.schema import LARGEST_LINE
from gossamer.query.search.fields import CJK, analyzers
from gossamer.query.search.index import SearchIndex
from gossamer.stores.scratch import scratch
from gossamer.stores.sums import changing


def write_terms(index: SearchIndex, target: Path) -> int:
    """Write the table whole or not at all; returns its rows.

    Raises:
        OSError: there is no room for it.
    """
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
