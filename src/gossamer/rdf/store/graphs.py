"""The graphs of pages: how rows of the table `triples` become graphs, and the forms in which graphs are written.

A graph is named by the URL of its page, and holds what the latest visit found. Blank nodes get names that no other visit gives, so
that equal names in two pages stay two nodes where the pages are written together.
"""

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec
import pyoxigraph as oxigraph

from gossamer.query.schema import tells
from gossamer.rdf.store.questions import CleanText, prefixes
from gossamer.rdf.terms import PREFIXES, STRING, clean_iri
from gossamer.storage.tables.contract import FeedBatch, FeedConsumer, FeedMark
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.instants import visit_order
from gossamer.values.visit import Triple

#: The columns that are taken of the table, in this order.
COLUMNS = ("graph", "subject", "predicate", "object", "datatype", "language", "visit")

# Characters that end an IRI or a line of N-Quads: a name that holds one is left to the slow way, which judges names one by one.
_BREAKS = re.compile('[\x00-\x20<>"{}|^`\\\\]')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_NO_LABEL = re.compile("[^A-Za-z0-9]")


class PageGraph(msgspec.Struct, frozen=True):
    """The finds of one visit of a page."""

    url: str
    """Of the page; :attr:`iri` is the name of the graph."""
    visit: str
    triples: list[Triple]

    @property
    def iri(self) -> str:
        """The URL in a form that RDF takes for an IRI."""
        return clean_iri(self.url)


def newest_graphs(rows: Sequence[tuple[Any, ...]]) -> dict[str, PageGraph]:
    """The finds of the latest visit among these rows, by the URL of its page. The rows are of :data:`COLUMNS`, and those of one
    visit follow each other."""
    found: dict[str, PageGraph] = {}
    for (url, of_visit), group in groupby(rows, itemgetter(0, 6)):
        visit = of_visit or ""
        before = found.get(url)
        if before is not None and visit_order(before.visit) > visit_order(visit):
            continue
        label = f"_:v{_NO_LABEL.sub('x', visit)}"
        # A comparison of two characters costs a third of a call of `startswith`, and there are millions of them.
        triples = [
            (
                f"{label}x{subject[2:]}" if subject[:2] == "_:" else subject,
                predicate,
                f"{label}x{value[2:]}" if value[:2] == "_:" and not datatype else value,
                datatype or "",
                language or "",
            )
            for _, subject, predicate, value, datatype, language, _ in group
        ]
        found[url] = PageGraph(url, visit, triples)
    return found


class Unwritable(ValueError):
    """A name cannot stand in N-Quads."""


def lines(triples: Iterable[Triple], place: str = "") -> Iterator[str]:
    """Triples as lines of N-Quads, of the graph that `place` is (`<IRI>` and a space), or of N-Triples. Raises Unwritable: a
    name holds what would end it. Whether it is an IRI otherwise, a parser judges."""
    names: dict[str, str] = {}
    known = names.get
    for subject, predicate, value, datatype, language in triples:
        first = known(subject) or _name(subject, names)
        second = known(predicate) or _name(predicate, names)
        if not datatype:
            yield f"{first} {second} {known(value) or _name(value, names)} {place}.\n"
            continue
        text = value.translate(_ESCAPES) if '"' in value or "\\" in value or "\n" in value or "\r" in value else value
        if language:
            if not language.replace("-", "").isalnum() or not language.isascii():
                raise Unwritable(language)
            kind = f"@{language}"
        else:
            kind = "" if datatype == STRING else f"^^{known(datatype) or _name(datatype, names)}"
        yield f'{first} {second} "{text}"{kind} {place}.\n'


def _name(name: str, names: dict[str, str]) -> str:
    if _BREAKS.search(name) is not None:
        raise Unwritable(name)
    written = names[name] = name if name.startswith("_:") else f"<{name}>"
    return written


def quads(triples: Iterable[Triple], graph: str = "", left_out: Counter[str] | None = None) -> Iterator[oxigraph.Quad]:
    """Triples as pyoxigraph has them, in the graph that the URL of the page names, or in the default graph; `left_out` counts
    those with a name that is no IRI, which no format can hold."""
    place = oxigraph.NamedNode(clean_iri(graph)) if graph else oxigraph.DefaultGraph()
    for subject, predicate, value, datatype, language in triples:
        try:
            if not datatype:
                term: oxigraph.NamedNode | oxigraph.BlankNode | oxigraph.Literal = _resource(value)
            elif language:
                term = oxigraph.Literal(value, language=language)
            else:
                term = oxigraph.Literal(value, datatype=oxigraph.NamedNode(datatype))
            yield oxigraph.Quad(_resource(subject), oxigraph.NamedNode(predicate), term, place)
        except ValueError:
            if left_out is not None:
                left_out["not_an_iri"] += 1


def _resource(name: str) -> oxigraph.NamedNode | oxigraph.BlankNode:
    return oxigraph.BlankNode(name[2:]) if name.startswith("_:") else oxigraph.NamedNode(name)


def used_prefixes(rows: Iterable[oxigraph.Quad], known: Mapping[str, str] = PREFIXES) -> dict[str, str]:
    """Those prefixes (prefix -> IRI, which ends in a hash or a slash) by which names in some quads begin: forty lines of others
    would hide a short graph."""
    begun: set[str] = set()
    for quad in rows:
        value = quad.object
        # That a text is one is not written.
        if isinstance(value, oxigraph.Literal) and not value.language and value.datatype.value != STRING:
            value = value.datatype
        for term in (quad.subject, quad.predicate, value):
            if isinstance(term, oxigraph.NamedNode):
                name = term.value
                begun.add(name[: max(name.rfind("#"), name.rfind("/")) + 1])
    return {prefix: iri for prefix, iri in known.items() if iri in begun}


# Graphs in the forms that other programs read: N-Quads, Turtle, JSON-LD and RDF/XML, written bit by bit. The answers to CONSTRUCT
# and DESCRIBE have them, and so has a whole store that `gossamer export` writes.

FORMATS = {
    "turtle": oxigraph.RdfFormat.TURTLE,
    "nquads": oxigraph.RdfFormat.N_QUADS,
    "jsonld": oxigraph.RdfFormat.JSON_LD,
    "rdfxml": oxigraph.RdfFormat.RDF_XML,
}

# An element with a prefix and no name behind it: what pyoxigraph writes, and alone reads, where no name can be cut off.
_NAMELESS = re.compile(rb"<[\w.-]+:[ />]")

#: Quads of a graph that are looked at for the prefixes that it needs; one that is larger declares all of them.
_LOOKED_AT = 10_000

#: Those that name graphs. The others have the triples of all graphs together.
_WITH_GRAPHS = frozenset({"nquads", "jsonld"})


def write_graph(quads: Iterable[oxigraph.Quad], form: str, out: TextIO) -> Counter[str]:
    """Write quads in one of the forms; returns what the form cannot hold, by reason.
    Raises OSError: it cannot be written."""
    left_out: Counter[str] = Counter()
    if form == "rdfxml":
        quads = _nameable(quads, left_out)
    names = None
    if form == "turtle":
        quads = iter(quads)
        first = list(islice(quads, _LOOKED_AT))
        names = used_prefixes(first, prefixes()) if len(first) < _LOOKED_AT else prefixes()
        quads = chain(first, quads)
    rows = quads if form in _WITH_GRAPHS else (quad.triple for quad in quads)
    clean = CleanText(out, form)
    oxigraph.serialize(rows, clean.stream, FORMATS[form], prefixes=names)
    clean.finish()
    return left_out


def all_quads(store: oxigraph.Store) -> Iterator[oxigraph.Quad]:
    """Everything in a store, page by page."""
    for graph in store.named_graphs():
        yield from store.quads_for_pattern(None, None, None, graph)


def _nameable(quads: Iterable[oxigraph.Quad], left_out: Counter[str]) -> Iterator[oxigraph.Quad]:
    """Those whose predicates XML can have as names of elements."""
    for quad in quads:
        if _is_name(quad.predicate.value):
            yield quad
        else:
            left_out["no_element_name"] += 1


@lru_cache(maxsize=10_000)
def _is_name(predicate: str) -> bool:
    """Whether RDF/XML that has a predicate says it again when it is read."""
    node = oxigraph.NamedNode(predicate)
    triple = oxigraph.Triple(oxigraph.NamedNode("urn:a"), node, oxigraph.NamedNode("urn:b"))
    try:
        written = oxigraph.serialize([triple], None, oxigraph.RdfFormat.RDF_XML) or b""
        return not _NAMELESS.search(written) and [
            read.predicate for read in oxigraph.parse(written, oxigraph.RdfFormat.RDF_XML)
        ] == [node]
    except (SyntaxError, ValueError):
        return False


# The two feeds that a triple store follows, and the notes by which it goes on after a kill: how far each feed was taken, and
# which visit each graph is of. They are one SQLite file beside the store. Each change of a store can be made twice, so the
# store is changed first and the note written after: a kill between the two has the rows come once more.

#: Raised when notes or what they stand for change their meaning.
VERSION = "1"

#: Their file, in the folder of the store.
NOTES = "notes.sqlite"

#: Graphs that are asked for at once: SQLite takes so many values in one statement.
_AT_ONCE = 500

_SCHEMA = f"""
BEGIN;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS graphs (url TEXT PRIMARY KEY, visit TEXT NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO notes VALUES ('version', '{VERSION}');
COMMIT;
"""


class GraphNotes:
    def __init__(self, path: Path) -> None:
        """Open or begin them.
        Raises CrawlDirectoryError: another version of the program wrote them, or they are damaged."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(_SCHEMA)
            version = self.get("version")
        except sqlite3.DatabaseError as error:
            raise CrawlDirectoryError(
                f"{path.parent} cannot be read ({error}); delete it, and it is made again"
            ) from None
        if version != VERSION:
            raise CrawlDirectoryError(
                f"{path.parent} is of version {version}, and this program reads version {VERSION}; delete it, and it is made again"
            )

    def close(self) -> None:
        self._database.close()

    def get(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def put(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def mark(self, table: str) -> FeedMark:
        text = self.get(f"mark:{table}")
        return msgspec.json.decode(text, type=FeedMark) if text else FeedMark()

    def visits(self, urls: Iterable[str]) -> dict[str, str]:
        """The visits that the graphs of some pages are of; those that have no graph are left out."""
        wanted = list(urls)
        found: dict[str, str] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            places = ",".join("?" * len(some))
            found.update(self._database.execute(f"SELECT url, visit FROM graphs WHERE url IN ({places})", some))
        return found

    def urls(self) -> Iterator[str]:
        for (url,) in self._database.execute("SELECT url FROM graphs"):
            yield url

    def keep(self, table: str, mark: FeedMark, put: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Note how far a feed was taken, the visits that the graphs of some pages are of by now, and pages that have none any
        more: all of it or nothing."""
        with self._changing():
            self._database.executemany("INSERT OR REPLACE INTO graphs VALUES (?, ?)", put.items())
            self._database.executemany("DELETE FROM graphs WHERE url = ?", [(url,) for url in gone])
            self.put(f"mark:{table}", msgspec.json.encode(mark).decode())

    def begin_anew(self, table: str, mark: FeedMark) -> None:
        with self._changing():
            self._database.execute("DELETE FROM graphs")
            self._database.execute("DELETE FROM notes WHERE name LIKE 'mark:%'")
            self.put(f"mark:{table}", msgspec.json.encode(mark).decode())

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


# The two feeds that a triple store follows: `triples` puts the graphs of pages, `pages` takes away those of pages that are gone.
# `gossamer.query.following` feeds them. A page that says nothing any more has no row in `triples`; that it was visited again
# stands in `pages`. The feed `pages` must never be ahead of `triples`, so it is looked at first and taken last.

#: Rows of a batch: the store takes a triple for 18 us of CPU in batches of 25,000, for 15 of 100,000, for 13 of 400,000, which need
#: half a gigabyte of memory.
TRIPLES_AT_ONCE = 200_000
PAGES_AT_ONCE = 10_000


class GraphStore(Protocol):
    """Where graphs are kept. Whatever is done can be done twice."""

    def put(self, graphs: Sequence[PageGraph], replaced: Iterable[str]) -> None:
        """Keep graphs, each as its page is by now; `replaced` are URLs of pages that may have a graph already, which goes.
        Raises OSError: they could not be kept; they come again."""
        ...

    def drop(self, urls: Sequence[str]) -> None:
        """Let the graphs of pages go. Raises OSError: it could not be done; it comes again."""
        ...

    def empty(self, urls: Iterable[str]) -> None:
        """Let everything of this crawl go: the graphs of these pages.
        Raises OSError: it could not be done; it comes again."""
        ...


class GraphFeed:
    """Puts what the rows of `triples` say. Contract: `storage.tables.feeds.FeedConsumer`."""

    table = "triples"
    columns: tuple[str, ...] = COLUMNS
    rows_at_once = TRIPLES_AT_ONCE

    def __init__(self, notes: Callable[[], GraphNotes], store: GraphStore) -> None:
        self._notes = notes
        self._store = store

    def mark(self) -> FeedMark:
        return self._notes().mark(self.table)

    def rebuild(self, generation: int) -> None:
        """See the contract. The rows of `pages` come again too."""
        self._store.empty(self._notes().urls())
        self._notes().begin_anew(self.table, FeedMark(generation))

    def take(self, batch: FeedBatch) -> None:
        graphs = newest_graphs(batch.rows)
        known = self._notes().visits(graphs)
        newer = [graph for url, graph in graphs.items() if visit_order(known.get(url, "")) <= visit_order(graph.visit)]
        self._store.put(newer, known)
        self._notes().keep(self.table, batch.mark, {graph.url: graph.visit for graph in newer})


class GoneFeed(GraphFeed):
    """Drops the graphs of pages whose latest visit found nothing. Contract: `storage.tables.feeds.FeedConsumer`."""

    table = "pages"
    columns: tuple[str, ...] = ("url", "outcome", "change", "visit")
    rows_at_once = PAGES_AT_ONCE

    def rebuild(self, generation: int) -> None:
        """See the contract. Graphs that rows took away are not brought back: those of `triples` come again where that is right."""
        self._notes().keep(self.table, FeedMark(generation), {})

    def take(self, batch: FeedBatch) -> None:
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
