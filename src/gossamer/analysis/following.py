"""Followers of a crawl are fed while the crawl runs.

Place in the flow: :mod:`gossamer.crawls.followers` has a worker call :func:`follow_crawl` for each thing beside a crawl, and closes
its input when everything is committed. Then the worker takes all that is committed by then, and answers with notes for a person.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from gossamer.engine.worker import Caller
from gossamer.query.following import Follower, ItemFileFollower, PackageFollower, Rest, feed_until
from gossamer.storage.tables.contract import FollowerNote, FollowerOrder
from gossamer.storage.tables.places import following

#: Seconds between two looks for requests that wait, and for the end.
INTERVAL = 1.0

#: Such looks from one commit of the search index to the next: a commit writes and merges segments, whatever is in it.
_INDEX_RESTS = 10


def _triples(directory: Path, rest: Rest, name: str) -> Follower:
    from gossamer.rdf.store.store import TripleStoreFollower  # few crawls have one

    return TripleStoreFollower(directory)


def _endpoints(directory: Path, rest: Rest, name: str) -> Follower:
    from gossamer.rdf.store.endpoint import EndpointFollower  # few crawls have one

    return EndpointFollower(directory, rest)


def _index(directory: Path, rest: Rest, name: str) -> Follower:
    from gossamer.query.following import Retried, RetryingFollower
    from gossamer.search.indexing import open_for_writing  # few crawls are indexed while they run

    return RetryingFollower(directory, [Retried("the index", lambda: open_for_writing(directory))], rests=_INDEX_RESTS)


def _sink(directory: Path, rest: Rest, name: str) -> Follower:
    from gossamer.sinks.sink import sink_follower  # few crawls have databases

    return sink_follower(directory, name)


#: Followers of crawls, by the first word of their names; the rest, after a hyphen, says which. Each has a process of its own,
#: so that a slow one holds up no other.
FOLLOWERS: dict[str, Callable[[Path, Rest, str], Follower]] = {
    "items": lambda directory, rest, name: ItemFileFollower(directory),
    "triples": _triples,
    "endpoints": _endpoints,
    "index": _index,
    "sink": _sink,
    "packages": lambda directory, rest, name: PackageFollower(directory),
}


def follow(directory: Path, what: str, rest: Rest, *, wait: bool) -> list[FollowerNote]:
    """Feed one of :data:`FOLLOWERS` (of sinks, `sink-NAME`) until the crawl has ended, then once more; returns what a person
    has to know. Another process that is at it is waited for, or the work is left to it. Raises GossamerError: it cannot be fed;
    says why. Raises OSError: a file could not be read or written."""
    with following(directory, what, wait=wait) as held:
        if not held:
            return []
        kind, _, name = what.partition("-")
        with contextlib.closing(FOLLOWERS[kind](directory, rest, name)) as follower:
            return feed_until(directory, follower, rest)


def follow_crawl(order: FollowerOrder, caller: Caller) -> list[FollowerNote]:
    """Follow a crawl until it closes the input of this process, which its death does too. Raises as :func:`follow`."""
    rest: Rest = (lambda: True) if order.once else (lambda: caller.has_closed(INTERVAL))
    return follow(Path(order.directory), order.follower, rest, wait=not order.once)
