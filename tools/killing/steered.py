"""Crawls of several agents that are steered at random moments: what must hold whatever people ask, and whenever they ask it.

Each crawl has a web, limits and acts of its own, which follow from the seed; their moments do not, quite, since no two crawls are
equally fast. A crawl that a person stops is resumed, and judged at its end.
"""

import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from gossamer.agents.cluster import living
from gossamer.analysis.verifying import verify
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Change, Checkpoint, Continue, Pause, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import agent_name
from gossamer.values.errors import GossamerError
from tools.killing import Say, Told
from tools.killing.site import Round, pages_of, resume_command, send, served, size_of, started, unlike

#: Agents that a crawl has at most.
MOST_AGENTS = 4

#: Seconds between two acts at most. Agents rest and begin again within two, so that some acts meet them there.
LONGEST = 1.5

#: Seconds without an answer from the web after which a crawl stands still: nothing in this web waits for longer.
STILL = 30.0

#: Bytes of the server's log, some hundred requests, before anything happens: a crawl that is stopped before anything came leaves
#: nothing, as it should. One that goes on is disturbed from its first request on; Python takes a signal before that in its own way.
_UNDER_WAY = 10_000

#: Seconds between two looks at how a crawl stands.
_LOOK = 0.5

#: Exit statuses of a run that did what it should: to its end, to a limit, or until it was stopped.
_IN_ORDER = (0, 3)


class Act(StrEnum):
    """Something that happens to a crawl."""

    AGENTS = "it gets another number of agents"
    PAUSE = "it is paused, and goes on"
    CHECKPOINT = "a checkpoint is made"
    CONCURRENCY = "it gets another number of requests in flight"
    PAGES = "its limit of pages rises"
    KILL = "an agent is killed"
    STOP = "it is stopped, and resumed"
    ABORT = "it is stopped twice, and resumed"


class SteeredCrawl:
    """One crawl, from its begin to its end, over all its runs."""

    def __init__(self, folder: Path, seed: int, told: Told) -> None:
        """Choose what is crawled, and what happens. Everything lies in `folder`."""
        self._chance = random.Random(seed)
        pages = self._chance.choice([400, 1000, 2000])
        self._round = Round(seed, pages, self._chance.choice([0.0, 0.05]), None, 32)
        self._limit = self._chance.choice([None, None, pages // 2])
        self._acts = self._chance.choices(list(Act), k=self._chance.randint(1, 4))
        self._directory = folder / f"crawl-{seed}"
        self._log = folder / f"log-{seed}"
        self._said = folder / f"told-{seed}"
        self._told = told
        self.name = f"crawl {seed} ({', '.join(act.name.lower() for act in self._acts)})"
        """Its seed, and what is to happen to it."""

    def run(self) -> None:
        more = ["--agents", str(self._chance.randint(2, 3))]
        if self._limit is not None:
            more += ["--max-pages", str(self._limit)]
        with served(self._round, self._log) as port:
            command = [*self._round.command(self._directory, port), *more]
            while command:
                command = self._live(started(command, self._said, start_new_session=True))
        self._judge()

    def _live(self, process: subprocess.Popen[bytes]) -> list[str]:
        """One run of the crawl; returns the command of the next one, where there is to be one."""
        is_stopped, before = False, size_of(self._log)
        while process.poll() is None and size_of(self._log) < max(_UNDER_WAY, before + 1):
            time.sleep(0.01)
        while self._acts and not is_stopped and process.poll() is None:
            time.sleep(self._chance.uniform(0.0, LONGEST))
            act = self._acts.pop(0)
            self._told.figures[act.name.lower()] += 1
            is_stopped = act in (Act.STOP, Act.ABORT)
            self._do(act, process)
        status = self._awaited(process)
        if status not in _IN_ORDER:
            self._breach(f"exit status {status}")
        return resume_command(self._directory) if is_stopped and (self._directory / CRAWL_FILE).exists() else []

    def _do(self, act: Act, process: subprocess.Popen[bytes]) -> None:
        """Let it happen; what the crawl refuses is noted."""
        match act:
            case Act.STOP | Act.ABORT:
                for _ in range(1 + (act is Act.ABORT)):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.2)
            case Act.KILL:
                if alive := living(self._directory, [agent_name(index) for index in range(MOST_AGENTS)]):
                    send(signal.SIGKILL, [self._chance.choice(sorted(alive.values()))])
            case _:
                changes: Mapping[Act, tuple[str, int]] = {
                    Act.AGENTS: ("agents", self._chance.randint(1, MOST_AGENTS)),
                    Act.CONCURRENCY: ("concurrency", self._chance.choice([1, 4, 64])),
                    Act.PAGES: ("max-pages", 2 * self._round.pages),  # more than there are, with mirrors
                }
                with contextlib.suppress(GossamerError), Control(self._directory) as control:  # it may have ended
                    try:
                        if act is Act.PAUSE:
                            control.do(Pause())
                            time.sleep(self._chance.uniform(0.0, 1.0))
                            control.do(Continue())
                        elif act is Act.CHECKPOINT:
                            control.do(Checkpoint(f"c{time.time_ns()}"))
                        else:
                            control.ask(Change({changes[act][0]: str(changes[act][1])}))
                    except GossamerError as error:
                        self._told.figures[f"refused: {str(error).splitlines()[0]}"] += 1

    def _awaited(self, process: subprocess.Popen[bytes]) -> int:
        """The exit status; a crawl that stands still is ended."""
        asked, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(_LOOK)
            now = size_of(self._log)
            if now != asked:
                asked, since = now, time.monotonic()
            elif time.monotonic() - since > STILL:
                try:
                    with Control(self._directory, changing=0.0) as control:
                        said = str(control.told(Status(), CrawlStanding))
                except GossamerError as error:
                    said = str(error)
                self._breach(f"it stands still: {said}")
                process.terminate()
                process.wait(STILL)
        return process.returncode

    def _judge(self) -> None:
        """Compare what the crawl has left with what it should have."""
        if b"Traceback" in self._said.read_bytes():
            self._breach("a traceback")
        if not (self._directory / CRAWL_FILE).exists():
            self._breach("its directory is gone")
            return
        for finding in verify(self._directory, deep=True).findings:
            self._breach(str(finding))
        kept = (row["url"] for row in pages_of(self._directory) if row["outcome"] == "ok")
        for finding in unlike(kept, self._round.expected() if self._limit is None else set()):
            self._breach(finding)

    def _breach(self, text: str) -> None:
        self._told.wrong.append(f"{self.name}: {text}; see {self._directory} and {self._said}")


def run(folder: Path, say: Say, *, crawls: int = 20, seed: int = 1) -> Told:
    """Steer so many crawls, one after the other; `say` takes a line when one begins."""
    told = Told()
    for number in range(seed, seed + crawls):
        crawl = SteeredCrawl(folder, number, told)
        say(crawl.name)
        crawl.run()
        told.figures["crawls"] += 1
    return told
