"""A store keeps named bytes on another disk or machine. Suite: `gossamer.testing.check_store`."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from gossamer.values.errors import CrawlDirectoryError


class StoreFailed(CrawlDirectoryError):
    """The store cannot be reached, refuses what is asked, or has no room. The message names it and the cause, in one line."""


class StoreRefused(StoreFailed):
    """The store was asked, and refuses this process: a person has to see to its keys, rights, bucket or clock."""


class ObjectChanged(Exception):
    """The object is not what a conditional `put` expected, and is as it was."""


class ObjectMissing(Exception):
    """There is no object under this key."""


class Stat(msgspec.Struct, frozen=True):
    """The state of an object in a store."""

    size: int
    tag: str
    """Changes whenever the bytes change; `put` compares it."""
    modified: float
    """Seconds since the epoch, by the clock of the store."""


#: As `expect`: the object must not be there yet.
ABSENT = ""


class Store(Protocol):
    """Keeps objects: bytes under keys, as `agents/agent-00/head.json`. Calls block, and may come from several threads.

    Promises:
        1. An object is there whole or not at all, and a reader sees the bytes of one `put`.
        2. A `put` that has returned is seen by every later call, of every process.
        3. Of any number of conditional puts that expect the same, at most one succeeds.
    Any call may raise StoreFailed.
    """

    name: str
    """As people write it; it holds no secret."""

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        """Keep the bytes under the key; returns the tag. `expect`: replace it only if its tag is this, or only make it
        (:data:`ABSENT`); None replaces whatever is there.

        Raises:
            ObjectChanged: the object is another than expected.
        """

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Return the bytes, or a range of them; fewer where the object ends before. Raises ObjectMissing."""

    def read(self, key: str) -> tuple[bytes, Stat]:
        """Return all bytes of an object and what is known of it, by one request. Raises ObjectMissing."""

    def stat(self, key: str) -> Stat:
        """Say what is known of an object. Raises ObjectMissing."""

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys below a prefix that ends with `/`, in any order."""

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there do no harm."""
