"""Which crawl a directory has, and which agents: small files that every program may read, also while ledgers are open elsewhere.

Place in the flow: a crawl writes them when it begins and when its agents change; commands, agents and stores read them. The
identity (:func:`crawl_id`) is kept through resume and checkpoints; it has a file of its own because the ledger is open to one
process only and goes back at a checkpoint, and others may repeat the wiring of `crawl.toml`. The names of the agents
(:func:`members_of`) are there where several share a crawl: each has a log of its own then, and the crawl's is made of theirs. Each
change of them is a division with a number (:func:`division_of`).
"""

import contextlib
import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec

from gossamer.engine.files import replace_file
from gossamer.values.agents import member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.instants import unique_name
from gossamer.values.patterns import lazy_pattern

T = TypeVar("T")


def read_kept(path: Path, kind: type[T], advice: str) -> T | None:
    """The content of a small file of JSON; None where it is not there. Raises CrawlDirectoryError: it is damaged; `advice` says
    how to go on."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; {advice}") from None


def write_kept(path: Path, value: object) -> None:
    """Write such a file, whole or not at all; none stands for an empty value. Raises OSError."""
    if value:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(value))
    else:
        path.unlink(missing_ok=True)


#: Where the id stands, inside the crawl directory.
CRAWL_ID = "state/crawl-id"

#: The file of an older version, which has no sum in its second line.
_OLDER_ID = lazy_pattern(rb"[0-9a-f]{20}\n")


def ensure_crawl_id(directory: Path, now: float) -> str:
    """The id of the crawl in a directory, made now (in seconds since the epoch) where it has none. Raises OSError."""
    if known := crawl_id(directory):
        return known
    path = directory / CRAWL_ID
    path.parent.mkdir(parents=True, exist_ok=True)
    name = unique_name(now)
    replace_file(path, f"{name}\n{crc32(name.encode()):08x}\n".encode())
    return crawl_id(directory)


def crawl_id(directory: Path) -> str:
    """The id of the crawl in a directory; empty where an older program made it and none has resumed it."""
    try:
        text = (directory / CRAWL_ID).read_text("ascii", "replace")
    except FileNotFoundError:
        return ""
    return text.partition("\n")[0].strip()


def is_id_damaged(directory: Path) -> bool:
    """Whether a byte of the file with the crawl's id has changed; False where there is none, or an older version wrote it."""
    try:
        text = (directory / CRAWL_ID).read_bytes()
    except FileNotFoundError:
        return False
    name, _, rest = text.partition(b"\n")
    return not _OLDER_ID.fullmatch(text) and rest != f"{crc32(name):08x}\n".encode()


#: Where the names of the agents stand, inside the crawl directory.
AGENTS = "state/agents.json"

#: Where it stands which folder on which machine has which agent, where agents work on machines of their own.
JOINED = "state/supervisor/joined.json"


def holder_of(path: Path) -> str:
    """The process that holds the lock in this file, `(just starting)` where it has not said so yet; empty where none does."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return lock.read(32).decode("ascii", "replace").strip() or "(just starting)"
    return ""


def members_of(directory: Path) -> tuple[str, ...]:
    """The agents of a crawl, as :func:`gossamer.values.agents.member` reads them; none of a crawl of one agent. Raises
    CrawlDirectoryError: the file is damaged."""
    path, advice = directory / AGENTS, "bring it back from a copy"
    names = read_kept(path, tuple[str, ...], advice) or ()
    try:
        for name in names:
            member(name)
    except UsageError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; {advice}") from None
    return names


def write_members(directory: Path, members: Sequence[str]) -> None:
    """Note the agents of a crawl: whole, or not at all. Raises OSError."""
    path = directory / AGENTS
    path.parent.mkdir(parents=True, exist_ok=True)
    if members_of(directory) != tuple(members):
        write_division(directory, division_of(directory) + 1)
    replace_file(path, msgspec.json.encode(list(members)))


#: Where it stands how often the agents of a crawl have changed, and which of them do not know the last change, inside the crawl
#: directory.
DIVISION, _BEHIND = "state/division.json", "state/behind.json"


def division_of(directory: Path) -> int:
    """How often the agents of a crawl have changed: each division of its domains has a number. Raises CrawlDirectoryError: the
    file is damaged."""
    return read_kept(directory / DIVISION, int, "bring it back from a copy") or 0


def write_division(directory: Path, number: int) -> None:
    replace_file(directory / DIVISION, msgspec.json.encode(number))


def agents_behind(directory: Path) -> dict[str, tuple[str, ...]]:
    """Agents that have gone back to before the last change of the crawl's agents, each with those that there were then; none of
    one that had nothing. Raises CrawlDirectoryError: the note is damaged."""
    return read_kept(directory / _BEHIND, dict[str, tuple[str, ...]], "bring it back from a copy") or {}


def note_behind(directory: Path, behind: Mapping[str, Sequence[str]]) -> None:
    """Note them: whole, or not at all. Raises OSError."""
    write_kept(directory / _BEHIND, behind)


def refuse_divided(directory: Path) -> None:
    """Refuse to go on with one agent where several have divided the crawl. Raises UsageError: that is so; CrawlDirectoryError:
    the names of the agents cannot be read."""
    if found := members_of(directory):
        raise UsageError(
            f"the crawl in {directory} is divided among {len(found)} agents; go on with it on the command line: "
            f"gossamer resume {directory}"
        )
