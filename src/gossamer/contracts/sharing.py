"""State that several processes write: the masters of one crawl share their table so. Suite: `gossamer.testing.check_shared_state`.

Place in the flow: providers of a master ask it; commands read it, and write where no master is at work.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec


def as_json(names: Sequence[str]) -> str:
    """Any number of names as one parameter of a question, for `json_each`."""
    return msgspec.json.encode(names).decode()


class SharedState(Protocol):
    """One small database that any number of processes have open. No process serves it, so that none must live.

    Promises:
        1. What a `writing` block did is there for every process when the block is left, or not at all, whoever is killed.
        2. While one process is in a `writing` block, no other one is.
        3. Nothing of it is held by a process that has died.
    """

    def open(self, schema: str) -> None:
        """Begin to use tables: `schema` makes those that are not there (`CREATE TABLE IF NOT EXISTS`)."""
        ...

    @property
    def reading(self) -> sqlite3.Connection:
        """For questions; each sees what was written before it."""
        ...

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction of one's own; keep it short, since others wait.

        Raises:
            DiskFull: it could not be written. Nothing has changed.
            CrawlDirectoryError: the file cannot be read or written.
        """
        ...
