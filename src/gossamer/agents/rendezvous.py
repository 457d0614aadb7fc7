"""How agents and supervisors find each other: which process is silent, where agents meet without a supervisor, and how the next one
takes them over.

Place in the flow: the supervisor asks all processes for news in rounds (:mod:`supervisor`), and notes where its agents meet;
:mod:`crawl` calls :func:`take_over` before it lets a supervisor work.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.crawls.control.line import AgentRefused, AgentSilent, place_of
from gossamer.crawls.control.messages import Continue
from gossamer.engine.files import joined, replace_file, shared_scratch
from gossamer.frontier.limits import FrontierSheet
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import ProcessLock, holder_of
from gossamer.values.errors import CrawlDirectoryError

if TYPE_CHECKING:
    from gossamer.agents.run import AgentNews
    from gossamer.agents.supervised import SupervisedProcess
    from gossamer.agents.supervisor import Supervisor

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


class Heartbeats:
    """Asks for news in rounds."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.ended_after = FrontierSheet().silence
        """Seconds of silence after which a process is ended."""
        self._report = report
        self._asked: dict[str, asyncio.Task[AgentNews | None]] = {}
        self._since = time.monotonic()

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
        for task in self._asked.values():
            task.cancel()


# Agents that work on without their supervisor: where they meet, which of them are at work, and how long they go on alone. Each
# process at work holds the folder, so that it is not swept away.

#: Seconds that an agent goes on without being asked for news: long enough for a person, or for a service, to start another
#: supervisor; not so long that forgotten agents ask hosts for days.
ALONE = 600.0

#: The supervisor's folder in the crawl's state, and the note in it of where agents meet.
_SUPERVISOR = "supervisor"
_NOTE = f"{_SUPERVISOR}/meeting.json"

#: Lines that an agent keeps for its next supervisor, the last ones: more would say the same.
_MOST_UNHEARD = 100


class _Note(msgspec.Struct, frozen=True):
    folder: str


class Solitude:
    """The time of a process without a supervisor, and what it has to tell the next one. Pure: it is told the time."""

    def __init__(self, report: Callable[[str], bool], now: float) -> None:
        """It is as if it had just been asked. `report` tells a line, and says whether it is heard; `now` is monotonic seconds."""
        self._tell = report
        self._unheard: deque[str] = deque(maxlen=_MOST_UNHEARD)
        self._asked = now

    def tell(self, line: str) -> None:
        """Tell a line, or keep it."""
        if not self._tell(line):
            self._unheard.append(line)

    def asked(self, now: float) -> list[str]:
        """A supervisor asks for news: the lines that none has heard, once."""
        self._asked = now
        lines = list(self._unheard)
        self._unheard.clear()
        return lines

    def is_over(self, now: float) -> bool:
        """It has been alone for so long that it is to stop."""
        return now - self._asked >= ALONE


def supervisor_lock(directory: Path) -> ProcessLock:
    """The lock by which a crawl has one supervisor. Raises CrawlDirectoryError: it has another one."""
    return ProcessLock(directory / STATE_DIRECTORY / _SUPERVISOR / "lock")


def living(directory: Path, agents: Sequence[str]) -> dict[str, int]:
    """The agents that are at work, with the numbers of their processes."""
    return {agent: process for agent in agents if (process := process_of(directory, agent))}


def process_of(directory: Path, agent: str) -> int:
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
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


# A supervisor comes to a crawl whose agents are at work, and asks them what the other supervisor knew: pages that they were lent
# they say in each round, turns at addresses here.

#: Seconds in which an agent that holds its ledger has to answer, since it may have been started an instant ago; and between two
#: questions.
_PATIENCE = 30.0
_PAUSE = 0.1


async def take_over(supervisor: "Supervisor", directory: Path) -> list[str]:
    """Take over the agents that are at work; returns their names.

    Args:
        supervisor: the new one, which does not work yet.

    Raises:
        CrawlDirectoryError: a process that is no agent has the ledger of one.
    """
    news: list[AgentNews] = []
    everybody: dict[str, SupervisedProcess] = {**supervisor.agents, **supervisor.masters}
    for name, process in living(directory, list(everybody)).items():
        agent = everybody[name]
        agent.take_over(process)
        told = await _first_news(agent, directory, process)
        if told is None:
            continue
        agent.is_ending = told.is_ending
        if name in supervisor.masters:
            continue
        news.append(told)
        with contextlib.suppress(AgentSilent, AgentRefused):
            await agent.line.do(Continue())  # the other supervisor may have held it
    if news:
        supervisor.lending.begin_with(news)
    return [one.report.agent for one in news]


async def _first_news(agent: "SupervisedProcess", directory: Path, process: int) -> "AgentNews | None":
    """What an agent says of itself; None where it ends before it has said anything."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if (told := await agent.ask_news(first=True)) is not None:
            return told
        if agent.name not in living(directory, [agent.name]):
            return None
        await asyncio.sleep(_PAUSE)
    raise CrawlDirectoryError(
        f"{place_of(directory, agent.name)} is in use by process {process}, which does not answer; check the process "
        f"before you end it"
    )
