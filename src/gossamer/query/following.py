"""Followers of a crawl, and how they are fed: while the crawl runs, and once more when it has ended; and the connection over which
they post to a server of the user's.

Place in the flow: :mod:`gossamer.crawls.followers` has a worker call :func:`follow_crawl` for each thing beside a crawl, and closes
its input when everything is committed; then the worker takes all that is committed by then, and answers with notes for a person.
Each feeds a :class:`Follower`: of item files, of consumers of installed packages, or of the search index and databases, whose
consumers are tried again when they fail. Stores elsewhere (:mod:`gossamer.rdf.store.endpoint`) and webhooks
(:mod:`gossamer.sinks.sink`) send by :class:`Posting`, and say what an answer means. Redirects are answers like any other: nothing
is sent where the user did not say.
"""

import contextlib
import http.client
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from gossamer._version import __version__
from gossamer.engine.errors import UnknownName
from gossamer.engine.subjects import found_at, loaded, offered
from gossamer.engine.worker import Caller
from gossamer.query.engine import Error
from gossamer.query.feeds import Feed
from gossamer.query.item_files import ItemFile, item_files
from gossamer.storage.tables.contract import FeedConsumer, FollowerNote, FollowerOrder
from gossamer.storage.tables.places import PACKAGE_FOLLOWERS, following, reading
from gossamer.values.errors import GossamerError

#: The entry point group by which installed packages offer consumers. An offer is called with the crawl directory, and
#: gives a consumer. A crawl has those that its `state/followers/` names: one empty file each, which the package makes.
GROUP = "gossamer.followers"

#: How a consumer fails that cannot keep its rows.
FAILURES = (OSError, ValueError, GossamerError, Error)

Rest = Callable[[], bool]
"""Waits a little; True when the crawl has ended, so that the next look is the last."""


class Follower:
    """One thing that follows a crawl."""

    #: Rests between two looks at the feeds, where no request waits.
    rests = 1

    _consumers: Sequence[FeedConsumer] = ()

    def consumers(self) -> Sequence[FeedConsumer]:
        """The consumers to feed next: in this order, and seen in the opposite one, so that no feed is ahead of those before it."""
        return self._consumers

    def is_awaited(self) -> bool:
        """A request waits for the rows that are committed by now."""
        return False

    def look(self) -> None:
        """The feeds are looked at next: requests that wait by now will be served."""

    def has_looked(self) -> None:
        """Everything has what was committed at the last :meth:`look`."""

    def failed(self, consumer: FeedConsumer, error: Exception) -> None:
        """A consumer could not keep its rows. Note it, and the others go on without this one; raise it, and all is over."""
        raise error

    def finish(self) -> None:
        """Everything is given: write what is written at the end."""

    def told(self) -> list[FollowerNote]:
        """Notes for a person at the end."""
        return []

    def close(self) -> None:
        """Let go of everything."""


class ItemFileFollower(Follower):
    """The item files of a crawl. One that cannot be written does not keep the others from their rows."""

    def __init__(self, directory: Path) -> None:
        self._consumers: list[ItemFile] = item_files(directory)
        self._told: list[FollowerNote] = []

    def failed(self, consumer: FeedConsumer, error: Exception) -> None:
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        text = f"items could not be written to a file ({consumer!r}: {why}); the next run goes on with it"
        self._told.append(FollowerNote(text, is_lacking=True))
        self._consumers = [file for file in self._consumers if file is not consumer]

    def finish(self) -> None:
        for file in self._consumers:
            try:
                self._told += map(FollowerNote, file.finish())
            except FAILURES as error:
                self.failed(file, error)

    def told(self) -> list[FollowerNote]:
        return self._told


class PackageFollower(Follower):
    """Consumers of installed packages, which the crawl names."""

    def __init__(self, directory: Path) -> None:
        """Find them. Raises UnknownName: no package offers the name, or the offer cannot be loaded."""
        self._consumers: list[FeedConsumer] = []
        for name in sorted(path.name for path in directory.glob(f"{PACKAGE_FOLLOWERS}/*")):
            entry = next(iter(offered(GROUP, name)), None)
            if entry is None:
                raise UnknownName(f"no installed package offers the follower {name!r}")
            self._consumers.append(loaded(entry, "follower")(directory))


def feed_all(
    directory: Path,
    fed: Sequence[tuple[FeedConsumer, Feed]],
    failed: Callable[[FeedConsumer, Exception], None] | None = None,
) -> None:
    """Give consumers everything that is committed by now; `failed` is told of one that could not keep its rows. Raises OSError:
    a file could not be read, or, without `failed`, a consumer could not keep what it was given."""
    with reading(directory):
        sights = [feed.look() for _, feed in reversed(fed)]
        for (consumer, feed), sight in zip(fed, reversed(sights), strict=True):
            try:
                feed.give(consumer, sight)
            except FAILURES as error:
                if failed is None:
                    raise
                failed(consumer, error)


def feeds_of(directory: Path, consumers: Sequence[FeedConsumer]) -> list[tuple[FeedConsumer, Feed]]:
    return [(consumer, Feed(directory, consumer.table)) for consumer in consumers]


def feed_until(directory: Path, follower: Follower, rest: Rest) -> list[FollowerNote]:
    """Feed a follower until the crawl has ended, then once more; returns what a person has to know. Raises GossamerError: it
    cannot be fed; says why. Raises OSError: a file could not be read or written."""
    feeds: dict[FeedConsumer, Feed] = {}
    is_last = False
    while True:
        follower.look()
        consumers = follower.consumers()
        feeds = {one: feeds.get(one) or Feed(directory, one.table) for one in consumers}
        feed_all(directory, list(feeds.items()), follower.failed)
        follower.has_looked()
        if is_last:
            follower.finish()
            return follower.told()
        for _ in range(follower.rests):
            is_last = rest()
            if is_last or follower.is_awaited():
                break


# Consumers that are tried again. One that fails is closed, and opened again after a pause that grows; the others are fed meanwhile.
# Rows that it could not take stay in the tables, and the next run gives them.

#: Seconds that a consumer which fails is left out, at most: the number of looks doubles with each failure.
_LONGEST_PAUSE = 30

#: Tries that are left when the crawl has ended, and seconds before each: a database that starts anew is back by then.
_LAST_TRIES, _LAST_PAUSE = 5, 1.0


class OpenConsumer(FeedConsumer, Protocol):
    """A consumer that holds something open."""

    def close(self) -> None: ...


class Retried:
    """Something that is opened, and opened again when it fails."""

    def __init__(self, name: str, open_it: Callable[[], OpenConsumer]) -> None:
        """`name` is as people call it; `open_it` raises OSError or GossamerError where it cannot be opened."""
        self.name = name
        self.consumer: OpenConsumer | None = None
        self.failure = ""
        """Why it failed last; empty where it did not."""
        self.most_left_out = _LONGEST_PAUSE
        self._open_it = open_it
        self._failures = self._left_out = 0

    def is_due(self) -> bool:
        self._left_out = max(0, self._left_out - 1)
        return not self._left_out

    def opened(self) -> OpenConsumer | None:
        """The consumer, opened where it is not; None where that fails."""
        if self.consumer is None:
            try:
                self.consumer = self._open_it()
            except FAILURES as error:
                self.fail(error)
        return self.consumer

    def fail(self, error: Exception) -> None:
        self.close()
        self.failure = " ".join(str(error).split()) or type(error).__name__
        self._failures += 1
        self._left_out = min(2**self._failures, self.most_left_out)

    def succeed(self) -> None:
        self.failure, self._failures = "", 0

    def close(self) -> None:
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            consumer.close()


class RetryingFollower(Follower):
    """Feeds some consumers, each as if it were alone."""

    def __init__(
        self, directory: Path, every: Sequence[Retried], sleep: Callable[[float], None] = time.sleep, *, rests: int = 1
    ) -> None:
        """Name what is fed, with so many seconds between two looks. Nothing is opened yet."""
        self.rests = rests
        self._directory = directory
        self._every = every
        for one in every:
            one.most_left_out = max(1, _LONGEST_PAUSE // rests)
        self._tried: list[Retried] = []
        self._sleep = sleep

    def consumers(self) -> Sequence[FeedConsumer]:
        self._tried = [one for one in self._every if one.is_due() and one.opened()]
        return [one.consumer for one in self._tried if one.consumer is not None]

    def failed(self, consumer: FeedConsumer, error: Exception) -> None:
        for one in self._tried:
            if one.consumer is consumer:
                one.fail(error)

    def has_looked(self) -> None:
        """Consumers that were fed and did not fail have everything."""
        for one in self._tried:
            if one.consumer is not None:
                one.succeed()

    def finish(self) -> None:
        """Try those a few times more that have not got everything."""
        for _ in range(_LAST_TRIES):
            lacking = [one for one in self._every if one.failure]
            if not lacking:
                return
            self._sleep(_LAST_PAUSE)
            self._tried = [one for one in lacking if one.opened()]
            consumers = [one.consumer for one in self._tried if one.consumer is not None]
            feed_all(self._directory, feeds_of(self._directory, consumers), self.failed)
            self.has_looked()

    def told(self) -> list[FollowerNote]:
        """A line for each that lacks rows, and what consumers remark."""
        open_ones = [one.consumer for one in self._every if one.consumer is not None]
        remarks = [FollowerNote(line) for one in open_ones for line in getattr(one, "remarks", ())]
        return remarks + [
            FollowerNote(f"{one.name}: {one.failure}; the next run hands on what is missing", is_lacking=True)
            for one in self._every
            if one.failure
        ]

    def close(self) -> None:
        for one in self._every:
            one.close()


# The followers by name.

#: Seconds between two looks for requests that wait, and for the end.
INTERVAL = 1.0

#: Such looks from one commit of the search index to the next: a commit writes and merges segments, whatever is in it.
_INDEX_RESTS = 10


def _follower(directory: Path, what: str, rest: Rest) -> Follower:
    """A follower by its name, of which the rest, after a hyphen, may say which one it is. Each has a process of its own, so
    that a slow one holds up no other, and imports its subject alone."""
    kind, _, name = what.partition("-")
    made: Follower
    match kind:
        case "items":
            made = ItemFileFollower(directory)
        case "packages":
            made = PackageFollower(directory)
        case "triples":
            made = found_at("gossamer.rdf.store.store:TripleStoreFollower")(directory)
        case "endpoints":
            made = found_at("gossamer.rdf.store.endpoint:EndpointFollower")(directory, rest)
        case "index":
            open_index = partial(found_at("gossamer.search.indexing:open_for_writing"), directory)
            made = RetryingFollower(directory, [Retried("the index", open_index)], rests=_INDEX_RESTS)
        case _:
            made = found_at("gossamer.sinks.sink:sink_follower")(directory, name)
    return made


def follow(directory: Path, what: str, rest: Rest, *, wait: bool) -> list[FollowerNote]:
    """Feed a follower (of sinks, `sink-NAME`) as :func:`feed_until`. Another process that is at it is waited for, or the work is
    left to it."""
    with following(directory, what, wait=wait) as held:
        if not held:
            return []
        with contextlib.closing(_follower(directory, what, rest)) as follower:
            return feed_until(directory, follower, rest)


def follow_crawl(order: FollowerOrder, caller: Caller) -> list[FollowerNote]:
    """Follow a crawl until it closes the input of this process, which its death does too. Raises as :func:`follow`."""
    rest: Rest = (lambda: True) if order.once else (lambda: caller.has_closed(INTERVAL))
    return follow(Path(order.directory), order.follower, rest, wait=not order.once)


# Posts to servers of the user's: stores elsewhere (:mod:`gossamer.rdf.store.endpoint`) and webhooks (:mod:`gossamer.sinks.sink`)
# send by it, and say what an answer means. Redirects are answers like any other: nothing is sent where the user did not say.

#: Seconds until a server that says nothing counts as gone. A large update may take long.
PATIENCE = 120.0

#: Bytes of an answer that are read.
_MOST_BYTES = 2_000


class Posting:
    """One POST after the other to a server of the user's, over one connection that is opened again when it is lost."""

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        """Name an http or https URL without credentials. Nothing is opened yet."""
        self._parts = urlsplit(url)
        self._patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def post(self, body: bytes, fields: Mapping[str, str]) -> tuple[int, str, str]:
        """Send once: status, its words, and the beginning of what the server says, printable.
        Raises OSError: it cannot be reached, does not answer, or answers what is no HTTP; the message says which."""
        try:
            connection = self._connection = self._connection or self._open()
            path = self._parts.path or "/"
            if self._parts.query:
                path = f"{path}?{self._parts.query}"
            connection.request("POST", path, body, {"User-Agent": f"gossamer/{__version__}", **fields})
            answer = connection.getresponse()
            said = answer.read(_MOST_BYTES).decode("utf-8", "replace")
            if not answer.isclosed():
                self.close()  # it says more than is wanted
            return answer.status, answer.reason, "".join(c for c in said if c.isprintable() or c == " ")
        except TimeoutError:
            self.close()
            raise OSError(f"it did not answer within {self._patience:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise OSError(f"it cannot be reached ({why})") from None

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._patience, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self._patience)
