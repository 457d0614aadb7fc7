"""The common ground of storage: settings that say where files lie, and spaces.

A space is the part of the ledger in which a keeper or a plug-in keeps its own state. Suite: `gossamer.testing.check_spaces`.

A space belongs to one owner and holds small values by host and key. The ledger need not know the owner. A space commits
with the groups that changed it, moves with the domain of its host when the domain moves to another agent, and is bounded.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Protocol

import msgspec

from gossamer.engine.sheet import Sheet, setting


class AgentSheet(Sheet, frozen=True):
    """Settings of units that keep files of one agent in the crawl directory (docs/kept.md)."""

    directory: Annotated[
        str, setting("Use this crawl directory.", restart="it has the files that are open", names="a folder")
    ] = "."
    agent: Annotated[
        str,
        setting(
            "Keep the files of this agent; agents share a directory.",
            restart="it has the files that are open",
            pattern=r"^[a-z0-9-]+$",
        ),
    ] = "agent-00"


#: Turns the key and value of an entry into those of the next version; None drops the entry. It is pure, and may be
#: called twice.
Migration = Callable[[bytes, bytes], tuple[bytes, bytes] | None]

#: A key has this many bytes at most: keys are compared, copied and kept in every index.
KEY_BYTES = 512


class Space(msgspec.Struct, frozen=True):
    """The declaration of an owner's space.

    Keys have up to :data:`KEY_BYTES` bytes. The name of the owner never changes; the version says what the bytes mean.
    """

    owner: str
    """Name of the owner: lower-case letters, digits and hyphens, 32 at most. A package puts its own name first, as in
    `mypackage-prices`."""
    version: int = 1
    """Between 1 and 255. A ledger with a newer version is refused; one with an older version is migrated."""
    migrations: tuple[Migration, ...] = ()
    """One migration for each step from version 1 on."""
    value_bytes: int = 64 << 10
    """Most bytes of one value."""
    host_bytes: int = 1 << 20
    """Most bytes of keys and values under one host, however many pages it has."""
    common_bytes: int = 64 << 20
    """Most bytes of keys and values under no host."""


#: URLs that were found here and belong to another agent, until that agent has committed them. Each is kept under its host (design
#: question 20). The key is that of the URL; the value is a task, with the body of a request where it has one. The URLs
#: count as seen: see promise 3 of :class:`gossamer.storage.ledger.contract.Ledger`.
OWED = Space("owed", value_bytes=1 << 20, host_bytes=256 << 20)

#: Tasks that a master gave to other agents that were away, until they have committed it: the name of the agent, and a task.
#: A task is kept under its host, with the same key.
MAIL = Space("mail", value_bytes=OWED.value_bytes + 64, host_bytes=OWED.host_bytes)

#: The documents that agents have claimed, under the name to which their digest belongs (:mod:`gossamer.values.agents`).
DIGESTS = Space("digests", host_bytes=64 << 20)

#: The claims that are to become rows of the table `copies`, under no host.
COPIES = Space("copies")


class SpaceFigures(msgspec.Struct, frozen=True):
    """Figures of one owner's space in a ledger. The owner need not be present."""

    owner: str
    version: int
    """0 if the version is unknown, because no program of this owner has opened the space."""
    keys: int
    bytes: int
    """Bytes of keys and values."""
    wrong: int
    """Hosts whose bytes differ from the counted ones, or that have entries of another version."""


class SpaceEntry(msgspec.Struct, frozen=True):
    """One entry as it is kept, of any owner. It is exported with its host."""

    owner: str
    version: int
    key: bytes
    value: bytes


class Spaces(Protocol):
    """Reads the entries that groups have kept in spaces. A `host` is a canonical host name; None is for entries without a host.

    Promises:
        1. An entry that a group puts is there if and only if the group was kept.
        2. Spaces of different owners are separate, and so are entries of different hosts.
        3. The bytes under one host, and those under none, stay within the bounds that the owner declared.
        4. Entries of an absent owner stay as they are.
    """

    def open(self, space: Space) -> None:
        """Begin to use a space, or continue with it. Owners call this when they start; it migrates entries of an older version.

        Raises:
            CrawlDirectoryError: a newer program has written the space.
        """

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        """Return the value of a key; None if there is none."""

    def get_many(self, space: Space, hosts: Sequence[str], key: bytes = b"") -> list[bytes | None]:
        """Return the values of one key under several hosts, in order. One call is cheaper than many calls of `get`."""

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys under a host that begin with `prefix`, in order, with their values. It begins at `start`, so that
        the search need not walk over deleted entries."""

    def walk(self, space: Space, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield a mark and a value for each entry under a host, in the order of domains. With `after`, begin behind that mark.

        It may miss entries that are put meanwhile, and may still yield entries that are deleted meanwhile.
        """

    def of_host(self, host: str) -> Iterator[SpaceEntry]:
        """Yield all entries under a host, by owner and key, including those of absent owners. They are exported with the host."""

    def figures(self) -> list[SpaceFigures]:
        """Return the figures of each owner. It reads every entry."""


class SpacesGroup(Protocol):
    """The part of a group that changes spaces. Its readers see staged entries before they are kept."""

    def put(self, space: Space, host: str | None, key: bytes, value: bytes) -> bool:
        """Stage an entry, which replaces an earlier one.

        Returns:
            False if the entry would break a bound. In that case nothing is staged, and `full:OWNER` is counted. The owner decides
            what to leave out.
        """

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        """Return the value of a key, kept or staged here; None if there is none."""

    def delete(self, space: Space, host: str | None, key: bytes = b"") -> None:
        """Stage the deletion of an entry; do nothing if there is none."""

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys under a host that begin with `prefix`, kept or staged here, in order, beginning at
        `start`. Do not change the group meanwhile."""
