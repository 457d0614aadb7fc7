"""One process of a crawl as its supervisor sees it: started again when it dies, read for its messages, and asked on a line.

Place in the flow: :mod:`gossamer.assembly.agency.supervisor` has one for each agent (:mod:`agent_process`) and each master
(:mod:`master_process`). They differ in the file that says how a process ended that another supervisor had started.
"""

import asyncio
import contextlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from gossamer.assembly.agency.agent import AgentNews
from gossamer.assembly.agency.heartbeat import Heartbeat
from gossamer.assembly.agency.line import AgentLine, AgentRefused, AgentSilent, place_of
from gossamer.assembly.agency.meeting import process_of
from gossamer.assembly.agency.restarts import Restarts
from gossamer.assembly.agency.starting import Starter
from gossamer.assembly.control.agent_messages import News

#: Seconds between two looks at a process that another supervisor has started: nobody is told when it ends.
_LOOK = 0.1


class SupervisedProcess(ABC):
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
        """The changes of settings that it was told (:mod:`given`); those in its orders do no harm when they are told again."""
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}, {self.restarts.count} deaths>"

    @property
    def has_worked(self) -> bool:
        """It has committed something in this life."""
        return self.news is not None and self.news.report.commits > self._first_commits

    @property
    def is_alive(self) -> bool:
        """Its process runs."""
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
        return await asyncio.to_thread(self._last_status)

    @abstractmethod
    def _last_status(self) -> int:
        """How it ended, by what it left on the disk: 0 if in order, else the signal below zero. It may take long."""

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
        """End it at once."""
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
