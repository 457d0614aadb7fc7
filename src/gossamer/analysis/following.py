"""Followers of a crawl are fed while the crawl runs.

Place in the flow: :mod:`gossamer.crawls.followers` has a worker call :func:`follow_crawl` for each thing beside a crawl, and closes
its input when everything is committed. Then the worker takes all that is committed by then, and answers with notes for a person.
"""

import contextlib
from pathlib import Path

from gossamer.engine.worker import Caller
from gossamer.query.following import (
    Follower,
    ItemFileFollower,
    PackageFollower,
    Rest,
    Retried,
    RetryingFollower,
    feed_until,
)
from gossamer.storage.tables.contract import FollowerNote, FollowerOrder
from gossamer.storage.tables.places import following

#: Seconds between two looks for requests that wait, and for the end.
INTERVAL = 1.0

#: Such looks from one commit of the search index to the next: a commit writes and merges segments, whatever is in it.
_INDEX_RESTS = 10


def _follower(directory: Path, what: str, rest: Rest) -> Follower:
    """A follower by its name, of which the rest, after a hyphen, may say which one it is. Each has a process of its own, so
    that a slow
    one holds up no other; few crawls have any but the first."""
    kind, _, name = what.partition("-")
    match kind:
        case "items":
            return ItemFileFollower(directory)
        case "packages":
            return PackageFollower(directory)
        case "triples":
            from gossamer.rdf.store.store import TripleStoreFollower

            return TripleStoreFollower(directory)
        case "endpoints":
            from gossamer.rdf.store.endpoint import EndpointFollower

            return EndpointFollower(directory, rest)
        case "index":
            from gossamer.search.indexing import open_for_writing

            index = Retried("the index", lambda: open_for_writing(directory))
            return RetryingFollower(directory, [index], rests=_INDEX_RESTS)
        case _:
            from gossamer.sinks.sink import sink_follower

            return sink_follower(directory, name)


def follow(directory: Path, what: str, rest: Rest, *, wait: bool) -> list[FollowerNote]:
    """Feed a follower (of sinks, `sink-NAME`) until the crawl has ended, then once more; returns what a person
    has to know. Another process that is at it is waited for, or the work is left to it. Raises GossamerError: it cannot be fed;
    says why. Raises OSError: a file could not be read or written."""
    with following(directory, what, wait=wait) as held:
        if not held:
            return []
        with contextlib.closing(_follower(directory, what, rest)) as follower:
            return feed_until(directory, follower, rest)


def follow_crawl(order: FollowerOrder, caller: Caller) -> list[FollowerNote]:
    """Follow a crawl until it closes the input of this process, which its death does too. Raises as :func:`follow`."""
    rest: Rest = (lambda: True) if order.once else (lambda: caller.has_closed(INTERVAL))
    return follow(Path(order.directory), order.follower, rest, wait=not order.once)
