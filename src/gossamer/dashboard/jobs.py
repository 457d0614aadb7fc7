"""Jobs from the browser: a crawl at rest goes on, or goes back to a checkpoint; and what the log of a crawl says last.

Place in the flow: :mod:`app` asks here. A crawl that is resumed is a process of its own, as if a person had typed
`gossamer resume DIR`: it outlives the dashboard. No option is passed on, so that no click names a file or code.
"""

import contextlib
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.assembly.control.client import Control, NotRunning, check_is_crawl, holder
from gossamer.dashboard.beginning import CONSOLE, TAIL, begin, said_since
from gossamer.model.errors import UsageError
from gossamer.stores.rowlog import LOG_PATH

#: Lines of the log that are shown.
LINES = 200


class Restore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Go back to a checkpoint."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class LogLine(msgspec.Struct, frozen=True):
    """One visit, as the log of a crawl has it."""

    fetched_at: str
    url: str
    outcome: str
    status: int = 0
    elapsed_ms: float = 0.0
    error: str = ""


class LogTail(msgspec.Struct, frozen=True):
    """The end of the logs."""

    visits: list[LogLine]
    """The newest first."""
    said: list[str]
    """What a crawl that the dashboard resumed said to its person; the newest last."""


class JobDone(msgspec.Struct, frozen=True):
    """What was done, in words."""

    done: str


def resume(directory: Path) -> JobDone:
    """Let a crawl at rest go on, in a process of its own.

    Raises:
        UsageError: there is no crawl, it runs already, or it cannot go on; says why.
    """
    check_is_crawl(directory)
    if process := holder(directory):
        raise UsageError(f"process {process} is at work on {directory} already")
    path = directory / CONSOLE
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as console:
        begun = console.seek(0, 2)
        beginning = begin(["resume", str(directory)], directory, console)
    if beginning.is_listening:
        return JobDone(f"the crawl goes on, as process {beginning.process}")
    if beginning.status is None:
        return JobDone("the crawl begins to go on")
    said = said_since(path, begun)
    if beginning.has_failed:
        raise UsageError(said.rpartition("\n")[2] or f"gossamer resume ended with status {beginning.status}")
    return JobDone(f"the crawl went on, and has ended: {said.partition(chr(10))[0]}")


def restore(directory: Path, body: bytes) -> JobDone:
    """Go back to a checkpoint; only while no crawl runs.

    Raises:
        UsageError: no checkpoint is named, or there is none of this name.
        GossamerError: a crawl runs, or the checkpoint cannot be read.
    """
    from gossamer.assembly.control import resting

    try:
        name = msgspec.json.decode(body, type=Restore).name
    except msgspec.MsgspecError as error:
        raise UsageError(f"restore: {error}") from None
    check_is_crawl(directory)
    with contextlib.suppress(NotRunning), Control(directory, 5.0, changing=0.0):
        raise UsageError("the crawl runs; stop it first")
    resting.restore(directory, name)
    return JobDone(f"the crawl is where it was at checkpoint {name}")


def log_tail(directory: Path) -> LogTail:
    """The end of a crawl's logs; empty where there are none.

    Raises:
        UsageError: the directory holds no crawl.
    """
    check_is_crawl(directory)
    visits = []
    for line in _last_lines(directory / LOG_PATH):
        with contextlib.suppress(msgspec.MsgspecError):  # the first line is torn, and others tell of no visit
            visits.append(msgspec.json.decode(line, type=LogLine))
    said = [line.decode("utf-8", "replace") for line in _last_lines(directory / CONSOLE)]
    return LogTail(visits[::-1][:LINES], said[-LINES:])


def _last_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - TAIL))
            return log.read(TAIL).splitlines()
    except OSError:
        return []
