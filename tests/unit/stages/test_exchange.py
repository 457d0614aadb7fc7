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
from gossamer.model.orders import ORDER, Block, Delay, Order
from gossamer.model.requesting import Requested
from gossamer.model.task import Arrived, Task
from gossamer.model.visit import Record
from gossamer.services.designation.provider import RingDesignation, RingSheet
from gossamer.services.orders import ProcessorOrders
from gossamer.services.politeness.provider import HostPoliteness
from gossamer.stores.exchange.ledger import DividedLedger
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.testing.storing import visit

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

#: What takes orders of processors.
ORDERS = """
providers.politeness = { use = "politeness" }
providers.orders = { use = "processor-orders", providers = { ledger = "ledger", politeness = "politeness" } }
"""

#: Hosts of both agents, by the ring.
RING = RingDesignation(RingSheet(members=AGENTS))
HOSTS = {agent: [host for n in range(40) if RING.owner(host := f"h{n}.test") == agent][:5] for agent in AGENTS}


class Listening(Consumer[NoSettings]):
    """Stands where the frontier hears of arrivals."""

    arrived: In[Arrived]

    def consume(self, arrived: Arrived) -> None:
        self.metrics.count("new", arrived.new)


def exchanging(folder: Path, sockets: Path, agent: str, more: str = "") -> Wiring:
    """The wiring of an agent that keeps depths up to 5, with what listens in the place of the frontier, and no commit."""
    wiring = with_settings(parse(more + BARE), "ledger", {"directory": str(folder), "depth": 5})
    wiring = with_agents(wiring, AGENTS, agent, str(sockets))
    components = {**wiring.components, "frontier": ComponentPlan("listening", {"arrived": "arrived"})}
    del components["commit"]
    return msgspec.structs.replace(wiring, components=components)


class Side:
    """One agent, as far as it exchanges URLs."""

    def __init__(self, folder: Path, sockets: Path, agent: str, more: str = "") -> None:
        self.agent = agent
        self._wiring = exchanging(folder, sockets, agent, more)

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

    def order(self, *orders: Order) -> None:
        """Commit a page whose processor gives these orders."""
        divided, keeper = self.running.unit("divided"), self.running.unit("orders")
        assert isinstance(divided, DividedLedger)
        assert isinstance(keeper, ProcessorOrders)
        with divided.group() as group:
            keeper.stage([Record(msgspec.structs.replace(visit(), orders=orders))], group)
        keeper.committed({})

    @property
    def politeness(self) -> HostPoliteness:
        found = self.running.unit("politeness")
        assert isinstance(found, HostPoliteness)
        return found

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


def test_an_order_about_another_agents_host_is_obeyed_there_and_survives_a_kill(tmp_path: Path, run: Any) -> None:
    here, there = AGENTS
    theirs, ours = HOSTS[there], HOSTS[here]

    async def check() -> None:
        sides = [Side(tmp_path / agent, tmp_path, agent, ORDERS) for agent in AGENTS]
        for side in sides:
            await side.start()
        first, second = sides
        for _ in range(2):  # a page that says it once more
            first.order(Block(theirs[0]), Delay(theirs[1], 30.0), Block(ours[0]))
        # Who writes a link can choose its URL, and not how it was found.
        first.find(Task('order:{"type":"block","host":"h1.test"}', theirs[2], 1, relation="a href"))
        await until(*sides)
        assert second.count("received") == 3, "two orders and a link"
        assert second.count("ordered:block") == 1
        for _ in range(2):
            assert second.politeness.rule_against(theirs[0]) == theirs[0]
            assert not second.politeness.rule_against(ours[0]), "no agent hears of what is another's"
            assert not second.politeness.rule_against("h1.test")
            second.politeness.pace(theirs[1], 0.0)
            assert second.politeness.delay(theirs[1]) == 30.0
            await second.kill()
            await second.start()
        assert first.politeness.rule_against(ours[0]) == ours[0]
        for side in sides:
            await side.kill()

    run(check())


def test_an_order_that_another_agent_spells_wrongly_is_counted_and_stops_nobody(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        sides = [Side(tmp_path / agent, tmp_path, agent, ORDERS) for agent in AGENTS]
        for side in sides:
            await side.start()
        host = HOSTS[AGENTS[1]][0]
        sides[0].find(Task("order:{", host, relation=ORDER), Task('order:{"type":"stop"}', host, relation=ORDER))
        await until(*sides)
        assert sides[1].count("orders_unusable") == 2
        for side in sides:
            await side.kill()

    run(check())


def test_a_request_about_another_agents_host_is_asked_there_as_it_was_made(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        sides = [Side(tmp_path / agent, tmp_path, agent) for agent in AGENTS]
        for side in sides:
            await side.start()
        host = HOSTS[AGENTS[1]][0]
        request = Requested(
            "m1", "POST", b"q=1", (("X-One", "1"),), "found", b'{"a":1}', is_safe=True, priority=2, session="s"
        )
        sides[0].find(Task(f"http://{host}/search", host, 1, request=request))
        await until(*sides)
        await sides[1].kill()
        await sides[1].start()
        queues = sides[1].ledger.queues
        assert queues.admit(0.0, 1) == [host]
        assert [one.request for one in queues.pop(host, 1)] == [request]
        for side in sides:
            await side.kill()

    run(check())
