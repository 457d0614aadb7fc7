"""Feeding triple stores beside a crawl, and the copies that can be read meanwhile.

Only the process that feeds a store can copy it. A reader that finds the store free is that process: it has the store take what it
has not, and copies it. Otherwise it leaves a *wish* in a folder of its own, and the process that feeds the store puts the copy
there when it has taken everything that was committed. A copy is made of links to files that never change.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from gossamer.engine.files import scratch
from gossamer.engine.sheet import show_count
from gossamer.query.following import Follower
from gossamer.rdf.store.endpoint import endpoints
from gossamer.rdf.store.store import COPIES, STORE, TripleStore
from gossamer.storage.tables.contract import FeedConsumer, FollowerNote
from gossamer.storage.tables.places import TRIPLES, following
from gossamer.values.errors import CrawlDirectoryError

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


# What feeds triple stores beside a crawl, each in a process of its own (`gossamer.analysis.following`).

#: Rests between two looks at the feeds: triples are cheaper by the ten thousand. Who asks does not wait for it.
_RESTS = 10


class TripleStoreFollower(Follower):
    """The triple store of the crawl itself."""

    rests = _RESTS

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = TripleStore(directory)
        self._consumers = self._store.consumers()
        self._waiting: list[Path] = []

    def consumers(self) -> Sequence[FeedConsumer]:
        return self._consumers

    def is_awaited(self) -> bool:
        return bool(wishes(self._directory))

    def look(self) -> None:
        self._waiting = wishes(self._directory)

    def has_looked(self) -> None:
        grant(self._store, self._waiting)

    def finish(self) -> None:
        self._store.put_in_order()

    def told(self) -> list[FollowerNote]:
        left_out = self._store.left_out.total()
        if not left_out:
            return []
        return [
            FollowerNote(
                f"the triple store lacks {show_count(left_out, 'triple')} of the table, because their names are not IRIs"
            )
        ]

    def close(self) -> None:
        self._store.close()


class EndpointFollower(Follower):
    """The triple stores elsewhere that the crawl feeds."""

    def __init__(self, directory: Path, rest: Callable[[], bool]) -> None:
        self._endpoints = endpoints(directory, rest)
        self._consumers = [consumer for endpoint in self._endpoints for consumer in endpoint.consumers()]

    def consumers(self) -> Sequence[FeedConsumer]:
        return self._consumers

    def told(self) -> list[FollowerNote]:
        return [
            FollowerNote(f"{endpoint.url} lacks {show_count(count, 'triple')}: {_REASONS[reason]}")
            for endpoint in self._endpoints
            for reason, count in endpoint.left_out.items()
        ]

    def close(self) -> None:
        for endpoint in self._endpoints:
            endpoint.close()


#: Why triples are not in a store elsewhere.
_REASONS = {"not_an_iri": "their names are not IRIs", "refused": "it refused them"}
