"""Every connector of ours keeps the promises of all connectors."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gossamer.engine.component import Consumer
from gossamer.engine.connector import Connector
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import Closed, WrongItem
from gossamer.engine.local import FusedConnector
from gossamer.engine.remote.links import Exchange
from gossamer.engine.runner import Runner
from gossamer.engine.transports import Opening, open_connector
from gossamer.testing.connectors import CHECKS, Check, Ends, Make, Numbered

SECRET = {"GOSSAMER_SECRET": "a secret of sufficient length"}


def whole(address: str, **options: Any) -> Make:
    """A connector with both ends here."""

    @asynccontextmanager
    async def make(capacity: int) -> AsyncIterator[Ends]:
        opening = Opening(
            name="tested",
            item_type=Numbered,
            address=address,
            capacity=capacity,
            options=options,
            exchange=Exchange(SECRET),
        )
        connector: Connector[Numbered] = open_connector(opening)
        await connector.start()
        try:
            yield Ends(connector, connector)
        finally:
            await connector.stop()

    return make


def divided(address: str, **options: Any) -> Make:
    """A connector whose sides are two objects that share nothing but the address, as in two processes."""

    @asynccontextmanager
    async def make(capacity: int) -> AsyncIterator[Ends]:
        sides: list[Connector[Numbered]] = [
            open_connector(
                Opening(
                    name="tested",
                    item_type=Numbered,
                    address=address,
                    capacity=capacity,
                    side=side,
                    options=options,
                    exchange=Exchange(SECRET),
                )
            )
            for side in ("send", "receive")
        ]
        for side in sides:
            await side.start()
        try:
            yield Ends(*sides)
        finally:
            for side in sides:
                await side.stop()

    return make


KINDS: dict[str, Callable[[Path], Make]] = {
    "local": lambda folder: whole("local:"),
    "priority": lambda folder: whole("priority:number"),
    "unix": lambda folder: whole(f"unix:{folder}/s", batch=50),
    "unix, small frames": lambda folder: whole(f"unix:{folder}/s", batch=3, window=5),
    "unix, sender listens": lambda folder: whole(f"unix:{folder}/s", listen="sender", batch=50),
    "unix, journal": lambda folder: whole(f"unix:{folder}/s", journal=f"{folder}/journal", batch=10),
    "tcp": lambda folder: whole("tcp:127.0.0.1:0", batch=50),
    "unix, divided": lambda folder: divided(f"unix:{folder}/s", batch=10),
    "unix, divided, journal": lambda folder: divided(f"unix:{folder}/s", batch=10, journal=f"{folder}/journal"),
}

#: A heap sorts what a FIFO keeps as it came: two bulks of one value are one, and a late item may overtake.
UNORDERED = {"check_bulks_stay_contiguous"}


@pytest.mark.parametrize(("check", "capacity"), CHECKS, ids=[check.__name__ for check, _ in CHECKS])
@pytest.mark.parametrize("kind", KINDS)
def test_connector_keeps(
    kind: str, check: Check, capacity: int, run: Callable[[Any], Any], socket_folder: Path
) -> None:
    if kind == "priority" and check.__name__ in UNORDERED:
        pytest.skip("a priority connector orders bulks by value")

    async def test() -> None:
        async with KINDS[kind](socket_folder)(capacity) as ends:
            await check(ends)

    run(test())


def test_fused_calls_its_consumer_in_place_and_counts(run: Callable[[Any], Any]) -> None:
    async def test() -> None:
        connector = FusedConnector("fused", Numbered)
        received: list[Numbered] = []

        class Keep(Consumer):
            inbox: In[Numbered]

            def consume(self, item: Numbered) -> None:
                received.append(item)

        keep = Keep()
        keep.bind({"inbox": In("inbox", connector)}, {})
        Runner(keep)
        out = Out("out", connector)
        await out.send(Numbered(1))
        await out.send_many([Numbered(2), Numbered(3)])
        with pytest.raises(WrongItem):
            await out.send("wrong")  # type: ignore[arg-type]  # that is the point
        out.close()
        with pytest.raises(Closed):
            await out.send(Numbered(4))
        assert received == [Numbered(1), Numbered(2), Numbered(3)]
        assert connector.statistics().passed == 3

    run(test())
