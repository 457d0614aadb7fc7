"""What masters share, and their mail, keep the promises of `agents.contract`, `exchanging` and `marshaling`."""

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.masters import check_designation_table, check_shared_state

from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import DesignationSheet, LeastLoaded, RandomAgent, SharedDesignations
from gossamer.agents.mail import MassCommunicator, MassMail, MassMailSheet
from gossamer.engine.gate import Receipt, current
from gossamer.storage.mailbox.contract import MAIL_TO
from gossamer.storage.mailbox.shared_state import (
    CrawlSharedState,
    SharedFile,
    SharedStateSheet,
    count_older_mail,
    delete_older_mail,
    older_mail,
)
from gossamer.testing import FakeClock, check_consumer
from gossamer.values.agents import Designated, Member
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
    table = SharedDesignations(DesignationSheet(members=tuple(map(str, members))))
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


def mail_of(shared: SharedFile, clock: FakeClock) -> MassMail:
    given = ("agent-00", "agent-01")
    mail = MassMail(MassMailSheet(agents=given, waiting=8))
    mail.shared, mail.clock = shared, clock
    mail.designations = table_of(shared, [Member(agent) for agent in given], LeastLoaded())
    return mail


async def started(mail: MassMail) -> MassMail:
    assert isinstance(mail.designations, SharedDesignations)
    await mail.designations.start()
    await mail.start()
    return mail


def left_by_an_older_version(shared: SharedFile, *tasks: tuple[str, Task]) -> None:
    """Mail as masters of 0.2.0 put it on the disk."""
    with shared.writing() as connection:
        connection.execute(
            "CREATE TABLE mail (id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, "
            "master TEXT NOT NULL, task BLOB NOT NULL)"
        )
        connection.executemany(
            "INSERT INTO mail (agent, master, task) VALUES (?, 'master-07', ?)",
            [(agent, msgspec.msgpack.encode(task)) for agent, task in tasks],
        )


def test_mail_that_an_older_version_has_left_is_sent_once_and_that_of_agents_that_have_left_to_others(
    shared: Callable[[], SharedFile], run: Run
) -> None:
    async def check() -> None:
        clock, tasks = FakeClock(), [Task(f"http://{name}.test/", f"{name}.test") for name in "abc"]
        left_by_an_older_version(shared(), *zip(("agent-00", "agent-07", "agent-01"), tasks, strict=True))
        mail = await started(mail_of(shared(), clock))
        assert (mail.is_empty, mail.waiting) == (False, 3)
        batches = [await mail.take(MAIL_TO + agent, 9) for agent in ("agent-00", "agent-01")]
        assert sorted(one.task.url for batch in batches for one in batch) == [task.url for task in tasks]
        assert all(one.agent == "agent-00" for one in batches[0])
        await mail.stop()
        killed = await started(mail_of(shared(), clock))
        assert not killed.is_empty, "a master that dies has sent nothing that was not acknowledged"
        await clock.advance(2.0)
        first = await killed.take(MAIL_TO + "agent-00", 9)
        await clock.advance(2.0)  # it is away, so that the other one gets its mail
        others = await killed.take(MAIL_TO + "agent-01", 9)
        assert {one.task.url for one in others} == {task.url for task in tasks}
        assert {one.agent for one in others} == {"agent-00", "agent-01"}
        killed.delivered(others)
        killed.delivered(first)
        await clock.advance(1.0)
        assert killed.is_empty
        assert count_older_mail(killed.shared.reading) == 0
        await killed.stop()

    run(check())


def test_older_mail_goes_with_what_a_person_deletes(shared: Callable[[], SharedFile]) -> None:
    file = shared()
    tasks = [Task(f"http://{name}.test/", f"{name}.test", source="http://d.test/") for name in "ab"]
    left_by_an_older_version(file, *(("agent-00", task) for task in tasks))
    with file.erasing() as connection:
        delete_older_mail(connection, lambda url: url == tasks[0].url)
    assert [one.task for one in older_mail(file.reading)] == tasks[1:]
    with file.erasing() as connection:
        delete_older_mail(connection, lambda url: url == "http://d.test/")
    assert count_older_mail(file.reading) == 0


def test_a_receipt_is_released_when_all_has_arrived_and_what_an_absent_agent_gets_is_kept_by_another(
    shared: Callable[[], SharedFile], run: Run
) -> None:
    async def check() -> None:
        clock, done = FakeClock(), list[int]()
        mail = await started(mail_of(shared(), clock))
        receipt = Receipt(lambda: done.append(1))
        token = current.set(receipt)
        tasks = [Task(f"http://a.test/{number}", "a.test") for number in range(4)]
        await mail.post([Designated("agent-00", task) for task in tasks[:3]] + [Designated("agent-01", tasks[3])])
        current.reset(token)
        receipt.release()
        mail.delivered(await mail.take("agent-01", 9))
        on_way = await mail.take("agent-00", 1)
        await clock.advance(0.9)
        assert not mail.metrics.snapshot()["away"], "one that may be slow is not away"
        await clock.advance(1.0)
        kept = await mail.take(MAIL_TO + "agent-01", 9)
        assert [(one.agent, one.task) for one in kept] == [("agent-00", task) for task in tasks[:3]]
        assert (mail.waiting, done) == (3, [])
        mail.delivered(kept)
        assert done == [1], "its finder owes nothing more: another agent has it"
        mail.delivered(on_way)
        assert done == [1]
        assert not mail.metrics.snapshot()["away"], "it is back"
        assert mail.is_empty
        await mail.stop()

    run(check())


def test_mass_communicator(shared: Callable[[], SharedFile], run: Run) -> None:
    async def check() -> None:
        mail = await started(mail_of(shared(), FakeClock()))

        def make() -> MassCommunicator:
            communicator = MassCommunicator()
            communicator.mail = mail
            return communicator

        await check_consumer(make, given=[Designated("agent-00", Task("http://a.test/", "a.test"))])
        await mail.stop()

    run(check())
