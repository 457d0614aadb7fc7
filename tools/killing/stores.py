"""Crawls of up to three agents with a store that lose machines, agents, supervisors and the store, and get other agents: what must
hold, by the web's log.

Each crawl publishes every second into a folder or a bucket (:mod:`store_faults`), with a lease of three seconds. Faults of all
kinds come equally often, one after the other, each as soon as all agents have published since the one before, so that nothing is
repeated that a checkpoint has. Where a crawl loses its machine, it goes on in another folder; where its machine was only suspended,
the old processes wake up then, and must end and publish nothing more.
"""

import csv
import json
import math
import random
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path

from gossamer.agents.cluster import living
from gossamer.backup.head import AgentInStore
from gossamer.backup.opening import open_store
from gossamer.engine import processes
from gossamer.storage.members import AGENTS as MEMBERS
from gossamer.values.agents import agent_name, at_work
from tools.killing import Say, Told
from tools.killing.judging import Judgement, hosts_are_spared
from tools.killing.loop import hits_of
from tools.killing.site import PATIENCE, Round, pages_of, send, served, started
from tools.killing.store_faults import Clocks, StoreOfServer, StoreOnDisk

#: Agents that a crawl may have; it begins with two.
AGENTS = (agent_name(0), agent_name(1), agent_name(2))
FIRST = 2

#: Seconds between two looks.
_LOOK = 0.1

#: Seconds until a fault at most, once all agents have published.
LONGEST = 2.0

#: Seconds for which a store is slow or full; the longest that it waits then before an answer; and by how much a clock is wrong.
_FAILS, _SLOWEST, _APART = 30.0, 3.0, 600.0


class StoreFault(StrEnum):
    """Something that is lost."""

    MACHINE = "all processes and the folder"
    AGENT = "an agent and its folder"
    SUSPENDED = "the machine is suspended for two leases, and the crawl goes on elsewhere meanwhile"
    SUPERVISOR = "the supervisor"
    STORE = "the store cannot be reached for two leases"
    SLOW = "the store waits before each answer, up to a lease, for half a minute"
    FULL = "the store has no room for half a minute"
    CLOCK = "the clock of an agent jumps by ten minutes"
    CHANGE = "agents join or leave, and one of them, or the machine, is lost with its folder meanwhile"


class PublishingCrawl(ABC):
    """One crawl whose agents publish into a store."""

    most = 8
    """Faults that it meets at most."""
    lease = 4.0
    """Seconds without a word from an agent after which another machine may have it."""

    def __init__(self, folder: Path, seed: int, told: Told, pages: Sequence[int] = (1_600,)) -> None:
        """Choose what is crawled, and how many of `pages`. Everything lies in `folder`."""
        folder.mkdir(parents=True)
        self._chance = random.Random(seed)
        self._round = Round(seed, self._chance.choice(pages), 0.25, None, 16)
        self._folder, self._told = folder, told
        self._store, self._log = str(folder / "store"), folder / "requests.log"
        self._since: list[tuple[int, int]] = []
        self.process: subprocess.Popen[bytes]

    @abstractmethod
    def run(self, most: int) -> int:
        """Play it; returns how many faults came before it ended, `most` at most."""

    @abstractmethod
    def _let(self) -> None:
        """Let a fault come."""

    def _options(self) -> list[str]:
        lease = ["--lease", f"{self.lease:g}s", "--checkpoint-every", "1s"]
        return ["--store", self._store, *lease, "--agents", str(FIRST)]

    def _end(self, said: str) -> None:
        """Wait for the end; the process has said something in a file of this name."""
        if status := self.process.wait(PATIENCE):
            text = (self._folder / said).read_text(errors="replace")
            self._told.wrong.append(f"{self._folder.name}: exit status {status}: {text[-800:]}")

    def _counts(self) -> list[tuple[int, int]]:
        """Of each agent its owner, and how many checkpoints it has published."""
        store = open_store(self._store)
        heads = [AgentInStore(store, agent).read() for agent in AGENTS]
        return [(head.epoch, head.count) if head is not None else (0, 0) for head in heads]

    def _at_work(self) -> Collection[str]:
        """The agents that ought to publish."""
        return AGENTS[:FIRST]

    def _has_published(self) -> bool:
        agents, since = self._at_work(), self._since or [(0, 0)] * len(AGENTS)
        counts = zip(AGENTS, self._counts(), since, strict=True)
        return bool(agents) and all(now[1] > then[1] for agent, now, then in counts if agent in agents)

    def _until(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds; False where the crawl ends before."""
        while not holds():
            if self.process.poll() is not None:
                return False
            time.sleep(_LOOK)
        return True

    def _play(self, most: int) -> int:
        """Let faults come, each a moment after all have published; how many have, `most` at most, when the crawl ends."""
        for done in range(most):
            if not self._until(self._has_published):
                return done
            time.sleep(self._chance.uniform(0.0, LONGEST))
            if self.process.poll() is not None:
                return done
            self._let()
            self._since = self._counts()
        return most

    def _judge_rows(self, rows: Collection[Mapping[str, str]], name: str) -> None:
        """Hold the rows of pages, and the web's log, against what must hold."""
        judgement = Judgement()
        pages = Counter(row["url"] for row in rows if row["outcome"] == "ok")
        for url in sorted(self._round.expected() - {row["url"] for row in rows}):
            judgement.breach("nothing is lost", url)
        for url in sorted(url for url, count in pages.items() if count > 1):
            judgement.breach("each page once", url)
        hits = sorted(hits_of(self._log), key=lambda hit: hit.start)
        hosts_are_spared(hits, self._round.delay, self._round.per_host, judgement)
        asked = Counter(hit.url for hit in hits if hit.status < 500)
        self._told.figures["requests"] += len(hits)
        self._told.figures["asked again"] += sum(count - 1 for count in asked.values())
        self._told.wrong_of(judgement.breaches, f"{name}: ")

    def _judge_store(self) -> None:
        """The same, by what the store says of pages."""
        words = ["query", self._store, "select url, outcome from pages_all", "--format", "csv"]
        environment = {**processes.environment(), "XDG_CACHE_HOME": str(self._folder / "cache")}
        command = processes.command("gossamer", *words)
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if told.returncode:
            self._told.wrong.append(f"{self._folder.name}: the store cannot be asked: {told.stderr}")
            return
        rows = list(csv.DictReader(told.stdout.splitlines()))
        self._told.figures["pages"] += len({row["url"] for row in rows if row["outcome"] == "ok"})
        self._judge_rows(rows, self._folder.name)


class StoredCrawl(PublishingCrawl):
    """One crawl, wherever it goes on."""

    most, lease = 4, 3.0

    def __init__(self, folder: Path, seed: int, told: Told) -> None:
        super().__init__(folder, seed, told, (400, 800))
        self._number = 0
        self._faults: list[StoreFault] = []
        self._place: StoreOnDisk | StoreOfServer
        self._old: list[tuple[subprocess.Popen[bytes], set[int]]] = []

    def run(self, most: int) -> int:
        self._clocks = Clocks(self._folder / "clocks")
        on_disk = self._chance.random() < 0.5
        self._place = StoreOnDisk(self._folder / "disk") if on_disk else StoreOfServer(self._folder.name)
        with self._place, served(self._round, self._log) as port:
            self._store = self._place.name
            try:
                self._begin([*self._round.command(self._directory, port), *self._options()])
                done = self._play(most)
                self._end(f"said-{self._number}")
                # Those that were suspended have to end by themselves, since they have no crawl any more.
                for process, everybody in self._old:
                    try:
                        if process.wait(PATIENCE) == 0:
                            self._told.wrong.append(
                                f"{self._folder.name}: a crawl that was taken over has ended as finished"
                            )
                    except subprocess.TimeoutExpired:
                        self._told.wrong.append(f"{self._folder.name}: a crawl that was taken over goes on")
                    send(signal.SIGKILL, everybody)
            finally:  # the chore may be ended, too
                send(signal.SIGKILL, {self.process.pid} if self.process.poll() is None else set())
                for place in self._folder.glob("machine-*"):
                    send(signal.SIGKILL, {*living(place, AGENTS).values()})
        self._judge_rows(
            pages_of(self._directory), f"{self._folder.name} ({', '.join(self._faults)}; {self._place.word})"
        )
        return done

    def _let(self) -> None:
        """Let one of those come that came most seldom until now, if it can come to this store."""
        of_store = {fault for fault in StoreFault if fault.name.lower() in StoreOfServer.faults - self._place.faults}
        count = {one: sum(self._told.faults[one.name.lower()].values()) for one in StoreFault if one not in of_store}
        fault = self._chance.choice([one for one in count if count[one] == min(count.values())])
        self._told.faults[fault.name.lower()][self._place.word] += 1
        self._faults.append(fault)
        self._lose(fault)

    @property
    def _directory(self) -> Path:
        return self._folder / f"machine-{self._number}"

    def _begin(self, command: list[str]) -> None:
        said = self._folder / f"said-{self._number}"
        self.process = started(command, said, start_new_session=True, env=self._clocks.environment())
        self._since = self._counts()

    def _resume(self, *words: str) -> None:
        self._begin(processes.command("gossamer", "resume", *words, "--json", "--quiet"))

    def _go_on_elsewhere(self, *more: str) -> None:
        self._number += 1
        self._resume(self._store, "-o", str(self._directory), *more)

    # -- what is lost

    def _lose(self, fault: StoreFault) -> None:
        agents = living(self._directory, AGENTS)
        match fault:
            case StoreFault.MACHINE:
                send(signal.SIGKILL, {self.process.pid, *agents.values()})
                self.process.wait()
                while self._directory.exists():  # an agent may have been started only just now
                    send(signal.SIGKILL, {*living(self._directory, AGENTS).values()})
                    shutil.rmtree(self._directory, ignore_errors=True)
                self._go_on_elsewhere("--take-over")
            case StoreFault.AGENT:
                self._lose_one()
            case StoreFault.CHANGE:
                number = self._chance.choice([one for one in (0, 1, 2, 3) if one != len(agents)])
                if number:  # it may be about to end, and refuse it
                    command = processes.command("gossamer", "set", str(self._directory), f"agents={number}")
                    environment = processes.environment()
                    subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE, check=False)
                else:  # the first one leaves
                    send(signal.SIGTERM, {agents[name] for name in sorted(agents)[:1]})
                time.sleep(self._chance.uniform(0.0, 2 * LONGEST))
                if self._chance.random() < 0.5:
                    self._lose(StoreFault.MACHINE)
                else:
                    self._lose_one()
            case StoreFault.SUSPENDED:
                everybody = self._suspended()
                self._old.append((self.process, everybody))
                self._go_on_elsewhere()
                self._until(lambda: bool(living(self._directory, AGENTS)))
                send(signal.SIGCONT, everybody)
            case StoreFault.SUPERVISOR:
                send(signal.SIGKILL, {self.process.pid})
                self.process.wait()
                self._resume(str(self._directory))
            case StoreFault.STORE | StoreFault.FULL | StoreFault.SLOW:
                self._fail_store(fault)
            case StoreFault.CLOCK:
                if agents:
                    apart = self._chance.choice([_APART, -_APART])
                    self._clocks.move(self._chance.choice(sorted(agents.values())), apart)

    def _fail_store(self, fault: StoreFault) -> None:
        if fault is StoreFault.STORE:
            failing, length = self._place.away(), 2 * self.lease
        elif isinstance(self._place, StoreOfServer) and fault is StoreFault.SLOW:
            failing, length = self._place.slow(self._chance.uniform(0.1, _SLOWEST)), _FAILS
        else:
            failing, length = self._place.full(), _FAILS
        with failing:
            time.sleep(length)

    def _lose_one(self) -> None:
        """Kill an agent with its folder, one that is at work."""
        agents = living(self._directory, AGENTS)
        agent = self._chance.choice(sorted(agents) or AGENTS[:1])
        with suppress(FileNotFoundError):
            (self._directory / "state" / agent).rename(self._folder / f"lost-{time.monotonic_ns()}")
        send(signal.SIGKILL, {agents[agent]} if agent in agents else set())

    def _suspended(self) -> set[int]:
        """Suspend all processes for two leases, those too that had only just been started; their numbers."""
        everybody: set[int] = set()
        fresh = {self.process.pid}
        until = math.inf
        while time.monotonic() < until:
            if fresh:
                send(signal.SIGSTOP, fresh)
                everybody |= fresh
                until = time.monotonic() + 2 * self.lease
            time.sleep(0.1)
            fresh = {*living(self._directory, AGENTS).values()} - everybody
        return everybody

    def _at_work(self) -> Collection[str]:
        with suppress(FileNotFoundError, ValueError):
            return at_work(json.loads((self._directory / MEMBERS).read_bytes()))
        return ()


def play(
    kind: Callable[[Path, int, Told], PublishingCrawl], folder: Path, say: Say, *, seed: int = 1, faults: int = 30
) -> Told:
    """Play crawls of a kind until so many faults have come; a crawl is made of its folder, its seed, and what is told."""
    told = Told()
    while (left := faults - told.figures["faults"]) > 0:
        number = seed + told.figures["crawls"]
        told.figures["crawls"] += 1
        crawl = kind(folder / f"crawl-{number}", number, told)
        told.figures["faults"] += crawl.run(min(crawl.most, left))
        say(f"{told.figures['faults']} faults in {told.figures['crawls']} crawls")
    return told


run = partial(play, StoredCrawl)
