"""The search index of a crawl brought up to date, at any time: the feed of visits first, then what tables say of documents.

Place in the flow: `gossamer index` asks here. Beside a running crawl that keeps its index itself, it says so.
"""

from pathlib import Path

import msgspec

from gossamer.assembly.archived import ArchivedTexts
from gossamer.model.errors import CrawlDirectoryError
from gossamer.query.convert import convert
from gossamer.query.feeds import Feed
from gossamer.query.places import following
from gossamer.query.search.extras import add_extras
from gossamer.query.search.index import SearchIndex, remove_index


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


def index_crawl(directory: Path, *, anew: bool = False) -> Indexed:
    """Bring the index up to date.

    Args:
        directory: the crawl directory.
        anew: make it from the beginning.

    Raises:
        UsageError: it is of another version.
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
        index = SearchIndex(directory, ArchivedTexts(directory))
        try:
            visits = Feed(directory, index.table).give(index)
            extras = add_extras(directory, index)
            return Indexed(index.documents, visits, extras, index.unread)
        finally:
            index.close()
