"""State that several processes write, such as the table of the masters of one crawl.
Suite: `gossamer.testing.check_shared_state`.

Place in the flow: providers of a master ask it; commands read it, and write where no master is at work.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec


def as_json(names: Sequence[str]) -> str:
    """Return any number of names as one parameter of a query, for `json_each`."""
    return msgspec.json.encode(names).decode()


class SharedState(Protocol):
    """One small database that any number of processes have open. No process serves it, so none has to be alive.

    Promises:
        1. When a `writing` block ends, every process sees all of its changes, or none, whichever process is killed.
        2. Only one process at a time is in a `writing` block.
        3. A process that has died holds no lock.
    """

    def open(self, schema: str) -> None:
        """Begin to use tables: `schema` makes those that are not there (`CREATE TABLE IF NOT EXISTS`)."""
        ...

    @property
    def reading(self) -> sqlite3.Connection:
        """A connection for queries. Each query sees everything that was written before it."""
        ...

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open a transaction. Keep it short, since other processes wait.

        Raises:
            DiskFull: it could not be written. Nothing has changed.
            CrawlDirectoryError: the file cannot be read or written.
        """
        ...
