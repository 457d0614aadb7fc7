"""The debts of an agent on their way into the ledger: the group that owes what is not ours, and the form of entries.

    commit, frontier ── push ──► `divided-ledger` ──► the ledger's queues, where the host is ours
                                        └───────────► the mailbox, where it is another agent's

Place in the flow: the wiring of an agent among several puts the `divided-ledger` between the stages and the ledger; no stage
knows of it. Whichever way entries leave, over arrows (:mod:`mailbox`) or in files (:mod:`exchange_files`), they are staged here. An
owed URL is seen here like any other, so that a link is sent once, however often it is met. Hosts that are lent to mobile crawlers
divert tasks by the same class.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Annotated, Any, TypeVar, cast

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import MAIL, OWED
from gossamer.storage.ledger.contract import Group, Ledger, Tallied
from gossamer.storage.ledger.providers import LedgerFront
from gossamer.storage.mailbox.contract import MAIL_TO, Designation, OwedTask, OwesUrls
from gossamer.values.agents import CLAIM, Designated, agent_name
from gossamer.values.ledger_rows import Meeting
from gossamer.values.task import Task

#: Bytes of a key. It is no secret's hash, so it must be so long that an attacker cannot find two URLs with the same one.
_KEY_BYTES = 16

encode = msgspec.msgpack.Encoder().encode

#: The task of an entry that is owed, and of one that is mail: the agent that it is for, and the task.
owed_task = msgspec.msgpack.Decoder(Task).decode
mailed = msgspec.msgpack.Decoder(tuple[str, Task]).decode


def owed_key(task: Task) -> bytes:
    """The key of a task in the spaces of what is owed, under its host."""
    return blake2b(task.identity.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def count_owed(one: OwedTask, group: Group, number: int) -> None:
    group.count("owed", number)
    if one.agent:
        group.count("mail", number)
    if one.task.relation == CLAIM:
        group.count("owed_claims", number)


def staged(one: OwedTask, group: Group) -> bool:
    """Stage an entry; False, and counted as `cut:owed`, where there is no room."""
    space = MAIL if one.agent else OWED
    is_new = group.get(space, one.task.host, one.key) is None
    if not group.put(space, one.task.host, one.key, one.value):
        group.count("cut:owed")
        return False
    if is_new:
        count_owed(one, group, 1)
    return True


class OwingSheet(Sheet, frozen=True):
    """Settings of units that keep what an agent owes: the base of their sheets."""

    agent: Annotated[
        str, setting("Name of this agent; URLs of its own hosts stay here.", restart="it names this agent")
    ] = agent_name(0)


S = TypeVar("S", bound=OwingSheet)


class StagesOwed(Provider[S]):
    """Stages what an agent owes, whichever way it leaves."""

    ledger: Uses[Ledger]
    designation: Uses[Designation]
    keeps_state = True

    def is_ours(self, host: str) -> bool:
        return self.designation.owner(host) == self.sheet.agent

    def owe(self, tasks: Sequence[Task], group: Group) -> Sequence[OwedTask]:
        """Stage tasks of other agents' hosts. Returns what is to be given to `kept`."""
        owner = self.designation.owner
        owed = [OwedTask(owner(task.host), task, "", owed_key(task), encode(task)) for task in tasks]
        return [one for one in owed if staged(one, group)]


# -- the ledger in front of the ledger


class DivertingGroup(ABC):
    """A group that gives some of the tasks that are pushed elsewhere. Everything else is the group's own."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        method = self.__dict__[name] = getattr(self._group, name)
        return method

    @abstractmethod
    def leaves(self, task: Task) -> bool:
        """Whether a task goes elsewhere."""

    @abstractmethod
    def divert(self, tasks: Sequence[Task], *, is_new: bool) -> None:
        """Stage tasks that go elsewhere: new ones, or known ones to which a nearer way was found."""

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks that stay here."""
        stay: list[Task] = []
        leave: list[Task] = []
        for task in tasks:
            (leave if self.leaves(task) else stay).append(task)
        self._group.push(stay)
        if leave:
            self.divert(leave, is_new=True)

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        """Check and put with depths. A nearer way to a URL that is elsewhere is told there: the pages behind it are known there."""
        meeting = self._group.meet(tasks)
        leave = [task for task in meeting.nearer if self.leaves(task)]
        if leave:
            self.divert(leave, is_new=False)
            meeting = Meeting(meeting.new, [task for task in meeting.nearer if not self.leaves(task)])
        return meeting


class DividingGroup(DivertingGroup):
    """A group that owes what is not ours."""

    def __init__(self, group: Group, outbox: OwesUrls, owed: list[OwedTask]) -> None:
        """A group that puts what it owes into `owed` too."""
        super().__init__(group)
        self._outbox = outbox
        self._owed = owed

    def leaves(self, task: Task) -> bool:
        """Whether it is another agent's, which discovers it when it is committed there."""
        return not self._outbox.is_ours(task.host)

    def divert(self, tasks: Sequence[Task], *, is_new: bool) -> None:
        self._owed += self._outbox.owe(tasks, self._group)

    def pass_on(self, mail: Iterable[Designated]) -> None:
        """Owe mail of masters to the agents that it is for."""
        for one in mail:
            value = encode((one.agent, one.task))
            piece = OwedTask(MAIL_TO + one.agent, one.task, one.agent, owed_key(one.task), value)
            if staged(piece, self._group):
                self._owed.append(piece)

    def tally(self, what: Tallied, name: str, add: int = 0) -> int:
        """Add to a tally. Another agent keeps the tallies of its hosts: here they are never the first, and never many."""
        return self._group.tally(what, name, add) if self._outbox.is_ours(name) else 2 * add


class DividedLedger(LedgerFront):
    """Passes everything on to the ledger, except the tasks that its groups push. Contract: `Ledger`."""

    outbox: Uses[OwesUrls]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger; its mail is told to the outbox when it is kept."""
        owed: list[OwedTask] = []
        try:
            with self.behind.group() as group:
                yield cast(Group, DividingGroup(group, self.outbox, owed))
        except BaseException:
            # A write that failed may have reached the disk yet: then the outbox finds it there.
            self.outbox.kept(owed, is_sure=False)
            raise
        self.outbox.kept(owed)
