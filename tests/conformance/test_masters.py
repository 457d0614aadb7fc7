"""What masters share, and their mail, keep the promises of `contracts.sharing`, `exchanging` and `marshaling`."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import SharedDesignations, SharedDesignationSheet
from gossamer.agents.mail import MassCommunicator, MassMail, MassMailSheet
from gossamer.agents.mail_on_disk import LEASE
from gossamer.agents.policies import LeastLoaded, RandomAgent
from gossamer.agents.shared_state import CrawlSharedState, SharedFile, SharedStateSheet
from gossamer.testing import FakeClock, check_consumer, check_designation_table, check_mail, check_shared_state
from gossamer.values.agents import Designated, Member, mailed_task
from gossamer.values.task import Task

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Callable[[], SharedFile]]:
    """Opens one file again and again; all are closed at the end."""
    with contextlib.ExitStack() as stack:

        def opened() -> SharedFile:
            file = SharedFile(tmp_path, is_new=True)
            stack.callback(file.close)
            return file

        yield opened


def test_shared_files(shared: Callable[[], SharedFile]) -> None:
    check_shared_state(shared)


def test_shared_files_as_a_wiring_names_them(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        opened: list[CrawlSharedState] = []
        for _ in range(3):
            opened.append(CrawlSharedState(SharedStateSheet(directory=str(tmp_path))))
            await opened[-1].start()
        left = iter(opened)
        check_shared_state(lambda: next(left))
        for one in opened:
            await one.stop()

    run(check())


def table_of(shared: SharedFile, members: Sequence[Member], policy: DesignationPolicy) -> SharedDesignations:
    table = SharedDesignations(SharedDesignationSheet(members=tuple(map(str, members))))
    table.shared, table.policy = shared, policy
    return table


@pytest.mark.parametrize("policy", [LeastLoaded, RandomAgent])
def test_shared_tables_of_designations(
    shared: Callable[[], SharedFile], run: Run, policy: Callable[[], DesignationPolicy]
) -> None:
    async def make(members: Sequence[Member]) -> SharedDesignations:
        table = table_of(shared(), members, policy())
        await table.start()
        return table

    run(check_designation_table(make))


def mail_of(shared: SharedFile, clock: FakeClock, master: str = "master-00", *agents: str) -> MassMail:
    given = agents or ("agent-00", "agent-01")
    mail = MassMail(MassMailSheet(master=master, agents=given, waiting=8))
    mail.shared, mail.clock = shared, clock
    mail.designations = table_of(shared, [Member(agent) for agent in given], LeastLoaded())
    return mail


async def end(mail: MassMail) -> None:
    """End a mail as a kill would."""
    assert mail._looking is not None
    mail._looking.cancel()
    await asyncio.gather(mail._looking, return_exceptions=True)


def test_the_mail_of_a_master(shared: Callable[[], SharedFile], run: Run) -> None:
    clock, open_ones = FakeClock(), list[MassMail]()

    async def reopen() -> MassMail:
        if open_ones:
            await end(open_ones.pop())
        mail = mail_of(shared(), clock)
        await mail.designations.start()  # type: ignore[attr-defined]  # it is ours
        await mail.start()
        open_ones.append(mail)
        return mail

    async def check() -> None:
        await check_mail(reopen, lambda: clock.advance(3.0))
        await end(open_ones.pop())

    run(check())


def test_the_mail_of_a_master_that_is_gone_is_sent_by_another(shared: Callable[[], SharedFile], run: Run) -> None:
    async def check() -> None:
        clock = FakeClock()
        one, other = mail_of(shared(), clock), mail_of(shared(), clock, "master-01")
        for mail in (one, other):
            await mail.designations.start()  # type: ignore[attr-defined]  # it is ours
            await mail.start()
        await one.post([Designated("agent-00", Task("http://a.test/", "a.test"))])
        await one.take("agent-00", 1)
        await clock.advance(2.0)
        assert not other.is_empty, "mail on the disk is everybody's"
        assert [(mail.waiting, mail.lag) for mail in (one, other)] == [(1, 2.0), (0, 0.0)]
        await end(one)
        await clock.advance(LEASE + 2.0)
        taken = await other.take("agent-00", 9)
        assert [mailed_task(one.task) for one in taken] == [Task("http://a.test/", "a.test")]
        other.delivered(taken)
        await clock.advance(1.0)
        assert other.is_empty
        await end(other)

    run(check())


def test_mail_is_not_taken_for_other_mail_that_was_deleted_before(shared: Callable[[], SharedFile], run: Run) -> None:
    async def check() -> None:
        clock = FakeClock()
        mail = mail_of(shared(), clock)
        await mail.designations.start()  # type: ignore[attr-defined]  # it is ours
        await mail.start()
        numbers: list[int] = []
        for _ in range(3):
            await mail.post([Designated("agent-00", Task("http://a.test/", "a.test"))])
            on_way = await mail.take("agent-00", 1)
            await clock.advance(2.0)
            numbers += (number for (number,) in mail.shared.reading.execute("SELECT id FROM mail"))
            mail.delivered(on_way)
            mail.delivered(await mail.take("agent-00", 1))
            await clock.advance(1.0)
            assert mail.is_empty
        assert len(set(numbers)) == 3, "another master may be about to delete what had this number before"
        await end(mail)

    run(check())


def test_the_mail_of_an_agent_that_has_left_is_given_to_another(shared: Callable[[], SharedFile], run: Run) -> None:
    async def check() -> None:
        clock = FakeClock()
        mail = mail_of(shared(), clock, "master-00", "agent-00", "agent-01")
        await mail.designations.start()  # type: ignore[attr-defined]  # it is ours
        await mail.start()
        [agent] = await mail.designations.designate(["a.test"])
        await mail.post([Designated(agent, Task("http://www.a.test/", "www.a.test"))])
        await mail.take(agent, 1)
        await clock.advance(2.0)
        await end(mail)
        [stays] = {"agent-00", "agent-01"} - {agent}
        after = mail_of(shared(), clock, "master-00", stays)
        await after.designations.start()  # type: ignore[attr-defined]  # it is ours
        await after.start()
        [taken] = await after.take(stays, 9)
        assert (taken.agent, taken.task.host) == (stays, "www.a.test")
        await end(after)

    run(check())


def test_mass_communicator(shared: Callable[[], SharedFile], run: Run) -> None:
    async def check() -> None:
        mail = mail_of(shared(), FakeClock())
        await mail.designations.start()  # type: ignore[attr-defined]  # it is ours
        await mail.start()

        def make() -> MassCommunicator:
            communicator = MassCommunicator()
            communicator.mail = mail
            return communicator

        await check_consumer(make, given=[Designated("agent-00", Task("http://a.test/", "a.test"))])
        await mail.stop()

    run(check())
