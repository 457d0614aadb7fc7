"""Two agents send each other what is the other's, over a socket, and die at any instant: each URL arrives, and counts once."""

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.assembly.agents import with_agents
from gossamer.assembly.catalog import catalog
from gossamer.flow.component import Consumer
from gossamer.flow.planning import plan
from gossamer.flow.ports import In
from gossamer.flow.running import RunningGraph
from gossamer.flow.sheet import NoSettings
from gossamer.flow.wiring import ComponentPlan, Wiring, parse, with_settings
from gossamer.model.task import Arrived, Task
from gossamer.services.designation.provider import RingDesignation, RingSheet
from gossamer.stores.exchange.ledger import DividedLedger
from gossamer.stores.ledger.ledger import RocksLedger

AGENTS = ("agent-00", "agent-01")

#: What an agent's wiring is made of, without the stages that fetch.
BARE = """
providers.ledger = { use = "ledger" }
providers.seen = { use = "ledger-seen", providers = { ledger = "ledger" } }
providers.traversal = { use = "breadth" }
providers.prioritizer = { use = "weighted" }
components.frontier = { use = "frontier" }
[components.commit]
use = "commit"
providers = { ledger = "ledger", seen = "seen", traversal = "traversal", prioritizer = "prioritizer", task_gates = {} }
"""

#: Hosts of both agents, by the ring.
RING = RingDesignation(RingSheet(members=AGENTS))
HOSTS = {agent: [host for n in range(40) if RING.owner(host := f"h{n}.test") == agent][:5] for agent in AGENTS}


class Listening(Consumer[NoSettings]):
    """Stands where the frontier hears of arrivals."""

    arrived: In[Arrived]

    def consume(self, arrived: Arrived) -> None:
        self.metrics.count("new", arrived.new)


def exchanging(folder: Path, sockets: Path, agent: str) -> Wiring:
    """The wiring of an agent that keeps depths up to 5, with what listens in the place of the frontier, and no commit."""
    wiring = with_settings(parse(BARE), "ledger", {"directory": str(folder), "depth": 5})
    wiring = with_agents(wiring, AGENTS, agent, str(sockets))
    components = {**wiring.components, "frontier": ComponentPlan("listening", {"arrived": "arrived"})}
    del components["commit"]
    return msgspec.structs.replace(wiring, components=components)


class Side:
    """One agent, as far as it exchanges URLs."""

    def __init__(self, folder: Path, sockets: Path, agent: str) -> None:
        self.agent = agent
        self._wiring = exchanging(folder, sockets, agent)

    async def start(self) -> None:
        known = catalog()
        known.add("listening", Listening)
        self.running = RunningGraph(plan(self._wiring, known))
        await self.running.start()
        self.work = asyncio.create_task(self.running.work())

    async def kill(self) -> None:
        """End without a word to the ledger, as a kill would."""
        self.ledger.abandon()
        self.work.cancel()
        await asyncio.gather(self.work, return_exceptions=True)
        await self.running.stop()

    @property
    def ledger(self) -> RocksLedger:
        ledger = self.running.unit("ledger")
        assert isinstance(ledger, RocksLedger)
        return ledger

    def find(self, *tasks: Task) -> None:
        """Push tasks, as a page's commit does."""
        divided = self.running.unit("divided")
        assert isinstance(divided, DividedLedger)
        with divided.group() as group:
            group.push(group.meet(tasks).new)

    def count(self, name: str) -> int:
        return self.ledger.counters().get(name, 0)


def task(host: str, number: int, depth: int = 1) -> Task:
    return Task(f"http://{host}/{number}", host, depth, "http://source.test/", "a href")


async def until(*sides: Side) -> None:
    """Return when nobody owes anything."""
    while any(side.count("owed") for side in sides):
        await asyncio.sleep(0.001)


def foreign(side: Side, chance: random.Random, number: int) -> Task:
    [other] = [agent for agent in AGENTS if agent != side.agent]
    return task(chance.choice(HOSTS[other]), number, chance.randrange(1, 5))


@pytest.mark.parametrize("seed", range(4))
def test_every_url_arrives_and_counts_once_whoever_is_killed(
    tmp_path: Path, socket_folder: Path, run: Any, seed: int
) -> None:
    chance = random.Random(seed)

    async def exchange() -> None:
        sides = [Side(tmp_path, socket_folder, agent) for agent in AGENTS]
        found: dict[str, set[str]] = {agent: set() for agent in AGENTS}
        for side in sides:
            await side.start()
        for _ in range(30):
            for side in sides:
                tasks = [foreign(side, chance, chance.randrange(400)) for _ in range(chance.randrange(40))]
                side.find(*tasks)
                found[side.agent] |= {one.url for one in tasks}
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
            if chance.random() < 0.5:
                victim = chance.choice(sides)
                await victim.kill()
                await victim.start()
        await until(*sides)
        for side, other in zip(sides, reversed(sides), strict=True):
            urls = found[other.agent]
            assert (side.count("discovered"), len(side.ledger.queues)) == (len(urls), len(urls)), "lost, or doubled"
            assert all(map(side.ledger.is_seen, urls))
            assert side.running.unit("outbox").metrics.snapshot()["owed"] == 0
        for side in sides:
            await side.kill()

    run(exchange())


def test_a_lower_depth_is_announced_to_the_agent_that_has_the_url(
    tmp_path: Path, socket_folder: Path, run: Any
) -> None:
    async def exchange() -> None:
        ours, theirs = sides = [Side(tmp_path, socket_folder, agent) for agent in AGENTS]
        for side in sides:
            await side.start()
        host = HOSTS[theirs.agent][0]
        for depth in (4, 2, 3):
            ours.find(task(host, 1, depth))
            await until(ours)
        assert theirs.ledger.depth_of([f"http://{host}/1"]) == [2]
        assert (theirs.count("received"), theirs.count("discovered")) == (2, 1), "what is not nearer is not sent"
        for side in sides:
            await side.kill()

    run(exchange())


def test_what_a_budget_cuts_is_cut_by_the_agent_that_has_the_host(
    tmp_path: Path, socket_folder: Path, run: Any
) -> None:
    async def exchange() -> None:
        ours, theirs = sides = [Side(tmp_path, socket_folder, agent) for agent in AGENTS]
        for side in sides:
            await side.start()
        theirs.running.set("receive", {"max_per_host": 3})
        host = HOSTS[theirs.agent][0]
        ours.find(*(task(host, number) for number in range(10)))
        await until(ours)
        assert (theirs.count("discovered"), theirs.count("cut:budget:host"), theirs.count("hosts")) == (3, 7, 1)
        assert (ours.count("discovered"), ours.count("hosts")) == (0, 0), "what is owed is counted by its own agent"
        for side in sides:
            await side.kill()

    run(exchange())
