"""The search index of a crawl brought up to date at any time, and searched in a process that can be killed."""

from pathlib import Path

import msgspec

from gossamer.crawls.directory import read_wiring
from gossamer.documents.text import TextChoice
from gossamer.engine.worker import Caller
from gossamer.query.archived import ArchivedTexts
from gossamer.query.contract import SearchQuestion
from gossamer.query.convert import convert
from gossamer.query.feeds import Feed
from gossamer.search.asking import FACETS, Search, SearchFilters
from gossamer.search.extras import add_extras, write_terms
from gossamer.search.index import SearchIndex, indexed_text, remove_index
from gossamer.storage.tables.places import TABLES, TERMS, following
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

# The search index of a crawl brought up to date, at any time: the feed of visits first, then what tables say of documents.
#
# Place in the flow: `gossamer index` asks here. Beside a running crawl that keeps its index itself, it says so.


class Indexed(msgspec.Struct, frozen=True):
    """What was done."""

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


def open_for_writing(directory: Path, text: TextChoice | None = None) -> SearchIndex:
    """The index of a crawl; where it is made, with the texts that the crawl chose.

    Args:
        directory: the crawl directory.
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
        directory: the crawl directory.
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

    Raises:
        UsageError: there is no index, or the words are no query.
    """
    filters = SearchFilters(hosts=question.hosts, languages=question.languages, types=question.types)
    found = Search(Path(question.directory)).ask(
        question.words, filters, most=question.most, start=question.start, facets=tuple(FACETS)
    )
    return msgspec.json.encode(found)
