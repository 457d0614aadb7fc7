"""Crawls that a click begins: a process of its own, as if a person had typed the command. It outlives the dashboard.

Place in the flow: :mod:`jobs` resumes crawls so, :mod:`starting` starts new ones.
"""

import contextlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gossamer.assembly.control.client import Control
from gossamer.flow import python
from gossamer.model.errors import GossamerError

#: Seconds that a crawl may take to listen, before the browser is told that it is on its way; and between two looks.
BEGINNING, _LOOK = 15.0, 0.05

#: Exit statuses of a crawl that did work: it finished, was stopped, or is incomplete.
WORKED = (0, 3, 4)

#: What a crawl that a click has begun says to its person goes here, inside the crawl directory.
CONSOLE = "logs/console.log"

#: Bytes of what it said that are read.
TAIL = 1 << 18


class Beginning(NamedTuple):
    """What became of it so far."""

    process: int
    is_listening: bool
    """It is at work, and can be asked."""
    status: int | None
    """Its exit status, where it has ended."""

    @property
    def has_failed(self) -> bool:
        """It has ended without work."""
        return self.status is not None and self.status not in WORKED


def begin(words: Sequence[str], directory: Path, console: BinaryIO) -> Beginning:
    """Run `gossamer` with these words until its crawl listens, it ends, or the time is over; it goes on after that.

    Args:
        words: the command and its options.
        directory: of the crawl.
        console: takes what the process says.
    """
    child = subprocess.Popen(
        python.command("gossamer", *words),
        env=python.environment(),
        stdin=subprocess.DEVNULL,
        stdout=console,
        stderr=console,
        start_new_session=True,
    )
    deadline = time.monotonic() + BEGINNING
    while child.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(GossamerError), Control(directory, 1.0, changing=0.0):
            return Beginning(child.pid, True, None)
        time.sleep(_LOOK)
    return Beginning(child.pid, False, child.returncode)


def said_since(console: Path, begun: int) -> str:
    """What a process said from a place of the file on."""
    with console.open("rb") as file:
        file.seek(begun)
        return file.read(TAIL).decode("utf-8", "replace").strip()
