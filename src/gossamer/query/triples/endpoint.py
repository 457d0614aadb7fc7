"""A triple store elsewhere, fed by SPARQL 1.1 Update over HTTP: each page's graph is dropped and put anew, in one request.

Place in the flow: :mod:`following` feeds it beside a crawl, with the rows that the crawl's own store gets (:mod:`consumers`).
Graphs of others in the same store are never touched, so several crawls and agents can feed one. Which store it is lies in the crawl
directory, beside the notes of its feeding; who may write to it is said by the environment alone.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyoxigraph as oxigraph

from gossamer.contracts.feeding import FeedConsumer
from gossamer.model.errors import CrawlDirectoryError
from gossamer.query.places import ENDPOINTS
from gossamer.query.triples.consumers import graph_consumers
from gossamer.query.triples.graphs import PageGraph
from gossamer.query.triples.notes import GraphNotes
from gossamer.query.triples.store import NOTES
from gossamer.query.triples.updating import RefusedUpdate, Updates
from gossamer.rdf.terms import clean_iri
from gossamer.rdf.writing import quads

#: Characters of a request: servers take some megabytes at least.
_MOST_CHARACTERS = 1_000_000

#: Graphs that are dropped by one request.
_DROPPED_AT_ONCE = 1_000

#: Where an endpoint's URL stands in its folder.
_NOTE = "endpoint.json"


class EndpointNote(msgspec.Struct, frozen=True):
    """Which store it is."""

    url: str


def register_endpoint(directory: Path, url: str) -> None:
    """Let a store elsewhere follow a crawl from now on; does nothing where it does.

    Raises:
        OSError: it cannot be noted.
    """
    folder = directory / ENDPOINTS / hashlib.sha256(url.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _NOTE).write_bytes(msgspec.json.encode(EndpointNote(url)))


def endpoints(directory: Path, rest: Callable[[], bool]) -> list["RemoteTripleStore"]:
    """The stores elsewhere that follow a crawl.

    Args:
        directory: the crawl directory.
        rest: waits a little; True when the crawl has ended.

    Raises:
        CrawlDirectoryError: what is noted of one cannot be read.
    """
    found = []
    for path in sorted((directory / ENDPOINTS).glob(f"*/{_NOTE}")):
        try:
            note = msgspec.json.decode(path.read_bytes(), type=EndpointNote)
        except (OSError, msgspec.DecodeError) as error:
            raise CrawlDirectoryError(f"{path} cannot be read ({error}); delete its folder") from None
        found.append(RemoteTripleStore(path.parent, Updates(note.url, rest)))
    return found


class RemoteTripleStore:
    """One store elsewhere. Contract: `consumers.GraphStore`."""

    def __init__(self, folder: Path, updates: Updates) -> None:
        """Name it.

        Args:
            folder: where the notes of its feeding lie.
            updates: the way to it.
        """
        self._folder = folder
        self._updates = updates
        self._notes: GraphNotes | None = None
        self.left_out: Counter[str] = Counter()
        """Triples that have names which are no IRIs, and those of pages that the server refused."""

    def __repr__(self) -> str:
        return f"<RemoteTripleStore {self.url}>"

    @property
    def url(self) -> str:
        """Where it is."""
        return self._updates.url

    def consumers(self) -> list[FeedConsumer]:
        """What takes its feeds."""
        return graph_consumers(self.notes, self)

    def notes(self) -> GraphNotes:
        """The notes of its feeding.

        Raises:
            CrawlDirectoryError: another version of the program wrote them, or they are damaged.
        """
        if self._notes is None:
            self._notes = GraphNotes(self._folder / NOTES)
        return self._notes

    def close(self) -> None:
        """Let go of notes and connection. Safe to call twice."""
        self._updates.close()
        if self._notes is not None:
            self._notes.close()
            self._notes = None

    # -- what is done to it

    def put(self, graphs: Sequence[PageGraph], replaced: Iterable[str]) -> None:
        """See the contract. What a page had goes in any case: another agent may have put it, or this one before a kill."""
        some: list[tuple[str, int]] = []
        size = 0
        for graph in graphs:
            text = self._replacing(graph)
            if some and size + len(text) > _MOST_CHARACTERS:
                self._send(some)
                some, size = [], 0
            some.append((text, len(graph.triples)))
            size += len(text)
        self._send(some)

    def _replacing(self, graph: PageGraph) -> str:
        """The update that puts one graph."""
        rows = [quad.triple for quad in quads(graph.triples, "", self.left_out)]
        written = (oxigraph.serialize(rows, format=oxigraph.RdfFormat.N_TRIPLES) or b"").decode()
        return f"DROP SILENT GRAPH <{graph.iri}>;\nINSERT DATA {{ GRAPH <{graph.iri}> {{\n{written}}} }};\n"

    def _send(self, some: Sequence[tuple[str, int]]) -> None:
        """Send updates together, or each by itself where the server refuses one of them."""
        if not some:
            return
        try:
            self._updates.send("".join(text for text, _ in some))
        except RefusedUpdate:
            if len(some) > 1:
                middle = len(some) // 2
                self._send(some[:middle])
                self._send(some[middle:])
            elif self._updates.has_sent:
                self.left_out["refused"] += some[0][1]
            else:
                raise  # it refuses everything: it is no store that takes updates

    def drop(self, urls: Sequence[str]) -> None:
        """See the contract."""
        for some in _in_parts(urls):
            self._updates.send("".join(f"DROP SILENT GRAPH <{clean_iri(url)}>;\n" for url in some))

    def empty(self, urls: Iterable[str]) -> None:
        """See the contract."""
        self.drop(list(urls))


def _in_parts(urls: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(urls), _DROPPED_AT_ONCE):
        yield urls[start : start + _DROPPED_AT_ONCE]
