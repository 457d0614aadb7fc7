"""Crawls that lose a process and its folder for good, again and again: one of two masters, or one of two agents.

A crawl that loses a master goes on with the other one. One that loses an agent rests after a time, and the other one takes
over its part. In the end each has every page of its web.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

from gossamer.agents.rendezvous import living
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from tools.killing.agents import WatchedCrawl, all_work, judge_end
from tools.killing.campaigns import Say, Told
from tools.killing.judging import Judgement
from tools.killing.site import Round, served

#: Agents and masters of each crawl.
_TWO = 2

#: Seconds of work before something is lost, at least and at most.
_SOONEST, _LATEST = 1.0, 4.0

#: Seconds that a crawl waits for the folder of an agent to come back.
_BACK = 5


def run(folder: Path, say: Say, *, masters: int = 10, agents: int = 10, pages: int = 1000, seed: int = 1) -> Told:
    """Crawl webs to their ends, each with the loss of a master or an agent; judge them."""
    told = Told()
    for what, times in (("master", masters), ("agent", agents)):
        number = 0
        while sum(told.figures.get(f"{what}-0{index}", 0) for index in range(_TWO)) < times:
            _crawl(told, Round(seed + number, pages, 0.25, None, 32), what, folder / f"{what}-{number}")
            number += 1
        say(f"lost: {what}")
    return told


def _crawl(told: Told, round_: Round, what: str, folder: Path) -> None:
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
                told.figures["too_quick"] += 1
                return
            told.figures[name] += 1
            code, said = crawl.end()
        finally:
            crawl.close()
    judgement, expected = Judgement(), round_.expected()
    told.figures["pages"] += len(expected)
    judge_end(judgement, expected, crawl, code, said, has_lost_rows=what == "agent")
    told.wrong_of(judgement.breaches, f"{name} of seed {round_.seed}: ")
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
