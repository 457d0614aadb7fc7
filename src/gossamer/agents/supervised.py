"""Processes as their supervisor sees them: agents and masters that are placed, watched, asked, and placed again when they die.

Place in the flow: :mod:`supervisor` has one for each agent and each master: read for its messages, and asked in rounds on a line
(:mod:`~gossamer.crawls.control.server`). :mod:`several` calls :func:`take_over` before it lets a supervisor work.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gossamer.agents.contract import Cluster, Placed
from gossamer.agents.ended import is_ledger_gone
from gossamer.agents.run import AgentNews
from gossamer.agents.supervision import News, unless
from gossamer.crawls.control.messages import Continue
from gossamer.crawls.control.server import AgentLine, AgentSilent, place_of
from gossamer.crawls.control.wire import RequestRefused
from gossamer.frontier.limits import FrontierSheet
from gossamer.values.errors import CrawlDirectoryError

if TYPE_CHECKING:
    from gossamer.agents.supervisor import Supervisor

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
        """Seconds until the next start; None where it is given up. `has_worked`: it had committed something since its start."""
        self.count += 1
        self._vain = 0 if has_worked else self._vain + 1
        if self._vain >= MOST_VAIN:
            return None
        return min(FIRST_WAIT * 2 ** (self._vain - 2), LONGEST_WAIT) if self._vain > 1 else 0.0


# Silence: how long a process has said nothing, and when it is ended so that it begins again. One that answers late holds up no
# round: its question stays open, and the others go on. Its supervisor knows whether it has died or only begins.

#: Seconds that a round waits for those who have answered the one before: most answer within some milliseconds.
LATE = 1.0

#: Seconds after which a process counts as silent: a busy one answers between two of its steps, which take far less.
SILENT_AFTER = 5.0

#: Seconds that one round adds to a silence at most: if the supervisor itself stood still, no process was asked.
_MOST = 2 * LATE


class Heartbeat:
    """The silence of one process. Pure: it is told the time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Since it answered last, as far as it was asked."""
        self.silences = 0
        """How often it has fallen silent."""

    @property
    def is_silent(self) -> bool:
        """It has not answered for so long that people should know."""
        return self.seconds >= SILENT_AFTER

    def heard(self) -> bool:
        """It has answered, or is another process by now; whether it had been silent."""
        was_silent, self.seconds = self.is_silent, 0.0
        return was_silent

    def missed(self, seconds: float) -> bool:
        """It has not answered in a round that took this long; whether it has fallen silent by that."""
        was_silent = self.is_silent
        self.seconds += min(seconds, _MOST)
        self.silences += self.is_silent and not was_silent
        return self.is_silent and not was_silent


# One process.


class SupervisedProcess:
    """One agent or master, as its supervisor sees it."""

    def __init__(self, name: str, cluster: Cluster, report: Callable[[str], None]) -> None:
        self.name = name
        self.directory = cluster.directory
        """Of the crawl."""
        self.line = AgentLine(self.directory, name)
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
        self.placed: Placed | None = None
        """The last life of it; None before the first."""
        self.is_ending = False
        """It was about to end in order when it was taken over, so its end says nothing of what a person wants."""
        self.is_refused = False
        """It could not run where it was placed last, and is placed nowhere since then."""
        self._is_taken_over = False
        self._cluster = cluster
        self._report = report
        self._first_commits = -1
        self._last_line = ""

    @property
    def has_worked(self) -> bool:
        return self.news is not None and self.news.report.commits > self._first_commits

    @property
    def is_alive(self) -> bool:
        return self.placed is not None and self.placed.is_alive

    @property
    def is_lost(self) -> bool:
        """Its folder was taken away, and all that it kept there."""
        return not place_of(self.directory, self.name).exists()

    @property
    def has_ended(self) -> bool:
        """It was at work in this run, and is not any more."""
        return not self.is_alive and (self.has_begun or self.placed is not None)

    def take_over(self, placed: Placed) -> None:
        """It is at work already: another supervisor has placed it, and is gone."""
        self.placed, self._is_taken_over = placed, True

    async def run_once(self, is_over: asyncio.Event) -> int:
        """Run it until it ends; returns its exit status, or the signal below zero; 0 also where there is no room for it before
        `is_over` is set."""
        if not self._is_taken_over:
            self.news, self._first_commits, self.is_held, self.is_ending, self.edition = None, -1, False, False, 0
            self.beat.heard()
            self.is_late = self.line.is_silent = False
            placing = self._cluster.place(self.name)
            # On other machines that may wait for room, which nothing needs any more once all is over.
            placed = await (placing if self._cluster.is_shared else unless(placing, is_over.is_set))
            if placed is None:
                return 0
            self.placed, self.is_refused = placed, False
        self._is_taken_over, self._last_line = False, ""
        assert self.placed is not None
        try:
            return await self.placed.ended(self._say)
        finally:
            self.line.close()

    def _say(self, line: str) -> None:
        """Report what it says; the last line is kept until it is known whether it was why the process ended."""
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
        """Ask it for its news; None if it does not answer. With `first`, it tells what only a new supervisor has to know; a beat
        waits for the answer as long as the process lives, be it silent."""
        ask = self.line.beat if is_beat else self.line.told
        try:
            news: AgentNews = await ask(News(first), AgentNews)
        except (AgentSilent, RequestRefused):
            return None
        self.news, self.has_begun = news, True
        self.told_last(is_why=False)  # who answers has not ended by that
        for line in news.said:
            self._report(f"{self.name}: {line}")
        if self._first_commits < 0:
            self._first_commits = news.report.commits
        return news

    def kill(self) -> None:
        if self.placed is not None:
            self.placed.kill()


class AgentProcess(SupervisedProcess):
    """One agent, as its supervisor sees it."""

    @property
    def is_apart(self) -> bool:
        """It has a machine of its own."""
        return not self._cluster.is_shared

    @property
    def is_lost(self) -> bool:
        """Its ledger was taken away, and all that waited there."""
        return self._cluster.is_shared and is_ledger_gone(self.directory, self.name)


class MasterProcess(SupervisedProcess):
    """One master, as its supervisor sees it."""

    is_gone = False
    """It does not come back: another master does its work."""


class Heartbeats:
    """Asks for news in rounds."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.ended_after = FrontierSheet().silence
        """Seconds of silence after which a process is ended."""
        self._report = report
        self._asked: dict[str, asyncio.Task[AgentNews | None]] = {}
        self._since = time.monotonic()

    async def ask(self, everybody: Iterable[SupervisedProcess]) -> dict[str, AgentNews]:
        """The news of those who answer in this round, by name."""
        processes = {one.name: one for one in everybody}
        for name, process in processes.items():
            if name not in self._asked:
                self._asked[name] = asyncio.create_task(process.ask_news(is_beat=True))
        prompt = [self._asked[name] for name, process in processes.items() if not process.is_late]
        if prompt:
            await asyncio.wait(prompt, timeout=LATE)
        now = time.monotonic()
        seconds, self._since = now - self._since, now
        return {name: news for name, process in processes.items() if (news := self._answered(process, seconds))}

    def _answered(self, process: SupervisedProcess, seconds: float) -> AgentNews | None:
        task = self._asked[process.name]
        if not task.done():
            process.is_late = True
            if process.news is None:
                return None  # one that only begins may take its time
            if process.beat.missed(seconds):
                process.line.is_silent = True
                self._report(
                    f"{process.name} is silent: it has not answered for {process.beat.seconds:.0f} s; if it stays silent, it is "
                    f"ended after {self.ended_after:g} s and started again"
                )
            if process.beat.seconds >= self.ended_after:
                self._report(f"{process.name} has not answered for {process.beat.seconds:.0f} s, and is ended")
                process.kill()
                process.beat.heard()  # one that the system cannot end at once is not ended again in each round
            return None
        del self._asked[process.name]
        if task.cancelled():
            return None  # all is over
        process.is_late = process.line.is_silent = False
        news = task.result()
        if process.beat.heard() and news is not None:
            self._report(f"{process.name} answers again")
        return news

    def close(self) -> None:
        for task in self._asked.values():
            task.cancel()


# A supervisor comes to a crawl whose agents are at work, and asks them what the other supervisor knew: pages that they were lent
# they say in each round, turns at addresses here.

#: Seconds in which an agent that holds its ledger has to answer, since it may have been started an instant ago; and between two
#: questions.
_PATIENCE = 30.0
_PAUSE = 0.1


async def take_over(supervisor: "Supervisor", cluster: Cluster) -> list[str]:
    """Let a supervisor that does not work yet take over the agents that are at work; returns their names. Raises
    CrawlDirectoryError: a process that is no agent has the ledger of one."""
    news: list[AgentNews] = []
    everybody: dict[str, SupervisedProcess] = {**supervisor.agents, **supervisor.masters}
    for name, placed in (await cluster.living(everybody)).items():
        agent = everybody[name]
        agent.take_over(placed)
        until = time.monotonic() + _PATIENCE
        while (told := await agent.ask_news(first=True)) is None and placed.is_alive:
            if time.monotonic() >= until:
                raise CrawlDirectoryError(
                    f"{place_of(agent.directory, name)} is in use by {placed}, which does not answer; check the process before "
                    "you end it"
                )
            await asyncio.sleep(_PAUSE)
        if told is None:
            continue  # it has ended before it told any
        agent.is_ending = told.is_ending
        if name in supervisor.masters:
            continue
        news.append(told)
        with contextlib.suppress(AgentSilent, RequestRefused):
            await agent.line.do(Continue())  # the other supervisor may have held it
    if news:
        supervisor.lending.begin_with(news)
    return [one.report.agent for one in news]
