"""Changes while items flow: nothing is lost, order and counters are kept, what does not fit is refused and changes nothing."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from gossamer.engine.component import AsynchronousFilter, Consumer, Filter, Producer, SynchronousFilter
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.errors import ComponentFailed, FlowError, WiringError
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import Difference, Wiring, changed, parse

TOTAL = 400


class Number(msgspec.Struct, frozen=True):
    """An item with a field to sort by."""

    value: int


class Reads(Protocol):
    """An interface."""

    def read(self) -> str: ...


class Count(Producer):
    """Sends `TOTAL` numbers, with a turn of the loop between two."""

    outbox: Out[Number]
    first = 0

    async def produce(self) -> AsyncIterator[Number]:
        for value in range(self.first, self.first + TOTAL):
            yield Number(value)
            await asyncio.sleep(0)


class CountOn(Count):
    first = TOTAL


class Bulks(Filter):
    """Makes a bulk of ten of each number."""

    inbox: In[Number]
    outbox: Out[Number]

    def filter(self, item: Number) -> Iterator[Number]:
        for digit in range(10):
            yield Number(item.value * 10 + digit)


class Slow(Filter):
    """Passes on, with turns of the loop between."""

    inbox: In[Number]
    outbox: Out[Number]
    fail_at = -1

    async def filter(self, item: Number) -> list[Number]:
        for _ in range(3):
            await asyncio.sleep(0)
        if item.value == self.fail_at:
            raise ValueError("enough")
        return [item]


class Spilling(AsynchronousFilter):
    """Keeps without bound, gives when there is room."""

    inbox: In[Number]
    outbox: Out[Number]
    spills = frozenset({"inbox"})

    def __init__(self, sheet: Any = None) -> None:
        super().__init__(sheet)
        self.kept: list[Number] = []

    def on_inbox(self, item: Number) -> None:
        self.kept.append(item)
        self.signal("outbox")

    def take_outbox(self, free: int) -> list[Number]:
        taken, self.kept = self.kept[:free], self.kept[free:]
        return taken


class Join(SynchronousFilter):
    """Two streams of one producer."""

    a: In[Number]
    b: In[Number]
    outbox: Out[Number]

    def filter(self, a: Number, b: Number) -> list[Number]:
        assert a == b
        return [a]


class Split(Filter):
    """Feeds two streams in turn."""

    inbox: In[Number]
    a: Out[Number]
    b: Out[Number]

    async def filter(self, item: Number) -> None:
        await self.b.send(item)
        await self.a.send(item)


class Keep(Consumer):
    """Remembers, and asks its provider with each item."""

    inbox: In[Number]
    label: Uses[Reads]

    def __init__(self, sheet: Any = None) -> None:
        super().__init__(sheet)
        self.kept: list[int] = []
        self.labels: list[str] = []

    async def consume(self, item: Number) -> None:
        label = self.label
        await asyncio.sleep(0)
        self.labels.append(label.read())
        self.kept.append(item.value)


class Plain(Provider):
    """Answers, unless it was stopped."""

    stopped = False
    text = "plain"

    async def stop(self) -> None:
        self.stopped = True

    def read(self) -> str:
        assert not self.stopped, "a stopped provider is in use"
        self.metrics.count("reads")
        return self.text


class Other(Plain):
    text = "other"


class Cached(Plain):
    behind: Uses[Reads]

    def read(self) -> str:
        return f"cached {self.behind.read()}"


class Deaf(Provider):
    """Has no method."""


class Broken(Slow):
    """Does not start."""

    async def start(self) -> None:
        raise OSError("no")


class Failing(Plain):
    """Does not start."""

    async def start(self) -> None:
        raise OSError("no")


CATALOG = Catalog(
    {
        "count": Count,
        "on": CountOn,
        "bulks": Bulks,
        "slow": Slow,
        "spilling": Spilling,
        "join": Join,
        "split": Split,
        "keep": Keep,
        "broken": Broken,
    },
    {"plain": Plain, "other": Other, "cached": Cached, "deaf": Deaf, "failing": Failing},
)

WIRING = """
[providers.label]
use = "plain"
[connectors.numbers]
capacity = 4
[connectors.passed]
capacity = 4
[components.count]
use = "count"
ports = { outbox = "numbers" }
[components.slow]
use = "slow"
ports = { inbox = "numbers", outbox = "passed" }
[components.keep]
use = "keep"
ports = { inbox = "passed" }
providers = { label = "label" }
"""


async def turns(count: int = 60) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def graph_of(text: str) -> RunningGraph:
    return RunningGraph(plan(parse(text), CATALOG))


def kept(graph: RunningGraph) -> list[int]:
    return [value for runner in graph.instances("keep") for value in runner.component.kept]  # type: ignore[attr-defined]


def while_running(
    text: str, change: Callable[[RunningGraph], Awaitable[None]], *, expected: list[int] | None = None
) -> Callable[[], Any]:
    """Run a wiring, change it while items flow, and see that every item came through once."""

    async def body() -> RunningGraph:
        graph = graph_of(text)
        working = asyncio.create_task(graph.run())
        await turns()
        assert 0 < len(kept(graph)) < TOTAL, "the change must meet a graph at work"
        await change(graph)
        await working
        assert sorted(kept(graph)) == (list(range(TOTAL)) if expected is None else expected)
        return graph

    return body  # type: ignore[return-value]


def planned(wiring: Wiring) -> Graph:
    return plan(wiring, CATALOG)


async def become(graph: RunningGraph, text: str, catalog: Catalog = CATALOG) -> None:
    """Change a running graph by what a change file says."""
    await graph.apply(lambda wiring: changed(wiring, text), lambda wiring: plan(wiring, catalog))


async def exchange(graph: RunningGraph, name: str, address: str) -> None:
    """Another connector between the same ends, also where the address stays."""
    node = graph.graph.connectors.get(name)
    capacity = 5 if node is not None and node.plan.capacity == 4 else 4
    await become(graph, f'[connectors.{name}]\naddress = "{address}"\ncapacity = {capacity}')


# -- connectors


def test_a_connector_goes_through_all_schemes_while_items_flow(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for address in ("priority:value", "fused:", "local:", "fused:", "priority:value", "local:"):
            await exchange(graph, "numbers", address)
            await turns(7)

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL)), "one worker: the order is kept, too"
    assert {name: figures.passed for name, figures in graph.statistics().items()} == {"numbers": TOTAL, "passed": TOTAL}
    assert graph.graph.connectors["numbers"].plan.address == "local:"


def test_a_connector_becomes_remote_and_local_again_while_items_flow(run: Any, socket_folder: Path) -> None:
    async def change(graph: RunningGraph) -> None:
        await exchange(graph, "numbers", f"unix:{socket_folder / 'a'}")
        await turns()
        await exchange(graph, "numbers", f"unix:{socket_folder / 'b'}")
        await exchange(graph, "numbers", "local:")

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL))
    assert graph.statistics()["numbers"].passed == TOTAL


@pytest.mark.parametrize("scheme", ["local:", "fused:", "priority:value"])
def test_an_exchange_in_the_middle_of_a_bulk_keeps_it_whole(scheme: str, run: Any) -> None:
    text = WIRING.replace('use = "slow"', 'use = "bulks"')

    async def change(graph: RunningGraph) -> None:
        for _ in range(5):
            await exchange(graph, "passed", scheme)
            await turns(3)
            await exchange(graph, "passed", "local:")

    async def body() -> None:
        graph = graph_of(text)
        working = asyncio.create_task(graph.run())
        await turns()
        await change(graph)
        await working
        assert kept(graph) == list(range(10 * TOTAL))
        assert graph.statistics()["passed"].passed == 10 * TOTAL

    run(body())


@pytest.mark.parametrize("address", ["local:", "priority:value"])
def test_a_connector_is_exchanged_while_its_consumer_is_suspended(address: str, run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.suspend("slow")
        await turns()
        assert graph.connectors["numbers"].statistics().waiting == 4
        await exchange(graph, "numbers", address)
        # One more than before: the producer was in the middle of sending it.
        assert graph.connectors["numbers"].statistics().waiting == 5
        graph.resume("slow")

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL))
    assert graph.statistics()["numbers"].passed == TOTAL


def test_a_connector_becomes_fused_when_its_suspended_consumer_goes_on(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.suspend("slow")
        exchanging = asyncio.create_task(exchange(graph, "numbers", "fused:"))
        await turns()
        assert not exchanging.done()
        graph.resume("slow")
        await exchanging

    assert kept(run(while_running(WIRING, change)())) == list(range(TOTAL))


JOINED = """
[providers.label]
use = "plain"
[connectors.numbers]
[connectors.a]
capacity = 2
[connectors.b]
capacity = 2
[connectors.joined]
[components.count]
use = "count"
ports = { outbox = "numbers" }
[components.split]
use = "split"
ports = { inbox = "numbers", a = "a", b = "b" }
[components.join]
use = "join"
ports = { a = "a", b = "b", outbox = "joined" }
[components.keep]
use = "keep"
ports = { inbox = "joined" }
providers = { label = "label" }
"""


@pytest.mark.parametrize("name", ["a", "b", "joined"])
def test_an_exchange_does_not_wait_for_a_consumer_that_waits_for_the_held_producer(name: str, run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for _ in range(3):
            await exchange(graph, name, "local:")
            await turns(5)

    assert kept(run(while_running(JOINED, change)())) == list(range(TOTAL))


def test_an_exchange_next_to_an_asynchronous_filter_loses_nothing(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for name in ("passed", "numbers", "passed"):
            await exchange(graph, name, "priority:value")
            await turns(5)

    run(while_running(WIRING.replace('use = "slow"', 'use = "spilling"'), change)())


def test_a_stream_that_ends_while_it_is_moved_ends_behind_it_too(run: Any) -> None:
    async def body() -> None:
        graph = graph_of(WIRING.replace("capacity = 4", "capacity = 1000"))
        working = asyncio.create_task(graph.run())
        await turns(3)
        await graph.suspend("slow")
        while not graph.connectors["numbers"].ended:
            await asyncio.sleep(0)
        await exchange(graph, "numbers", "priority:value")
        await exchange(graph, "numbers", "local:")
        graph.resume("slow")
        await working
        assert kept(graph) == list(range(TOTAL))

    run(body())


def test_exchanges_that_are_asked_for_at_once_are_made_one_after_the_other(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await asyncio.gather(*(exchange(graph, name, "local:") for name in ("numbers", "passed") * 3))

    run(while_running(WIRING, change)())


def test_an_exchange_is_finished_when_who_asked_for_it_gives_up(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.suspend("slow")
        exchanging = asyncio.create_task(exchange(graph, "numbers", "fused:"))
        await turns()
        exchanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await exchanging
        graph.resume("slow")
        while graph.graph.connectors["numbers"].scheme != "fused":
            await asyncio.sleep(0)

    run(while_running(WIRING, change)())


def test_an_exchange_that_the_end_overtakes_says_so(run: Any) -> None:
    async def body() -> None:
        graph = graph_of(WIRING)
        working = asyncio.create_task(graph.run())
        await turns()
        await graph.suspend("slow")
        exchanging = asyncio.create_task(exchange(graph, "numbers", "fused:"))
        await turns()
        working.cancel()
        with pytest.raises(FlowError, match="ended before the change was made"):
            await exchanging
        with pytest.raises(asyncio.CancelledError):
            await working

    run(body())


@pytest.mark.parametrize(
    ("name", "address", "message"),
    [
        ("numbers", "pigeon:", "pigeon"),
        ("numbers", "priority:colour", "have no field 'colour'; known: value"),
        ("number", "local:", "connectors.number: nothing produces into it"),
    ],
)
def test_an_exchange_that_does_not_fit_is_refused_and_changes_nothing(
    name: str, address: str, message: str, run: Any
) -> None:
    async def change(graph: RunningGraph) -> None:
        before = graph.graph
        with pytest.raises(WiringError, match=message):
            await exchange(graph, name, address)
        assert graph.graph == before

    run(while_running(WIRING, change)())


def test_a_connector_to_several_cannot_become_fused(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        with pytest.raises(
            WiringError, match=r"connectors\.passed\.address: fused: takes one consumer of one instance"
        ):
            await exchange(graph, "passed", "fused:")
        await exchange(graph, "passed", "local:")

    run(while_running(WIRING.replace('use = "keep"', 'use = "keep"\ninstances = 2'), change)())


# -- providers


def test_a_provider_is_exchanged_while_it_is_in_use(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        old = graph.providers["label"]
        await become(graph, '[providers.label]\nuse = "other"')
        assert old.stopped  # type: ignore[attr-defined]
        assert graph.graph.providers["label"].use == "other"

    graph = run(while_running(WIRING, change)())
    labels: list[str] = graph.unit("keep").labels  # type: ignore[attr-defined]
    assert set(labels) == {"plain", "other"}
    assert labels == sorted(labels, reverse=True), "once exchanged, nobody asks the old one"


CACHE = """
[providers.cache]
use = "cached"
providers = { behind = "label" }
[components.keep.providers]
label = "cache"
"""


def test_a_cache_is_slipped_before_a_provider_and_taken_away_again(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await become(graph, CACHE)
        assert [*graph.providers] == [*graph.graph.providers] == ["label", "cache"]
        await turns()
        cache, reads = graph.providers["cache"], graph.metrics("label")["reads"]
        assert reads > 0
        await graph.undo(planned)
        assert [*graph.providers] == ["label"]
        assert cache.stopped  # type: ignore[attr-defined]
        await turns()
        assert graph.metrics("label")["reads"] > reads, "the provider behind it is the same one"

    graph = run(while_running(WIRING, change)())
    labels: list[str] = graph.unit("keep").labels  # type: ignore[attr-defined]
    assert [key for key, _ in itertools.groupby(labels)] == ["plain", "cached plain", "plain"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[providers.label]\nuse = "deaf"', r"provider 'label' \(Deaf\) is not a Reads: it lacks read\(\)"),
        (CACHE.replace('behind = "label"', 'behind = "lable"'), "no provider 'lable'; did you mean 'label'"),
        ('[providers.label]\nuse = "failing"', "unit 'label' cannot start: OSError: no"),
        ('[providers.lable]\nuse = "other"', "providers.lable: nothing uses it"),
        ('[providers.label]\nuse = "othr"', "unknown provider 'othr'; did you mean 'other'"),
    ],
)
def test_a_provider_that_does_not_fit_is_refused_and_changes_nothing(text: str, message: str, run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        before = graph.graph
        with pytest.raises(FlowError, match=message):
            await become(graph, text)
        assert graph.graph == before
        assert [*graph.providers] == ["label"]
        assert not graph.history

    graph = run(while_running(WIRING, change)())
    assert set(graph.unit("keep").labels) == {"plain"}  # type: ignore[attr-defined]


def test_what_a_provider_remembers_is_not_lost_to_another(run: Any) -> None:
    class Remembering(Plain):
        keeps_state = True

    known = Catalog(
        {"count": Count, "slow": Slow, "keep": Keep}, {"plain": Remembering, "other": Other, "cached": Cached}
    )

    async def body() -> None:
        graph = RunningGraph(plan(parse(WIRING), known))
        working = asyncio.create_task(graph.run())
        await turns()
        with pytest.raises(
            WiringError, match=r"keep\.providers\.label: 'label' remembers what another in its place would not"
        ):
            await become(graph, '[providers.label]\nuse = "other"', known)
        await become(graph, CACHE, known)
        await graph.undo(lambda wiring: plan(wiring, known))
        await working

    run(body())


# -- components

SECOND = '[components.second]\nuse = "on"\nports = { outbox = "numbers" }\n'
HELPER = '[components.helper]\nuse = "slow"\nports = { inbox = "numbers", outbox = "passed" }\n'


def test_a_producer_is_added_and_takes_part_in_later_exchanges(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await become(graph, SECOND)
        assert graph.graph.connectors["numbers"].producers == ("count", "second")
        await turns()
        await exchange(graph, "numbers", "priority:value")
        await turns()
        await exchange(graph, "numbers", "local:")

    graph = run(while_running(WIRING, change, expected=list(range(2 * TOTAL)))())
    assert graph.statistics()["numbers"].passed == 2 * TOTAL


def test_a_helper_is_added_and_removed_again_losing_nothing(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for _ in range(3):
            await become(graph, HELPER)
            await turns(20)
            await exchange(graph, "numbers", "local:")
            await become(graph, 'remove = ["helper"]')
            assert "helper" not in graph.graph.components
            assert "helper" not in graph.runners

    graph = run(while_running(WIRING, change)())
    assert graph.statistics()["passed"].passed == TOTAL


def test_the_first_of_two_is_removed_and_the_other_goes_on(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await become(graph, HELPER)
        await become(graph, 'remove = ["slow"]')

    run(while_running(WIRING, change)())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('remove = ["slow"]', "connectors.numbers: nothing consumes from it"),
        ('remove = ["count"]', "connectors.numbers: nothing produces into it"),
        ('remove = ["slw"]', "there is no 'slw'"),
        (
            '[components.label]\nuse = "slow"\nports = {inbox = "numbers", outbox = "passed"}',
            "a component has this name",
        ),
        (HELPER.replace('"passed"', '"pased"'), "no connector 'pased'; did you mean 'passed'"),
        (HELPER.replace('"passed"', '"numbers"'), "helper -> helper is a ring in which no input spills"),
        (HELPER + 'process = "other"', "'local:' joins processes main, other"),
        (HELPER.replace('"slow"', '"broken"'), "unit 'helper' cannot start: OSError: no"),
        (HELPER + "colour = 1", "unknown key 'colour'"),
    ],
)
def test_a_component_that_does_not_fit_is_refused_and_changes_nothing(text: str, message: str, run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        before, runners = graph.graph, [*graph.runners]
        with pytest.raises(FlowError, match=message):
            await become(graph, text)
        assert graph.graph == before
        assert [*graph.runners] == runners

    run(while_running(WIRING, change)())


def test_a_stream_that_has_ended_takes_no_new_producer(run: Any) -> None:
    async def body() -> None:
        graph = graph_of(WIRING.replace("capacity = 4", "capacity = 1000"))
        working = asyncio.create_task(graph.run())
        await turns(3)
        await graph.suspend("keep")
        while not graph.connectors["numbers"].ended:
            await asyncio.sleep(0)
        with pytest.raises(WiringError, match=r"components\.second: connector 'numbers' has ended"):
            await become(graph, SECOND)
        graph.resume("keep")
        await working

    run(body())


def test_a_component_that_fails_while_it_leaves_stops_the_crawl(run: Any) -> None:
    class Failing(Slow):
        async def filter(self, item: Number) -> list[Number]:
            await turns(30)
            raise ValueError("enough")

    async def body() -> None:
        graph = graph_of(WIRING)
        working = asyncio.create_task(graph.run())
        await turns()
        known = Catalog({"count": Count, "slow": Slow, "keep": Keep, "failing": Failing}, {"plain": Plain})
        await become(graph, HELPER.replace('"slow"', '"failing"'), known)
        await turns(10)
        removing = asyncio.create_task(become(graph, 'remove = ["helper"]', known))
        with pytest.raises(ComponentFailed, match=r"component 'helper' failed on .*enough"):
            await working
        await asyncio.wait([removing])
        removing.exception()

    run(body())


# -- the graph as a whole

#: A filter slipped in behind another, with an arrow of its own.
SLIPPED = """
[connectors.%(arrow)s]
address = "%(address)s"
[components.%(arrow)s]
use = "slow"
ports = { inbox = "passed", outbox = "%(arrow)s" }
[components.keep]
ports = { inbox = "%(arrow)s" }
"""


@pytest.mark.parametrize("address", ["local:", "fused:"])
@pytest.mark.parametrize("before", ["local:", "fused:"])
def test_a_filter_is_slipped_into_an_arrow_and_taken_out_while_items_flow(before: str, address: str, run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        plain = graph.wiring
        for _ in range(4):
            await become(graph, SLIPPED % {"arrow": "more", "address": address})
            assert graph.graph.connectors["passed"].consumers == ("more",)
            await turns(9)
            assert graph.metrics("more")["items"] > 0
            await graph.undo(planned)
            assert graph.wiring == plain
            await turns(9)

    graph = run(
        while_running(WIRING.replace("[connectors.passed]", f'[connectors.passed]\naddress = "{before}"'), change)()
    )
    assert kept(graph) == list(range(TOTAL)), "one worker each: the order is kept, too"
    assert graph.statistics()["passed"].passed == TOTAL


def test_every_part_of_a_chain_may_leave_at_once(run: Any) -> None:
    chain = (
        '[connectors.a]\naddress = "fused:"\n[connectors.b]\naddress = "fused:"\n[connectors.c]\n'
        '[components.one]\nuse = "slow"\nports = { inbox = "passed", outbox = "a" }\n'
        '[components.two]\nuse = "slow"\nports = { inbox = "a", outbox = "b" }\n'
        '[components.three]\nuse = "slow"\nports = { inbox = "b", outbox = "c" }\n'
        '[components.keep]\nports = { inbox = "c" }\n'
    )

    async def change(graph: RunningGraph) -> None:
        await become(graph, chain)
        await turns(20)
        await graph.undo(planned)

    assert kept(run(while_running(WIRING, change)())) == list(range(TOTAL))


def test_a_component_is_exchanged_for_another_of_its_name_and_finishes_what_it_holds(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for restarts in (2, 4, 1):
            before = graph.unit("slow")
            await become(graph, f"[components.slow]\nrestarts = {restarts}")
            assert graph.unit("slow") is not before
            await turns(9)

    run(while_running(WIRING, change)())


def test_a_pool_gets_another_size_while_items_flow(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        before = graph.unit("slow")
        for workers in (4, 2, 1):
            await become(graph, f"[components.slow]\nworkers = {workers}")
            assert graph.unit("slow") is before
            await turns(9)

    run(while_running(WIRING, change)())


def test_a_producer_feeds_another_arrow_from_now_on(run: Any) -> None:
    text = (
        'remove = ["connectors.numbers"]\n[connectors.other]\n[components.count]\nports = { outbox = "other" }\n'
        '[components.slow]\nports = { inbox = "other" }\n'
    )

    async def change(graph: RunningGraph) -> None:
        await become(graph, text)
        assert [*graph.statistics()] == ["passed", "other"]
        await turns(9)
        await graph.undo(planned)

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL))
    assert graph.statistics()["numbers"].passed < TOTAL + 1


def test_a_change_that_fails_halfway_has_changed_nothing(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        before, units = graph.wiring, graph.graph
        text = '[providers.cache]\nuse = "cached"\nproviders = { behind = "label" }\n' + HELPER.replace(
            '"slow"', '"broken"'
        )
        text += '[components.keep.providers]\nlabel = "cache"\n'
        with pytest.raises(FlowError, match="unit 'helper' cannot start"):
            await become(graph, text)
        assert (graph.wiring, graph.graph) == (before, units)
        assert [*graph.providers] == ["label"]
        await turns()
        assert graph.connectors["passed"].producers == 1

    run(while_running(WIRING, change)())


def test_settings_changed_meanwhile_outlive_an_undo() -> None:
    plain = parse(WIRING)
    more = changed(plain, "[components.slow]\nworkers = 2\nsettings = { a = 1, b = 2 }")
    since = changed(more, "[components.slow]\nsettings = { a = 1, c = 3 }")
    back = Difference.between(plain, more).opposite.applied(since)
    assert back.components["slow"].workers == 1
    assert back.components["slow"].settings == {"c": 3}


def test_a_graph_that_was_never_changed_has_nothing_to_undo(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        with pytest.raises(WiringError, match="nothing to undo"):
            await graph.undo(planned)

    run(while_running(WIRING, change)())
