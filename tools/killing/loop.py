"""Rounds of kills: each crawls a web of its own until it ends, is judged, and counts its kills."""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from gossamer.simweb.log import read_entries
from tools.killing.campaigns import Say, Told
from tools.killing.judging import Hit, Judgement, assign, judge
from tools.killing.lives import How, Lives
from tools.killing.site import Round, resume_command, round_of, served
from tools.verifying import Verified, verify

#: Kills of one round at most: so the kinds of rounds take turns, and each is judged often.
KILLS_OF_A_ROUND = 25

#: Seconds until the server has written down its last request.
SERVER_FLUSH = 0.5


class JudgedRound(NamedTuple):
    """What came of one round."""

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
    told, rounds, began = Told(), list[JudgedRound](), time.monotonic()
    while (killed := sum(one.kills for one in rounds)) < kills:
        number, since = len(rounds), time.monotonic()
        round_, place = round_of(number, seed, pages, concurrency), folder / f"round-{number}"
        one = run_round(round_, min(KILLS_OF_A_ROUND, kills - killed), place)
        before = len(told.wrong)
        told.wrong_of(one.judgement.breaches, f"round {number}: ")
        told.wrong_of({"verify": one.verified.findings}, f"round {number}: ")
        rounds.append(one)
        is_right = len(told.wrong) == before
        say(
            f"round {number} (seed {round_.seed}, {one.judgement.pages} pages, delay {round_.delay:g} s, "
            f"{round_.per_host} a host, depth {round_.depth}): {one.kills} kills in {time.monotonic() - since:.0f} s, "
            f"{one.judgement.hits} requests, {sum(one.judgement.refetched)} refetched "
            f"(at most {max(one.judgement.refetched, default=0)}): {'all holds' if is_right else 'BROKEN'}"
        )
        if is_right:
            shutil.rmtree(place, ignore_errors=True)
    refetched = [count for one in rounds for count in one.judgement.refetched]
    restarts = sorted(seconds for one in rounds for seconds in one.judgement.restarts)
    told.figures = {
        "seed": seed,
        "concurrency": concurrency,
        "kills": sum(one.kills for one in rounds),
        "rounds": len(rounds),
        "seconds": round(time.monotonic() - began, 1),
        "pages": sum(one.judgement.pages for one in rounds),
        "requests": sum(one.judgement.hits for one in rounds),
        "refetched": sum(refetched),
        "refetched_mean": round(statistics.fmean(refetched), 2) if refetched else 0.0,
        "refetched_most": max(refetched, default=0),
        "restart_median": round(statistics.median(restarts), 2) if restarts else 0.0,
        "restart_most": round(restarts[-1], 2) if restarts else 0.0,
        "rows": sum(one.verified.rows for one in rounds),
        "records": sum(one.verified.records for one in rounds),
        "ends": {str(how): count for how, count in sum((one.hows for one in rounds), Counter()).items()},
    }
    return told


def run_round(round_: Round, most: int, folder: Path) -> JudgedRound:
    """Crawl one web, killed up to `most` times, then to its end; judge it."""
    folder.mkdir(parents=True)
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
    _no_trouble(lives, judgement)
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


def _no_trouble(lives: Lives, judgement: Judgement) -> None:
    """Nobody saw a traceback, and no life ended by itself with an error but the told ones."""
    said = lives.errors()
    if "Traceback" in said:
        judgement.breach("no tracebacks", said[said.index("Traceback") :][:2000])
    for life in lives.lives[:-1]:
        if life.how is How.END and life.code not in (0, 3):
            judgement.breach("every life can begin", f"life {life.number} ended with {life.code}: {said[-500:]}")
