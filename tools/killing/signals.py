"""Signals at random moments: a crawl is told to end, or loses its reader, again and again, and goes on until it is done.

Place in the flow: `./gossamer dev signals` runs this, and a test runs a dozen. Each run of a crawl gets one disturbance at a moment
between its start and its end. After it the exit status must be one that is documented, the directory must say the same, its
files must hold what was committed, and nothing may have been told that is no line for a person. A crawl that has come to its
end must have every page once.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import IO

import msgspec

from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.errors import CrawlDirectoryError, UsageError
from tools import ROOT
from tools.killing import Say, Told
from tools.killing.site import pages_of, unlike
from tools.verifying import verify

#: Pages of a crawl: a tree that takes some dozen disturbed runs.
DEPTH, FANOUT = 5, 5

#: Seconds from the start of a process until the disturbance, at most.
LATEST = 2.5

#: Seconds that a run may take from the disturbance on before it counts as hung: a stop takes ten at most, and machines are slow.
PATIENCE = 60.0

#: Runs that a crawl may need; more of them mean that it makes no headway.
MOST_RUNS = 200

#: Characters of what a run wrote that a finding shows: a traceback with its cause.
LONGEST = 4000

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


def run(folder: Path, say: Say, *, times: int = 200, seed: int = 1) -> Told:
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
                find(f"run {ends.total()} ({one.how} at {one.at:.2f} s): {text}" for text in _judged(one, directory))
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
    wiring = directory / "crawl.toml"

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
        ExitStack() as stack,
    ):
        stack.callback(process.kill)
        assert process.stdout is not None and process.stderr is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(at)
        is_read = how not in (Disturbance.READER, Disturbance.READER_TERMINATE)
        said = "" if is_read else _left(process.stdout) + _left(process.stderr)
        began = time.monotonic()
        for number in SIGNALS[how]:
            process.send_signal(number)
            time.sleep(APART)
        try:
            if is_read:
                out, err = process.communicate(timeout=PATIENCE)
                said = (out + err).decode(errors="replace")
            else:
                process.wait(PATIENCE)
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


def _judged(one: DisturbedRun, directory: Path) -> Iterator[str]:
    if one.said == "hung":
        yield f"it did not end within {PATIENCE:g} s"
        return
    # How Python takes a signal while it starts is its own affair; before the package is imported, no handler of ours is there.
    frames = [line for line in one.said.splitlines() if OURS in line and "/gossamer/__init__.py" not in line]
    has_started = one.has_begun or bool(frames)
    if has_started and ("Traceback" in one.said or "Exception ignored" in one.said):
        yield f"it told what no person can read: {one.said[-LONGEST:]}"
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
    yield from verify(directory).findings


def _state(directory: Path) -> str:
    """Its state at rest; empty where it has not begun."""
    try:
        return standing_at_rest(directory).state
    except (UsageError, CrawlDirectoryError):
        return ""


def _is_finished(directory: Path) -> bool:
    return (directory / "crawl.toml").exists() and _state(directory) == "finished"
