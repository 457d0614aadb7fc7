"""What agents of a crawl with a store owe each other stays until no agent can lose it any more."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.mailboxes import ByLetter

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.mailbox.contract import MASTERS
from gossamer.storage.mailbox.mailbox import Mailbox
from gossamer.storage.mailbox.retaining import RetainingMailbox, RetainingSheet, StorePoint, point_path
from gossamer.storage.mailbox.staging import DividedLedger
from gossamer.testing import FakeClock
from gossamer.values.task import Task

pytestmark = pytest.mark.stores


class ToMasters(ByLetter):
    def owner(self, host: str) -> str:
        return "agent-00" if super().owner(host) == "agent-00" else MASTERS


class Agent:
    """The mailbox of an agent, its ledger, and the other agents' notes of what they have published."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.settings = settings
        self._writes = 0

    def open(self) -> RetainingMailbox:
        self.ledger, self.divided = RocksLedger(LedgerSheet(directory=str(self.folder))), DividedLedger()
        self.ledger.open()
        self.box = box = RetainingMailbox(RetainingSheet(directory=str(self.folder), **self.settings))  # type: ignore[arg-type]
        box.ledger, box.clock = self.ledger, FakeClock()
        box.designation = ToMasters() if self.settings else ByLetter()
        self.divided.behind, self.divided.outbox = self.ledger, box
        return box

    async def close(self) -> None:
        await self.box.stop()
        self.ledger.close()

    def publish(self, agent: str, count: int, restored: int = 0) -> None:
        """Let another agent say how far it is in its store."""
        path = point_path(self.folder, agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writes += 1
        path.write_bytes(msgspec.json.encode(StorePoint(count, restored)))
        changed = path.stat().st_mtime_ns + self._writes * 1_000_000
        os.utime(path, ns=(changed, changed))

    def owe(self, *hosts: str) -> None:
        with self.divided.group() as group:
            group.push([Task(f"http://{host}/", host, 1) for host in hosts])

    async def deliver(self, recipient: str) -> Sequence[str]:
        batch = await self.box.take(recipient, 100)
        self.box.delivered(batch)
        self.box._forget()
        return [one.task.host for one in batch]

    def counted(self) -> tuple[int, int]:
        """How many entries are owed, and how many are delivered and may be lost yet."""
        counters = self.ledger.counters()
        return counters.get("owed", 0), counters.get("sent", 0)


def run(check: Callable[[Agent], Awaitable[None]], folder: Path, **settings: object) -> None:
    async def body() -> None:
        agent = Agent(folder, **settings)
        await agent.open().start()
        await check(agent)
        await agent.close()

    asyncio.run(body())


def test_an_entry_is_forgotten_once_a_checkpoint_of_its_recipient_was_begun_after_it_arrived(tmp_path: Path) -> None:
    async def check(agent: Agent) -> None:
        agent.publish("agent-01", 4)
        agent.owe("b1.test", "b2.test")
        await agent.deliver("agent-01")
        assert agent.counted() == (0, 2)
        assert not agent.box.owes, "the crawl need not wait for it"
        agent.publish("agent-01", 5)  # this one may have been begun before
        agent.box.look_at_others()
        assert agent.counted() == (0, 2)
        agent.publish("agent-01", 6)
        agent.box.look_at_others()
        assert agent.counted() == (0, 0)

    run(check, tmp_path)


def test_a_recipient_that_goes_back_to_a_checkpoint_gets_again_what_that_may_lack(tmp_path: Path) -> None:
    async def check(agent: Agent) -> None:
        agent.publish("agent-01", 4)
        agent.publish("agent-02", 4)
        agent.owe("b1.test", "c1.test")
        await agent.deliver("agent-01")
        await agent.deliver("agent-02")
        agent.publish("agent-01", 5, restored=1)
        assert agent.box.owes, "whoever asks whether the crawl is over hears of it"
        assert agent.counted() == (1, 1)
        assert await agent.deliver("agent-01") == ["b1.test"]
        agent.publish("agent-01", 7, restored=1)
        agent.publish("agent-02", 6)
        agent.box.look_at_others()
        assert agent.counted() == (0, 0)

    run(check, tmp_path)


def test_an_answer_that_comes_when_its_recipient_has_gone_back_already_proves_nothing(tmp_path: Path) -> None:
    async def check(agent: Agent) -> None:
        agent.publish("agent-01", 4)
        agent.owe("b1.test")
        batch = await agent.box.take("agent-01", 100)
        agent.publish(
            "agent-01", 4, restored=1
        )  # the process that has it has sent its answer, and was lost with its folder
        agent.box.delivered(batch)
        agent.box._forget()
        agent.publish("agent-01", 6, restored=1)
        agent.box.look_at_others()
        assert agent.counted() == (1, 0)
        assert await agent.deliver("agent-01") == ["b1.test"]

    run(check, tmp_path)


def test_a_kill_forgets_nothing_of_it(tmp_path: Path) -> None:
    async def check(agent: Agent) -> None:
        agent.publish("agent-01", 4)
        agent.owe("b1.test")
        await agent.deliver("agent-01")
        await agent.close()
        await agent.open().start()
        assert agent.counted() == (0, 1)
        point_path(tmp_path, "agent-01").unlink()  # its folder is lost
        agent.box.look_at_others()
        assert agent.counted() == (0, 1)
        agent.publish("agent-01", 5, restored=1)
        agent.box.look_at_others()
        assert await agent.deliver("agent-01") == ["b1.test"]

    run(check, tmp_path)


def test_what_masters_have_given_away_stays_until_all_other_agents_have_published(tmp_path: Path) -> None:
    async def check(agent: Agent) -> None:
        agent.owe("b1.test")
        await agent.deliver("master-00")
        agent.publish("agent-01", 2)
        agent.box.look_at_others()
        assert agent.counted() == (0, 1)
        agent.publish("agent-02", 2)
        agent.box.look_at_others()
        assert agent.counted() == (0, 0)

    run(check, tmp_path, masters=("master-00",), others=("agent-01", "agent-02"))


def test_an_agent_of_a_crawl_without_a_store_keeps_nothing_of_what_was_delivered(tmp_path: Path) -> None:
    async def check(agent: Agent) -> None:
        plain = Mailbox()
        plain.ledger, plain.designation, plain.clock = agent.ledger, ByLetter(), FakeClock()
        agent.divided.outbox, agent.box = plain, plain  # type: ignore[assignment]
        await plain.start()
        agent.owe("b1.test")
        await agent.deliver("agent-01")
        assert agent.counted() == (0, 0)

    run(check, tmp_path)
