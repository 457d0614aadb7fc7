"""`fused:` calls the consumer in place, and still counts, orders, suspends and ends."""

import asyncio
from typing import Any

import pytest

from gossamer.engine.component import Consumer, Filter
from gossamer.engine.connector import Statistics
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import EndOfItems, WiringError, WrongItem
from gossamer.engine.local import FusedConnector, LocalConnector
from gossamer.engine.runner import Runner


class Slow(Consumer):
    """Takes the next step of an item when the test says so."""

    inbox: In[int]

    def __init__(self) -> None:
        super().__init__()
        self.steps: asyncio.Queue[None] = asyncio.Queue()
        self.log: list[str] = []

    async def consume(self, item: int) -> None:
        self.log.append(f"+{item}")
        await self.steps.get()
        self.log.append(f"-{item}")


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def fused(component: Consumer[Any], workers: int = 1) -> tuple[FusedConnector[int], Runner]:
    connector = FusedConnector("arrow", int)
    component.bind({"inbox": In("inbox", connector)}, {})
    return connector, Runner(component, workers=workers)


def test_a_consumer_is_attached_before_any_producer_runs(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        connector, _ = fused(slow, workers=3)
        slow.steps.put_nowait(None)
        await Out("out", connector).send(1)
        assert slow.log == ["+1", "-1"]
        assert connector.statistics() == Statistics(passed=1, waiting=0, peak=1, capacity=1)

    run(body())


def test_bulks_of_several_producers_stay_contiguous_at_a_consumer_of_one_worker(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        connector, _ = fused(slow)
        outs = [Out("out", connector) for _ in range(3)]
        sending = [asyncio.create_task(out.send_many([10 * n, 10 * n + 1])) for n, out in enumerate(outs)]
        await turns()
        assert slow.log == ["+0"]
        for _ in range(6):
            slow.steps.put_nowait(None)
        await asyncio.gather(*sending)
        assert [entry for entry in slow.log if entry.startswith("+")] == ["+0", "+1", "+10", "+11", "+20", "+21"]

    run(body())


def test_it_ends_when_the_last_call_is_over(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        connector, _ = fused(slow)
        out = Out("out", connector)
        sending = out.send_soon(1)
        await turns()
        out.close()
        ending = asyncio.create_task(connector.take(1))
        await turns()
        assert not ending.done()
        slow.steps.put_nowait(None)
        await sending
        with pytest.raises(EndOfItems):
            await ending

    run(body())


def test_idle_returns_at_once_when_it_was_never_used_and_waits_for_a_call(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        connector, _ = fused(slow)
        await connector.idle()
        sending = Out("out", connector).send_soon(1)
        await turns()
        idle = asyncio.create_task(connector.idle())
        await turns()
        assert not idle.done()
        slow.steps.put_nowait(None)
        await idle
        await sending

    run(body())


def test_a_wrong_item_is_refused_before_the_consumer_sees_it(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        connector, _ = fused(slow)
        with pytest.raises(WrongItem, match="connector 'arrow' carries int, not str: 'x'"):
            await Out("out", connector).send("x")  # type: ignore[arg-type]
        assert slow.log == []

    run(body())


def test_a_second_consumer_is_refused_and_a_missing_one_is_told() -> None:
    connector, _ = fused(Slow())
    other = Slow()
    other.bind({"inbox": In("inbox", connector)}, {})
    with pytest.raises(WiringError, match="is fused and takes one consumer; make it local: for several"):
        Runner(other)


def test_nothing_to_call_is_an_error(run: Any) -> None:
    with pytest.raises(WiringError, match="'arrow' is fused, but nothing consumes from it"):
        run(FusedConnector("arrow", int).send([1], None))


class Pass(Filter):
    """Passes on."""

    inbox: In[int]
    outbox: Out[int]

    def filter(self, item: int) -> list[int]:
        return [item]


def test_in_a_chain_a_suspended_link_holds_those_before_it_and_loses_nothing(run: Any) -> None:
    async def body() -> None:
        first: FusedConnector[int] = FusedConnector("first", int)
        second: FusedConnector[int] = FusedConnector("second", int)
        end: LocalConnector[int] = LocalConnector("end", int)
        links = []
        for source, target in ((first, second), (second, end)):
            link = Pass()
            link.bind({"inbox": In("inbox", source)}, {"outbox": Out("outbox", target)})
            links.append(Runner(link))
        out = Out("out", first)
        await out.send(1)
        await links[1].gate.suspend()
        sending = out.send_soon(2)
        await turns()
        assert not sending.done()
        assert end.statistics().waiting == 1
        assert (first.statistics().waiting, second.statistics().waiting) == (1, 1)
        links[1].gate.resume()
        await sending
        await links[0].gate.suspend()
        assert end.poll(10)[0] == [1, 2]
        assert (first.statistics().passed, second.statistics().passed) == (2, 2)

    run(body())
