"""Agents that work on without their supervisor: where they meet, which of them are at work, and how long they go on alone.

Place in the flow: a supervisor notes here where its agents meet; the next one reads that, and takes over those that are still at
work (:mod:`gossamer.assembly.agency.taking_over`). Everybody at work holds the folder, so that nobody sweeps it away.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from gossamer.stores.ledger.ledger import STATE_DIRECTORY
from gossamer.stores.ledger.lock import ProcessLock, holder_of
from gossamer.stores.replacing import replace_file
from gossamer.stores.scratch import joined, shared_scratch

#: Seconds that an agent goes on without being asked for news: long enough for a person, or for a service, to start another
#: supervisor; not so long that agents that nobody knows of ask hosts for days.
ALONE = 600.0

#: The supervisor's folder in the crawl's state, and the note in it of where agents meet.
_SUPERVISOR = "supervisor"
_NOTE = f"{_SUPERVISOR}/meeting.json"

#: Lines that an agent keeps for its next supervisor, the last ones: more would say the same.
_MOST_UNHEARD = 100


class _Note(msgspec.Struct, frozen=True):
    folder: str


class Solitude:
    """How long nobody has asked an agent for news. Pure: it is told the time."""

    def __init__(self, now: float) -> None:
        """It is as if it had just been asked; `now` is monotonic seconds."""
        self._asked = now

    def __repr__(self) -> str:
        return f"<Solitude since {self._asked:g}>"

    def asked(self, now: float) -> None:
        """A supervisor has asked."""
        self._asked = now

    def is_over(self, now: float) -> bool:
        """It has been alone for so long that it is to stop."""
        return now - self._asked >= ALONE


class Unheard:
    """What an agent has to say, kept for the next supervisor while nobody listens."""

    def __init__(self, report: Callable[[str], bool]) -> None:
        """`report` tells a line, and says whether somebody hears it."""
        self._tell = report
        self._kept: deque[str] = deque(maxlen=_MOST_UNHEARD)

    def __repr__(self) -> str:
        return f"<Unheard: {len(self._kept)} lines>"

    def tell(self, line: str) -> None:
        """Tell a line, or keep it."""
        if not self._tell(line):
            self._kept.append(line)

    def taken(self) -> list[str]:
        """What was kept, once."""
        lines = list(self._kept)
        self._kept.clear()
        return lines


def supervisor_lock(directory: Path) -> ProcessLock:
    """The lock by which a crawl has one supervisor.

    Raises:
        CrawlDirectoryError: it has another one.
    """
    return ProcessLock(directory / STATE_DIRECTORY / _SUPERVISOR / "lock")


def living(directory: Path, agents: Sequence[str]) -> dict[str, int]:
    """The agents that are at work, with the numbers of their processes.

    Args:
        directory: the crawl directory.
        agents: their names.
    """
    return {agent: process for agent in agents if (process := process_of(directory, agent))}


def process_of(directory: Path, agent: str) -> int:
    """The process that holds the ledger of an agent; 0 where none does, or one is only about to."""
    process = holder_of(directory / STATE_DIRECTORY / agent / "lock")
    return int(process) if process.isdecimal() else 0


@contextlib.contextmanager
def meeting(directory: Path, agents: Sequence[str]) -> Iterator[Path]:
    """The folder in which agents meet: that of the agents at work, if there are any; else a new one.

    Args:
        directory: the crawl directory; the caller is its supervisor.
        agents: those that may be at work.

    Raises:
        OSError: none can be made.
    """
    known = _noted(directory)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(joined(known)) if known and living(directory, agents) else None
        if folder is None:
            folder = Path(stack.enter_context(shared_scratch()))
            path = directory / STATE_DIRECTORY / _NOTE
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, msgspec.json.encode(_Note(str(folder))))
        yield folder


def _noted(directory: Path) -> Path | None:
    try:
        return Path(msgspec.json.decode((directory / STATE_DIRECTORY / _NOTE).read_bytes(), type=_Note).folder)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None
