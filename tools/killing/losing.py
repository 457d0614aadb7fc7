"""Crawls that lose a process and its folder for good, again and again: one of two masters, or one of two agents.

A crawl that loses a master goes on with the other one. One that loses an agent rests after a time, lets the agent begin again, and
finds its part again. In the end each has every page of its web.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

import msgspec

from gossamer.agents.rendezvous import living
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from tools.killing.agents import WatchedCrawl, all_work, judge_end
from tools.killing.judging import Judgement
from tools.killing.site import Round, served

#: Agents and masters of each crawl.
_TWO = 2

#: Seconds of work before something is lost, at least and at most.
_SOONEST, _LATEST = 1.0, 4.0

#: Seconds that a crawl waits for the folder of an agent to come back.
_BACK = 5


class LossesReport(msgspec.Struct):
    """What was found."""

    lost: dict[str, int] = {}
    """By name: how many crawls have lost it at work."""
    too_quick: int = 0
    """Crawls that ended before anything was lost."""
    pages: int = 0
    judgement: Judgement = msgspec.field(default_factory=Judgement)
    seconds: float = 0.0

    def figures(self) -> dict[str, object]:
        """What is told of all crawls."""
        return {
            "lost": self.lost,
            "too_quick": self.too_quick,
            "pages": self.pages,
            "seconds": round(self.seconds, 1),
            "breaches": {name: len(told) for name, told in self.judgement.breaches.items() if told},
        }


def run(round_: Round, what: str, times: int, folder: Path) -> LossesReport:
    """Crawl webs to their ends, each with one loss; judge them.

    Args:
        round_: the first web; each crawl has one of its own seed.
        what: `master` or `agent`.
        times: crawls that lose something.
        folder: for the crawls.
    """
    report, began = LossesReport(), time.monotonic()
    number = 0
    while sum(report.lost.values()) < times:
        one = msgspec.structs.replace(round_, seed=round_.seed + number)
        _crawl(report, one, what, folder / f"{what}-{number}")
        number += 1
    report.seconds = time.monotonic() - began
    return report


def _crawl(report: LossesReport, round_: Round, what: str, folder: Path) -> None:
    folder.mkdir()
    chance = random.Random(round_.seed)
    name = f"{what}-0{chance.randrange(_TWO)}"
    with served(round_, folder / "requests.log") as port:
        crawl = WatchedCrawl(folder / "crawl", _TWO, _TWO)
        crawl.begin([*round_.command(crawl.directory, port), *crawl.options, "--set", f"frontier.silence={_BACK}"])
        try:
            all_work(crawl)
            time.sleep(chance.uniform(_SOONEST, _LATEST))
            if not _lose(crawl, name):
                report.too_quick += 1
                return
            report.lost[name] = report.lost.get(name, 0) + 1
            code, said = crawl.end()
        finally:
            crawl.close()
    told = Judgement()
    expected = round_.expected()
    report.pages += len(expected)
    judge_end(told, expected, crawl, code, said, has_lost_rows=what == "agent")
    for invariant, texts in told.breaches.items():
        for text in texts:
            report.judgement.breach(invariant, f"{name} of seed {round_.seed}: {text}")
    shutil.rmtree(folder / "crawl", ignore_errors=True)


def _lose(crawl: WatchedCrawl, name: str) -> bool:
    """Take a process and its folder away at once; False where it is not at work."""
    process = living(crawl.directory, [name]).get(name)
    if process is None or crawl.supervisor.poll() is not None:
        return False
    place = crawl.directory / STATE_DIRECTORY / name
    place.rename(place.with_name(f"lost-{name}"))
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    shutil.rmtree(place.with_name(f"lost-{name}"))
    return True
