"""The outbox of ours keeps the promises of `contracts.exchanging`."""

import asyncio
from pathlib import Path
from typing import Any

from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.mailbox.contract import Outbox
from gossamer.storage.mailbox.outbox import AgentOutbox, AgentOutboxSheet, DividedLedger
from gossamer.testing.agents import ByLetter, check_outbox
from gossamer.testing.clock import FakeClock
from gossamer.values.agents import CLAIM
from gossamer.values.task import Task


def test_agent_outbox(tmp_path: Path, run: Any) -> None:
    opened: list[RocksLedger] = []

    async def reopen() -> tuple[Ledger, Outbox]:
        if opened:
            opened.pop().abandon()
        ledger, divided = RocksLedger(LedgerSheet(directory=str(tmp_path))), DividedLedger()
        ledger.open()
        opened.append(ledger)
        outbox = AgentOutbox(AgentOutboxSheet(waiting=8))
        outbox.ledger, outbox.designation = ledger, ByLetter()
        divided.behind, divided.outbox = ledger, outbox
        await outbox.start()
        return divided, outbox

    run(check_outbox(reopen))
    opened.pop().abandon()


def test_while_a_checkpoint_is_made_nothing_is_sent_and_nothing_is_forgotten(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        ledger, divided = RocksLedger(LedgerSheet(directory=str(tmp_path))), DividedLedger()
        ledger.open()
        outbox = AgentOutbox(AgentOutboxSheet())
        outbox.ledger, outbox.designation = ledger, ByLetter()
        divided.behind, divided.outbox = ledger, outbox
        await outbox.start()
        with divided.group() as group:
            group.push([Task(f"http://b.test/{number}", "b.test", 1) for number in range(3)])
        batch = await outbox.take("agent-01", 2)
        outbox.sheet = AgentOutboxSheet(holds=True)
        outbox.delivered(batch)
        more = asyncio.ensure_future(outbox.take("agent-01", 2))
        await asyncio.sleep(0)
        assert ledger.counters()["owed"] == 3, "a snapshot has all of them, whatever the other agent's has"
        assert not more.done()
        outbox.sheet = AgentOutboxSheet()
        assert [one.task.url for one in await more] == ["http://b.test/2"]
        assert ledger.counters()["owed"] == 1
        ledger.abandon()

    run(check())


def test_claims_travel_together_and_a_url_takes_them_along_at_once(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
        ledger.open()
        outbox = AgentOutbox(AgentOutboxSheet())
        outbox.ledger, outbox.designation = ledger, ByLetter()
        outbox.clock = clock = FakeClock()
        await outbox.start()

        def owe(*tasks: Task) -> None:
            with ledger.group() as group:
                owed = outbox.owe(tasks, group)
            outbox.kept(owed)

        first, second, third = (Task(f"claim:{number}", "b.test", relation=CLAIM) for number in range(3))
        batch = asyncio.ensure_future(outbox.take("agent-01", 9))
        for claim in (first, second):
            owe(claim)
            for _ in range(5):
                await asyncio.sleep(0)
            assert not batch.done(), "a claim waits for others"
        owe(Task("http://b.test/1", "b.test"))
        assert [one.task.url for one in await batch] == [first.url, second.url, "http://b.test/1"]
        assert ledger.counters()["owed_claims"] == 2
        outbox.delivered(await batch)
        batch = asyncio.ensure_future(outbox.take("agent-01", 9))
        owe(third)
        await asyncio.sleep(0)
        await clock.advance(1.0)
        assert [one.task for one in await batch] == [third], "no claim waits for long"
        outbox.delivered(await batch)
        await outbox.stop()
        assert (ledger.counters()["owed"], ledger.counters()["owed_claims"]) == (0, 0)
        ledger.abandon()

    run(check())
