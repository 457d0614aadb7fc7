"""A crawl of several agents whose processes are killed at random, masters and supervisor too: what must hold, by the server's log.

Agents and masters are killed one by one while the others work; the supervisor is killed and another one begins at once, while the
agents work on. Each agent is judged like a crawl of its own over its hosts: its lives end with its kills.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from gossamer.agents.designations_of_crawl import designations
from gossamer.agents.masters import master_name
from gossamer.agents.rendezvous import living
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.analysis.verifying import verify
from gossamer.storage.logs import LOG_PATH
from gossamer.values.agents import agent_name
from gossamer.values.hosts import registered_domain
from tools.killing.judging import Judgement, assign, few_refetched, hosts_are_spared, robots_first
from tools.killing.lives import How, Life
from tools.killing.loop import SERVER_FLUSH, hits_of
from tools.killing.site import Round, resume_command, served

#: Seconds between two looks at processes.
_LOOK = 0.01

#: Seconds in which a process that was killed has to be back, and the longest that anybody waits for it.
BACK_WITHIN = 2.0
_PATIENCE = 60.0

#: Seconds between two kills at most: an agent commits some groups in between.
_LONGEST = 1.0


class Killed(msgspec.Struct):
    """One kill."""

    who: str
    at: float
    """Monotonic seconds."""
    back: float | None = None
    """Seconds until a process of it held its files again; None where the crawl ended before."""


class AgentsReport(msgspec.Struct):
    """What was found."""

    kills: list[Killed] = []
    judgement: Judgement = msgspec.field(default_factory=Judgement)
    seconds: float = 0.0
    others: float | None = None
    """Pace of the other agents while a killed one is away, as a multiple of theirs just before; None where none had work."""

    def figures(self) -> dict[str, object]:
        """What is told of the loop."""
        of_agents = sorted(kill.back for kill in self.kills if kill.back is not None and kill.who != _SUPERVISOR)
        of_masters = sum(kill.who.startswith(_MASTER) for kill in self.kills)
        refetched = self.judgement.refetched
        return {
            "agents_killed": sum(kill.who != _SUPERVISOR for kill in self.kills) - of_masters,
            "masters_killed": of_masters,
            "supervisors_killed": sum(kill.who == _SUPERVISOR for kill in self.kills),
            "pages": self.judgement.pages,
            "requests": self.judgement.hits,
            "refetched": sum(refetched),
            "refetched_most": max(refetched, default=0),
            "back_median": round(of_agents[len(of_agents) // 2], 2) if of_agents else None,
            "back_most": round(of_agents[-1], 2) if of_agents else None,
            "pace_of_others": None if self.others is None else round(self.others, 2),
            "seconds": round(self.seconds, 1),
            "breaches": {name: len(told) for name, told in self.judgement.breaches.items() if told},
        }


_SUPERVISOR = "supervisor"

#: How the finding begins that the archive has more records than the index.
_INDEX = "index.cdxj has"
_MASTER = "master-"


class WatchedCrawl:
    """The crawl, and whoever supervises it."""

    def __init__(self, directory: Path, agents: int, masters: int = 0) -> None:
        self.directory = directory
        self.agents = [agent_name(index) for index in range(agents)]
        self.masters = [master_name(index) for index in range(masters)]
        self._errors = directory.with_suffix(".err").open("ab")
        self.supervisor: subprocess.Popen[str]

    def begin(self, command: list[str]) -> None:
        self.supervisor = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    @property
    def everybody(self) -> list[str]:
        """The names of agents and masters."""
        return [*self.agents, *self.masters]

    @property
    def options(self) -> list[str]:
        """What lets the crawl have them."""
        given = ["--agents", str(len(self.agents))]
        return [*given, "--designation", "master", "--masters", str(len(self.masters))] if self.masters else given

    def kill_agent(self, agent: str) -> Killed | None:
        """Kill one, or a master, and wait until it is back; None where it is not at work."""
        process = living(self.directory, [agent]).get(agent)
        if process is None:
            return None
        kill = Killed(agent, time.monotonic())
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        while self.supervisor.poll() is None and time.monotonic() < kill.at + _PATIENCE:
            if living(self.directory, [agent]).get(agent) not in (None, process):
                kill.back = time.monotonic() - kill.at
                break
            time.sleep(_LOOK)
        return kill

    def kill_supervisor(self) -> Killed:
        """Kill it, and let another one begin."""
        kill = Killed(_SUPERVISOR, time.monotonic())
        self.supervisor.kill()
        self.supervisor.communicate()
        self.begin(resume_command(self.directory))
        return kill

    def end(self) -> tuple[int, str]:
        out, _ = self.supervisor.communicate(timeout=3600)
        return self.supervisor.returncode, out

    def close(self) -> None:
        self.supervisor.kill()
        for process in living(self.directory, self.everybody).values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._errors.close()


def run(
    round_: Round, agents: int, kills: tuple[int, int], folder: Path, of_masters: tuple[int, int] = (0, 0)
) -> AgentsReport:
    """Crawl one web with kills, to its end; judge it.

    Args:
        round_: the web.
        agents: how many.
        kills: of agents, and of supervisors; fewer where the crawl ends before.
        folder: for the crawl and the server's log.
        of_masters: how many there are, and how many kills of them; none where the crawl goes by the ring.
    """
    masters, master_kills = of_masters
    directory, log = folder / "crawl", folder / "requests.log"
    chance, began = random.Random(round_.seed), time.monotonic()
    order = [agent_name(chance.randrange(agents)) for _ in range(kills[0])] + [_SUPERVISOR] * kills[1]
    order += [master_name(chance.randrange(masters)) for _ in range(master_kills)]
    chance.shuffle(order)
    report = AgentsReport()
    with served(round_, log) as port:
        crawl = WatchedCrawl(directory, agents, masters)
        crawl.begin([*round_.command(directory, port), *crawl.options])
        try:
            for who in order:
                time.sleep(chance.uniform(0.05, _LONGEST))
                if crawl.supervisor.poll() is not None:
                    break
                if not all_work(crawl):
                    break
                done = crawl.kill_supervisor() if who == _SUPERVISOR else crawl.kill_agent(who)
                if done is not None:
                    report.kills.append(done)
            code, said = crawl.end()
        finally:
            crawl.close()
        time.sleep(SERVER_FLUSH)
    report.seconds = time.monotonic() - began
    _judge(report, round_, crawl, log, code, said)
    return report


def all_work(crawl: WatchedCrawl) -> bool:
    """Wait until all agents and masters are at work; False where the crawl ends before."""
    while crawl.supervisor.poll() is None:
        if len(living(crawl.directory, crawl.everybody)) == len(crawl.everybody):
            return True
        time.sleep(_LOOK)
    return False


def _judge(report: AgentsReport, round_: Round, crawl: WatchedCrawl, log: Path, code: int, said: str) -> None:
    told, expected = report.judgement, round_.expected()
    found = hits_of(log)
    told.hits, told.pages = len(found), len(expected)
    owner = _owners(crawl)
    share = -(-round_.concurrency // len(crawl.agents))
    for agent in crawl.agents:
        lives = lives_of([kill for kill in report.kills if kill.who == agent])
        hits = assign([hit for hit in found if owner(hit.host) == agent], lives)
        part = Judgement()
        few_refetched([hit for hit in hits if not hit.is_robots], lives, share, part)
        hosts_are_spared(hits, round_.delay, round_.per_host, part)
        robots_first(hits, part)
        told.refetched += part.refetched
        for invariant, texts in part.breaches.items():
            for text in texts:
                told.breach(invariant, f"{agent}: {text}")
    starts = {agent: sorted(hit.start for hit in found if owner(hit.host) == agent) for agent in crawl.agents}
    report.others = pace_of_others(report.kills, starts)
    judge_end(told, expected, crawl, code, said)
    for kill in report.kills:
        if kill.who in crawl.agents and kill.back is not None and kill.back > BACK_WITHIN:
            told.breach("an agent is back within two seconds", f"{kill.who}: {kill.back:.2f} s")


def pace_of_others(kills: Sequence[Killed], starts: Mapping[str, Sequence[float]]) -> float | None:
    """How many requests the other agents have begun while a killed one was away, for each in as long a time just before.

    Args:
        kills: of agents; others do not count.
        starts: when each agent has begun its requests, in order.
    """
    before = away = 0
    for kill in kills:
        if kill.who not in starts or kill.back is None:
            continue
        for agent, times in starts.items():
            if agent != kill.who:
                first, middle, last = (
                    bisect_left(times, at) for at in (kill.at - kill.back, kill.at, kill.at + kill.back)
                )
                before += middle - first
                away += last - middle
    return away / before if before else None


def judge_end(
    told: Judgement, expected: set[str], crawl: WatchedCrawl, code: int, said: str, *, has_lost_rows: bool = False
) -> None:
    """Whether all pages are there, the end is told truly, and the directory agrees with itself.

    With `has_lost_rows` the folder of an agent was taken away, and the rows in it that no table had yet: the archive has records
    that the index does not have. Their pages were fetched again.
    """
    rows = map(json.loads, (crawl.directory / LOG_PATH).read_text().splitlines())
    kept = {row["url"] for row in rows if row["event"] == "page" and row["outcome"] in ("ok", "not_modified")}
    for url in sorted(expected - kept):
        told.breach("I1 nothing is lost", url)
    if code != 0 or '"state":"finished"' not in said:
        told.breach("I14 the end is told truly", f"exit status {code}: {said}")
    for finding in verify(crawl.directory, deep=True).findings:
        if has_lost_rows and str(finding).startswith(_INDEX):
            continue
        told.breach("the directory agrees with itself", str(finding))
    if "Traceback" in (errors := crawl.directory.with_suffix(".err").read_text(errors="replace")):
        told.breach("no tracebacks", errors[errors.index("Traceback") :][:2000])


def _owners(crawl: WatchedCrawl) -> Callable[[str], str]:
    """Says whose a host is: domains have stayed where they were."""
    if not crawl.masters:
        return RingDesignation(RingSheet(members=tuple(crawl.agents))).owner
    table = dict(designations(crawl.directory))
    return lambda host: table.get(registered_domain(host), "")


def lives_of(kills: Sequence[Killed]) -> list[Life]:
    """The lives of one agent, by its kills. One begins when its process is there: the server may read until then what the dead
    one has sent.
    """
    begun = [0.0, *(kill.at + (kill.back or 0.0) for kill in kills)]
    ended = [*(kill.at for kill in kills), float("inf")]
    return [
        Life(number, How.WORKING if number < len(kills) else How.END, began=began, ended=end)
        for number, (began, end) in enumerate(zip(begun, ended, strict=True))
    ]
