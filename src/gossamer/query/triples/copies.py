"""A copy of a crawl's triple store with everything that the crawl has committed: what commands and the server read.

Place in the flow: `gossamer sparql`, `export` and `serve-sparql` begin here.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gossamer.model.errors import CrawlDirectoryError
from gossamer.query.derived import check_triples
from gossamer.query.following import feed_all, feeds_of
from gossamer.query.places import TRIPLES
from gossamer.query.triples.snapshots import snapshot
from gossamer.query.triples.store import TripleStore


@contextlib.contextmanager
def current_copy(directory: Path, patience: float) -> Iterator[Path]:
    """A copy of the store as of now. A store that was deleted is made again for it.

    Args:
        directory: the crawl directory.
        patience: seconds to wait for the process of a running crawl.

    Raises:
        UsageError: the crawl keeps no triples.
        CrawlDirectoryError: the store is of another version, damaged or in use, or the directory cannot be read or written.
    """
    check_triples(directory)

    def feed(store: TripleStore) -> None:
        feed_all(directory, feeds_of(directory, store.consumers()))
        store.open()

    with contextlib.ExitStack() as stack:
        try:
            copy = stack.enter_context(snapshot(directory, feed, patience))
        except OSError as error:
            what = error.filename or directory / TRIPLES
            raise CrawlDirectoryError(f"{what}: {error.strerror or error}; the triples cannot be copied") from None
        yield copy
