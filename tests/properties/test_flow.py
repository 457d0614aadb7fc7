"""Random small graphs: every item passes exactly once, counters equal items, drain and exchanges leave nothing behind."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.engine.component import AsynchronousFilter, Consumer, Filter, Producer, SemiSynchronousFilter
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import FlowError
from gossamer.engine.local import FusedConnector, LocalConnector
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.runner import Runner
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import Sheet
from gossamer.engine.wiring import Wiring, from_plain
from gossamer.testing.clock import HUNG_AFTER


class Item(msgspec.Struct, frozen=True):
    """Who made it, and which of its items it is."""

    source: str
    number: int


class Pace(Sheet, frozen=True):
    """How many items, and how many turns of the loop each takes."""

    items: int = 0
    turns: int = 0


async def take_turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Source(Producer[Pace]):
    """Plain where it is quick, async where it is slow."""

    outbox: Out[Item]

    def produce(self) -> Any:
        return self.slowly() if self.sheet.turns else self.at_once()

    def at_once(self) -> Iterator[Item]:
        for number in range(self.sheet.items):
            yield Item(self.name, number)

    async def slowly(self) -> AsyncIterator[Item]:
        for item in self.at_once():
            await take_turns(self.sheet.turns)
            yield item


class Plain(Filter[Pace]):
    inbox: In[Item]
    outbox: Out[Item]

    def filter(self, item: Item) -> list[Item]:
        return [item]


class Emitting(Filter[Pace]):
    inbox: In[Item]
    outbox: Out[Item]

    def filter_many(self, items: list[Item]) -> None:
        for item in items:
            self.outbox.emit(item)


class Sending(Filter[Pace]):
    inbox: In[Item]
    outbox: Out[Item]

    async def filter(self, item: Item) -> None:
        await take_turns(self.sheet.turns)
        await self.outbox.send(item)


class Either(SemiSynchronousFilter[Pace]):
    inbox: In[Item]
    outbox: Out[Item]

    async def on_inbox(self, item: Item) -> list[Item]:
        await take_turns(self.sheet.turns)
        return [item]


class Store(AsynchronousFilter[Pace]):
    inbox: In[Item]
    outbox: Out[Item]

    def __init__(self, sheet: Pace | None = None) -> None:
        super().__init__(sheet)
        self.kept: list[Item] = []

    def on_inbox(self, item: Item) -> None:
        self.kept.append(item)
        self.signal("outbox")

    def take_outbox(self, free: int) -> list[Item]:
        taken, self.kept = self.kept[:free], self.kept[free:]
        return taken


class Keep(Consumer[Pace]):
    inbox: In[Item]

    def __init__(self, sheet: Pace | None = None) -> None:
        super().__init__(sheet)
        self.kept: list[Item] = []

    async def consume(self, item: Item) -> None:
        await take_turns(self.sheet.turns)
        self.kept.append(item)


CATALOG = Catalog(
    {
        "source": Source,
        "plain": Plain,
        "emitting": Emitting,
        "sending": Sending,
        "any": Either,
        "store": Store,
        "keep": Keep,
    }
)
POOLED = {"plain", "emitting", "sending", "keep"}
TURNS = st.integers(0, 3)

#: No deadline: the time of one example says nothing on a busy machine.
random_graphs = settings(deadline=None, max_examples=60)


@st.composite
def arrows(draw: st.DrawFn, consumers: list[dict[str, Any]]) -> dict[str, Any]:
    """A connector that may lead to these."""
    schemes = ["local:", "priority:number"]
    if len(consumers) == 1 and consumers[0]["use"] in POOLED and consumers[0]["instances"] == 1:
        schemes.append("fused:")
    return {"address": draw(st.sampled_from(schemes)), "capacity": draw(st.integers(1, 5))}


@st.composite
def wirings(draw: st.DrawFn) -> dict[str, Any]:
    """Sources, then layers of one to three filters, then consumers; all of a layer share the connector before it."""
    components: dict[str, Any] = {}
    layers: list[list[dict[str, Any]]] = []
    for depth in range(draw(st.integers(1, 4)) + 1):
        layer = []
        for _ in range(draw(st.integers(1, 3))):
            last = depth == 0
            use = "keep" if last else draw(st.sampled_from(["plain", "emitting", "sending", "any", "store"]))
            layer.append(
                {
                    "use": use,
                    "instances": draw(st.integers(1, 2)),
                    "workers": draw(st.integers(1, 3)) if use in POOLED else 1,
                    "settings": {"turns": draw(TURNS)},
                }
            )
        layers.insert(0, layer)
    connectors = {f"arrow-{depth}": draw(arrows(layer)) for depth, layer in enumerate(layers)}
    for number in range(draw(st.integers(1, 3))):
        settings = {"items": draw(st.integers(0, 30)), "turns": draw(TURNS)}
        components[f"source-{number}"] = {"use": "source", "ports": {"outbox": "arrow-0"}, "settings": settings}
    for depth, layer in enumerate(layers):
        for number, component in enumerate(layer):
            ports = {"inbox": f"arrow-{depth}"}
            if depth + 1 < len(layers):
                ports["outbox"] = f"arrow-{depth + 1}"
            components[f"unit-{depth}-{number}"] = {**component, "ports": ports}
    names = draw(st.permutations(list(components)))
    return {"connectors": connectors, "components": {name: components[name] for name in names}}


def made(wiring: dict[str, Any]) -> Counter[Item]:
    return Counter(
        Item(name, number)
        for name, component in wiring["components"].items()
        for number in range(component["settings"].get("items", 0))
    )


def kept(graph: RunningGraph) -> Counter[Item]:
    return Counter(
        item
        for runner in graph.runners.values()
        if isinstance(runner.component, Keep)
        for item in runner.component.kept
    )


def nothing_waits(graph: RunningGraph, items: int) -> None:
    for name, figures in graph.statistics().items():
        assert (figures.passed, figures.waiting) == (items, 0), name


@random_graphs
@given(wirings())
def test_every_item_passes_every_arrow_once(wiring: dict[str, Any]) -> None:
    async def body() -> None:
        graph = RunningGraph(plan(from_plain(wiring), CATALOG))
        async with asyncio.timeout(HUNG_AFTER):
            await graph.run()
        assert kept(graph) == made(wiring)
        nothing_waits(graph, made(wiring).total())
        for name, figures in graph.statistics().items():
            local = graph.graph.connectors[name].scheme != "fused"
            assert not local or figures.peak <= figures.capacity

    asyncio.run(body())


@random_graphs
@given(wirings(), st.integers(0, 40))
def test_a_drain_at_any_time_leaves_nothing_between(wiring: dict[str, Any], turns: int) -> None:
    async def body() -> None:
        graph = RunningGraph(plan(from_plain(wiring), CATALOG))
        async with asyncio.timeout(HUNG_AFTER):
            working = asyncio.create_task(graph.run())
            await take_turns(turns)
            graph.drain()
            await working
        arrived = kept(graph)
        assert set(arrived.values()) <= {1}
        for name in wiring["components"]:
            numbers = sorted(item.number for item in arrived if item.source == name)
            assert numbers == list(range(len(numbers))), f"of {name} a first part arrived, without gaps"
        nothing_waits(graph, arrived.total())

    asyncio.run(body())


CHANGES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["local:", "priority:number"]), st.integers(0, 9)), max_size=6
)


@random_graphs
@given(wirings(), CHANGES)
def test_exchanges_at_any_time_lose_nothing(wiring: dict[str, Any], changes: Any) -> None:
    async def body() -> None:
        graph = RunningGraph(plan(from_plain(wiring), CATALOG))
        async with asyncio.timeout(HUNG_AFTER):
            working = asyncio.create_task(graph.run())
            for depth, address, turns in changes:
                await take_turns(turns)
                name = f"arrow-{depth % len(wiring['connectors'])}"

                def other(wiring: Wiring, name: str = name, address: str = address) -> Wiring:
                    arrow = msgspec.structs.replace(wiring.connectors[name], address=address)
                    return msgspec.structs.replace(wiring, connectors={**wiring.connectors, name: arrow})

                exchange = asyncio.create_task(graph.apply(other, lambda wiring: plan(wiring, CATALOG)))
                # The graph may end first, and then says so.
                await asyncio.wait([exchange])
                if exchange.exception() is not None:
                    assert isinstance(exchange.exception(), FlowError)
                    assert any(words in str(exchange.exception()) for words in (" ended", "is not at work"))
            await working
        assert kept(graph) == made(wiring)
        nothing_waits(graph, made(wiring).total())

    asyncio.run(body())


@random_graphs
@given(
    st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=5),
    st.integers(1, 6),
    st.integers(0, 3),
    st.booleans(),
)
def test_bulks_of_many_producers_stay_contiguous(sizes: list[list[int]], capacity: int, pace: int, fused: bool) -> None:
    async def produce(out: Out[Item], source: str, bulks: list[int]) -> None:
        for number, size in enumerate(bulks):
            await take_turns(pace * number)
            await out.send_many([Item(f"{source}/{number}", position) for position in range(size)])
        out.close()

    async def body() -> None:
        arrow = FusedConnector("arrow", Item) if fused else LocalConnector("arrow", Item, capacity)
        keep = Keep(Pace(turns=pace))
        keep.bind({"inbox": In("inbox", arrow)}, {})
        outs = [Out("outbox", arrow) for _ in sizes]
        async with asyncio.timeout(HUNG_AFTER):
            producers = [produce(out, str(n), bulks) for n, (out, bulks) in enumerate(zip(outs, sizes, strict=True))]
            await asyncio.gather(Runner(keep).run(), *producers)
        bulks = Counter({f"{n}/{number}": size for n, sent in enumerate(sizes) for number, size in enumerate(sent)})
        received = list(keep.kept)
        while received:
            source = received[0].source
            size = bulks.pop(source)
            assert received[:size] == [Item(source, position) for position in range(size)]
            received = received[size:]
        assert not bulks

    asyncio.run(body())
