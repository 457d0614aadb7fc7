"""Feeds: the committed rows of a table in one order, for what follows a crawl. Suite: `gossamer.testing.check_feed_consumer`.

Place in the flow: :mod:`gossamer.query.feeds` reads rows out of row logs and of the Parquet made of them, in the order agent, run,
serial, row, and gives them to consumers: item files, triple stores, search indexes, sinks of databases. They are derived stores:
fed by other processes than the agent, each from a mark of its own, and made again when they are deleted.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec


class FeedPlace(msgspec.Struct, frozen=True, order=True):
    """How far the rows of one agent were taken."""

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
    """Some rows, and where a consumer is when it has kept them."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """JSON is text, an instant is a `datetime` in UTC without a zone. Rows of one visit follow each other, and are all here."""
    mark: FeedMark


class FollowerNote(msgspec.Struct, frozen=True):
    """What a person has to know of a follower, in one line."""

    text: str
    is_lacking: bool = False
    """It has not got every row, or may still have some that are gone; otherwise it has, and the line is a remark."""


class FeedConsumer(Protocol):
    """Keeps what becomes of the rows of one table.

    Promises:
        1. What `take` was given is kept together with its mark: all of it or nothing, wherever the process is killed.
        2. `mark` is that of the last batch that was kept, also in a process that starts later.
        3. After `rebuild` nothing of earlier rows is left, and the mark is at the beginning of the generation.
    """

    table: str
    """Whose rows it takes."""
    columns: tuple[str, ...]
    """The columns that it takes; all of them where it names none."""
    rows_at_once: int
    """About so many rows make a batch; one visit's rows stay together."""

    def mark(self) -> FeedMark:
        """How far it is; an empty one where it has kept nothing."""
        ...

    def rebuild(self, generation: int) -> None:
        """Drop everything: all rows come again, as this generation has them."""
        ...

    def take(self, batch: FeedBatch) -> None:
        """Keep some rows.

        Raises:
            OSError: they could not be kept; they come again.
        """
        ...


class CountingConsumer(Protocol):
    """Counts the rows of one table, and holds none of them: they come as SQL over each file.

    What was counted lasts as long as the consumer, so `mark` is an empty one at its beginning.
    """

    def mark(self) -> FeedMark:
        """How far it is."""
        ...

    def rebuild(self, generation: int) -> None:
        """Forget everything: all rows come again, as this generation has them."""
        ...

    def count(self, connection: Any, rows: str) -> int:
        """Count some rows; returns how many there were.

        Args:
            connection: a connection to DuckDB.
            rows: SQL that gives them, with all columns of the table.
        """
        ...

    def reached(self, mark: FeedMark) -> None:
        """What was counted last ends here."""
        ...


@runtime_checkable
class FinishingConsumer(Protocol):
    """A consumer that has something to do when the crawl stops, such as writing a file that cannot grow.

    Promises:
        1. `finish` makes the same of what was taken, however often it is called, and in whichever process.
        2. Killed anywhere, it leaves what it made before, or the new in one piece.
    """

    def finish(self) -> list[str]:
        """Everything that is committed was taken: complete what is made of it; returns lines that a person should read.

        Raises:
            OSError: it could not be written; the next stop tries again.
        """
        ...
