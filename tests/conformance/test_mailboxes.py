"""The mailboxes of ours keep the promises of their contract: by the ring, by masters, as mail, and that of a master."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from tests.mailboxes import ByLetter, check_mailbox

from gossamer.agents.mail import MassMail, MassMailSheet
from gossamer.engine.gate import Receipt, current
from gossamer.storage.ledger.deleting import delete
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.mailbox.contract import MAIL_TO, MASTERS, Owing
from gossamer.storage.mailbox.mailbox import WAITING, Mailbox, MailboxSheet
from gossamer.storage.mailbox.retaining import RetainingMailbox, RetainingSheet
from gossamer.storage.mailbox.shared_state import SharedFile
from gossamer.storage.mailbox.staging import DividedLedger, DividingGroup
from gossamer.testing import FakeClock
from gossamer.values.agents import CLAIM, Designated
from gossamer.values.hosts import DeletionTarget
from gossamer.values.task import Task

pytestmark = pytest.mark.stores


class Failed(Exception):
    """Makes a group fail, so that it is not kept."""


class ToMasters(ByLetter):
    """What is not of `agent-00` goes to masters. Contract: `Designation`."""

    def owner(self, host: str) -> str:
        return "agent-00" if super().owner(host) == "agent-00" else MASTERS


class RingRig:
    """The mailbox of an agent, on a ledger that owes."""

    recipients = "agent-01", "agent-02"
    heirs: tuple[str, ...] = ()
    is_kept = True
    sheet = MailboxSheet(waiting=8)
    designation = ByLetter()
    made: type[Mailbox] = Mailbox

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: list[tuple[RocksLedger, Mailbox]] = []

    async def reopen(self) -> Mailbox:
        await self.close()
        self.ledger, self.divided = RocksLedger(LedgerSheet(directory=str(self._folder))), DividedLedger()
        self.ledger.open()
        self.outbox = self.made(self.sheet)
        self.outbox.ledger, self.outbox.designation, self.outbox.clock = self.ledger, self.designation, FakeClock()
        self.divided.behind, self.divided.outbox = self.ledger, self.outbox
        await self.outbox.start()
        self._open.append((self.ledger, self.outbox))
        return self.outbox

    async def close(self) -> None:
        while self._open:
            ledger, outbox = self._open.pop()
            ledger.abandon()
            for task in (outbox._looking, getattr(outbox, "_watching", None)):
                if task is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

    async def put(self, *tasks: Task, fails: bool = False) -> None:
        with contextlib.suppress(Failed), self.divided.group() as group:
            group.push(tasks)
            if fails:
                raise Failed

    async def wait(self) -> None:
        clock = self.outbox.clock
        assert isinstance(clock, FakeClock)
        await clock.advance(6.0)

    def owed(self) -> int:
        return self.ledger.counters().get("owed", 0)

    def delete(self, kind: Literal["url", "host"], name: str) -> None:
        delete(self.ledger, DeletionTarget(kind, name), (), forget=False)


class MastersRig(RingRig):
    """The same, where one of two masters says whose a host is."""

    recipients = "master-01", "master-01"
    heirs = ("master-00",)
    sheet = MailboxSheet(waiting=8, masters=("master-01", "master-00"))
    designation = ToMasters()


class MailRig(MastersRig):
    """The same, for what masters have given to other agents."""

    recipients = MAIL_TO + "agent-01", MAIL_TO + "agent-02"
    heirs = ()
    sheet = MailboxSheet(waiting=8, masters=("master-00",), others=("agent-01", "agent-02"))

    async def put(self, *tasks: Task, fails: bool = False) -> None:
        with contextlib.suppress(Failed), self.divided.group() as group:
            cast(DividingGroup, group).pass_on(Designated(ByLetter().owner(task.host), task) for task in tasks)
            if fails:
                raise Failed


class RetainingRig(RingRig):
    """The same of an agent whose crawl has a store: what has left it is what others have yet to publish."""

    made = RetainingMailbox

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sheet = RetainingSheet(waiting=8, directory=str(folder))


class MassMailRig:
    """The mail of a master: what it has in hand is owed by those that have found it."""

    recipients = "agent-01", "agent-02"
    heirs = MAIL_TO + "agent-01", MAIL_TO + "agent-02", MAIL_TO + "agent-03"
    is_kept = False

    def __init__(self, folder: Path) -> None:
        self.shared = SharedFile(folder, is_new=True)
        self._held = 0
        self._open: list[MassMail] = []

    async def reopen(self) -> Owing:
        await self.close()
        self.mail = MassMail(MassMailSheet(agents=("agent-01", "agent-02", "agent-03"), waiting=8))
        self.mail.shared, self.mail.clock, self._held = self.shared, FakeClock(), 0
        await self.mail.start()
        self._open.append(self.mail)
        return self.mail

    async def close(self) -> None:
        while self._open:
            await self._open.pop().stop()

    async def put(self, *tasks: Task, fails: bool = False) -> None:
        for task in tasks:
            self._held += 1
            receipt = Receipt(self._released)
            token = current.set(receipt)
            try:
                await self.mail.post([Designated(ByLetter().owner(task.host), task)])
            finally:
                current.reset(token)
            receipt.release()

    def _released(self) -> None:
        self._held -= 1

    async def wait(self) -> None:
        assert isinstance(self.mail.clock, FakeClock)
        await self.mail.clock.advance(2.0)

    def owed(self) -> int:
        return self._held

    def delete(self, kind: Literal["url", "host"], name: str) -> None:
        raise NotImplementedError("it keeps nothing")


RIGS: list[Callable[[Path], Any]] = [RingRig, MastersRig, MailRig, RetainingRig, MassMailRig]


@pytest.mark.parametrize("made", RIGS)
def test_mailboxes(made: Callable[[Path], Any], tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        rig = made(tmp_path)
        await check_mailbox(rig)
        await rig.close()

    run(check())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("made", RIGS)
def test_everything_arrives_whatever_happens(made: Callable[[Path], Any], seed: int, tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        rig = made(tmp_path)
        await check_mailbox(rig, 600, seed)
        await rig.close()

    run(check())


@pytest.mark.long
@pytest.mark.parametrize("entries", [10_000_000])
def test_ten_million_entries_wait_on_the_disk_and_arrive_once(entries: int, tmp_path: Path) -> None:
    async def check() -> None:
        rig = RingRig(tmp_path)
        rig.sheet = MailboxSheet()
        outbox = await rig.reopen()
        for start in range(0, entries, 1_000):
            numbers = range(start, min(start + 1_000, entries))
            await rig.put(
                *(Task(f"http://b{number % 999}.test/{number}", f"b{number % 999}.test", 1) for number in numbers)
            )
        assert (rig.owed(), outbox.metrics.snapshot()["waiting"]) == (entries, WAITING), "memory holds no more"
        outbox = await rig.reopen()
        arrived = 0
        while arrived < entries:
            batch = await outbox.take("agent-01", 1_000)
            arrived += len(batch)
            outbox.delivered(batch)
            assert outbox.metrics.snapshot()["waiting"] <= WAITING
        assert arrived == entries, "an entry came twice"
        await outbox.stop()
        assert rig.owed() == 0
        await rig.close()

    asyncio.run(check())


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[RingRig]:
    rig = RingRig(tmp_path)
    yield rig
    asyncio.run(rig.close())


def test_a_url_of_another_agent_is_not_discovered_here(ring: RingRig, run: Any) -> None:
    async def check() -> None:
        outbox = await ring.reopen()
        assert [outbox.is_ours(f"{letter}.test") for letter in "abc"] == [True, False, False]
        await ring.put(*(Task(f"http://{letter}.test/", f"{letter}.test", 1) for letter in "abc"))
        assert (ring.owed(), ring.ledger.counters()["discovered"]) == (2, 1)

    run(check())


def test_what_became_ours_while_it_was_on_its_way_is_forgotten_once(ring: RingRig, run: Any) -> None:
    async def check() -> None:
        outbox = await ring.reopen()
        tasks = [Task(f"http://b.test/{number}", "b.test", 1) for number in range(3)]
        await ring.put(*tasks)
        batch = await outbox.take("agent-01", 2)
        with ring.ledger.group() as group:
            assert outbox.taken_back(tasks[:1], group) == tasks[:1]
        assert ring.owed() == 2
        outbox.delivered(batch)
        assert [one.task for one in await outbox.take("agent-01", 9)] == tasks[2:]
        assert ring.owed() == 1, "it was owed no more when it was delivered"

    run(check())


def test_while_a_checkpoint_is_made_nothing_is_sent_and_nothing_is_forgotten(ring: RingRig, run: Any) -> None:
    async def check() -> None:
        outbox = await ring.reopen()
        await ring.put(*(Task(f"http://b.test/{number}", "b.test", 1) for number in range(3)))
        batch = await outbox.take("agent-01", 2)
        outbox.sheet = MailboxSheet(holds=True)
        outbox.delivered(batch)
        more = asyncio.ensure_future(outbox.take("agent-01", 2))
        await asyncio.sleep(0)
        assert ring.owed() == 3, "a snapshot has all of them, whatever the other agent's has"
        assert not more.done()
        outbox.sheet = MailboxSheet()
        await ring.wait()
        assert [one.task.url for one in await more] == ["http://b.test/2"]
        assert ring.owed() == 1

    run(check())


def test_claims_travel_together_and_a_url_takes_them_along_at_once(ring: RingRig, run: Any) -> None:
    async def check() -> None:
        outbox = await ring.reopen()
        first, second, third = (Task(f"claim:{number}", "b.test", relation=CLAIM) for number in range(3))
        batch = asyncio.ensure_future(outbox.take("agent-01", 9))
        for claim in (first, second):
            await ring.put(claim)
            for _ in range(5):
                await asyncio.sleep(0)
            assert not batch.done(), "a claim waits for others"
        await ring.put(Task("http://b.test/1", "b.test"))
        assert [one.task.url for one in await batch] == [first.url, second.url, "http://b.test/1"]
        assert ring.ledger.counters()["owed_claims"] == 2
        outbox.delivered(await batch)
        batch = asyncio.ensure_future(outbox.take("agent-01", 9))
        await ring.put(third)
        await asyncio.sleep(0)
        await ring.wait()
        assert [one.task for one in await batch] == [third], "no claim waits for long"
        outbox.delivered(await batch)
        await outbox.stop()
        assert (ring.owed(), ring.ledger.counters()["owed_claims"]) == (0, 0)

    run(check())


def test_mail_of_an_agent_that_is_there_no_more_is_asked_about_again(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        rig = MailRig(tmp_path)
        await rig.reopen()
        tasks = [Task(f"http://{letter}.test/", f"{letter}.test", 1) for letter in "bc"]
        await rig.put(*tasks)
        rig.sheet = MailboxSheet(masters=("master-00",), others=("agent-02",))
        outbox = await rig.reopen()
        batch = await outbox.take("master-00", 9)
        assert [one.task for one in batch] == tasks[:1], "a master says once more whose it is"
        outbox.delivered(batch)
        mail = await outbox.take(MAIL_TO + "agent-02", 9)
        assert [(one.task, one.agent) for one in mail] == [(tasks[1], "agent-02")]
        outbox.delivered(mail)
        await outbox.stop()
        assert (rig.owed(), rig.ledger.counters()["mail"]) == (0, 0)
        await rig.close()

    run(check())


def test_a_master_that_is_silent_is_told_of_and_a_lone_one_is_waited_for(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        rig = MastersRig(tmp_path)
        said: list[str] = []
        for masters, told in ((("master-01", "master-00"), 1), (("master-01",), 0)):
            rig.sheet = MailboxSheet(masters=masters)
            outbox = await rig.reopen()
            outbox.report = said.append
            await rig.put(Task("http://b.test/", "b.test", 1))
            await outbox.take("master-01", 9)
            await rig.wait()
            assert outbox.metrics.snapshot()["silent"] == told
        assert said == ["master-01 is silent, so master-00 gets what it was sent"]
        await rig.close()

    run(check())
