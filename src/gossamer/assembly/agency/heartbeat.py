"""How long a process of a crawl has said nothing, and when it is ended so that it begins again.

Place in the flow: the supervisor asks everybody for news in rounds (:mod:`gossamer.assembly.agency.supervisor`); this is the
asking. A process that answers late holds up no round: its question stays open, and the others go on. Whether one has died or only
begins is not judged here: its supervisor knows.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gossamer.stages.frontier.sheet import FrontierSheet

if TYPE_CHECKING:
    from gossamer.assembly.agency.agent import AgentNews
    from gossamer.assembly.agency.supervised import SupervisedProcess

#: Seconds that a round waits for those who have answered the one before: most answer within some milliseconds.
LATE = 1.0

#: Seconds after which a process counts as silent: a busy one answers between two of its steps, which take far less.
SILENT_AFTER = 5.0

#: Seconds that one round adds to a silence at most: if the supervisor itself stood still, nobody was asked.
_MOST = 2 * LATE


class Heartbeat:
    """The silence of one process. Pure: it is told the time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Since it answered last, as far as it was asked."""
        self.silences = 0
        """How often it has fallen silent."""

    def __repr__(self) -> str:
        return f"<Heartbeat: silent for {self.seconds:g} s, {self.silences} times>"

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


class Heartbeats:
    """Asks for news in rounds."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """`report` takes lines for people."""
        self.ended_after = FrontierSheet().silence
        """Seconds of silence after which a process is ended."""
        self._report = report
        self._asked: dict[str, asyncio.Task[AgentNews | None]] = {}
        self._since = time.monotonic()

    def __repr__(self) -> str:
        return f"<Heartbeats, {len(self._asked)} asked>"

    async def ask(self, everybody: Iterable["SupervisedProcess"]) -> "dict[str, AgentNews]":
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

    def _answered(self, process: "SupervisedProcess", seconds: float) -> "AgentNews | None":
        task = self._asked[process.name]
        if not task.done():
            process.is_late = True
            if process.news is not None:  # one that only begins may take its time
                self._missed(process, seconds)
            return None
        del self._asked[process.name]
        if task.cancelled():
            return None  # all is over
        process.is_late = process.line.is_silent = False
        news = task.result()
        if process.beat.heard() and news is not None:
            self._report(f"{process.name} answers again")
        return news

    def _missed(self, process: "SupervisedProcess", seconds: float) -> None:
        if process.beat.missed(seconds):
            process.line.is_silent = True
            self._report(
                f"{process.name} is silent: it has not answered for {process.beat.seconds:.0f} s; if it stays silent, it is ended "
                f"after {self.ended_after:g} s and started again"
            )
        if process.beat.seconds >= self.ended_after:
            self._report(f"{process.name} has not answered for {process.beat.seconds:.0f} s, and is ended")
            process.kill()
            process.beat.heard()  # one that the system cannot end at once is not ended again in each round

    def close(self) -> None:
        """Ask nobody any more."""
        for task in self._asked.values():
            task.cancel()
