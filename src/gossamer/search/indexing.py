"""The search index of a crawl brought up to date at any time, and searched in a process that can be killed.

Place in the flow: `gossamer index` asks here: the feed of visits comes first, then what the tables say of documents. Beside a
running crawl that keeps its index itself, it says so.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.directory import read_wiring
from gossamer.documents.document import Document
from gossamer.documents.text import MAX_TEXT, TEXTS, TextChoice
from gossamer.engine.worker import Caller
from gossamer.query.archive import ArchiveReader
from gossamer.query.archived import archived_visit
from gossamer.query.contract import SearchQuestion
from gossamer.query.convert import convert
from gossamer.query.feeds import Feed
from gossamer.search.asking import FACETS, Search, SearchFilters
from gossamer.search.extras import add_extras, write_terms
from gossamer.search.index import SearchIndex, indexed_text, remove_index
from gossamer.storage.tables.places import TABLES, TERMS, following
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError
from gossamer.values.visit import HTML_TYPES
from gossamer.words.options import PDF, TEXT_TYPES
from gossamer.words.pages import told
from gossamer.words.pdf import PdfReading


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
        self._left_out: Counter[str] = Counter()

    def text(self, row: Mapping[str, Any]) -> tuple[str, str] | None:
        """The text of a page by the choice, all of plain text and PDF; empty for what is none of these.

        Where there is more of it than is indexed, some of that is there as well.
        """
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
            self._left_out[read.trouble] += bool(read.trouble)
            return title or read.title, "\n".join(read.texts)
        if mime in HTML_TYPES and not visit.is_part:
            return title, TEXTS[self._choice](document.markup, MAX_TEXT + 1)
        text = visit.response.content if visit.is_part else document.markup
        return title, text[: 4 * MAX_TEXT + 4].decode("utf-8", "replace")

    @property
    def remarks(self) -> list[str]:
        """PDF that has no text, or not all of it."""
        return told(self._left_out)

    def close(self) -> None:
        self._pdf.close()


def open_for_writing(directory: Path, text: TextChoice | None = None) -> SearchIndex:
    """The index of a crawl; where it is made, with the texts that the crawl chose.

    Args:
        text: what of a page is indexed instead.

    Raises:
        UsageError: the index holds other texts, or is of another version.
        CrawlDirectoryError: it is damaged, or another process writes it.
    """
    has = indexed_text(directory)
    if text and has and text != has:
        raise UsageError(
            f"the index of {directory} was made with --text {has}; make it anew: "
            f"gossamer index {directory} --overwrite --text {text}"
        )
    choice = text or has or text_of_crawl(directory)
    return SearchIndex(directory, ArchivedTexts(directory, choice), choice)


def text_of_crawl(directory: Path) -> TextChoice:
    """What of a page is its text for the crawl itself; its prose where the crawl's own file does not say."""
    try:
        plan = read_wiring(directory).components.get("process")
    except GossamerError:  # `gossamer verify` tells of it, and texts can be read without
        return "main"
    return "all" if plan is not None and plan.settings.get("text") == "all" else "main"


def index_crawl(directory: Path, *, anew: bool = False, text: TextChoice | None = None, terms: bool = False) -> Indexed:
    """Bring the index up to date.

    Args:
        anew: make it from the beginning.
        text: what of a page is indexed; None for what the index has, or the crawl chose.
        terms: make the table `terms` of it.

    Raises:
        UsageError: it holds other texts, or is of another version.
        CrawlDirectoryError: it is damaged, or another process writes it.
        OSError: it could not be written.
    """
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
    (:mod:`gossamer.dashboard.questions`).

    Raises UsageError: there is no index, or the words are no query.
    """
    filters = SearchFilters(hosts=question.hosts, languages=question.languages, types=question.types)
    found = Search(Path(question.directory)).ask(
        question.words, filters, most=question.most, start=question.start, facets=tuple(FACETS)
    )
    return msgspec.json.encode(found)
