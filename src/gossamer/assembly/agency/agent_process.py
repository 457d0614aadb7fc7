"""One agent as its supervisor sees it: a process that is started again, what it writes, and the line to it.

Place in the flow: :mod:`gossamer.assembly.agency.supervisor` has one for each agent.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from gossamer.assembly.agency.agent import AgentNews
from gossamer.assembly.agency.line import AgentLine, AgentRefused, AgentSilent
from gossamer.assembly.agency.restarts import Restarts
from gossamer.assembly.control.messages import News
from gossamer.flow import python


class AgentProcess:
    """One agent, as its supervisor sees it."""

    def __init__(self, name: str, folder: Path, directory: Path, report: Callable[[str], None]) -> None:
        self.name = name
        self.line = AgentLine(directory, name)
        self.restarts = Restarts()
        self.news: AgentNews | None = None
        """What it said last in this life."""
        self.has_begun = False
        """It was at work, in this life or an earlier one."""
        self.is_held = False
        """It was told to pause, in this life."""
        self.process: asyncio.subprocess.Process | None = None
        self._folder = folder
        self._report = report
        self._first_commits = -1
        self._last_line = ""

    def __repr__(self) -> str:
        return f"<AgentProcess {self.name}, {self.restarts.count} deaths>"

    @property
    def has_worked(self) -> bool:
        """It has committed something in this life."""
        return self.news is not None and self.news.report.commits > self._first_commits

    @property
    def is_alive(self) -> bool:
        """Its process runs."""
        return self.process is not None and self.process.returncode is None

    async def run_once(self) -> int:
        """Run it until it ends; returns its exit status, or the signal below zero."""
        # A session of its own: Ctrl-C in the terminal reaches the supervisor, and the supervisor ends this.
        self.news, self._first_commits, self.is_held = None, -1, False
        self.process = process = await asyncio.create_subprocess_exec(
            *python.command("gossamer.assembly.agency.process", str(self._folder), self.name),
            env=python.environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            await self._tell(process)
            return await process.wait()
        finally:
            self.line.close()

    async def _tell(self, process: asyncio.subprocess.Process) -> None:
        """Report what it says; the last line is kept until it is known whether it was why the agent ended."""
        assert process.stderr is not None
        self._last_line = ""
        while line := await _line(process.stderr):
            if self._last_line:
                self._report(f"{self.name}: {self._last_line}")
            self._last_line = line

    def told_last(self, *, is_why: bool) -> str:
        """What it said last; reported here, unless it is why it ended and whoever asks says so."""
        line, self._last_line = self._last_line, ""
        if line and not is_why:
            self._report(f"{self.name}: {line}")
        return line

    async def ask_news(self) -> AgentNews | None:
        """What it has come to; None where it does not answer."""
        try:
            news: AgentNews = await self.line.told(News(), AgentNews)
        except (AgentSilent, AgentRefused):
            return None
        self.news, self.has_begun = news, True
        if self._first_commits < 0:
            self._first_commits = news.report.commits
        return news

    def kill(self) -> None:
        """End it at once."""
        if self.is_alive and self.process is not None:
            self.process.kill()


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
