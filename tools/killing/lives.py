"""The lives of a crawl: started, killed in one of several ways, looked at while it is dead."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Checkpoint
from gossamer.crawls.control.standing import ledgers_of
from gossamer.engine.files import VARIABLE, Point
from gossamer.values.errors import GossamerError

#: Seconds until a kill at most, from the first sign of work.
LONGEST = 2.0

#: Seconds from the start within which a kill meets the start itself, and what it recovers.
STARTING = 1.2

#: Seconds between looks at a process or a log.
LOOK = 0.01

#: Seconds after which a life without a sign of work is killed all the same.
PATIENCE = 20.0

#: Seconds for the last life, which is let to its end.
TO_THE_END = 600.0


class How(StrEnum):
    """How a life ends."""

    WORKING = "killed at work"
    STARTING = "killed while it starts"
    POINT = "killed at a chosen point"
    PAUSED = "stopped, then killed"
    ENDING = "told to end, then killed"
    END = "ended by itself"


#: How often of 100: docs/design/kills.md without one child alone (there is none) and memory that runs out.
MIX = {How.WORKING: 45, How.STARTING: 20, How.POINT: 22, How.PAUSED: 5, How.ENDING: 8}

#: At which passing of a point the process dies, at most. The start passes few, work passes one with each group.
PASSINGS = {
    Point.ARCHIVE_WRITTEN: 60,
    Point.BEFORE_COMMIT: 60,
    Point.AFTER_COMMIT: 60,
    Point.CHECKPOINT: 1,
    Point.RECOVERY: 2,
}


class Life(msgspec.Struct):
    """One life of the crawl. Times are readings of the monotonic clock, which all processes of the machine share."""

    number: int
    how: How
    point: str = ""
    """The crash point, as the environment said it."""
    began: float = 0.0
    ended: float = 0.0
    code: int | None = None
    """Exit status; negative: the signal."""
    said: str = ""
    """Its line of JSON, where it ended by itself."""
    counters: dict[str, int] = {}
    """What the ledger had counted when the life was over."""
    done: set[str] = set()
    """URLs whose story was over then."""
    queued: int = 0


class Lives:
    """Starts and kills one crawl."""

    def __init__(self, directory: Path, log: Path, chance: random.Random) -> None:
        self._directory = directory
        self._log = log
        self._chance = chance
        self._stderr = directory.with_suffix(".err")
        self.lives: list[Life] = []

    def live(self, command: list[str], *, to_the_end: bool = False) -> Life:
        """Start the crawl, and end this life in one way or another."""
        life = Life(len(self.lives), How.END if to_the_end else self._how())
        environment = dict(os.environ)
        if life.how is How.POINT:
            point = self._chance.choice(list(PASSINGS))
            life.point = f"{point}:{self._chance.randint(1, PASSINGS[point])}"
            environment[VARIABLE] = life.point
        process = self._start(command, environment)
        life.began = time.monotonic()
        try:
            self._end(process, life)
        finally:
            # Before the kill is known to have been waited for, so that nothing that the dead still sent counts as late.
            _kill_group(process)
            out, _ = process.communicate()
        life.ended = time.monotonic()
        life.code, life.said = process.returncode, out.strip()
        if life.code is not None and life.code >= 0:
            life.how = How.END
        self._look(life)
        self.lives.append(life)
        return life

    def errors(self) -> str:
        """What all lives have said on standard error."""
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    def _how(self) -> How:
        return self._chance.choices(list(MIX), list(MIX.values()))[0]

    def _start(self, command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """A process group of its own: the kill takes all of it, and nothing of ours."""
        with self._stderr.open("ab") as errors:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=dict(environment),
                start_new_session=True,
            )

    # -- endings

    def _end(self, process: subprocess.Popen[str], life: Life) -> None:
        """Wait for the moment, and let this life end."""
        if life.how is How.END:
            _wait(process, TO_THE_END)  # what has not ended by then is judged as it is
            return
        if life.how is How.STARTING:
            _wait(process, self._chance.uniform(0.0, STARTING))
            return
        self._await_work(process)
        if life.point.startswith(Point.CHECKPOINT):
            self._ask_for_checkpoint()
        _wait(process, PATIENCE / 4 if life.how is How.POINT else self._chance.uniform(0.0, LONGEST))
        if process.poll() is not None:
            return
        if life.how is How.PAUSED:
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(1.0)
        elif life.how is How.ENDING:
            os.killpg(process.pid, signal.SIGTERM)
            _wait(process, 0.2)

    def _await_work(self, process: subprocess.Popen[str]) -> None:
        """Return when the web has been asked for something more, or the process is gone."""
        before, deadline = self._asked(), time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline and self._asked() == before:
            time.sleep(LOOK)

    def _asked(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def _ask_for_checkpoint(self) -> None:
        with contextlib.suppress(GossamerError, OSError), Control(self._directory, PATIENCE) as control:
            control.do(Checkpoint(f"life-{len(self.lives)}"))

    # -- a look at the dead

    def _look(self, life: Life) -> None:
        """What is kept, before the next life recovers anything. A crawl that died before it had a ledger has nothing."""
        if not (self._directory / "state").is_dir() or not list(self._directory.glob("state/*/ledger/CURRENT")):
            return
        for ledger in ledgers_of(self._directory):
            with ledger.looking():
                life.counters = dict(ledger.counters())
                life.done = {row.url for row in ledger.documents()}
                life.queued = len(ledger.queues)


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _kill_group(process: subprocess.Popen[str]) -> None:
    """Kill what is left of the group; of a process that was waited for, only its number is left."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
