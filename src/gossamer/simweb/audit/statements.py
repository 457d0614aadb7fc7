"""Whether the triples that a crawl found are those that its pages state.

The log tells which pages it was given; what each of them states follows from the web.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from gossamer.simweb.audit.coverage import EXAMPLES
from gossamer.simweb.audit.trace import RequestTrace
from gossamer.simweb.exact import SAID
from gossamer.simweb.graph import GraphError, WebGraph
from gossamer.simweb.log import LogError
from gossamer.simweb.text import texts_of

#: Columns that a file of triples has to have; others do not matter.
COLUMNS: Final = ("graph", "predicate", "object")


class StatedTriples(msgspec.Struct, frozen=True):
    """What a crawl found of what its pages state."""

    expected: int
    found: int
    missed: int
    extra: int
    """Triples that no page states, or that a page was said to state twice."""
    missed_examples: list[str]
    extra_examples: list[str]


def read_triples(path: Path) -> Iterator[tuple[str, str, str]]:
    """Read graph, predicate and object of the lines of a CSV file.

    Raises:
        LogError: it has no such columns, or is no CSV.
        OSError: it cannot be read.
    """
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if not set(COLUMNS) <= set(lines.fieldnames or ()):
            raise LogError(f"{path} has no columns {', '.join(COLUMNS)}")
        try:
            for line in lines:
                yield line["graph"] or "", line["predicate"] or "", line["object"] or ""
        except csv.Error as error:
            raise LogError(f"{path}, line {lines.line_num}: {error}") from None


def judge_statements(trace: RequestTrace, graph: WebGraph, triples: Iterable[tuple[str, str, str]]) -> StatedTriples:
    """Compare triples with what the pages state that the trace says were answered.

    Args:
        trace: of the crawl.
        graph: of its web.
        triples: URL of the page, predicate, and text.
    """
    count = graph.web.spec.statements
    pages = np.unique(trace.page[trace.answered()])
    shown = graph.index_of[graph.content[pages]]
    expected = {
        (int(page), text) for page, index in zip(pages, shown, strict=True) for text in texts_of(int(index), count)
    }
    found: set[tuple[int, str]] = set()
    extra: Counter[str] = Counter()
    met: set[tuple[str, str]] = set()
    for url, predicate, text in triples:
        page = _page(graph, url)
        told = (page, text)
        # A page under a second URL states the same there.
        if predicate != SAID or told not in expected or (url, text) in met:
            extra[f"{url} {predicate} {text}"] += 1
        else:
            met.add((url, text))
            found.add(told)
    missed = sorted(expected - found)
    return StatedTriples(
        expected=len(expected),
        found=len(expected) - len(missed),
        missed=len(missed),
        extra=extra.total(),
        missed_examples=[f"{graph.url(page)} {text}" for page, text in missed[:EXAMPLES]],
        extra_examples=list(extra)[:EXAMPLES],
    )


def _page(graph: WebGraph, url: str) -> int:
    try:
        return graph.page(url)
    except GraphError:
        return -1
