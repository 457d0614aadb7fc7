"""Two agents send each other what is the other's, over a socket, and die at any instant: each URL arrives, and counts once."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.agents.digests import AgentDigests
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.agents.url_exchange import LONGEST_PAUSE, PAUSE, SendUrls, SendUrlsSheet
from gossamer.agents.wiring import with_agents
from gossamer.crawls.catalog import catalog
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.planning import plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings
from gossamer.engine.wiring import ComponentPlan, Wiring, parse, with_settings
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import ProcessorOrders
from gossamer.storage.ledger.deleting import delete
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.mailbox.contract import OwedTask
from gossamer.storage.mailbox.staging import DividedLedger
from gossamer.testing import FakeClock
from gossamer.testing.storage import visit
from gossamer.values.agents import CLAIM, claim_of
from gossamer.values.hosts import DeletionTarget
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.task import Arrived, Task
from gossamer.values.visit import ORDER, Block, Delay, Order, Record, Visit

pytestmark = pytest.mark.stores

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

    def meet(self, *met: tuple[str, bytes, float]) -> None:
        """Commit pages with these URLs, bytes and times, as far as their documents are claimed."""
        divided = self.running.unit("divided")
        assert isinstance(divided, DividedLedger)
        with divided.group() as group:
            self.digests.stage([Record(page(*one)) for one in met], group)
        self.digests.committed({})

    @property
    def digests(self) -> AgentDigests:
        found = self.running.unit("digests")
        assert isinstance(found, AgentDigests)
        return found

    async def forget(self, url: str) -> None:
        """Delete a URL, and begin again."""
        delete(self.ledger, DeletionTarget("url", url), (), forget=False)
        await self.digests.start()

    def copies(self) -> set[tuple[str, float]]:
        """Take the claims that are to become rows: URL and time of each."""
        found: list[tuple[str, float]] = []
        for claims in self.digests.unwritten():
            with self.ledger.group() as group:
                self.digests.written(claims, group)
            found += [(claim.url, claim.met_at) for claim in claims]
        assert len(found) == len(set(found)), "a claim is a row once"
        return set(found)

    @property
    def politeness(self) -> HostPoliteness:
        found = self.running.unit("politeness")
        assert isinstance(found, HostPoliteness)
        return found

    def count(self, name: str) -> int:
        return self.ledger.counters().get(name, 0)


def page(url: str, body: bytes, started: float) -> Visit:
    found = visit(url, body)
    return msgspec.structs.replace(found, response=msgspec.structs.replace(found.response, started=started))


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
        assert second.count("received") == 2, "two orders"
        assert second.count("cut:refused") == 1, "no host is the one of such a link"
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


def test_urls_of_another_agent_that_no_crawl_can_keep_are_told_acknowledged_and_left_out(
    tmp_path: Path, run: Any
) -> None:
    async def check() -> None:
        sides = [Side(tmp_path / agent, tmp_path, agent) for agent in AGENTS]
        for side in sides:
            await side.start()
        said: list[str] = []
        sides[1].running.unit("receive").report = said.append
        host = HOSTS[AGENTS[1]][0]
        whole = task(host, 1)
        bad = [msgspec.structs.replace(whole, **one) for one in ({"url": "notaurl"}, {"depth": 2**40}, {"hops": -1})]
        divided = sides[0].running.unit("divided")
        assert isinstance(divided, DividedLedger)
        with divided.group() as group:
            group.push([*bad, task(host, 2)])
        await until(*sides)
        assert (sides[1].count("cut:refused"), sides[1].count("discovered")) == (3, 1)
        assert "'notaurl', which cannot be kept: it is not a URL" in "\n".join(said)
        assert sides[0].count("owed") == 0, "they are not sent again"
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
            "m1", "POST", b"q=1", (("X-One", "1"),), "found", b"\x81\xa1a\x01", is_safe=True, priority=2, session="s"
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


@pytest.mark.parametrize("seed", range(2))
def test_each_document_that_two_agents_meet_is_known_as_a_copy_once_whoever_is_killed(
    tmp_path: Path, socket_folder: Path, run: Any, seed: int
) -> None:
    chance = random.Random(seed)

    async def exchange() -> None:
        sides = [Side(tmp_path, socket_folder, agent) for agent in AGENTS]
        copies: set[tuple[str, float]] = set()
        for side in sides:
            await side.start()
        for number in range(40):
            for side in sides:
                # The first twenty documents stand on hosts of both agents, all others on one of them.
                body = b"%d" % (number if number < 20 else number + 100 * (side is sides[0]))
                side.meet((f"http://{HOSTS[side.agent][0]}/{number}", body, 1000.0 + number))
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                victim = chance.choice(sides)
                await victim.kill()
                await victim.start()
            copies |= chance.choice(sides).copies()
        await until(*sides)
        for side in sides:
            copies |= side.copies()
            assert side.copies() == set()
        assert copies == {
            (f"http://{HOSTS[agent][0]}/{number}", 1000.0 + number) for agent in AGENTS for number in range(20)
        }
        assert sum(side.count("copies") for side in sides) == 20
        assert sum(side.count("digests") for side in sides) == 60
        assert all(side.count("digests") for side in sides), "each has a part of the digests"
        assert [side.count("discovered") for side in sides] == [0, 0], "a claim is no URL"
        for side in sides:
            await side.kill()

    run(exchange())


def test_what_is_no_new_document_is_not_claimed(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        side = Side(tmp_path, tmp_path, AGENTS[0])
        await side.start()
        posted = msgspec.structs.replace(visit().task, request=Requested("m1", "POST", b"q=1"))
        for one in (
            visit(body=b""),
            visit(duplicate_of="http://a.test/first"),
            visit(outcome=Outcome.TRUNCATED),
            msgspec.structs.replace(visit(), task=posted),
            msgspec.structs.replace(visit(), again=1.0),
        ):
            assert claim_of(one) is None
            with side.ledger.group() as group:
                side.digests.stage([Record(one)], group)
        assert (side.count("digests"), side.count("owed")) == (0, 0)
        await side.kill()

    run(check())


def test_a_claim_that_another_agent_spells_wrongly_is_counted_and_stops_nobody(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        sides = [Side(tmp_path / agent, tmp_path, agent) for agent in AGENTS]
        for side in sides:
            await side.start()
        host = HOSTS[AGENTS[1]][0]
        misplaced = 'claim:["AAAA", "http://a.test/", 1.0]'
        sides[0].find(Task("claim:[", host, relation=CLAIM), Task(misplaced, host, relation=CLAIM))
        await until(*sides)
        assert sides[1].count("claims_unusable") == 2
        assert sides[1].count("digests") == 0
        for side in sides:
            await side.kill()

    run(check())


def test_an_agent_that_was_alone_claims_the_documents_of_that_time_once(
    tmp_path: Path, socket_folder: Path, run: Any
) -> None:
    async def check() -> None:
        ours, theirs = sides = [Side(tmp_path, socket_folder, agent) for agent in AGENTS]
        for side in sides:
            await side.start()
        pages = [page(f"http://{HOSTS[ours.agent][0]}/{number}", b"%d" % number, 500.0) for number in range(1_200)]
        rows = [
            DocumentRow(one.url, Outcome.OK, 200, one.response.started, 0, 1, "a href", "", 1, digest=one.digest)
            for one in pages
        ]
        with ours.ledger.group() as group:
            group.count("documents", len(rows))
        theirs.meet(("http://elsewhere.test/", b"7", 400.0))
        assert await ours.digests.claim_again(rows) == len(rows)
        assert await ours.digests.claim_again(rows) == 0
        await until(*sides)
        assert sum(side.count("digests") for side in sides) == len(rows)
        assert ours.copies() | theirs.copies() == {(pages[7].url, 500.0), ("http://elsewhere.test/", 400.0)}
        for side in sides:
            await side.kill()

    run(check())


def test_a_deleted_url_is_no_documents_first_any_more(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        side = Side(tmp_path, tmp_path, AGENTS[0])
        await side.start()
        body = next(b"%d" % n for n in range(99) if RING.owner(claim_host(b"%d" % n)) == side.agent)
        urls = [f"http://{name}.test/" for name in "abc"]
        for number, url in enumerate(urls):
            side.meet((url, body, 100.0 + number))
        assert side.count("copies") == 2
        await side.forget(urls[0])
        assert side.count("copies") == 1
        assert side.copies() == {(urls[1], 101.0), (urls[2], 102.0)}
        side.meet((urls[1], body, 101.0), ("http://d.test/", body, 103.0))
        assert side.copies() == {("http://d.test/", 103.0)}, "those that stay are known"
        for url in (*urls, "http://d.test/"):
            await side.forget(url)
        assert side.count("copies") == 0
        await side.kill()

    run(check())


class AlwaysOwed:
    """One URL is owed whenever it is asked for, or a while later. Contract: `Owing`."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.after = 0.0
        self.taken: list[float] = []

    async def take(self, recipient: str, most: int) -> Sequence[OwedTask]:
        await self.clock.sleep(self.after)
        self.taken.append(self.clock.monotonic())
        return [OwedTask(recipient, Task("http://a.test/", "a.test"))]

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """It is owed again at once."""


def test_the_longer_urls_come_without_end_the_more_of_them_travel_together(run: Any) -> None:
    async def check() -> None:
        clock, sender = FakeClock(), SendUrls(SendUrlsSheet(agent=AGENTS[1]))
        sender.clock, sender.owed = clock, (owed := AlwaysOwed(clock))

        async def send() -> None:
            async for _ in sender.produce():
                pass

        sending = asyncio.create_task(send())
        await clock.advance(10.0)
        assert owed.taken[:2] == [0.0, pytest.approx(2 * PAUSE)], "the first one goes at once"
        assert len(owed.taken) < 10.0 / LONGEST_PAUSE + 4
        owed.after = 1.0
        await clock.advance(10.0)
        late, following = owed.taken[-2:]
        assert following - late == pytest.approx(PAUSE + owed.after), "after a while without any, none waits for others"
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    run(check())


def claim_host(body: bytes) -> str:
    claim = claim_of(visit(body=body))
    assert claim is not None
    return claim.host
