"""Conformance suite for mailboxes: what is owed arrives, wherever a group fails and whenever the process dies."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from gossamer.storage.mailbox.contract import OwedTask, Owing
from gossamer.values.task import Task


class MailboxRig(Protocol):
    """A mailbox under test, which holds at most 8 entries for one recipient in memory. It is that of `agent-00`, and goes by
    :class:`ByLetter`. At first it is empty."""

    recipients: tuple[str, str]
    """Under these names senders take what is for the agents of hosts that begin with `b`, and with `c`."""
    heirs: tuple[str, ...]
    """Senders under these names get what the first recipient is sent and has not acknowledged when it falls silent."""
    is_kept: bool
    """Entries outlive the process."""

    async def reopen(self) -> Owing:
        """Close what is open as a kill would, and open it again."""
        ...

    async def put(self, *tasks: Task, fails: bool = False) -> None:
        """Owe these; with `fails` their group is not kept."""
        ...

    async def wait(self) -> None:
        """Let so much time pass that a recipient which has acknowledged nothing is silent."""
        ...

    def owed(self) -> int:
        """How many entries are not forgotten."""
        ...

    def delete(self, kind: Literal["url", "host"], name: str) -> None:
        """Delete a URL, or a host with all below it, from the crawl. The next process is opened after this."""
        ...


#: Turns of the event loop after which nothing more will come by itself: a mailbox reads what it has in far fewer.
_TURNS = 400


#: More than a mailbox of the suite's size holds in memory, so that it has to read from the disk.
_MANY = 50


class ByLetter:
    """Hosts that begin with `a` belong to `agent-00`, those with `b` to `agent-01`, and so on. Contract: `Designation`."""

    def owner(self, host: str) -> str:
        """Return the agent of a host."""
        return f"agent-{ord(host[0]) - ord('a'):02d}"


async def check_mailbox(rig: MailboxRig, entries: int = _MANY, seed: int = 1) -> None:
    """Check that a mailbox keeps its promises.

    Args:
        rig: opens it.
        entries: of the last step, in which everything happens at random.
        seed: of that step.
    """
    suite = _MailboxSuite(rig)
    await suite.check_order()
    await suite.check_silence()
    if rig.is_kept:
        await suite.check_kills()
        await suite.check_deletion()
    await suite.check_one_that_never_comes()
    await suite.check_at_random(entries, random.Random(seed))


def _owed_task(host: str, number: int, depth: int = 1) -> Task:
    return Task(f"http://{host}.test/{number}", f"{host}.test", depth, "http://a.test/", "a href")


class _MailboxSuite:
    def __init__(self, rig: MailboxRig) -> None:
        self._rig = rig
        self._first, self._second = rig.recipients

    async def check_order(self) -> None:
        box = await self._opened()
        await self._rig.put(*(_owed_task("b", number) for number in range(5)), _owed_task("c", 0))
        first = await self._take(self._first, 2)
        assert _numbers(first) == [0, 1], "entries come in another order, or too many at once"
        rest = await self._take(self._first, 9)
        assert _numbers(rest)[:3] == [2, 3, 4]
        assert await self._take(self._first) == [], "an entry that was taken came again"
        others = [] if self._first == self._second else await self._take(self._second)
        assert [one.task.host for one in (*rest[3:], *others)] == ["c.test"], "an entry went to another recipient"
        for batch in (first, first, rest, others):
            if batch:
                box.delivered(batch)
        await self._forgotten()
        assert self._rig.owed() == 0, "what was delivered is still owed"
        await self._rig.wait()
        assert await self._take(self._first) == [], "what has arrived comes again"

    async def check_silence(self) -> None:
        box = await self._opened()
        await self._rig.put(*(_owed_task("b", number) for number in range(10, 14)))
        on_way = await self._take(self._first, 2)
        await self._rig.wait()
        heirs = [found for heir in self._rig.heirs for found in [await self._take(heir)] if found]
        if self._rig.heirs:
            assert sorted(_numbers(one for batch in heirs for one in batch)) == [10, 11, 12, 13], (
                "what a silent recipient was sent, and what waits for it, goes to no other one"
            )
        box.delivered(on_way)  # the silent one is back
        await self._rig.put(_owed_task("b", 14))
        back = await self._take(self._first)
        assert _numbers(back)[-1:] == [14], "a recipient that is back gets nothing"
        for batch in (*heirs, back):
            box.delivered(batch)
        await self._forgotten()
        assert self._rig.owed() == 0, "what was delivered twice is forgotten once"

    async def check_kills(self) -> None:
        box = await self._opened()
        await self._rig.put(_owed_task("b", 20), fails=True)
        assert await self._take(self._first) == [], "an entry was taken that a failed group had put in"
        await self._rig.put(_owed_task("b", 21, depth=5))
        [far] = await self._take(self._first)
        await self._rig.put(_owed_task("b", 21, depth=3))
        box.delivered([far, far])
        await self._take(self._first)
        box = await self._opened()
        [near] = await self._take(self._first)
        assert near.task.depth == 3, "a lower depth was forgotten with the delivery of a higher one, or lost by a kill"
        assert self._rig.owed() == 1, "one URL counts twice"
        box.delivered([near])
        await self._forgotten()
        await self._opened()
        assert await self._take(self._first) == [], "a delivered entry came again after a kill"
        assert self._rig.owed() == 0

    async def check_deletion(self) -> None:
        await self._opened()
        gone = [_owed_task("b2", 33), _owed_task("b.b3", 34)]
        await self._rig.put(*(_owed_task("b", number) for number in range(30, 33)), *gone)
        self._rig.delete("url", _owed_task("b", 31).url)
        self._rig.delete("host", "b2.test")
        self._rig.delete("host", "b3.test")
        box = await self._opened()
        left = await self._take(self._first)
        assert sorted(_numbers(left)) == [30, 32], "what a person has deleted was sent"
        box.delivered(left)
        await self._forgotten()
        assert self._rig.owed() == 0

    async def check_one_that_never_comes(self) -> None:
        if self._first == self._second:
            return
        box = await self._opened()
        putting = asyncio.ensure_future(
            self._rig.put(*(_owed_task(letter, number) for number in range(40, 40 + _MANY) for letter in "bc"))
        )
        found: set[int] = set()
        on_way = await self._take(self._second, 1)
        for _ in range(4 * _MANY):
            for name in (self._first, *self._rig.heirs):
                if batch := await self._take(name, 7):
                    found |= {
                        number for number, one in zip(_numbers(batch), batch, strict=True) if one.task.host == "b.test"
                    }
                    box.delivered(batch)
            if len(found) == _MANY:
                break
            await self._rig.wait()
        assert len(found) == _MANY, "a recipient that never comes holds up others"
        await putting
        box.delivered(on_way)
        while batch := await self._take(self._second):
            box.delivered(batch)
        await self._forgotten()

    async def check_at_random(self, entries: int, chance: random.Random) -> None:
        """Everything at once: groups, senders that take and die, silence, kills; each entry arrives."""
        box, names = await self._opened(), [*dict.fromkeys((self._first, self._second, *self._rig.heirs))]
        put, arrived, number = set[str](), set[str](), 100
        on_way: list[Sequence[OwedTask]] = []
        putting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        putting.set_result(None)
        while number < 100 + entries or len(arrived) < len(put):
            event = chance.random()
            if event < 0.3 and number < 100 + entries and putting.done():
                tasks = [_owed_task(chance.choice("bc"), at) for at in range(number, number + chance.randrange(1, 9))]
                putting = asyncio.ensure_future(self._rig.put(*tasks))  # it may have to wait for room
                await asyncio.sleep(0)
                put |= {one.url for one in tasks}
                number += len(tasks)
            elif event < 0.8:
                if batch := await self._take(chance.choice(names), chance.randrange(1, 12), turns=20):
                    on_way.append(batch)
            elif event < 0.97 and on_way:
                batch = on_way.pop(chance.randrange(len(on_way)))
                arrived |= {one.task.url for one in batch}
                box.delivered(batch)
            elif event < 0.99:
                await self._rig.wait()
            elif self._rig.is_kept:
                box = await self._opened()
                on_way.clear()
        await putting
        for batch in on_way:
            box.delivered(batch)
        for _ in range(3):
            for name in names:
                while batch := await self._take(name):
                    box.delivered(batch)
            await self._rig.wait()
        await self._forgotten()
        assert arrived == put, "an entry is lost"
        assert self._rig.owed() == 0, "an entry that has arrived is owed for ever"

    # -- small things

    async def _opened(self) -> Owing:
        self._box = await self._rig.reopen()
        return self._box

    async def _forgotten(self) -> None:
        """Senders come again, so that what was delivered is forgotten."""
        for name in (self._first, self._second, *self._rig.heirs):
            assert await self._take(name) == []

    async def _take(self, name: str, most: int = 1_000, turns: int = _TURNS) -> Sequence[OwedTask]:
        """Return the entries that can be taken now; none if a sender would have to wait."""
        taking = asyncio.ensure_future(self._box.take(name, most))
        for _ in range(turns):
            await asyncio.sleep(0)
            if taking.done():
                return taking.result()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        return []


def _numbers(owed: Iterable[OwedTask]) -> list[int]:
    return [int(one.task.url.rpartition("/")[2]) for one in owed]
