"""What feeds triple stores beside a crawl, each in a process of its own (`gossamer.operations.following`)."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gossamer.contracts.feeding import FeedConsumer, FollowerNote
from gossamer.flow.quantities import show_count
from gossamer.query.following import Follower
from gossamer.query.triples.endpoint import endpoints
from gossamer.query.triples.snapshots import grant, wishes
from gossamer.query.triples.store import TripleStore

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
