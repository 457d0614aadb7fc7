"""The search index of a crawl brought up to date at any time, and searched in a process that can be killed.

Place in the flow: `gossamer index` asks here: the feed of visits comes first, then what the tables say of documents. Beside a
running crawl that keeps its index itself, it says so.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from gossamer.crawls.directory import read_wiring
from gossamer.documents.document import Document
from gossamer.documents.text import MAX_TEXT, TEXTS, TextChoice
from gossamer.engine.files import scratch
from gossamer.engine.worker import Caller
from gossamer.query.archive import ArchiveReader, archived_visit
from gossamer.query.contract import SearchQuestion
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.engine import PARQUET, connect
from gossamer.query.feeds import Feed
from gossamer.query.schema import LARGEST_LINE
from gossamer.search.asking import FACETS, Search, SearchFilters
from gossamer.search.index import CJK, PLAIN_WEIGHT, SearchIndex, analyzers, indexed_text, remove_index, written
from gossamer.storage.ledger.moving import parts
from gossamer.storage.recovery import changing
from gossamer.storage.tables.places import RANKS, TABLES, TERMS, following, table_names
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.words.options import PDF, TEXT_TYPES
from gossamer.words.pdf import PdfReading
from gossamer.words.reading import LeftOut


class Indexed(msgspec.Struct, frozen=True):
    """The result of bringing an index up to date."""

    documents: int
    """In the index now."""
    visits: int
    """That were looked at, since last time."""
    extras: int
    """Documents of which the tables say something else than before."""
    unread: int
    """Documents whose texts the archive does not give."""
    cut: int
    """Documents whose texts are too long, so that only their beginnings are in the index."""
    remarks: list[str]
    """The same in words."""
    terms: int | None = None
    """Rows of the table `terms`; None where it is not made."""


class ArchivedTexts:
    """Texts of visits. Contract: `search.index.TextReader`."""

    def __init__(self, directory: Path, choice: TextChoice = "main") -> None:
        self._reader = ArchiveReader(directory)
        self._choice = choice
        self._pdf = PdfReading()
        self._left_out = LeftOut()

    def text(self, row: Mapping[str, Any]) -> tuple[str, str] | None:
        """The text of a page by the choice, all of plain text and PDF; empty for what is none of these. Where there is more of it
        than is indexed, some of that is there as well."""
        mime, title = row["media_type"] or row["mime"] or "", row["title"] or ""
        if mime not in HTML_TYPES and mime not in TEXT_TYPES and mime != PDF:
            return title, ""
        try:
            visit = archived_visit(self._reader, row)
        except (UsageError, CrawlDirectoryError):
            return None
        document = Document(visit, choice=self._choice)
        if mime == PDF and not visit.is_part:
            read = self._pdf(document)
            self._left_out.add(read.trouble, row["url"])
            return title or read.title, "\n".join(read.texts)
        if mime in HTML_TYPES and not visit.is_part:
            return title, TEXTS[self._choice](document.markup, MAX_TEXT + 1)
        text = visit.response.content if visit.is_part else document.markup
        return title, text[: 4 * MAX_TEXT + 4].decode("utf-8", "replace")

    @property
    def remarks(self) -> list[str]:
        """PDF that has no text, or not all of it."""
        return self._left_out.told()

    def close(self) -> None:
        self._pdf.close()


def open_for_writing(directory: Path, text: TextChoice | None = None) -> SearchIndex:
    """The index of a crawl; where it is made, with the texts that are asked for, or that the crawl chose. Raises UsageError:
    the index holds other texts, or is of another version. Raises CrawlDirectoryError: it is damaged, or another process writes
    it."""
    has = indexed_text(directory)
    if text and has and text != has:
        raise UsageError(
            f"the index of {directory} was made with --text {has}; make it anew: "
            f"gossamer index {directory} --overwrite --text {text}"
        )
    choice = text or has or text_of_crawl(directory)
    return SearchIndex(directory, ArchivedTexts(directory, choice), choice)


def text_of_crawl(directory: Path) -> TextChoice:
    """The part of a page that is its text for the crawl itself; its prose where the crawl's own file does not say."""
    try:
        plan = read_wiring(directory).components.get("process")
    except GossamerError:  # `gossamer verify` tells of it, and texts can be read without
        return "main"
    return "all" if plan is not None and plan.settings.get("text") == "all" else "main"


def index_crawl(directory: Path, *, anew: bool = False, text: TextChoice | None = None, terms: bool = False) -> Indexed:
    """Bring the index up to date, or make it anew, of the text that is asked for, that the index has, or that the crawl chose;
    make the table `terms` of it where that is wanted. Raises UsageError: it holds other texts, or is of another version. Raises
    CrawlDirectoryError: it is damaged, or another process writes it. Raises OSError: it could not be written."""
    convert(directory)
    with following(directory, "index", wait=False) as held:
        if not held:
            raise CrawlDirectoryError(
                f"the index of {directory} is in use: a crawl or another command is handing rows on; call this again afterwards"
            )
        if anew:
            remove_index(directory)
        index = open_for_writing(directory, text)
        try:
            visits = Feed(directory, index.table).give(index)
            extras = add_extras(directory, index)
            rows = write_terms(index, directory / TABLES / TERMS / f"{TERMS}.parquet") if terms else None
            return Indexed(index.documents, visits, extras, index.unread, index.cut, index.remarks, rows)
        finally:
            index.close()


def answer_search(question: SearchQuestion, caller: Caller) -> bytes:
    """A :class:`~gossamer.search.asking.SearchAnswer` as JSON. The dashboard has a worker call this for each search
    (:mod:`gossamer.dashboard.questions`). Raises UsageError: there is no index, or the words are no query."""
    filters = SearchFilters(hosts=question.hosts, languages=question.languages, types=question.types)
    found = Search(Path(question.directory)).ask(
        question.words, filters, most=question.most, start=question.start, facets=tuple(FACETS)
    )
    return msgspec.json.encode(found)


# Fields of a document in the index beside its own words: texts of links to it, its rank, the types of things on it, by what the
# tables say when the feed has been read. Only documents of which they say something else than the index has are written again,
# out of what the index keeps of them.

#: Different texts of links to a page that are indexed, and characters of one.
ANCHORS, ANCHOR = 50, 100

#: Types of things of a page.
TYPES = 100

#: Documents that are compared at once, and committed.
AT_ONCE = 5_000

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def add_extras(directory: Path, index: SearchIndex) -> int:
    """Bring what the tables say into the index; returns how many documents that changed."""
    changed, told = 0, dict[str, dict[str, Any]]()

    def with_extras(url: str, old: tantivy.Document) -> tantivy.Document:
        kept = {name: values if name == "host" else values[0] for name, values in old.to_dict().items()}
        return written({**kept, **told[url]})

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
        for some in parts(answer, AT_ONCE):
            told = {url: _extras(*values) for url, *values in some}
            changed += index.change({url: one["extras"] for url, one in told.items()}, with_extras)
            index.keep_changes()
    return changed


def _extras(anchors: list[str] | None, types: list[str] | None, importance: float | None) -> dict[str, Any]:
    """The extras of a document, with a number that tells them apart; 0 for none, as a document has that was just fetched."""
    plain = {"anchors": anchors or [], "type": types or [], "weight": PLAIN_WEIGHT + round(importance or 0.0, 3)}
    is_none = not anchors and not types and plain["weight"] == PLAIN_WEIGHT
    digest = 0 if is_none else int.from_bytes(hashlib.sha256(msgspec.json.encode(plain)).digest()[:7], "big")
    return {**plain, "extras": digest}


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
