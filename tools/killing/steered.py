"""Crawls that are steered, signalled and left by their readers at random moments: what must hold whatever people do, and when.

*steered*: each crawl has several agents, and a web, limits and acts of its own, which follow from the seed; their moments do not,
quite, since no two crawls are equally fast. A crawl that a person stops is resumed, and judged at its end.

*signals*: a crawl is told to end, or loses its reader, again and again, and goes on until it is done. Each run of it gets one
disturbance at a moment between its start and its end. After it the exit status must be one that is documented, the directory must
say the same, its files must hold what was committed, and nothing may have been told that is no line for a person. A crawl that has
come to its end must have every page once.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import IO

import msgspec

from gossamer.agents.cluster import living
from gossamer.analysis.verifying import verify
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Change, Checkpoint, Continue, Pause, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.agents import agent_name
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError
from tools import ROOT, verifying
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


# -- signals

#: Pages of a crawl: a tree that takes some dozen disturbed runs.
DEPTH, FANOUT = 5, 5

#: Seconds from the start of a process until the disturbance, at most.
LATEST = 2.5

#: Seconds that a run may take from the disturbance on before it counts as hung: a stop takes ten at most, and machines are slow.
HANGS = 60.0

#: Runs that a crawl may need; more of them mean that it makes no headway.
MOST_RUNS = 200

#: Characters of what a run wrote that a finding shows: a traceback with its cause.
SHOWN = 4000

#: The text in a traceback that comes from our code.
OURS = str(ROOT / "src")

#: Seconds between two signals of one run.
APART = 0.05


class Disturbance(StrEnum):
    """The disturbance of a run."""

    INTERRUPT = "SIGINT"
    TERMINATE = "SIGTERM"
    HANG_UP = "SIGHUP"
    TWICE = "SIGINT twice"
    READER = "the reader goes"
    READER_TERMINATE = "the reader goes, then SIGTERM"


SIGNALS: dict[Disturbance, tuple[int, ...]] = {
    Disturbance.INTERRUPT: (signal.SIGINT,),
    Disturbance.TERMINATE: (signal.SIGTERM,),
    Disturbance.HANG_UP: (signal.SIGHUP,),
    Disturbance.TWICE: (signal.SIGINT, signal.SIGINT),
    Disturbance.READER: (),
    Disturbance.READER_TERMINATE: (signal.SIGTERM,),
}

#: The exit status of each state at rest.
STATUS = {"finished": 0, "limit": 0, "stopped": 3, "incomplete": 4}

#: How a run talks.
WAYS: tuple[list[str], ...] = ([], ["--json"], ["--verbose"], ["--quiet"])


class DisturbedRun(msgspec.Struct, frozen=True):
    """One run, and how it ended."""

    how: Disturbance
    at: float
    """Seconds from its start until it was disturbed."""
    code: int
    """Exit status; negative: the signal that ended it."""
    took: float
    """Seconds from the disturbance to the end."""
    said: str
    """The text that it wrote, as far as it was read."""
    has_begun: bool = True
    """It had the directory in its hands."""


def disturb(folder: Path, say: Say, *, times: int = 200, seed: int = 1) -> Told:
    """Disturb so many runs; `say` gets each finding when it is made, and a line for each crawl that has come to its end."""
    chance, told, ends, ways = random.Random(seed), Told(), Counter[int](), Counter[str]()
    crawls, slowest = 0, 0.0

    def find(texts: Iterable[str]) -> None:
        for text in texts:
            told.wrong.append(text)
            say(text)

    with FakeWeb.tree(DEPTH, FANOUT) as web:
        while ends.total() < times:
            directory = folder / f"crawl-{crawls}"
            for one in _runs_of_a_crawl(directory, web, chance, min(MOST_RUNS, times - ends.total())):
                ends[one.code] += 1
                ways[str(one.how)] += 1
                slowest = max(slowest, one.took)
                find(f"run {ends.total()} ({one.how} at {one.at:.2f} s): {text}" for text in _wrong(one, directory))
            if _is_finished(directory):
                crawls += 1
                find(unlike((row["url"] for row in pages_of(directory)), web.expected))
                say(f"{ends.total()} runs, {crawls} crawls at their end, {len(told.wrong)} findings")
            elif ends.total() < times:
                find([f"{directory} makes no headway"])
                break
    told.figures |= {"runs": ends.total(), "crawls": crawls, "codes": dict(sorted(ends.items()))}
    told.figures |= {"by_way": dict(sorted(ways.items())), "slowest": round(slowest, 2)}
    return told


def _runs_of_a_crawl(directory: Path, web: FakeWeb, chance: random.Random, most: int) -> Iterator[DisturbedRun]:
    wiring = directory / CRAWL_FILE

    def written_at() -> int:
        """When a run last wrote what it goes by, which each does as soon as the directory is its own."""
        return wiring.stat().st_mtime_ns if wiring.exists() else 0

    fresh = ["crawl", web.url("/"), "-o", str(directory), "--overwrite", "--delay", "0"]
    for _ in range(most):
        before = written_at()
        words = ["resume", str(directory)] if wiring.exists() and _state(directory) != "" else fresh
        one = _disturbed([sys.executable, "-P", "-m", "gossamer", *words, *chance.choice(WAYS)], chance)
        yield msgspec.structs.replace(one, has_begun=written_at() != before)
        if _is_finished(directory):
            return


def _disturbed(command: list[str], chance: random.Random) -> DisturbedRun:
    how, at = chance.choice(list(Disturbance)), chance.uniform(0.0, LATEST)
    if how is Disturbance.READER:
        command = [*command, "--max-time", "2s"]  # nothing else ends it
    environment = {**os.environ, "PYTHONPATH": OURS, "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(process.kill)
        assert process.stdout is not None and process.stderr is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(at)
        is_read = how not in (Disturbance.READER, Disturbance.READER_TERMINATE)
        said = "" if is_read else _left(process.stdout) + _left(process.stderr)
        began = time.monotonic()
        for number in SIGNALS[how]:
            process.send_signal(number)
            time.sleep(APART)
        try:
            if is_read:
                out, err = process.communicate(timeout=HANGS)
                said = (out + err).decode(errors="replace")
            else:
                process.wait(HANGS)
        except subprocess.TimeoutExpired:
            said = "hung"
            process.kill()
            process.wait()
        return DisturbedRun(how, at, process.returncode, time.monotonic() - began, said)


def _left(stream: IO[bytes]) -> str:
    """The text that is there to be read; the stream is not read from here on."""
    os.set_blocking(stream.fileno(), False)
    said = stream.read() or b""
    stream.close()
    return said.decode(errors="replace")


def _wrong(one: DisturbedRun, directory: Path) -> Iterator[str]:
    if one.said == "hung":
        yield f"it did not end within {HANGS:g} s"
        return
    # How Python takes a signal while it starts is its own affair; before the package is imported, no handler of ours is there.
    frames = [line for line in one.said.splitlines() if OURS in line and "/gossamer/__init__.py" not in line]
    has_started = one.has_begun or bool(frames)
    if has_started and ("Traceback" in one.said or "Exception ignored" in one.said):
        yield f"it told what no person can read: {one.said[-SHOWN:]}"
    state = _state(directory)
    if not one.has_begun:
        # It was ended before there was anything; the interpreter that has not come to our code ends as any program does.
        if one.code not in (3, *(-number for number in SIGNALS[one.how])) or state == "killed":
            yield f"exit status {one.code} before the crawl began; it is {state!r}"
        return
    if one.code < 0:
        yield f"it was ended by signal {-one.code} and not by itself; the crawl is {state!r}"
    elif STATUS.get(state) != one.code:
        yield f"exit status {one.code}, and the crawl is {state!r}"
    if state == "":
        return
    yield from verifying.verify(directory).findings


def _state(directory: Path) -> str:
    """Its state at rest; empty where it has not begun."""
    try:
        return standing_at_rest(directory).state
    except (UsageError, CrawlDirectoryError):
        return ""


def _is_finished(directory: Path) -> bool:
    return (directory / CRAWL_FILE).exists() and _state(directory) == "finished"
