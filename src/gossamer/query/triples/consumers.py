"""The two feeds that a triple store follows: `triples` puts the graphs of pages, `pages` takes away those of pages that are gone.

Place in the flow: `gossamer.operations.following` feeds them. A page that says nothing any more has no row in `triples`; that it
was visited again stands in `pages`. What `pages` has must never be ahead of `triples`, so it is looked at first and taken last.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gossamer.contracts.feeding import FeedBatch, FeedConsumer, FeedMark
from gossamer.model.identity import visit_order
from gossamer.query.schema import tells
from gossamer.query.triples.graphs import COLUMNS, PageGraph, newest_graphs
from gossamer.query.triples.notes import GraphNotes

#: Rows of a batch: the store takes a triple for 18 us of CPU in batches of 25,000, for 15 of 100,000, for 13 of 400,000, which need
#: half a gigabyte of memory.
TRIPLES_AT_ONCE = 200_000
PAGES_AT_ONCE = 10_000


class GraphStore(Protocol):
    """Where graphs are kept. Whatever is done can be done twice."""

    def put(self, graphs: Sequence[PageGraph], replaced: Iterable[str]) -> None:
        """Keep graphs.

        Args:
            graphs: each as its page is by now.
            replaced: URLs of those pages that may have a graph already, which goes.

        Raises:
            OSError: they could not be kept; they come again.
        """
        ...

    def drop(self, urls: Sequence[str]) -> None:
        """Let the graphs of pages go.

        Raises:
            OSError: it could not be done; it comes again.
        """
        ...

    def empty(self, urls: Iterable[str]) -> None:
        """Let everything of this crawl go: the graphs of these pages.

        Raises:
            OSError: it could not be done; it comes again.
        """
        ...


class GraphFeed:
    """Puts what the rows of `triples` say. Contract: `feeding.FeedConsumer`."""

    table = "triples"
    columns: tuple[str, ...] = COLUMNS
    rows_at_once = TRIPLES_AT_ONCE

    def __init__(self, notes: Callable[[], GraphNotes], store: GraphStore) -> None:
        self._notes = notes
        self._store = store

    def mark(self) -> FeedMark:
        """See the contract."""
        return self._notes().mark(self.table)

    def rebuild(self, generation: int) -> None:
        """See the contract. The rows of `pages` come again too."""
        self._store.empty(self._notes().urls())
        self._notes().begin_anew(self.table, FeedMark(generation))

    def take(self, batch: FeedBatch) -> None:
        """See the contract."""
        graphs = newest_graphs(batch.rows)
        known = self._notes().visits(graphs)
        newer = [graph for url, graph in graphs.items() if visit_order(known.get(url, "")) <= visit_order(graph.visit)]
        self._store.put(newer, known)
        self._notes().keep(self.table, batch.mark, {graph.url: graph.visit for graph in newer})


class GoneFeed:
    """Drops the graphs of pages whose latest visit found nothing. Contract: `feeding.FeedConsumer`."""

    table = "pages"
    columns: tuple[str, ...] = ("url", "outcome", "change", "visit")
    rows_at_once = PAGES_AT_ONCE

    def __init__(self, notes: Callable[[], GraphNotes], store: GraphStore) -> None:
        self._notes = notes
        self._store = store

    def mark(self) -> FeedMark:
        """See the contract."""
        return self._notes().mark(self.table)

    def rebuild(self, generation: int) -> None:
        """See the contract. What rows took away is not brought back: those of `triples` come again where that is right."""
        self._notes().keep(self.table, FeedMark(generation), {})

    def take(self, batch: FeedBatch) -> None:
        """See the contract."""
        visits: dict[str, str] = {}
        for url, outcome, change, visit in batch.rows:
            if tells(outcome, change):
                visits[url] = max(visits.get(url, ""), visit or "", key=visit_order)
        known = self._notes().visits(visits)
        gone = [url for url, visit in known.items() if visit_order(visit) < visit_order(visits[url])]
        if gone:
            self._store.drop(gone)
        self._notes().keep(self.table, batch.mark, {}, gone)


def graph_consumers(notes: Callable[[], GraphNotes], store: GraphStore) -> list[FeedConsumer]:
    """Both feeds of a store, in the order in which they are given."""
    return [GraphFeed(notes, store), GoneFeed(notes, store)]
