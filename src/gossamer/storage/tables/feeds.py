"""Feeds: the committed rows of a table in one order, for what follows a crawl. Suite: `gossamer.testing.check_feed_consumer`.

Place in the flow: :mod:`gossamer.query.feeds` reads rows out of row logs and of the Parquet made of them, in the order agent, run,
serial, row, and gives them to consumers: item files, triple stores, search indexes, sinks of databases. They are derived stores:
fed by other processes than the agent, each from a mark of its own, and made again when they are deleted.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec


class FeedPlace(msgspec.Struct, frozen=True, order=True):
    """The position up to which rows of one agent were taken."""

    run: str = ""
    serial: int = 0
    row: int = 0
    """Rows that were taken of this segment."""


class FeedMark(msgspec.Struct, frozen=True):
    """How far a consumer is."""

    generation: int = 0
    """Which making of the table the places belong to: `reprocess` makes all rows anew."""
    places: dict[str, FeedPlace] = {}
    """Agent -> how far its rows were taken."""


class FeedBatch(msgspec.Struct, frozen=True):
    """Some rows, and the mark of a consumer that has kept them."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """JSON is text, an instant is a `datetime` in UTC without a zone. Rows of one visit follow each other, and are all here."""
    mark: FeedMark


class FollowerOrder(msgspec.Struct, frozen=True):
    """Asks a worker to feed something that follows a crawl (:func:`gossamer.analysis.following.follow_crawl`)."""

    directory: str
    """Of the crawl."""
    follower: str
    """`items`, `triples`, `endpoints`, `index`, `packages`, or `sink-NAME`."""
    once: bool = False
    """Look once; otherwise go on until the input of the worker is closed."""


class FollowerNote(msgspec.Struct, frozen=True):
    """A message of a follower for a person, in one line."""

    text: str
    is_lacking: bool = False
    """It has not got every row, or may still have some that are gone; otherwise it has, and the line is a remark."""


class FeedConsumer(Protocol):
    """Keeps the results that it makes from the rows of one table.

    Promises:
        1. Rows given to `take` are kept together with their mark: all of them or none, even if the process is killed.
        2. `mark` returns the mark of the last kept batch, also in a process that starts later.
        3. After `rebuild` no trace of earlier rows is left, and the mark is at the beginning of the generation.
    """

    table: str
    """The tables of which it takes rows."""
    columns: tuple[str, ...]
    """The columns that it takes; all of them where it names none."""
    rows_at_once: int
    """About so many rows make a batch; one visit's rows stay together."""

    def mark(self) -> FeedMark:
        """The present mark; an empty one if it has kept nothing."""

    def rebuild(self, generation: int) -> None:
        """Drop everything: all rows of this generation come again."""

    def take(self, batch: FeedBatch) -> None:
        """Keep some rows.

        Raises:
            OSError: they could not be kept; they come again.
        """


class CountingConsumer(Protocol):
    """Counts the rows of one table, and holds none of them: they come as SQL over each file.

    What was counted lasts as long as the consumer, so `mark` is an empty one at its beginning.
    """

    def mark(self) -> FeedMark: ...

    def rebuild(self, generation: int) -> None:
        """Forget everything: all rows of this generation come again."""

    def count(self, connection: Any, rows: str) -> int:
        """Count some rows; returns how many there were.

        Args:
            connection: a connection to DuckDB.
            rows: SQL that gives them, with all columns of the table.
        """

    def reached(self, mark: FeedMark) -> None:
        """The end of the rows that were counted last."""


@runtime_checkable
class FinishingConsumer(Protocol):
    """A consumer that has something to do when the crawl stops, such as writing a file that cannot grow.

    Promises:
        1. `finish` makes the same result from the taken rows, even if it is called several times or in another process.
        2. If it is killed, it leaves either its earlier result or the whole new one.
    """

    def finish(self) -> list[str]:
        """All committed rows were taken: complete the result. Returns lines for a person to read.

        Raises:
            OSError: it could not be written; the next stop tries again.
        """
