"""A crawl of several agents whose processes are killed at random, masters and supervisor too: what must hold, by the server's log.

Agents and masters are killed one by one while the others work; the supervisor is killed and another one begins at once, while the
agents work on. Each agent is judged like a crawl of its own over its hosts: its lives end with its kills.

Other crawls lose a process and its folder for good: one of two masters, or one of two agents. A crawl that loses a master goes on
with the other one. One that loses an agent works on, and the agent begins again after a time. In the end each has
every page of its web.
"""

import itertools
import random
import shutil
import signal
import subprocess
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gossamer.agents.cluster import living
from gossamer.agents.masters import master_name
from gossamer.agents.membership import designations
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.analysis.verifying import verify
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.values.agents import agent_name
from gossamer.values.hosts import registered_domain
from tools.killing import Say, Told
from tools.killing.judging import How, Judgement, Life, assign, few_refetched, hosts_are_spared, robots_first
from tools.killing.loop import SERVER_FLUSH, hits_of
from tools.killing.site import Round, pages_of, resume_command, send, served, started

#: Seconds between two looks at processes.
_LOOK = 0.01

#: Seconds in which a process that was killed has to be back, and the longest that the campaign waits for it.
BACK_WITHIN = 2.0
_PATIENCE = 60.0

#: Seconds between two kills at most: an agent commits some groups in between.
_LONGEST = 1.0


class Killed(msgspec.Struct):
    who: str
    at: float
    """Monotonic seconds."""
    back: float | None = None
    """Seconds until a process of it held its files again; None where the crawl ended before."""


_SUPERVISOR = "supervisor"

#: How the finding begins that the archive has more records than the index.
_INDEX = "index.cdxj has"


class WatchedCrawl:
    """The crawl, and its supervisor."""

    def __init__(self, directory: Path, agents: int, masters: int = 0) -> None:
        self.directory = directory
        self.agents = [agent_name(index) for index in range(agents)]
        self.masters = [master_name(index) for index in range(masters)]
        self.supervisor: subprocess.Popen[bytes]

    def begin(self, command: list[str]) -> None:
        errors = self.directory.with_suffix(".err")
        self.supervisor = started(command, errors, stdout=subprocess.PIPE, start_new_session=True)

    @property
    def everybody(self) -> list[str]:
        return [*self.agents, *self.masters]

    @property
    def options(self) -> list[str]:
        """The options that let the crawl have them."""
        given = ["--agents", str(len(self.agents))]
        return [*given, "--designation", "master", "--masters", str(len(self.masters))] if self.masters else given

    def kill_agent(self, agent: str) -> Killed | None:
        """Kill one, or a master, and wait until it is back; None where it is not at work."""
        process = living(self.directory, [agent]).get(agent)
        if process is None:
            return None
        kill = Killed(agent, time.monotonic())
        send(signal.SIGKILL, [process])
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
        return self.supervisor.returncode, out.decode()

    def close(self) -> None:
        self.supervisor.kill()
        send(signal.SIGKILL, living(self.directory, self.everybody).values())


def run(
    folder: Path,
    say: Say,
    *,
    kills: int = 20,
    supervisors: int = 5,
    agents: int = 2,
    masters: int = 0,
    master_kills: int = 0,
    concurrency: int = 32,
    pages: int = 5000,
    delay: float = 0.25,
    seed: int = 1,
) -> Told:
    """Crawl one web with kills of agents, supervisors and masters, fewer where it ends before; judge it."""
    round_ = Round(seed, pages, delay, None, concurrency)
    log, chance = folder / "requests.log", random.Random(seed)
    order = [agent_name(chance.randrange(agents)) for _ in range(kills)] + [_SUPERVISOR] * supervisors
    order += [master_name(chance.randrange(masters)) for _ in range(master_kills)]
    chance.shuffle(order)
    killed = list[Killed]()
    with served(round_, log) as port:
        crawl = WatchedCrawl(folder / "crawl", agents, masters)
        crawl.begin([*round_.command(crawl.directory, port), *crawl.options])
        try:
            for who in order:
                time.sleep(chance.uniform(0.05, _LONGEST))
                if not all_work(crawl):
                    break
                done = crawl.kill_supervisor() if who == _SUPERVISOR else crawl.kill_agent(who)
                if done is not None:
                    killed.append(done)
            code, said = crawl.end()
        finally:
            crawl.close()
        time.sleep(SERVER_FLUSH)
    return _judged(killed, round_, crawl, log, code, said)


def all_work(crawl: WatchedCrawl) -> bool:
    """Wait until all agents and masters are at work; False where the crawl ends before."""
    while crawl.supervisor.poll() is None:
        if len(living(crawl.directory, crawl.everybody)) == len(crawl.everybody):
            return True
        time.sleep(_LOOK)
    return False


def _judged(kills: Sequence[Killed], round_: Round, crawl: WatchedCrawl, log: Path, code: int, said: str) -> Told:
    judgement, expected, found = Judgement(), round_.expected(), hits_of(log)
    if crawl.masters:  # domains have stayed where they were
        table = dict(designations(crawl.directory))

        def owner(host: str) -> str:
            return table.get(registered_domain(host), "")
    else:
        owner = RingDesignation(RingSheet(members=tuple(crawl.agents))).owner
    share = -(-round_.concurrency // len(crawl.agents))
    told = Told()
    for agent in crawl.agents:
        lives = lives_of([kill for kill in kills if kill.who == agent])
        hits = assign([hit for hit in found if owner(hit.host) == agent], lives)
        part = Judgement()
        few_refetched([hit for hit in hits if not hit.is_robots], lives, share, part)
        hosts_are_spared(hits, round_.delay, round_.per_host, part)
        robots_first(hits, part)
        judgement.refetched += part.refetched
        told.wrong_of(part.breaches, f"{agent}: ")
    judge_end(judgement, expected, crawl, code, said)
    told.wrong_of(judgement.breaches)
    back = {
        agent: [kill.back for kill in kills if kill.who == agent and kill.back is not None] for agent in crawl.everybody
    }
    told.wrong += [
        f"{agent} was back after {seconds:.2f} s, not within two"
        for agent in crawl.agents
        for seconds in back[agent]
        if seconds > BACK_WITHIN
    ]
    starts = {agent: sorted(hit.start for hit in found if owner(hit.host) == agent) for agent in crawl.agents}
    seconds, others = sorted(itertools.chain.from_iterable(back.values())), pace_of_others(kills, starts)
    for kill in kills:
        told.figures[f"{kill.who.partition('-')[0]}s_killed"] += 1
    told.figures |= {"pages": len(expected), "requests": len(found)}
    told.figures |= {"refetched": sum(judgement.refetched), "refetched_most": max(judgement.refetched, default=0)}
    if seconds:
        told.figures |= {"back_median": round(seconds[len(seconds) // 2], 2), "back_most": round(seconds[-1], 2)}
    told.figures["pace_of_others"] = None if others is None else round(others, 2)
    return told


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
    kept = {row["url"] for row in pages_of(crawl.directory) if row["outcome"] in ("ok", "not_modified")}
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


#: Agents and masters of each crawl.
_TWO = 2

#: Seconds of work before something is lost, at least and at most.
_SOONEST, _LATEST = 1.0, 4.0

#: Seconds that a crawl waits for the folder of an agent to come back.
_BACK = 5


def lose(folder: Path, say: Say, *, masters: int = 10, agents: int = 10, pages: int = 1000, seed: int = 1) -> Told:
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
            process = living(crawl.directory, [name]).get(name)
            if process is None or crawl.supervisor.poll() is not None:
                told.figures["too_quick"] += 1
                return
            # The process and its folder go away at once.
            place = crawl.directory / STATE_DIRECTORY / name
            place.rename(lost := place.with_name(f"lost-{name}"))
            send(signal.SIGKILL, [process])
            shutil.rmtree(lost)
            told.figures[name] += 1
            code, said = crawl.end()
        finally:
            crawl.close()
    judgement, expected = Judgement(), round_.expected()
    told.figures["pages"] += len(expected)
    judge_end(judgement, expected, crawl, code, said, has_lost_rows=what == "agent")
    told.wrong_of(judgement.breaches, f"{name} of seed {round_.seed}: ")
    shutil.rmtree(folder / "crawl", ignore_errors=True)
