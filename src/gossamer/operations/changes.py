"""What visits of known pages found changed, in the order in which it was found.

Place in the flow: `gossamer changes` asks here; the table `changes` (:data:`gossamer.query.views.DERIVED`) says what a change is.
"""

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gossamer.query.convert import convert
from gossamer.query.database import Database, Rows
from gossamer.query.noted import Damage

#: The columns that a person wants to read; the table has more.
_COLUMNS = ("fetched_at", "change", "similarity", "bytes_before", "bytes", "status", "url", "title")


class ChangeChoice(msgspec.Struct, frozen=True):
    """Which changes are meant."""

    since: datetime.datetime | None = None
    """UTC, without a zone: changes that were found at this instant or later."""
    hosts: tuple[str, ...] = ()
    """On these hosts or below them."""
    kinds: tuple[str, ...] = ()
    """Of these kinds."""
    newest: int | None = None
    """So many of the newest ones."""


class FoundChanges(msgspec.Struct, frozen=True):
    """An answer."""

    rows: Rows
    damaged: Sequence[Damage]
    """Files whose rows are in no answer."""


@contextmanager
def changes_of(directory: Path, choice: ChangeChoice) -> Iterator[FoundChanges]:
    """The changes of a crawl, which may be at work, the oldest first.

    Args:
        directory: the crawl's.
        choice: which ones.

    Raises:
        CrawlDirectoryError: the tables are damaged.
        OSError: there is no room to look at them.
    """
    convert(directory)
    conditions: list[str] = ["true"]
    values: list[object] = []
    if choice.since is not None:
        conditions.append("fetched_at >= ?")
        values.append(choice.since)
    if choice.hosts:
        conditions.append(f"({' OR '.join(['host = ? OR ends_with(host, ?)'] * len(choice.hosts))})")
        values += [value for host in choice.hosts for value in (host, f".{host}")]
    if choice.kinds:
        conditions.append(f"change IN ({', '.join('?' * len(choice.kinds))})")
        values += choice.kinds
    newest = "" if choice.newest is None else f" ORDER BY fetched_at DESC, url LIMIT {choice.newest:d}"
    chosen = f"SELECT {', '.join(_COLUMNS)} FROM changes WHERE {' AND '.join(conditions)}{newest}"
    question = f"SELECT * FROM ({chosen}) ORDER BY fetched_at, url"
    with Database(directory) as database:
        yield FoundChanges(database.ask(question, values), database.damage_to(question))
