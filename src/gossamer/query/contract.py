"""The face of this room towards others that load none of its libraries: questions, stores that answer them, forms of an export.

Place in the flow: the dashboard writes questions for the workers that answer them (:mod:`gossamer.search.indexing`,
:mod:`gossamer.rdf.store.asking`). Commands and dashboard ask here whether a crawl has an index or triples before they open it,
and offer the forms of export that stand here and no others.
"""

from pathlib import Path

import msgspec

from gossamer.values.errors import UsageError


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
    """The questions that a crawl can answer. An empty text says that it can; any other says why it cannot."""

    sparql: str
    search: str


# Stores that a crawl may have.

#: The file beside those of tantivy that notes the format of an index.
INDEX_FORMAT_FILE = "gossamer.json"


def index_path(directory: Path) -> Path:
    from gossamer.storage.tables.places import INDEX_DIRECTORY

    return directory / INDEX_DIRECTORY


def has_index(directory: Path) -> bool:
    """Whether a crawl has an index, of whatever version."""
    return (index_path(directory) / INDEX_FORMAT_FILE).exists()


def check_index(directory: Path) -> None:
    """Raises UsageError: a crawl keeps no index."""
    if not has_index(directory):
        raise UsageError(f"{directory} has no index; make one with: gossamer index {directory}")


def check_triples(directory: Path) -> None:
    """Raises UsageError: a crawl keeps no triples; one that was told to keep them (`--rdf`) may have found none."""
    from gossamer.crawls.directory import read_wiring
    from gossamer.storage.tables.places import TRIPLES, has_rows

    if (directory / TRIPLES).is_dir() or has_rows(directory, "triples"):
        return
    log = read_wiring(directory).providers.get("log")
    if log is None or "triples" not in log.settings.get("tables", ()):
        raise UsageError(
            f"{directory} keeps no triples; crawl with --rdf, or make them of what it archived: "
            f"gossamer reprocess {directory} --rdf"
        )


# Forms of an export.

#: Forms of the triples of a crawl (`--rdf`), and how their files end.
TRIPLE_FORMS = {"nquads": ".nq", "turtle": ".ttl", "jsonld": ".jsonld", "rdfxml": ".rdf"}

#: Forms that write one table.
TABLE_FORMS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}

#: The copy to browse, which is a folder.
FOLDER_FORM = "folder"

#: Forms of words (:mod:`gossamer.words`); Markdown is a folder.
WORDS_FORMS = {"markdown": "", "chunks": ".jsonl"}

#: All of them, and how their files end.
EXPORT_FORMS = {
    "wacz": ".wacz",
    **TABLE_FORMS,
    "cdxj": ".cdxj",
    "urls": ".txt",
    FOLDER_FORM: "",
    **WORDS_FORMS,
    **TRIPLE_FORMS,
}
