"""A test stand for one component, and conformance suites for the six kinds (Hunyadi 2007, section 4.6.2).

::

    async with Stand(Links()) as stand:             # between connectors of its own, with a runner, started
        await stand.give("inbox", page)
        assert await stand.made("outbox") == [...]

    await check_filter(Links, given=[page], expected=[link])

Each `check_*` takes a function that makes a fresh component, the items to give, and the items that must come out. A broken
promise raises an AssertionError that names it. `make` sets the providers. They must not wait for anything but the event
loop, because a suite gives the component a number of turns and never sleeps.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Self

from gossamer.engine.component import (
    AsynchronousFilter,
    Component,
    Consumer,
    Filter,
    Producer,
    SemiSynchronousFilter,
    SynchronousFilter,
)
from gossamer.engine.connector import DEFAULT_CAPACITY, Connector
from gossamer.engine.ends import In, Out, declared
from gossamer.engine.handling import ErrorPolicy, KeepFailed, forget
from gossamer.engine.local import LocalConnector
from gossamer.engine.runner import Runner

Make = Callable[[], Component[Any]]

#: Turns of the loop that a component gets to do what it can do: many times what any chain of awaits here needs.
TURNS = 200


class Stand:
    """Runs one component between connectors, and gives the test their other ends."""

    def __init__(
        self,
        component: Component[Any],
        *,
        workers: int = 1,
        policy: ErrorPolicy | None = None,
        capacity: int | Mapping[str, int] = DEFAULT_CAPACITY,
        report: Callable[[str], None] = lambda line: None,
        keep_failed: KeepFailed = forget,
        bound: Collection[str] = (),
    ) -> None:
        """`capacity`: of all connectors, or of those named by role. `bound`: optional ports that have a connector here."""
        ports, unbound = declared(type(component)), component.optional - set(bound)
        inputs = {role: kind for role, kind in ports.inputs.items() if role not in unbound}
        outputs = {role: kind for role, kind in ports.outputs.items() if role not in unbound}
        sizes = capacity if isinstance(capacity, Mapping) else dict.fromkeys([*inputs, *outputs], capacity)
        self.component = component
        self.connectors: dict[str, Connector[Any]] = {
            role: LocalConnector(role, item_type, sizes.get(role, DEFAULT_CAPACITY))
            for role, item_type in {**inputs, **outputs}.items()
        }
        self.feeds = {role: Out(role, self.connectors[role]) for role in inputs}
        self.results = {role: In(role, self.connectors[role]) for role in outputs}
        component.bind(
            {role: In(role, self.connectors[role]) for role in inputs},
            {role: Out(role, self.connectors[role]) for role in outputs},
        )
        self.runner = Runner(component, workers=workers, policy=policy, report=report, keep_failed=keep_failed)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.component.start()
        self._task = asyncio.create_task(self.runner.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.component.stop()

    async def give(self, role: str, *items: Any) -> None:
        """Send items into an input, and let the component do what it can."""
        await self.feeds[role].send_many(items)
        await self.settle()

    def end(self, *roles: str) -> None:
        """End these inputs, or all inputs if none is named."""
        for role in roles or self.feeds:
            self.feeds[role].close()

    async def settle(self, turns: int = TURNS) -> None:
        """Let the component do all it can with the items that it has."""
        for _ in range(turns):
            await asyncio.sleep(0)

    async def made(self, role: str, at_most: int = 1_000_000) -> list[Any]:
        """Return the items that have come out, `at_most` at most. Reading them makes room for more."""
        found: list[Any] = []
        while True:
            await self.settle()
            items, receipts = self.connectors[role].poll(DEFAULT_CAPACITY)
            for receipt in receipts or ():
                if receipt is not None:
                    receipt.release()
            found += items
            if not items or len(found) > at_most:
                return found

    @property
    def handled(self) -> float:
        """The number of items that the component has finished."""
        return self.component.metrics.counters["items"]

    @property
    def ended(self) -> bool:
        """Whether the component has ended by itself."""
        assert self._task is not None
        return self._task.done()

    async def wait(self) -> None:
        """Wait until the component ends. It raises the exception that the component raised."""
        assert self._task is not None
        await asyncio.shield(self._task)


def _sound(make: Make, kind: type[Component[Any]]) -> None:
    component = make()
    problems = type(component).problems()
    assert not problems, "; ".join(problems)
    is_kind = isinstance(component, kind) and type(component).kind == kind.kind
    assert is_kind, f"{type(component).__name__} is a {component.kind}, not a {kind.kind}"


async def _all_made(stand: Stand, expected: Mapping[str, Sequence[Any]]) -> None:
    for role, wanted in expected.items():
        made = await stand.made(role)
        assert made == list(wanted), f"{role}: made {made}, not {list(wanted)}"


async def _ends(stand: Stand) -> None:
    """Check that the component ends, closes its outputs, and shows that it has ended."""
    await stand.settle()
    assert stand.ended, "the component does not end when it has nothing more to do"
    await stand.wait()
    for role, connector in stand.connectors.items():
        assert role not in stand.results or connector.ended, f"output {role} was still open at the end"


async def check_consumer(make: Make, *, given: Sequence[Any]) -> None:
    """Check that a consumer takes its items, takes none while suspended, and ends with its input."""
    _sound(make, Consumer)
    async with Stand(make()) as stand:
        await _takes_nothing_while_suspended(stand, given)
        stand.end()
        await _ends(stand)
        assert stand.handled == len(given), f"{stand.handled:g} of {len(given)} items were handled"


async def check_filter(
    make: Make, *, given: Sequence[Any], expected: Sequence[Any] | Mapping[str, Sequence[Any]]
) -> None:
    """Check that a filter turns items into others in order, takes none while suspended, and ends with its input.

    Args:
        make: returns a fresh filter.
        given: at least two items.
        expected: the items that come out of the only output, or of each output, by role.
    """
    _sound(make, Filter)
    async with Stand(make()) as stand:
        await _takes_nothing_while_suspended(stand, given)
        await _all_made(stand, expected if isinstance(expected, Mapping) else {next(iter(stand.results)): expected})
        stand.end()
        await _ends(stand)
        assert stand.handled == len(given), f"{stand.handled:g} of {len(given)} items were handled"


async def _takes_nothing_while_suspended(stand: Stand, given: Sequence[Any]) -> None:
    role = next(iter(stand.feeds))
    await stand.give(role, *given[:1])
    assert stand.handled == 1, "the component does not handle an item when it comes"
    await stand.runner.gate.suspend()
    await stand.give(role, *given[1:])
    assert stand.handled == 1, "the component handles items while it is suspended"
    stand.runner.gate.resume()
    await stand.settle()


async def check_producer(make: Make, *, expected: Sequence[Any]) -> None:
    """Check that a producer makes its items in order, ends after the last, and makes no more once it is drained.

    Args:
        make: returns a fresh producer.
        expected: all its items, or the first of an endless number; at least three.
    """
    _sound(make, Producer)
    async with Stand(make(), capacity=1) as stand:
        role = next(iter(stand.results))
        made = [await stand.results[role].receive() for _ in expected]
        assert made == list(expected), f"made {made}, not {list(expected)}"
    async with Stand(make(), capacity=1) as stand:
        await stand.settle()
        stand.runner.drain()
        left = await stand.made(role, at_most=2)
        assert left == list(expected)[: len(left)], (
            f"made {left} until it was drained, which {expected} does not begin with"
        )
        assert len(left) <= 2, f"{len(left)} items came out of a drained producer; two were in hand"
        await _ends(stand)


async def check_synchronous(
    make: Make, *, given: Mapping[str, Sequence[Any]], expected: Mapping[str, Sequence[Any]]
) -> None:
    """Check that a synchronous filter waits for every input, and ends with the first input that ends.

    Args:
        make: returns a fresh filter.
        given: the same number of items for each input.
        expected: the items that come out of each output.
    """
    _sound(make, SynchronousFilter)
    for late in given:
        async with Stand(make()) as stand:
            for role, items in given.items():
                if role != late:
                    await stand.give(role, *items)
            assert stand.handled == 0, f"the component did not wait for input {late}"
            await stand.give(late, *given[late])
            await _all_made(stand, expected)
            stand.end(late)
            await stand.settle()
            assert not stand.ended, (
                "the component ended while other inputs could still come: their producers would wait for ever"
            )
            surplus = [role for role in given if role != late]
            await stand.give(surplus[0], given[surplus[0]][0])
            stand.end()
            await _ends(stand)
            counted = stand.component.metrics.counters["unpaired"]
            assert counted == 1, f"one item had no partner, but {counted} were counted as unpaired"


async def check_semi_synchronous(
    make: Make, *, given: Sequence[tuple[str, Any]], expected: Sequence[tuple[str, Any]]
) -> None:
    """Check that a semi-synchronous filter runs on any input, and sends its results before it takes the next item.

    Args:
        make: returns a fresh filter.
        given: pairs of input and item.
        expected: pairs of output and item, in the order in which they come out. The first output needs more than two,
            so that the suite sees whether the filter waits for a full one.
    """
    _sound(make, SemiSynchronousFilter)
    async with Stand(make()) as stand:
        made: list[tuple[str, Any]] = []
        for number, (role, item) in enumerate(given, 1):
            await stand.give(role, item)
            assert stand.handled == number, f"an item of input {role} waits although nothing else is at work"
            made += [(output, thing) for output in stand.results for thing in await stand.made(output)]
        assert made == list(expected), f"made {made}, not {list(expected)}"
        stand.end()
        await _ends(stand)
    output = expected[0][0]
    if sum(role == output for role, _ in expected) <= 2:
        return
    async with Stand(make(), capacity={output: 1}) as stand:
        for role, item in given:
            await stand.give(role, item)
        assert stand.handled < len(given), "the component took further items before its results were out"


async def check_asynchronous(
    make: Make, *, given: Sequence[tuple[str, Any]], expected: Mapping[str, Sequence[Any]]
) -> None:
    """Check that an asynchronous filter takes inputs in any order, even while outputs are full.

    Args:
        make: returns a fresh filter.
        given: pairs of input and item that make more than one item for some output.
        expected: all items that come out of each output, in any order.
    """
    _sound(make, AsynchronousFilter)
    for order in (given, [*reversed(given)]):
        async with Stand(make(), capacity=dict.fromkeys(expected, 1)) as stand:
            for role, item in order:
                await stand.give(role, item)
            assert stand.handled == len(given), "inputs wait for outputs: with a full output, not every item was taken"
            for role in expected:
                waiting = stand.connectors[role].statistics().waiting
                assert waiting == min(1, len(expected[role])), f"{role}: {waiting} items are out, and there is one slot"
            stand.end()
            for role, wanted in expected.items():
                made = await stand.made(role)
                assert sorted(map(repr, made)) == sorted(map(repr, wanted)), f"{role}: made {made}, not {list(wanted)}"
            await _ends(stand)
