"""Rounds of kills: each crawls a web of its own until it ends, is judged, and counts its kills."""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from gossamer.simweb.log import read_entries
from tools.killing.judging import Hit, Judgement, assign, judge
from tools.killing.lives import How, Life, Lives
from tools.killing.site import Round, resume_command, round_of, served
from tools.verifying import Verified, verify

#: Kills of one round at most: so the kinds of rounds take turns, and each is judged often.
KILLS_OF_A_ROUND = 25

#: Seconds until the server has written down its last request.
SERVER_FLUSH = 0.5


class RoundReport(msgspec.Struct):
    """One round."""

    round: Round
    kills: int
    lives: int
    seconds: float
    judgement: Judgement
    verified: Verified
    bytes: dict[str, int]
    """Of the crawl directory, by its parts."""
    hows: dict[str, int]


class Report(msgspec.Struct):
    """The whole loop."""

    seed: int
    concurrency: int
    rounds: list[RoundReport] = []
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        """How often a crawl was killed."""
        return sum(one.kills for one in self.rounds)

    @property
    def holds(self) -> bool:
        """Everything held in every round."""
        return all(one.judgement.holds and one.verified.is_whole for one in self.rounds)

    def figures(self) -> dict[str, Any]:
        """What is told of all rounds together."""
        refetched = [count for one in self.rounds for count in one.judgement.refetched]
        restarts = sorted(seconds for one in self.rounds for seconds in one.judgement.restarts)
        hows = Counter({how: count for how in How for count in [sum(one.hows.get(how, 0) for one in self.rounds)]})
        breaches = Counter(
            {name: len(told) for one in self.rounds for name, told in one.judgement.breaches.items() if told}
        )
        return {
            "seed": self.seed,
            "concurrency": self.concurrency,
            "kills": self.kills,
            "holds": self.holds,
            "rounds": len(self.rounds),
            "seconds": round(self.seconds, 1),
            "pages": sum(one.judgement.pages for one in self.rounds),
            "requests": sum(one.judgement.hits for one in self.rounds),
            "refetched": sum(refetched),
            "refetched_mean": round(statistics.fmean(refetched), 2) if refetched else 0.0,
            "refetched_most": max(refetched, default=0),
            "restart_median": round(statistics.median(restarts), 2) if restarts else 0.0,
            "restart_most": round(restarts[-1], 2) if restarts else 0.0,
            "rows": sum(one.verified.rows for one in self.rounds),
            "records": sum(one.verified.records for one in self.rounds),
            "findings": sum(len(one.verified.findings) for one in self.rounds),
            "breaches": dict(breaches),
            "ends": {str(how): count for how, count in hows.items() if count},
        }


def run(
    kills: int,
    seed: int,
    concurrency: int,
    pages: int,
    folder: Path,
    say: Callable[[str], None] = lambda line: None,
    *,
    keep: bool = False,
) -> Report:
    """Kill crawls until there were so many kills, and judge each round.

    Args:
        kills: how many at least; the round that reaches them is crawled to its end.
        seed: webs, moments and ways of killing follow from it.
        concurrency: requests in flight.
        pages: of a web.
        folder: for crawls and logs; what belongs to a round in which everything held is removed.
        say: is told of each round.
        keep: remove nothing.
    """
    report = Report(seed, concurrency)
    began = time.monotonic()
    while report.kills < kills:
        number = len(report.rounds)
        one = run_round(
            round_of(number, seed, pages, concurrency),
            min(KILLS_OF_A_ROUND, kills - report.kills),
            folder / f"round-{number}",
        )
        report.rounds.append(one)
        report.seconds = time.monotonic() - began
        say(_line(number, one))
        if one.judgement.holds and one.verified.is_whole and not keep:
            shutil.rmtree(folder / f"round-{number}", ignore_errors=True)
    return report


def run_round(round_: Round, most: int, folder: Path) -> RoundReport:
    """Crawl one web, killed up to `most` times, then to its end; judge it."""
    folder.mkdir(parents=True)
    directory, log = folder / "crawl", folder / "requests.log"
    began = time.monotonic()
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
    verified = verify(directory)
    return RoundReport(
        round=round_,
        kills=sum(life.how is not How.END for life in lives.lives),
        lives=len(lives.lives),
        seconds=round(time.monotonic() - began, 1),
        judgement=judgement,
        verified=verified,
        bytes=_bytes(directory),
        hows=Counter(str(life.how) for life in lives.lives),
    )


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


def _bytes(directory: Path) -> dict[str, int]:
    found: Counter[str] = Counter()
    for path in directory.rglob("*"):
        if path.is_file():
            found[path.relative_to(directory).parts[0]] += path.stat().st_size
    return dict(found)


def _line(number: int, one: RoundReport) -> str:
    judgement = one.judgement
    state = "all holds" if judgement.holds and one.verified.is_whole else "BROKEN"
    return (
        f"round {number} (seed {one.round.seed}, {judgement.pages} pages, delay {one.round.delay:g} s, "
        f"{one.round.per_host} a host, "
        f"depth {one.round.depth}): {one.kills} kills in {one.seconds:.0f} s, {judgement.hits} requests, "
        f"{sum(judgement.refetched)} refetched (at most {max(judgement.refetched, default=0)}): {state}"
    )


def breaches_of(report: Report) -> list[str]:
    """Everything that did not hold, in words."""
    told = []
    for number, one in enumerate(report.rounds):
        for invariant, texts in one.judgement.breaches.items():
            told += [f"round {number}: {invariant}: {text}" for text in texts]
        told += [f"round {number}: verify: {text}" for text in one.verified.findings]
    return told


def lives_of(lives: list[Life]) -> list[str]:
    """Each life in a line, for who looks for a cause."""
    return [
        f"{life.number}: {life.how} {life.point} {life.ended - life.began:.2f} s, code {life.code}" for life in lives
    ]
