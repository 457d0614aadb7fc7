"""An agent that has masters: which domains it holds, and what becomes of URLs that it owes and is given."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.agents.ring import HELD, HeldDomains, HeldDomainsSheet, RingDesignation, RingSheet
from gossamer.agents.url_exchange import UrlIntake
from gossamer.frontier.order import BreadthFirst, WeightedPrioritizer
from gossamer.storage.commit.queueing import CommitSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerSeen
from gossamer.storage.mailbox.contract import MAIL_TO, MASTERS
from gossamer.storage.mailbox.mailbox import Mailbox, MailboxSheet
from gossamer.storage.mailbox.staging import DividedLedger
from gossamer.values.agents import Claim, Designated, as_task, digest_names
from gossamer.values.hosts import domain_point
from gossamer.values.task import Task

MEMBERS = ("agent-00", "agent-01")


class Agent:
    """The stores of one agent that has masters."""

    def __init__(self, place: Path) -> None:
        self.ledger = RocksLedger(LedgerSheet(directory=str(place)))
        self.ledger.open()
        self.ring = RingDesignation(RingSheet(members=MEMBERS))
        self.held = HeldDomains(HeldDomainsSheet(agent="agent-00"))
        self.held.ledger, self.held.ring = self.ledger, self.ring
        self.outbox = Mailbox(MailboxSheet(agent="agent-00", masters=("master-00",)))
        self.outbox.ledger, self.outbox.designation = self.ledger, self.held
        self.divided = DividedLedger()
        self.divided.behind, self.divided.outbox = self.ledger, self.outbox
        seen = LedgerSeen()
        seen.ledger = self.ledger
        order = (BreadthFirst(), WeightedPrioritizer())
        self.intake = UrlIntake(CommitSheet(), self.divided, seen, *order, (), (), held=self.held, mailbox=self.outbox)

    async def start(self) -> None:
        await self.held.start()
        await self.outbox.start()

    @property
    def queued(self) -> list[str]:
        """URLs in the queues; they are in flight then."""
        self.ledger.queues.admit(float("inf"), 9)
        return sorted(one.url for host in ("a.test", "www.a.test") for one in self.ledger.queues.pop(host, 9))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.ledger.abandon()


def found(*urls: str) -> list[Task]:
    return [Task(f"http://{url}", url.partition("/")[0], 1, "http://c.test/", "a href") for url in urls]


def test_a_domain_is_held_with_all_its_hosts_from_its_first_url_on_also_after_a_kill(
    agent: Agent, tmp_path: Path
) -> None:
    asyncio.run(agent.start())
    assert agent.held.owner("www.a.test") == MASTERS
    assert agent.intake.kept(found("www.a.test/1")) == 1
    assert {agent.held.owner(host) for host in ("www.a.test", "a.test", "x.y.a.test")} == {"agent-00"}
    assert agent.held.owner("b.test") == MASTERS
    agent.ledger.abandon()
    again = Agent(tmp_path)
    asyncio.run(again.start())
    assert (again.held.owner("x.a.test"), again.held.owner("b.test")) == ("agent-00", MASTERS)
    again.ledger.abandon()
    agent.ledger.open()


def test_what_an_agent_has_found_itself_comes_back_once_and_is_owed_no_more(agent: Agent) -> None:
    async def check() -> None:
        await agent.start()
        mine, other = found("a.test/1", "b.test/1")
        with agent.divided.group() as group:
            group.push(group.meet([mine, other]).new)
        assert agent.ledger.counters()["owed"] == 2
        batch = await agent.outbox.take("master-00", 9)
        assert agent.intake.kept([mine]) == 1, "it is seen here, and yet to be queued"
        assert agent.ledger.counters()["owed"] == 1
        assert agent.intake.kept([mine]) == 0, "it comes a second time, and is queued already"
        agent.outbox.delivered(batch)
        await agent.outbox.stop()
        assert agent.ledger.counters()["owed"] == 0, "each is forgotten once"
        assert len(agent.ledger.queues) == 1

    asyncio.run(check())


def test_what_an_agent_owes_of_a_domain_that_became_its_own_is_sent_also_after_a_kill(
    agent: Agent, tmp_path: Path
) -> None:
    async def check() -> None:
        await agent.start()
        first, second = found("a.test/1", "a.test/2")
        with agent.divided.group() as group:
            group.push(group.meet([first, second]).new)
        assert agent.intake.kept([first]) == 1
        agent.ledger.abandon()
        again = Agent(tmp_path)
        await again.start()
        assert again.held.owner("a.test") == "agent-00"
        batch = await asyncio.wait_for(again.outbox.take("master-00", 9), 5)
        assert [one.task for one in batch] == [second], "only a master sends it back to its queue"
        assert again.intake.kept([second]) == 1
        again.outbox.delivered(batch)
        await again.outbox.stop()
        assert again.ledger.counters()["owed"] == 0
        again.ledger.abandon()
        agent.ledger.open()

    asyncio.run(check())


def test_what_waited_as_mail_is_queued_once_also_where_its_finder_owes_it_no_more(agent: Agent) -> None:
    async def check() -> None:
        await agent.start()
        kept = agent.intake.kept
        first, second = found("a.test/1", "a.test/2")
        with agent.divided.group() as group:
            group.push(group.meet([first, second]).new)
        # Another agent has it in its mailbox, and its master has said so: nobody else owes it.
        agent.outbox.delivered(await agent.outbox.take("master-00", 9))
        await agent.outbox.stop()
        assert agent.ledger.counters()["owed"] == 0
        assert kept([first]) == 0, "it was seen, so that any other copy of it would be one too many"
        assert kept([first, first], is_mail=True) == 1
        assert kept([first], is_mail=True) == 0, "it is queued"
        assert agent.queued == [first.url]
        assert kept([first], is_mail=True) == 0, "it is in flight"
        new = found("a.test/3")[0]
        assert kept([second, new], is_mail=True) + kept([new]) == 2
        assert agent.queued == [second.url, new.url]

    asyncio.run(check())


def test_mail_for_another_agent_waits_here_under_its_name_and_holds_no_domain(agent: Agent) -> None:
    async def check() -> None:
        agent.outbox.sheet = MailboxSheet(agent="agent-00", masters=("master-00",), others=("agent-01",))
        await agent.start()
        ours, other = found("a.test/1", "b.test/1")
        assert agent.intake.kept([ours], [Designated("agent-01", other)], is_mail=True) == 1
        assert (agent.ledger.counters()["owed"], agent.ledger.counters()["received"]) == (1, 1)
        assert [agent.held.owner(host) for host in ("a.test", "b.test")] == ["agent-00", MASTERS]
        with agent.divided.group() as group:
            group.push(group.meet([other]).new)
        assert agent.ledger.counters()["owed"] == 2, "what is found here as well goes to a master as ever"
        [mail] = await agent.outbox.take(MAIL_TO + "agent-01", 9)
        assert (mail.agent, mail.task) == ("agent-01", other)
        agent.outbox.delivered([mail])
        agent.outbox.delivered(await agent.outbox.take("master-00", 9))
        await agent.outbox.stop()
        assert agent.ledger.counters()["owed"] == 0

    asyncio.run(check())


def test_digests_go_by_the_ring_and_no_domain_is_noted_for_them(agent: Agent) -> None:
    asyncio.run(agent.start())
    claims = [Claim(f"{one}{two}XYZ", "http://a.test/", 0.0) for one in "ABCDE" for two in "234"]
    owners = {claim.host: agent.ring.owner(claim.host) for claim in claims}
    assert set(owners.values()) == set(MEMBERS)
    for name, owner in owners.items():
        assert name in digest_names().values()
        assert digest_names()[domain_point(name)] == name
        assert agent.held.owner(name) == ("agent-00" if owner == "agent-00" else MASTERS)
    agent.intake.kept([as_task(claim) for claim in claims])
    assert list(agent.ledger.spaces.walk(HELD)) == []
