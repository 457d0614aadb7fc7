"""What a runtime says of itself to its owner: a file in its folder, written once a second and when it ends.

Place in the flow: :mod:`gossamer.operations.hosting.serving` writes it, `gossamer runtime status` reads it.
"""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.model.errors import UsageError

if TYPE_CHECKING:
    from gossamer.operations.hosting.host import RuntimeHost

_FILE = "standing.json"


class HostedCrawler(msgspec.Struct, frozen=True):
    """One crawler, as its owner sees it."""

    sender: str
    crawler: str
    state: str
    reason: str
    told: str
    fetched: int
    batches: int
    brought: int
    """Bytes of all batches, packed."""
    kept: int
    """Bytes of those that its sender has not acknowledged."""
    cpu: float
    """Seconds of processor time, of processes that have ended."""
    accepted: float
    """Seconds since the epoch, as `ended`."""
    ended: float


class HostStanding(msgspec.Struct, frozen=True):
    """A runtime."""

    pid: int
    address: str
    pin: str
    """Of its key; empty without TLS."""
    hosts: dict[str, str]
    walls: str
    is_weak: bool
    """Crawlers are not shut in as they should be."""
    kept: int = 0
    """Bytes of results."""
    crawlers: tuple[HostedCrawler, ...] = ()


def write_standing(folder: Path, standing: HostStanding, host: "RuntimeHost") -> None:
    """Write it; on a disk that is full the old one stays."""
    crawlers = tuple(
        HostedCrawler(
            note.sender,
            note.identity,
            "running" if is_running and not note.has_ended else note.state,
            note.reason,
            note.told,
            note.fetched,
            len(note.sizes),
            sum(note.sizes),
            note.kept,
            round(note.cpu, 3),
            note.accepted,
            note.ended,
        )
        for note, is_running in host.notes()
    )
    whole = msgspec.structs.replace(standing, kept=host.shelf.kept, crawlers=crawlers)
    fresh = folder / f"{_FILE}.new"
    with contextlib.suppress(OSError):
        fresh.write_bytes(msgspec.json.encode(whole))
        fresh.replace(folder / _FILE)


def read_standing(folder: Path) -> HostStanding:
    """The last one.

    Raises:
        UsageError: no runtime has run there, or its file is damaged.
    """
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=HostStanding)
    except OSError:
        raise UsageError(f"{folder}: no runtime has run there; give the folder of its --state") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{folder / _FILE} cannot be read ({error}); start the runtime again") from None
