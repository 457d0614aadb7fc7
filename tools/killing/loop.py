"""Rounds of kills: each crawls a web of its own until it ends, is judged, and counts its kills. A crawl has lives: it is started,
killed in one of several ways, and looked at while it is dead.
"""

import contextlib
import os
import random
import signal
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Checkpoint
from gossamer.engine.files import VARIABLE, Point
from gossamer.simweb.log import read_entries
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.values.errors import GossamerError
from tools.killing import Say, Told
from tools.killing.judging import Hit, How, Judgement, Life, assign, judge
from tools.killing.site import Round, resume_command, round_of, rounds, served, size_of, started
from tools.verifying import Verified, verify

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
        life = Life(len(self.lives), How.END if to_the_end else self._chance.choices(list(MIX), list(MIX.values()))[0])
        environment = dict(os.environ)
        if life.how is How.POINT:
            point = self._chance.choice(list(PASSINGS))
            life.point = f"{point}:{self._chance.randint(1, PASSINGS[point])}"
            environment[VARIABLE] = life.point
        # A group of its own: the kill takes all of it, and nothing of ours.
        process = started(command, self._stderr, stdout=subprocess.PIPE, env=environment, start_new_session=True)
        life.began = time.monotonic()
        try:
            self._end(process, life)
        finally:
            # Before the kill is known to have been waited for, so that nothing that the dead still sent counts as late. Of a
            # process that was waited for, only its number is left.
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
        life.ended = time.monotonic()
        life.code, life.said = process.returncode, out.decode().strip()
        if life.code is not None and life.code >= 0:
            life.how = How.END
        # The ledger's facts, before the next life recovers anything. A crawl that died before it had a ledger has nothing.
        for ledger in ledgers_of(self._directory) if list(self._directory.glob("state/*/ledger/CURRENT")) else ():
            with ledger.looking():
                life.counters = dict(ledger.counters())
                life.done = {row.url for row in ledger.documents()}
                life.queued = len(ledger.queues)
        self.lives.append(life)
        return life

    def errors(self) -> str:
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    def _end(self, process: subprocess.Popen[bytes], life: Life) -> None:
        if life.how is How.END:
            _wait(process, TO_THE_END)  # what has not ended by then is judged as it is
            return
        if life.how is How.STARTING:
            _wait(process, self._chance.uniform(0.0, STARTING))
            return
        # Until the web has been asked for something more, or the process is gone.
        before, deadline = size_of(self._log), time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline and size_of(self._log) == before:
            time.sleep(LOOK)
        if life.point.startswith(Point.CHECKPOINT):
            with contextlib.suppress(GossamerError, OSError), Control(self._directory, PATIENCE) as control:
                control.do(Checkpoint(f"life-{len(self.lives)}"))
        _wait(process, PATIENCE / 4 if life.how is How.POINT else self._chance.uniform(0.0, LONGEST))
        if process.poll() is not None:
            return
        if life.how is How.PAUSED:
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(1.0)
        elif life.how is How.ENDING:
            os.killpg(process.pid, signal.SIGTERM)
            _wait(process, 0.2)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


#: Kills of one round at most: so the kinds of rounds take turns, and each is judged often.
KILLS_OF_A_ROUND = 25

#: Seconds until the server has written down its last request.
SERVER_FLUSH = 0.5


class JudgedRound(NamedTuple):
    """The outcome of one round."""

    hows: Counter[How]
    """How its lives ended."""
    judgement: Judgement
    verified: Verified

    @property
    def kills(self) -> int:
        return self.hows.total() - self.hows[How.END]


def run(folder: Path, say: Say, *, kills: int = 50, seed: int = 1, concurrency: int = 16, pages: int = 4000) -> Told:
    """Kill crawls until there were so many kills, and judge each round.

    Args:
        folder: for crawls and logs; what belongs to a round in which everything held is removed.
        say: is told of each round.
        kills: how many at least; the round that reaches them is crawled to its end.
        seed: webs, moments and ways of killing follow from it.
        concurrency: requests in flight.
        pages: of a web.
    """
    told, played, began = Told(), list[JudgedRound](), time.monotonic()
    for place, most in rounds(folder, told, kills, KILLS_OF_A_ROUND):
        number, since, before = len(played), time.monotonic(), len(told.wrong)
        round_ = round_of(number, seed, pages, concurrency)
        one = run_round(round_, most, place)
        told.wrong_of({**one.judgement.breaches, "verify": one.verified.findings}, f"round {number}: ")
        told.figures["kills"] += one.kills
        played.append(one)
        say(
            f"round {number} (seed {round_.seed}, {one.judgement.pages} pages, delay {round_.delay:g} s, "
            f"{round_.per_host} a host, depth {round_.depth}): {one.kills} kills in {time.monotonic() - since:.0f} s, "
            f"{one.judgement.hits} requests, {sum(one.judgement.refetched)} refetched "
            f"(at most {max(one.judgement.refetched, default=0)}): {'all holds' if len(told.wrong) == before else 'BROKEN'}"
        )
    refetched = [count for one in played for count in one.judgement.refetched]
    restarts = sorted(seconds for one in played for seconds in one.judgement.restarts)
    told.figures |= {
        "seed": seed,
        "concurrency": concurrency,
        "seconds": round(time.monotonic() - began, 1),
        "pages": sum(one.judgement.pages for one in played),
        "requests": sum(one.judgement.hits for one in played),
        "refetched": sum(refetched),
        "refetched_mean": round(statistics.fmean(refetched), 2) if refetched else 0.0,
        "refetched_most": max(refetched, default=0),
        "restart_median": round(statistics.median(restarts), 2) if restarts else 0.0,
        "restart_most": round(restarts[-1], 2) if restarts else 0.0,
        "rows": sum(one.verified.rows for one in played),
        "records": sum(one.verified.records for one in played),
        "ends": {str(how): count for how, count in sum((one.hows for one in played), Counter()).items()},
    }
    return told


def run_round(round_: Round, most: int, folder: Path) -> JudgedRound:
    """Crawl one web, killed up to `most` times, then to its end; judge it."""
    directory, log = folder / "crawl", folder / "requests.log"
    with served(round_, log) as port:
        lives = Lives(directory, log, random.Random(round_.seed))
        begin = round_.command(directory, port)
        while True:
            command = resume_command(directory) if (directory / "crawl.toml").exists() else begin
            kills = sum(life.how is not How.END for life in lives.lives)
            life = lives.live(command, to_the_end=kills >= most)
            if life.how is How.END and life.code != 3:
                break
        time.sleep(SERVER_FLUSH)
    hits = assign(hits_of(log), lives.lives)
    judgement = judge(hits, lives.lives, round_.expected(), round_.delay, round_.concurrency, round_.per_host)
    said = lives.errors()
    if "Traceback" in said:
        judgement.breach("no tracebacks", said[said.index("Traceback") :][:2000])
    for life in lives.lives[:-1]:
        if life.how is How.END and life.code not in (0, 3):
            judgement.breach("every life can begin", f"life {life.number} ended with {life.code}: {said[-500:]}")
    return JudgedRound(Counter(life.how for life in lives.lives), judgement, verify(directory))


def hits_of(log: Path) -> list[Hit]:
    return [
        Hit(
            url=f"http://{entry.host}{entry.target}",
            host=entry.host,
            start=entry.start / 1e6,
            end=(entry.start + entry.duration) / 1e6,
            status=entry.status,
            abandoned="a" in entry.flags,
        )
        for entry in read_entries(log)
    ]
