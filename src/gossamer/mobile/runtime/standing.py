"""What a runtime tells its owner: how it stands, in a file that is written once a second, and what happened, in a log.

Place in the flow: :mod:`gossamer.mobile.runtime.serving` writes the one; the host, its journeys and its web door tell the other.
`gossamer runtime status` reads both. A line of the log has no characters that a terminal would obey.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.mobile.runtime.host import RuntimeHost


# The log: a JSON line for each event.

#: Bytes of the log, and of the one before it that is kept: some hundred thousand events.
MAX_BYTES = 16 << 20
#: Characters of a text in an event: strangers write some.
MAX_TEXT = 500


class Diary:
    """The log of a runtime. Any thread may tell."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time, most: int = MAX_BYTES) -> None:
        self._path = path
        self._now = now
        self._most = most
        self._lock = threading.Lock()

    def tell(self, event: str, **facts: Any) -> None:
        """Write an event. A disk that is full loses it, since nothing else can wait for a log."""
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        cut = {name: fact[:MAX_TEXT] if isinstance(fact, str) else fact for name, fact in facts.items()}
        # Everything beyond ASCII is escaped: among it are characters that turn a line round.
        line = json.dumps({"at": at, "event": event, **cut}, ensure_ascii=True) + "\n"
        with self._lock, contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size + len(line) > self._most:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("a", encoding="ascii") as file:
                file.write(line.replace("\x7f", "\\u007f"))


def last_events(path: Path, most: int) -> list[dict[str, Any]]:
    """The last events of a log, oldest first; lines that a kill has cut are passed over."""
    found: list[dict[str, Any]] = []
    for line in _last_lines(path, most):
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                found.append(event)
    return found


def _last_lines(path: Path, most: int) -> Iterator[str]:
    lines: list[str] = []
    for one in (path.with_name(f"{path.name}.1"), path):
        with contextlib.suppress(OSError), one.open(encoding="ascii", errors="replace") as file:
            lines = [*lines, *file][-most:] if most else []
    yield from lines


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
