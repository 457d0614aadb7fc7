"""Processes as their supervisor sees them: agents and masters that are started, watched, and started again when they die.

Place in the flow: :mod:`supervisor` has one for each agent and each master: read for its messages, and asked on a line
(:mod:`~gossamer.crawls.control.line`).
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from gossamer.agents.ended import noted_end
from gossamer.agents.rendezvous import Heartbeat, living, process_of
from gossamer.agents.run import AgentNews
from gossamer.agents.supervision import News
from gossamer.crawls.control.line import AgentLine, AgentRefused, AgentSilent, place_of
from gossamer.engine import processes
from gossamer.storage.ledger.opening import Places

# When an agent that died is started again, and when no more. Pure. One that is killed now and then comes back at once. One that
# dies whenever it starts would never get better, so each death before it has committed anything makes the next start later, and
# some of them in a row are the end.

#: Seconds before the second start in a row that came to nothing; each further one waits twice as long, up to the longest.
FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0

#: Starts in a row that came to nothing, after which an agent is given up: some ten seconds of trying.
MOST_VAIN = 8


class Restarts:
    """The deaths of one agent."""

    def __init__(self) -> None:
        self.count = 0
        """Deaths in all."""
        self._vain = 0

    def died(self, *, has_worked: bool) -> float | None:
        """Seconds until the next start; None where it is given up.

        Args:
            has_worked: it had committed something since it was started.
        """
        self.count += 1
        self._vain = 0 if has_worked else self._vain + 1
        if self._vain >= MOST_VAIN:
            return None
        return min(FIRST_WAIT * 2 ** (self._vain - 2), LONGEST_WAIT) if self._vain > 1 else 0.0


# Starting processes: those that are needed soon are started ahead, load the program, and wait for a word, since loading the program
# takes longer than a change of hands, and nothing is fetched meanwhile.

#: The word that lets a process begin. Without it, it ends as soon as its supervisor does.
WORD = b"\n"


class Starter:
    """Starts processes by the names of agents and masters."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prepared: dict[str, asyncio.Task[asyncio.subprocess.Process]] = {}

    async def start(self, name: str) -> asyncio.subprocess.Process:
        """A process that begins now: the one that was prepared, or a new one. Raises OSError."""
        process = await self._waiting(name) or await self._started(name)
        assert process.stdin is not None
        process.stdin.write(WORD)
        return process

    def prepare(self, names: Iterable[str]) -> None:
        """Let processes load the program that are to begin soon."""
        for name in names:
            if name not in self._prepared:
                self._prepared[name] = asyncio.create_task(self._started(name))

    async def close(self) -> None:
        """End those that wait and were not needed."""
        for name in list(self._prepared):
            if process := await self._waiting(name):
                process.kill()
                await process.wait()

    async def _waiting(self, name: str) -> asyncio.subprocess.Process | None:
        """The process that was prepared, once; None where there is none, or it has ended."""
        if (task := self._prepared.pop(name, None)) is None:
            return None
        try:
            process = await task
        except OSError:
            return None  # who needs it tries again, and says why it fails
        return process if process.returncode is None else None

    async def _started(self, name: str) -> asyncio.subprocess.Process:
        return await processes.begun(
            "gossamer.agents.process", str(self._folder), name, stdout=asyncio.subprocess.DEVNULL
        )


# One process.

#: Seconds between two looks at a process that another supervisor has started: no parent is told when it ends.
_LOOK = 0.1


class SupervisedProcess:
    """One agent or master, as its supervisor sees it."""

    def __init__(self, name: str, starter: Starter, directory: Path, report: Callable[[str], None]) -> None:
        self.name = name
        self.line = AgentLine(directory, name)
        self.restarts = Restarts()
        self.news: AgentNews | None = None
        """The last news of this life; None before the first."""
        self.has_begun = False
        """It was at work, in this life or an earlier one."""
        self.is_held = False
        """It was told to pause, in this life."""
        self.beat = Heartbeat()
        """How long it has been silent."""
        self.is_late = False
        """It has not answered what it was asked last: whatever else it has to know waits until it does."""
        self.edition = 0
        """The changes of settings that it was told (:mod:`lending`); those in its orders do no harm when they are told
        again."""
        self.process: asyncio.subprocess.Process | None = None
        self.is_ending = False
        """It was about to end in order when it was taken over, so its end says nothing of what a person wants."""
        self.directory = directory
        """Of the crawl."""
        self._taken_over = 0
        self._starter = starter
        self._report = report
        self._first_commits = -1
        self._last_line = ""

    @property
    def has_worked(self) -> bool:
        return self.news is not None and self.news.report.commits > self._first_commits

    @property
    def is_alive(self) -> bool:
        return bool(self._taken_over) or (self.process is not None and self.process.returncode is None)

    @property
    def is_lost(self) -> bool:
        """Its folder was taken away, and all that it kept there."""
        return not place_of(self.directory, self.name).exists()

    @property
    def has_ended(self) -> bool:
        """It was at work in this run, and is not any more."""
        return not self.is_alive and (self.has_begun or self.process is not None)

    def take_over(self, process: int) -> None:
        """It is at work already: another supervisor has started it, and is gone."""
        self._taken_over = process

    async def run_once(self) -> int:
        """Run it until it ends; returns its exit status, or the signal below zero."""
        if self._taken_over:
            return await self._outlived()
        self.news, self._first_commits, self.is_held, self.is_ending, self.edition = None, -1, False, False, 0
        self.beat.heard()
        self.is_late = self.line.is_silent = False
        self.process = process = await self._starter.start(self.name)
        try:
            await self._tell(process)
            return await process.wait()
        finally:
            self.line.close()

    async def _outlived(self) -> int:
        """Wait until one that was taken over ends. Its exit status is not ours to have: what it left says how it ended."""
        while process_of(self.directory, self.name) == self._taken_over:
            await asyncio.sleep(_LOOK)
        self._taken_over = 0
        self.line.close()
        end = noted_end(self.directory, self.name)
        return 0 if end is not None and end.is_clean else -signal.SIGKILL

    async def _tell(self, process: asyncio.subprocess.Process) -> None:
        """Report what it says; the last line is kept until it is known whether it was why the process ended."""
        assert process.stderr is not None
        self._last_line = ""
        while line := await _line(process.stderr):
            if self._last_line:
                self._report(f"{self.name}: {self._last_line}")
            self._last_line = line

    def told_last(self, *, is_why: bool) -> str:
        """Its last line. It is reported here, unless it says why the process ended: then the caller reports it."""
        line, self._last_line = self._last_line, ""
        if line and not is_why:
            self._report(f"{self.name}: {line}")
        return line

    async def ask_news(self, *, first: bool = False, is_beat: bool = False) -> AgentNews | None:
        """Ask it for its news; None if it does not answer.

        Args:
            first: ask for what only a new supervisor has to know.
            is_beat: wait for the answer as long as the process lives, be it silent.
        """
        ask = self.line.beat if is_beat else self.line.told
        try:
            news: AgentNews = await ask(News(first), AgentNews)
        except (AgentSilent, AgentRefused):
            return None
        self.news, self.has_begun = news, True
        for line in news.said:
            self._report(f"{self.name}: {line}")
        if self._first_commits < 0:
            self._first_commits = news.report.commits
        return news

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
        elif self._taken_over and process_of(self.directory, self.name) == self._taken_over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._taken_over, signal.SIGKILL)


async def _line(reader: asyncio.StreamReader) -> str:
    """The next line, without its end; a very long one is cut. Empty at the end."""
    while True:
        try:
            data = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            data = error.partial
            if not data:
                return ""
        except asyncio.LimitOverrunError as error:
            data = await reader.read(error.consumed or 1)
        if text := data.decode("utf-8", "replace").strip():
            return text


def is_ledger_gone(directory: Path, agent: str) -> bool:
    """Whether an agent has no ledger: it has not begun, or its folder was taken away."""
    places = Places(place_of(directory, agent))
    return not any(path.exists() for path in (places.ledger, places.made, places.replaced))


class AgentProcess(SupervisedProcess):
    """One agent, as its supervisor sees it."""

    @property
    def is_lost(self) -> bool:
        """Its ledger was taken away, and all that waited there."""
        return is_ledger_gone(self.directory, self.name)


class MasterProcess(SupervisedProcess):
    """One master, as its supervisor sees it."""

    is_gone = False
    """It does not come back: another master does its work."""


#: Seconds that masters have to end which are not needed, and between two looks at them.
_GRACE = 10.0


async def end_masters(directory: Path, masters: Iterable[str]) -> None:
    """End masters that are at work without agents and without a supervisor. They hold nothing that would be lost."""
    for name, process in living(directory, list(masters)).items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                while process_of(directory, name) == process:
                    await asyncio.sleep(_LOOK)
        if process_of(directory, name) == process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
