"""Copies of a crawl's triple store that can be read while the store is fed.

Only the process that feeds a store can copy it. Whoever wants a copy is that process where nobody else is: it has the store take
what it has not, and copies it. Otherwise it leaves a *wish* in a folder of its own, and the process that feeds it puts the copy
there when it has taken everything that was committed. A copy is made of links to files that never change.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gossamer.model.errors import CrawlDirectoryError
from gossamer.query.places import TRIPLES, following
from gossamer.query.triples.store import COPIES, STORE, TripleStore
from gossamer.stores.scratch import scratch

#: The file that asks for a copy, and the one that says why there is none.
_WISH = "wish"
_REFUSAL = "refusal"

#: Seconds between two looks for the copy.
_INTERVAL = 0.05


def wishes(directory: Path) -> list[Path]:
    """The folders of those that wait for a copy."""
    return [path.parent for path in (directory / TRIPLES / COPIES).glob(f"*/{_WISH}")]


def grant(store: TripleStore, folders: Iterable[Path]) -> None:
    """Make copies for those that waited when :func:`wishes` looked. The store has taken what was committed by then."""
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # whoever wished has gone
            (folder / _WISH).unlink()
            try:
                store.copy_to(folder / "copy")
                (folder / "copy").rename(folder / STORE)
            except (OSError, CrawlDirectoryError) as error:
                (folder / _REFUSAL).write_text(str(error))


@contextlib.contextmanager
def snapshot(directory: Path, feed: Callable[[TripleStore], None], patience: float) -> Iterator[Path]:
    """A copy of the store that has everything committed by now; it is removed at the end.

    Args:
        directory: the crawl directory.
        feed: gives the store what it has not taken.
        patience: seconds to wait for the process that feeds the store.

    Raises:
        CrawlDirectoryError: the store is of another version or damaged, or its process does not answer.
        OSError: a file could not be read or written.
    """
    place = directory / TRIPLES / COPIES
    place.mkdir(parents=True, exist_ok=True)
    with scratch(place=place) as name:
        folder = Path(name)
        wish = folder / _WISH
        deadline = time.monotonic() + patience
        while not (folder / STORE).exists():
            with following(directory, TRIPLES, wait=False) as held:
                if held:
                    with TripleStore(directory) as store:
                        feed(store)
                        wish.unlink(missing_ok=True)
                        if not (folder / STORE).exists():
                            store.copy_to(folder / STORE)
                    break
            if not wish.exists():
                wish.touch()
            if (folder / _REFUSAL).exists():
                raise CrawlDirectoryError(f"{directory / TRIPLES} cannot be copied: {(folder / _REFUSAL).read_text()}")
            if time.monotonic() > deadline:
                raise CrawlDirectoryError(
                    f"{directory / TRIPLES} is still taking triples after {patience:.0f} s; ask again, or give it more time"
                )
            time.sleep(_INTERVAL)
        yield folder / STORE
