"""Changes while items flow: nothing is lost, order and counters are kept, what does not fit is refused and changes nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from gossamer.flow.catalog import Catalog
from gossamer.flow.component import AsynchronousFilter, Consumer, Filter, Producer, SynchronousFilter
from gossamer.flow.ends import In, Out
from gossamer.flow.errors import ComponentFailed, FlowError, UnknownName, WiringError
from gossamer.flow.graph import ComponentNode, ProviderNode
from gossamer.flow.planning import plan
from gossamer.flow.ports import Uses
from gossamer.flow.running import RunningGraph
from gossamer.flow.unit import Provider
from gossamer.flow.wiring import parse

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


def node(text: str, name: str) -> Any:
    """A node as planning makes it, out of a whole wiring."""
    graph = plan(parse(text), CATALOG)
    return {**graph.components, **graph.providers}[name]


def provider(use: str, **roles: str) -> ProviderNode:
    return ProviderNode("label", use, CATALOG.provider(use), CATALOG.provider(use)().sheet, roles)


# -- connectors


def test_a_connector_goes_through_all_schemes_while_items_flow(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for address in ("priority:value", "fused:", "local:", "fused:", "priority:value", "local:"):
            await graph.exchange_connector("numbers", address)
            await turns(7)

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL)), "one worker: the order is kept, too"
    assert {name: figures.passed for name, figures in graph.statistics().items()} == {"numbers": TOTAL, "passed": TOTAL}
    assert graph.graph.connectors["numbers"].plan.address == "local:"


def test_a_connector_becomes_remote_and_local_again_while_items_flow(run: Any, socket_folder: Path) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.exchange_connector("numbers", f"unix:{socket_folder / 'a'}")
        await turns()
        await graph.exchange_connector("numbers", f"unix:{socket_folder / 'b'}")
        await graph.exchange_connector("numbers", "local:")

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL))
    assert graph.statistics()["numbers"].passed == TOTAL


@pytest.mark.parametrize("scheme", ["local:", "fused:", "priority:value"])
def test_an_exchange_in_the_middle_of_a_bulk_keeps_it_whole(scheme: str, run: Any) -> None:
    text = WIRING.replace('use = "slow"', 'use = "bulks"')

    async def change(graph: RunningGraph) -> None:
        for _ in range(5):
            await graph.exchange_connector("passed", scheme)
            await turns(3)
            await graph.exchange_connector("passed", "local:")

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
        await graph.exchange_connector("numbers", address)
        # One more than before: the producer was in the middle of sending it.
        assert graph.connectors["numbers"].statistics().waiting == 5
        graph.resume("slow")

    graph = run(while_running(WIRING, change)())
    assert kept(graph) == list(range(TOTAL))
    assert graph.statistics()["numbers"].passed == TOTAL


def test_a_connector_becomes_fused_when_its_suspended_consumer_goes_on(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.suspend("slow")
        exchanging = asyncio.create_task(graph.exchange_connector("numbers", "fused:"))
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
            await graph.exchange_connector(name, "local:")
            await turns(5)

    assert kept(run(while_running(JOINED, change)())) == list(range(TOTAL))


def test_an_exchange_next_to_an_asynchronous_filter_loses_nothing(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for name in ("passed", "numbers", "passed"):
            await graph.exchange_connector(name, "priority:value")
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
        await graph.exchange_connector("numbers", "priority:value")
        await graph.exchange_connector("numbers", "local:")
        graph.resume("slow")
        await working
        assert kept(graph) == list(range(TOTAL))

    run(body())


def test_exchanges_that_are_asked_for_at_once_are_made_one_after_the_other(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await asyncio.gather(*(graph.exchange_connector(name, "local:") for name in ("numbers", "passed") * 3))

    run(while_running(WIRING, change)())


def test_an_exchange_is_finished_when_who_asked_for_it_gives_up(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.suspend("slow")
        exchanging = asyncio.create_task(graph.exchange_connector("numbers", "fused:"))
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
        exchanging = asyncio.create_task(graph.exchange_connector("numbers", "fused:"))
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
        ("number", "local:", "no connector 'number' runs in process 'main'; did you mean 'numbers'"),
    ],
)
def test_an_exchange_that_does_not_fit_is_refused_and_changes_nothing(
    name: str, address: str, message: str, run: Any
) -> None:
    async def change(graph: RunningGraph) -> None:
        before = graph.graph
        with pytest.raises(WiringError, match=message):
            await graph.exchange_connector(name, address)
        assert graph.graph == before

    run(while_running(WIRING, change)())


def test_a_connector_to_several_cannot_become_fused(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        with pytest.raises(
            WiringError, match=r"connector 'passed' cannot become 'fused:': .*takes one consumer of one instance"
        ):
            await graph.exchange_connector("passed", "fused:")
        await graph.exchange_connector("passed", "local:")

    run(while_running(WIRING.replace('use = "keep"', 'use = "keep"\ninstances = 2'), change)())


# -- providers


def test_a_provider_is_exchanged_while_it_is_in_use(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        old = graph.providers["label"]
        await graph.exchange_provider("label", provider("other"))
        assert old.stopped  # type: ignore[attr-defined]
        assert graph.graph.providers["label"].use == "other"

    graph = run(while_running(WIRING, change)())
    labels: list[str] = graph.unit("keep").labels  # type: ignore[attr-defined]
    assert set(labels) == {"plain", "other"}
    assert labels == sorted(labels, reverse=True), "once exchanged, nobody asks the old one"


def test_a_cache_is_slipped_before_a_provider_which_stays_visible(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.exchange_provider("label", provider("cached", behind="label"))
        await turns()
        await graph.exchange_provider("label", provider("cached", behind="label"))
        assert [*graph.providers] == ["label-behind", "label-behind-2", "label"]
        assert [*graph.graph.providers] == ["label-behind", "label-behind-2", "label"]
        await turns()
        assert graph.metrics("label-behind")["reads"] > 0

    graph = run(while_running(WIRING, change)())
    assert graph.unit("keep").labels[-1] == "cached cached plain"  # type: ignore[attr-defined]
    assert all(unit.stopped for unit in graph.providers.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "new", "message"),
    [
        (
            "label",
            provider("deaf"),
            r"provider 'label' cannot be exchanged for 'deaf': Deaf is no Reads, as keep\.label needs: it lacks read\(\)",
        ),
        ("label", provider("cached", behind="lable"), "no provider 'lable' runs here; did you mean 'label'"),
        ("label", provider("failing"), "unit 'label' cannot start: OSError: no"),
        ("lable", provider("other"), "no provider 'lable' runs in process 'main'; did you mean 'label'"),
    ],
)
def test_a_provider_that_does_not_fit_is_refused_and_changes_nothing(
    name: str, new: ProviderNode, message: str, run: Any
) -> None:
    async def change(graph: RunningGraph) -> None:
        before = graph.graph
        with pytest.raises(FlowError, match=message):
            await graph.exchange_provider(name, new)
        assert graph.graph == before
        assert [*graph.providers] == ["label"]

    graph = run(while_running(WIRING, change)())
    assert set(graph.unit("keep").labels) == {"plain"}  # type: ignore[attr-defined]


# -- components

SECOND = '[components.second]\nuse = "on"\nports = { outbox = "numbers" }\n'
HELPER = '[components.helper]\nuse = "slow"\nports = { inbox = "numbers", outbox = "passed" }\n'


def test_a_producer_is_added_and_takes_part_in_later_exchanges(run: Any) -> None:
    added: ComponentNode = node(WIRING + SECOND, "second")

    async def change(graph: RunningGraph) -> None:
        await graph.add_component(added)
        assert graph.graph.connectors["numbers"].producers == ("count", "second")
        await turns()
        await graph.exchange_connector("numbers", "priority:value")
        await turns()
        await graph.exchange_connector("numbers", "local:")

    graph = run(while_running(WIRING, change, expected=list(range(2 * TOTAL)))())
    assert graph.statistics()["numbers"].passed == 2 * TOTAL


def test_a_helper_is_added_and_removed_again_losing_nothing(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        for _ in range(3):
            await graph.add_component(node(WIRING + HELPER, "helper"))
            await turns(20)
            await graph.exchange_connector("numbers", "local:")
            await graph.remove_component("helper")
            assert "helper" not in graph.graph.components
            assert "helper" not in graph.runners

    graph = run(while_running(WIRING, change)())
    assert graph.statistics()["passed"].passed == TOTAL


def test_the_first_of_two_is_removed_and_the_other_goes_on(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        await graph.add_component(node(WIRING + HELPER, "helper"))
        await graph.remove_component("slow")

    run(while_running(WIRING, change)())


def test_a_removed_producer_ends_its_stream(run: Any) -> None:
    async def body() -> None:
        graph = graph_of(WIRING)
        working = asyncio.create_task(graph.run())
        await turns()
        await graph.remove_component("count")
        await working
        values = kept(graph)
        assert 0 < len(values) < TOTAL
        assert values == list(range(len(values)))
        assert graph.statistics()["numbers"].passed == len(values)

    run(body())


def test_the_last_consumer_cannot_be_removed(run: Any) -> None:
    async def change(graph: RunningGraph) -> None:
        with pytest.raises(
            WiringError, match="component 'slow' cannot be removed: nothing else takes what count puts into 'numbers'"
        ):
            await graph.remove_component("slow")
        with pytest.raises(UnknownName, match="no component 'slw' runs in process 'main'; did you mean 'slow'"):
            await graph.remove_component("slw")

    run(while_running(WIRING, change)())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "keep"}, "component 'keep' cannot be added: a unit of this name runs already"),
        ({"name": "label"}, "component 'label' cannot be added: a unit of this name runs already"),
        ({"outputs": {"outbox": "number"}}, "no connector 'number' runs in process 'main'; did you mean 'numbers'"),
        (
            {"roles": {"x": "lable"}},
            "component 'helper' cannot be added: no provider 'lable' runs here; did you mean 'label'",
        ),
        ({"outputs": {"outbox": "numbers"}}, "helper -> helper is a ring without a spill"),
    ],
)
def test_a_component_that_does_not_fit_is_refused_and_changes_nothing(
    changes: dict[str, Any], message: str, run: Any
) -> None:
    wrong = msgspec.structs.replace(node(WIRING + HELPER, "helper"), **changes)

    async def change(graph: RunningGraph) -> None:
        before = graph.graph
        with pytest.raises(WiringError, match=message):
            await graph.add_component(wrong)
        assert graph.graph == before

    run(while_running(WIRING, change)())


def test_a_component_for_another_process_is_not_added_here(run: Any) -> None:
    helper = node(WIRING + HELPER, "helper")
    elsewhere = msgspec.structs.replace(helper, plan=msgspec.structs.replace(helper.plan, process="other"))

    async def change(graph: RunningGraph) -> None:
        with pytest.raises(WiringError, match="it is planned for process 'other', and this is 'main'"):
            await graph.add_component(elsewhere)

    run(while_running(WIRING, change)())


def test_a_component_that_cannot_start_is_taken_out_again(run: Any) -> None:
    class Broken(Slow):
        async def start(self) -> None:
            raise OSError("no")

    broken = msgspec.structs.replace(node(WIRING + HELPER, "helper"), unit=Broken)

    async def change(graph: RunningGraph) -> None:
        before = graph.graph
        with pytest.raises(FlowError, match="unit 'helper' cannot start: OSError: no"):
            await graph.add_component(broken)
        assert graph.graph == before
        assert "helper" not in graph.runners

    run(while_running(WIRING, change)())


def test_a_stream_that_has_ended_takes_no_new_producer(run: Any) -> None:
    async def body() -> None:
        graph = graph_of(WIRING.replace("capacity = 4", "capacity = 1000"))
        working = asyncio.create_task(graph.run())
        await turns(3)
        await graph.suspend("keep")
        while not graph.connectors["numbers"].ended:
            await asyncio.sleep(0)
        with pytest.raises(WiringError, match="component 'second' cannot be added: connector 'numbers' has ended"):
            await graph.add_component(node(WIRING + SECOND, "second"))
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
        await graph.add_component(msgspec.structs.replace(node(WIRING + HELPER, "helper"), unit=Failing))
        await turns(10)
        removing = asyncio.create_task(graph.remove_component("helper"))
        with pytest.raises(ComponentFailed, match=r"component 'helper' failed on .*enough"):
            await working
        await asyncio.wait([removing])
        removing.exception()

    run(body())
