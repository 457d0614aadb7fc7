"""Searches and questions in SPARQL as the dashboard sends them to the processes that answer them.

Place in the flow: :mod:`gossamer.dashboard.questions` writes them for :mod:`~gossamer.search.indexing` and
:mod:`~gossamer.rdf.store.answers`. They stand here so that the dashboard loads neither index nor triple store.
"""

import msgspec


class SearchQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A search. Each filter that is given holds."""

    directory: str
    """Of the crawl."""
    words: str = ""
    hosts: tuple[str, ...] = ()
    """Only on one of these hosts, or below one."""
    languages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Only with a thing of one of these types, each an IRI or `schema:Product`."""
    start: int = 0
    most: int = 10


class TripleQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question in SPARQL."""

    directory: str
    """Of the crawl."""
    memory: int
    """Bytes that the answer may take."""
    seconds: int
    """Time that it may take, by the clock."""
    rows: int
    """Rows that are shown."""
    query: str


class TripleAnswer(msgspec.Struct, frozen=True):
    """Rows, or a graph."""

    columns: list[str]
    """Names of variables; none where the answer is a graph."""
    rows: list[list[str]]
    """Each an array of terms as Turtle writes them; long ones are cut."""
    graph: str
    """A graph as Turtle."""
    is_more: bool
    """There is more behind these."""


class Answerable(msgspec.Struct, frozen=True):
    """What can be asked of a crawl. An empty text says that it can; any other says why it cannot."""

    sparql: str
    search: str
