"""The plan at work: start and stop in order, failures named, watching and setting, drain."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Protocol

import pytest

from gossamer.engine.component import Consumer, Filter, Producer
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import ComponentFailed, FlowError, SettingError, UnknownName, WiringError
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider, Unit
from gossamer.engine.wiring import parse
from gossamer.testing import FakeClock

LOG: list[str] = []
"""What units did, in order; cleared before each test."""


@pytest.fixture(autouse=True)
def _fresh_log() -> None:
    LOG.clear()


class ProbeSheet(Sheet, frozen=True):
    """What goes wrong."""

    fail_start: bool = False
    fail_stop: bool = False
    fail_item: bool = False
    level: Annotated[int, setting("Live.", ge=0)] = 1
    fixed: Annotated[int, setting("Not live.", restart="it is cast")] = 1


class Probe(Unit[ProbeSheet]):
    """Records its life."""

    async def start(self) -> None:
        LOG.append(f"+{self.name}")
        self.metrics.gauge("level", lambda: self.sheet.level)
        if self.sheet.fail_start:
            raise OSError("no such disk")

    async def stop(self) -> None:
        LOG.append(f"-{self.name}")
        if self.sheet.fail_stop:
            raise OSError("still busy")

    def changed(self, before: ProbeSheet) -> None:
        LOG.append(f"{self.name}: {before.level} to {self.sheet.level}")
        if self.sheet.level == 13:
            raise SettingError("not this level")


class Reads(Protocol):
    """An interface."""

    def read(self) -> int: ...


class Shelf(Probe, Provider[ProbeSheet]):
    def read(self) -> int:
        self.metrics.count("reads")
        return 1


class Cache(Shelf):
    behind: Uses[Reads]


class Quiet(Shelf):
    def changed(self, before: ProbeSheet) -> None:
        super().changed(before)
        self.read_sheet()

    def read_sheet(self) -> None:
        self.says_nothing = self.sheet.level == 0


class Choose(Probe, Consumer[ProbeSheet]):
    inbox: In[int]
    shelves: UsesMany[Reads]

    def consume(self, item: int) -> None:
        raise AssertionError(f"{item} came")


class Count(Probe, Producer[ProbeSheet]):
    outbox: Out[int]

    def produce(self) -> Iterator[int]:
        yield from range(10)


class Wait(Probe, Producer[ProbeSheet]):
    outbox: Out[int]

    async def produce(self) -> AsyncIterator[int]:
        yield 0
        await asyncio.get_running_loop().create_future()


class Keep(Probe, Consumer[ProbeSheet]):
    inbox: In[int]
    shelf: Uses[Reads]

    def consume(self, item: int) -> None:
        self.metrics.count("kept", self.shelf.read())
        if self.sheet.fail_item:
            raise ValueError("cannot keep it")


class Twice(Probe, Filter[ProbeSheet]):
    inbox: In[int]
    outbox: Out[int]

    def filter(self, item: int) -> list[int]:
        return [item, item]


CATALOG = Catalog(
    {"count": Count, "wait": Wait, "keep": Keep, "twice": Twice, "choose": Choose},
    {"shelf": Shelf, "cache": Cache, "quiet": Quiet},
)

WIRING = """
[providers.cache]
use = "cache"
providers = { behind = "shelf" }
settings = { CACHE }
[providers.shelf]
use = "shelf"
[connectors.numbers]
[components.keep]
use = "keep"
instances = 2
ports = { inbox = "numbers" }
providers = { shelf = "cache" }
settings = { KEEP }
[components.count]
use = "count"
ports = { outbox = "numbers" }
settings = { COUNT }
"""


def running(wiring: str = WIRING, *, clock: Any = None, report: Any = LOG.append, **settings: str) -> RunningGraph:
    for name in ("CACHE", "KEEP", "COUNT"):
        wiring = wiring.replace(name, settings.get(name, ""))
    return RunningGraph(plan(parse(wiring), CATALOG), clock=clock, report=report)


STARTED = ["+shelf", "+cache", "+keep.1", "+keep.2", "+count"]
STOPPED = ["-count", "-keep.2", "-keep.1", "-cache", "-shelf"]


def test_units_start_providers_first_and_stop_in_the_opposite_order(run: Any) -> None:
    run(running().run())
    assert LOG == STARTED + STOPPED


def test_they_stop_in_the_same_order_after_a_failure_which_is_named(run: Any) -> None:
    with pytest.raises(ComponentFailed, match=r"component 'keep\.\d' failed on 0: ValueError: cannot keep it"):
        run(running(KEEP="fail_item = true").run())
    assert LOG == STARTED + STOPPED


@pytest.mark.parametrize(
    ("settings", "name", "started"),
    [
        ({"CACHE": "fail_start = true"}, "cache", 2),
        ({"KEEP": "fail_start = true"}, "keep.1", 3),
        ({"COUNT": "fail_start = true"}, "count", 5),
    ],
)
def test_a_unit_that_cannot_start_is_named_and_what_was_started_is_stopped(
    settings: dict[str, str], name: str, started: int, run: Any
) -> None:
    with pytest.raises(FlowError, match=f"unit '{name}' cannot start: OSError: no such disk"):
        run(running(**settings).run())
    assert [*STARTED[:started], *STOPPED[-started:]] == LOG


def test_a_unit_that_does_not_stop_is_reported_and_the_rest_is_stopped(run: Any) -> None:
    run(running(KEEP="fail_stop = true").run())
    report = "unit '{}' did not stop cleanly: OSError: still busy"
    stopped = [line for line in LOG if line.startswith("-")]
    assert stopped == STOPPED
    assert [line for line in LOG if line.startswith("unit")] == [report.format("keep.2"), report.format("keep.1")]


def test_an_address_that_cannot_be_opened_is_known_before_anything_has_started(run: Any) -> None:
    wiring = WIRING.replace("[connectors.numbers]", "[connectors.numbers]\naddress = 'priority:colour'")
    with pytest.raises(WiringError, match="connector 'numbers': items of type int have no field 'colour'; known: none"):
        run(running(wiring).run())
    assert LOG == []


def test_stopping_twice_stops_nothing_twice(run: Any) -> None:
    async def body() -> None:
        graph = running()
        await graph.run()
        await graph.stop()

    run(body())
    assert LOG == STARTED + STOPPED


def test_a_fused_consumer_may_be_listed_after_its_producer_and_have_a_pool(run: Any) -> None:
    wiring = """
[components.count]
use = "count"
ports = { outbox = "numbers" }
[connectors.numbers]
address = "fused:"
[components.keep]
use = "keep"
workers = 3
ports = { inbox = "numbers" }
providers = { shelf = "shelf" }
[providers.shelf]
use = "shelf"
"""

    async def body() -> None:
        graph = running(wiring)
        await graph.run()
        assert graph.statistics()["numbers"].passed == 10

    run(body())


def test_figures_are_read_while_it_runs_and_after_the_end(run: Any) -> None:
    async def body() -> None:
        graph = running()
        await graph.run()
        assert graph.metrics("keep")["kept"] == 10
        assert graph.metrics("keep")["level"] == 2, "gauges of instances are added up"
        assert graph.metrics("cache")["reads"] == 10
        assert graph.metrics("count")["items"] == 10
        assert graph.statistics()["numbers"].passed == 10
        assert graph.statistics()["numbers"].waiting == 0

    run(body())


def test_settings_are_read_and_replaced_for_all_instances_and_in_the_graph(run: Any) -> None:
    async def body() -> None:
        graph = running()
        await graph.start()
        assert graph.sheet("keep") == ProbeSheet()
        after = graph.set("keep", {"level": "3"})
        assert after == graph.sheet("keep.2") == graph.graph.components["keep"].sheet == ProbeSheet(level=3)
        assert LOG[-2:] == ["keep.1: 1 to 3", "keep.2: 1 to 3"]
        graph.set("cache", {"level": 4})
        assert graph.graph.providers["cache"].sheet == ProbeSheet(level=4)
        with pytest.raises(SettingError, match="setting 'fixed' can change only with a restart: it is cast"):
            graph.set("keep", {"fixed": 2})
        with pytest.raises(SettingError, match="setting 'level' cannot be -1"):
            graph.set("keep", {"level": -1})
        with pytest.raises(SettingError, match="not this level"):
            graph.set("keep", {"level": 13})
        assert graph.sheet("keep").level == 3  # type: ignore[attr-defined]
        assert LOG[-2:] == ["keep.1: 3 to 13", "keep.1: 13 to 3"]
        with pytest.raises(UnknownName, match="no unit 'kep' runs in process 'main'; did you mean 'keep'"):
            graph.set("kep", {})
        assert graph.sheet("keep") == ProbeSheet(level=3)
        await graph.stop()

    run(body())


CHOOSING = """
providers.shelf.use = "shelf"
providers.quiet = { use = "quiet", settings = { level = 0 } }
[connectors.numbers]
[components.count]
use = "count"
ports = { outbox = "numbers" }
[components.choose]
use = "choose"
ports = { inbox = "numbers" }
providers = { shelves = { all = ["quiet", "shelf"] } }
"""


def test_a_provider_of_several_that_has_nothing_to_say_is_left_out_until_its_settings_change(run: Any) -> None:
    async def body() -> None:
        graph = running(CHOOSING)
        await graph.start()
        choose: Any = graph.unit("choose")

        def bound() -> list[str]:
            return [one.name for one in choose.shelves["all"]]

        assert bound() == ["shelf"]
        graph.set("quiet", {"level": 1})
        assert bound() == ["quiet", "shelf"]
        with pytest.raises(SettingError, match="not this level"):
            graph.set("quiet", {"level": 13})
        assert bound() == ["quiet", "shelf"]
        graph.set("quiet", {"level": 0})
        assert bound() == ["shelf"]
        await graph.stop()

    run(body())


def test_units_have_their_name_and_the_graphs_clock(run: Any) -> None:
    async def body() -> None:
        clock = FakeClock()
        graph = running(clock=clock)
        await graph.start()
        assert graph.unit("keep.2").name == "keep.2"
        assert graph.unit("keep").clock is clock
        assert graph.unit("cache").clock is clock
        await graph.stop()

    run(body())


def test_a_suspended_unit_takes_nothing_up_until_it_is_resumed(run: Any) -> None:
    async def body() -> None:
        graph = running()
        await graph.start()
        await graph.suspend("keep")
        working = asyncio.create_task(graph.work())
        for _ in range(100):
            await asyncio.sleep(0)
        assert graph.metrics("keep").get("kept", 0) == 0
        graph.resume("keep")
        await working
        assert graph.metrics("keep")["kept"] == 10
        await graph.stop()

    run(body())


@pytest.mark.parametrize("suspended", [False, True])
def test_drain_ends_everything_also_what_waits_or_is_suspended(suspended: bool, run: Any) -> None:
    async def body() -> None:
        graph = running(WIRING.replace('"count"', '"wait"', 1))
        await graph.start()
        working = asyncio.create_task(graph.work())
        for _ in range(100):
            await asyncio.sleep(0)
        if suspended:
            await graph.suspend("keep")
            await graph.suspend("count")
        graph.drain()
        await working
        await graph.stop()
        assert graph.metrics("keep")["kept"] == 1

    run(body())


def test_when_the_work_is_cancelled_the_units_are_stopped(run: Any) -> None:
    async def body() -> None:
        graph = running(WIRING.replace('"count"', '"wait"', 1))
        working = asyncio.create_task(graph.run())
        for _ in range(100):
            await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert LOG == STARTED + STOPPED

    run(body())


def test_of_two_failures_one_is_raised_and_the_other_reported(run: Any) -> None:
    wiring = (
        WIRING
        + '\n[connectors.more]\n[components.keep-too]\nuse="keep"\nports={inbox="more"}\nproviders={shelf="cache"}\n'
    )
    wiring += 'settings={fail_item=true}\n[components.count-too]\nuse="count"\nports={outbox="more"}\n'
    with pytest.raises(ComponentFailed):
        run(running(wiring, KEEP="fail_item = true").run())
    failed = [line for line in LOG if "failed" in line]
    assert len(failed) >= 1


def test_a_component_that_is_cancelled_from_outside_is_not_taken_for_one_that_ended(run: Any) -> None:
    async def body() -> None:
        graph = running(WIRING.replace('"count"', '"wait"', 1))
        await graph.start()
        working = asyncio.create_task(graph.work())
        for _ in range(100):
            await asyncio.sleep(0)
        [task] = [task for task in asyncio.all_tasks() if task.get_name() == "keep.1"]
        task.cancel()
        with pytest.raises(FlowError, match=r"component 'keep\.1' was cancelled by something outside of its graph"):
            await working
        await graph.stop()

    run(body())


def test_a_process_runs_its_part_only(run: Any) -> None:
    async def body() -> None:
        graph = plan(parse(WIRING.replace("KEEP", "").replace("COUNT", "").replace("CACHE", "")), CATALOG)
        other = RunningGraph(graph, process="other")
        await other.run()
        assert other.graph.components == {}
        assert LOG == []

    run(body())


def test_changes_are_refused_where_nothing_is_at_work(run: Any) -> None:
    async def body() -> None:
        graph = running()
        with pytest.raises(FlowError, match="the graph in process 'main' is not at work; change its wiring instead"):
            await graph.apply(lambda wiring: wiring, lambda wiring: graph.whole)
        await graph.run()
        with pytest.raises(FlowError, match="is not at work"):
            await graph.undo(lambda wiring: graph.whole)

    run(body())


def test_a_running_graph_shows_its_state(run: Any) -> None:
    assert repr(running()) == "<RunningGraph main: 0 components, 0 at work>"


def test_wiring_errors_are_flow_errors_with_the_exit_code_of_a_persons_mistake() -> None:
    assert issubclass(WiringError, FlowError)
    assert (FlowError.exit_code, WiringError.exit_code, SettingError.exit_code) == (1, 2, 2)
