"""Conformance suite for outboxes: no owed URL is lost, wherever a group fails and whenever the process dies."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gossamer.contracts.exchanging import Outbox, OwedTask
from gossamer.contracts.ledger import Ledger
from gossamer.model.task import Task

#: Closes what is open as a kill would, opens ledger and outbox again, and starts the outbox; at first both are empty. The outbox
#: is that of `agent-00`, its designation is :class:`ByLetter`, and the ledger is the one that owes (`divided-ledger`).
Reopen = Callable[[], Awaitable[tuple[Ledger, Outbox]]]

#: Turns of the event loop after which nothing more will come by itself: an outbox reads what it has in far fewer.
_TURNS = 400

#: More than an outbox of the suite's size holds in memory, so that it has to read from the disk.
_MANY = 50


class _Failed(Exception):
    """Makes a group fail, so that it is not kept."""


class ByLetter:
    """Hosts that begin with `a` belong to `agent-00`, those with `b` to `agent-01`, and so on. Contract: `Designation`."""

    def owner(self, host: str) -> str:
        """Return the agent of a host."""
        return f"agent-{ord(host[0]) - ord('a'):02d}"


async def check_outbox(reopen: Reopen) -> None:
    """Check that an outbox that holds at most 8 URLs for an agent in memory keeps its promises."""
    await _Suite(reopen).run()


def _task(host: str, number: int, depth: int = 1) -> Task:
    return Task(f"http://{host}.test/{number}", f"{host}.test", depth, "http://a.test/", "a href")


class _Suite:
    def __init__(self, reopen: Reopen) -> None:
        self._reopen = reopen

    async def run(self) -> None:
        await self._kill()
        await self._check_groups()
        await self._check_delivery()
        await self._check_nearer()
        await self._check_many()

    async def _check_groups(self) -> None:
        assert [self.outbox.is_ours(f"{letter}.test") for letter in "abc"] == [True, False, False]
        try:
            with self.ledger.group() as group:
                group.push([_task("b", 0)])
                raise _Failed
        except _Failed:
            pass
        assert await self._take("agent-01") == [], "a URL was taken that a failed group had put in"
        self._push(_task("a", 1), _task("b", 1), _task("c", 1))
        assert self._counted() == (2, 1), "a URL of another agent counts as discovered here"
        assert await self._urls("agent-02") == ["http://c.test/1"], "a URL went to another agent than its own"
        assert await self._urls("agent-00") == [], "a URL of this agent was put into the outbox"
        assert await self._urls("agent-01") == ["http://b.test/1"]
        assert await self._urls("agent-01") == [], "a URL that was taken came again"

    async def _check_delivery(self) -> None:
        await self._kill()
        [one] = await self._take("agent-01")
        self.outbox.delivered([one, one])
        await self._take("agent-01")
        assert self._counted()[0] == 1, "a delivered URL is still owed"
        await self._kill()
        assert await self._urls("agent-01") == [], "a delivered URL came again after a kill"
        [other] = await self._take("agent-02")
        assert other.task == _task("c", 1), "a URL that was taken and not delivered is lost by a kill"
        self.outbox.delivered([other])
        await self._take("agent-02")

    async def _check_nearer(self) -> None:
        self._push(_task("b", 2, depth=5))
        [far] = await self._take("agent-01")
        self._push(_task("b", 2, depth=3))
        self.outbox.delivered([far])
        assert [one.task.depth for one in await self._take("agent-01")] == [3]
        await self._kill()
        [near] = await self._take("agent-01")
        assert near.task.depth == 3, "a lower depth was forgotten with the delivery of a higher one"
        assert self._counted()[0] == 1, "one URL counts twice"
        self.outbox.delivered([near])
        await self._take("agent-01")
        assert self._counted()[0] == 0

    async def _check_many(self) -> None:
        tasks = {letter: [_task(letter, number) for number in range(_MANY)] for letter in "bc"}
        expected = sorted(task.url for task in tasks["b"])
        self._push(*(task for number in range(_MANY) for task in (tasks["b"][number], tasks["c"][number])))
        found: list[str] = []
        for number in range(3 * _MANY):  # agent-02 does not answer, and holds up nobody
            taken = await self._take("agent-01", 7)
            found += [one.task.url for one in taken]
            self.outbox.delivered(taken)
            if number == 1:
                more = [_task("bb", number) for number in range(_MANY)]
                self._push(*more)
                expected = sorted([*expected, *(task.url for task in more)])
            if number == 3:
                await self._kill()
        assert sorted(set(found)) == expected, "a URL beyond the bound of memory is lost"
        assert self._counted()[0] == _MANY
        await self._kill()
        assert len(set(await self._urls("agent-02"))) == _MANY

    # -- small things

    async def _kill(self) -> None:
        self.ledger, self.outbox = await self._reopen()

    def _push(self, *tasks: Task) -> None:
        with self.ledger.group() as group:
            group.push(tasks)

    def _counted(self) -> tuple[int, int]:
        counters = self.ledger.counters()
        return counters.get("owed", 0), counters.get("discovered", 0)

    async def _urls(self, agent: str) -> list[str]:
        found: list[OwedTask] = []
        while taken := await self._take(agent):
            found += taken
        return [one.task.url for one in found]

    async def _take(self, agent: str, most: int = 1_000) -> Sequence[OwedTask]:
        """Return the URLs that can be taken now; none if a sender would have to wait."""
        taking = asyncio.ensure_future(self.outbox.take(agent, most))
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            if taking.done():
                return taking.result()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        return []
