"""Conformance suite for the mail of a master: a posted URL arrives, or is on the disk before its sender forgets it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gossamer.contracts.exchanging import Mail, OwedTask
from gossamer.flow.receipt import Receipt, current
from gossamer.model.agents import Designated
from gossamer.model.mailed import MAILED, mailed_task
from gossamer.model.task import Task

#: Closes what is open as a kill would, and opens the mail of the same master again, for `agent-00` and `agent-01`.
Reopen = Callable[[], Awaitable[Mail]]

#: Lets so much time pass that an agent which commits nothing counts as away.
Wait = Callable[[], Awaitable[None]]

#: Turns of the event loop after which nothing more will come by itself.
_TURNS = 50

#: More than a mail of the suite's size holds in memory.
_MANY = 30


async def check_mail(reopen: Reopen, wait: Wait) -> None:
    """Check that the mail of a master that holds at most 8 URLs for an agent in memory keeps its promises."""
    await _check_delivery(await reopen(), wait)
    mail = await reopen()
    await _check_away(mail, wait)
    await _check_after_kill(await reopen())
    await _check_many(await reopen(), reopen)


async def _check_delivery(mail: Mail, wait: Wait) -> None:
    tasks = [_task("a", number) for number in range(3)]
    others = [_task("b", number) for number in range(2)]
    done = await _post(mail, [*_for("agent-00", tasks), *_for("agent-01", others)])
    first = await mail.take("agent-00", 2)
    assert _urls(first) == [one.url for one in tasks[:2]], "mail comes in another order, or too much at once"
    rest, other = await mail.take("agent-00", 9), await mail.take("agent-01", 9)
    assert (_urls(rest), _urls(other)) == ([tasks[2].url], [one.url for one in others]), "mail went astray"
    mail.delivered(first)
    mail.delivered(rest)
    assert not done, "the receipt is released, and some has not arrived"
    mail.delivered(other)
    assert done == [1], "all has arrived, and the receipt is held"
    await wait()
    assert await _nothing(mail, "agent-00"), "mail that has arrived comes again"


async def _check_away(mail: Mail, wait: Wait) -> None:
    tasks = [_task("a", number) for number in range(4)]
    done = await _post(mail, _for("agent-00", tasks))
    on_way = await mail.take("agent-00", 1)
    assert not done
    await wait()
    assert done == [1], "an agent is away, and its mail is not on the disk"
    later = await _post(mail, _for("agent-00", [_task("a", 9)]))
    assert later == [1], "what comes for an agent that is away is not written at once"
    mail.delivered(on_way)
    back = await mail.take("agent-00", 1)
    assert _urls(back) == [tasks[0].url], "an agent that is back is not sent what waits, or not what was on its way"
    assert back[0].task.relation == MAILED, "its finder owes it no more, and the agent is not told so"


async def _check_after_kill(mail: Mail) -> None:
    urls: set[str] = set()
    while len(urls) < 5:
        batch = await mail.take("agent-00", 9)
        urls |= set(_urls(batch))
        mail.delivered(batch)
    assert urls >= {_task("a", number).url for number in (0, 1, 2, 3, 9)}, "mail on the disk is lost with the process"


async def _check_many(mail: Mail, reopen: Reopen) -> None:
    tasks = [_task("b", number) for number in range(_MANY)]
    done = await _post(mail, _for("agent-01", tasks))
    assert not done, "what memory holds is on its way yet"
    mail = await reopen()
    found = _urls(await mail.take("agent-01", _MANY))
    assert len(found) >= _MANY - 8, "more is held in memory than it has room for"
    assert set(found) <= {one.url for one in tasks}


async def _post(mail: Mail, tasks: Sequence[Designated]) -> list[int]:
    """Post URLs under a receipt. The returned list says whether it was released."""
    done: list[int] = []
    receipt = Receipt(lambda: done.append(1))
    token = current.set(receipt)
    try:
        await mail.post(tasks)
    finally:
        current.reset(token)
    receipt.release()
    return done


async def _nothing(mail: Mail, agent: str) -> bool:
    taking = asyncio.ensure_future(mail.take(agent, 1))
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    is_empty = not taking.done()
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    return is_empty


def _task(host: str, number: int) -> Task:
    return Task(f"http://{host}.test/{number}", f"{host}.test", 1, "http://c.test/", "a href")


def _for(agent: str, tasks: Sequence[Task]) -> list[Designated]:
    return [Designated(agent, one) for one in tasks]


def _urls(owed: Sequence[OwedTask]) -> list[str]:
    tasks = (mailed_task(one.task) if one.task.relation == MAILED else one.task for one in owed)
    return [one.url for one in tasks if one is not None]
