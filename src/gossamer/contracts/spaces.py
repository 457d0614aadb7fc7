"""Spaces of the ledger: where a keeper or a plug-in keeps state of its own. Suite: `gossamer.testing.check_spaces`.

A space belongs to one owner and holds small values by host and key. It needs no part of the ledger to know of it: it commits
with the groups that changed it, it lies under the domain of its host, so that it moves when the domain moves to another
agent, and it is bounded.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

#: Takes the key and value of an entry to those of the next version; None drops it. It is pure, and may be called twice.
Migration = Callable[[bytes, bytes], tuple[bytes, bytes] | None]

#: Bytes of a key at most: keys are compared, copied and kept in every index.
KEY_BYTES = 512


class Space(msgspec.Struct, frozen=True):
    """What an owner declares of its space.

    Keys have up to :data:`KEY_BYTES` bytes. What an owner is called never changes; what the bytes mean is said by the version.
    """

    owner: str
    """Lower-case letters, digits and hyphens, 32 at most; a package puts its own name first, as `mypackage-prices`."""
    version: int = 1
    """Between 1 and 255. A ledger that has a newer one is refused; an older one is migrated."""
    migrations: tuple[Migration, ...] = ()
    """One for each step from version 1 on."""
    value_bytes: int = 64 << 10
    """Bytes of one value at most."""
    host_bytes: int = 1 << 20
    """Bytes of keys and values under one host at most, whatever the host does."""
    common_bytes: int = 64 << 20
    """Bytes of keys and values under no host at most."""


#: URLs that were found here and belong to another agent which has not committed them yet, under their host (design question 20).
#: The key is the URL's, the value is the owner's own: a task, with the body of a request where it has one. They are seen: see
#: promise 3 of :class:`gossamer.contracts.ledger.Ledger`.
OWED = Space("owed", value_bytes=1 << 20, host_bytes=256 << 20)

#: The documents that agents have claimed, under the name that their digest lies under (:mod:`gossamer.model.digest_claims`).
DIGESTS = Space("digests", host_bytes=64 << 20)

#: The claims among them that are to become rows of the table `copies`, under no host.
COPIES = Space("copies")


class SpaceFigures(msgspec.Struct, frozen=True):
    """What a ledger holds of one owner, present or absent."""

    owner: str
    version: int
    """0 where it is not known: no program of this owner has opened it."""
    keys: int
    bytes: int
    """Of keys and values."""
    wrong: int
    """Hosts under which the bytes are not those that were counted, or entries are of another version."""


class SpaceEntry(msgspec.Struct, frozen=True):
    """One entry as it is kept, whosever it is: what is exported with its host."""

    owner: str
    version: int
    key: bytes
    value: bytes


class Spaces(Protocol):
    """What groups have kept in spaces. A `host` is a canonical host name; None stands for what belongs to no host.

    Promises:
        1. What a group put is there exactly if the group was kept.
        2. Spaces of different owners do not meet, and an entry under a host is under no other.
        3. The bytes under one host, and those under none, keep the bounds that the owner declared.
        4. What an absent owner has put stays as it is.
    """

    def open(self, space: Space) -> None:
        """Begin to use a space, or go on with it. Owners call it when they start; entries of an older version are migrated.

        Raises:
            CrawlDirectoryError: a newer program has written it.
        """
        ...

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        """The value of a key; None where there is none."""
        ...

    def get_many(self, space: Space, hosts: Sequence[str], key: bytes = b"") -> list[bytes | None]:
        """The values of one key under several hosts, in order: cheaper than one by one."""
        ...

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """The keys under a host that begin with `prefix`, in order, with their values; none before `start`, which spares the search
        from walking over what was deleted there."""
        ...

    def walk(self, space: Space, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The values under all hosts, each behind a mark, in the order of domains; with `after`, those behind that mark.

        What is put or deleted meanwhile may be missed, and what was deleted may still come.
        """
        ...

    def of_host(self, host: str) -> Iterator[SpaceEntry]:
        """All that lies under a host, by owner and key; what absent owners have put there too. It is exported with the host."""
        ...

    def figures(self) -> list[SpaceFigures]:
        """What is kept, by owner. It reads every entry."""
        ...


class SpacesGroup(Protocol):
    """The part of a group that changes spaces; what it stages is read here before it is kept."""

    def put(self, space: Space, host: str | None, key: bytes, value: bytes) -> bool:
        """Stage an entry, in the place of the one before.

        Returns:
            False where it would break a bound: nothing is staged, and `full:OWNER` is counted. What is left out then is the
            owner's decision.
        """
        ...

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        """The value of a key, kept or staged here; None where there is none."""
        ...

    def delete(self, space: Space, host: str | None, key: bytes = b"") -> None:
        """Stage the end of an entry; nothing happens where there is none."""
        ...

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """The keys under a host that begin with `prefix`, kept or staged here, in order; none before `start`. Change nothing
        meanwhile."""
        ...
