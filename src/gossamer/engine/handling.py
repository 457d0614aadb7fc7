"""Batches: how they are handed to the methods of a component, and what happens where one fails.

Place in the flow: a runner receives batches and hands them to the :class:`Handling` of an input; a fused connector calls the same
in place. A synchronous filter has no batches but rounds, made by :func:`serve_in_step`.

A component's method takes one item or a list, and is plain or async. :meth:`Handling.perform` is one frame for all of these: it
passes the gate, calls the method, sends what the method made, and calls the next component where the connector is fused. Plain
code has sent nothing for an item that failed or for those after it; what it made of those before goes on.

The promise of :class:`Performer`: nothing that happens to an item is silent. The component handles it, or replaces it by `failed`,
or gets it once more after a restart; or the item is set aside and goes on as it came; or the crawl stops with the component's name.
"""

import asyncio
import inspect
import operator
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.engine.connector import Flow, Receipts
from gossamer.engine.ends import In
from gossamer.engine.errors import ComponentFailed, EndOfItems
from gossamer.engine.gate import Gate, Receipt, current, joint

if TYPE_CHECKING:
    from gossamer.engine.component import Component, SynchronousFilter

Method = Callable[[Any], Any]

_PENDING = operator.attrgetter("pending")

#: For those who have entered another gate already.
_OPEN = Gate()


class Handling:
    """How a component takes the items of one input."""

    def __init__(self, performer: "Performer", single: Method | None, many: Method | None = None) -> None:
        """By a method that takes an item (`single`) or by one that takes a list (`many`, preferred)."""
        component = performer.component
        method = many or single
        assert method is not None
        self._performer, self._gate = performer, performer.gate
        self._method = method
        self._is_whole = many is not None
        self._is_async = inspect.iscoroutinefunction(method)
        self._outs = tuple(component.outs.values())
        self._only = self._outs[0] if len(self._outs) == 1 else None
        self._counters = component.metrics.counters
        self.limit = 1 if self._is_async and not self._is_whole else component.batch
        """Items that it likes at once: of an async method one, so that the workers of a pool share what waits."""
        self.flow = Flow()
        """Its items: of a fused connector, the connector's."""

    async def perform(  # noqa: C901, PLR0915  # one frame for each hop of a page
        self, items: Sequence[Any], receipts: Receipts = None, gate: Gate | None = None
    ) -> None:
        """Hand a batch to the component, when it is not suspended and has a place free, send what it makes, and release the
        receipts. A caller that has entered already gives its open gate."""
        if receipts is not None:
            await self._perform_with(receipts, items)
            return
        gate, flow, only, is_async, size = gate or self._gate, self.flow, self._only, self._is_async, len(items)
        flow.inside += size
        if flow.inside > flow.peak:
            flow.peak = flow.inside
        try:
            if gate.shut or gate.free < 1:
                crowd = await gate.enter()
            else:
                gate.free -= 1
                crowd = gate.crowd
                crowd.count += 1
            try:
                made: list[Any] = []
                units = [list(items)] if self._is_whole else list(items)
                left = len(units)
                for unit in units:
                    left -= 1
                    before, marks = len(made), () if is_async else tuple(map(len, map(_PENDING, self._outs)))
                    try:
                        result = self._method(unit)
                        if is_async:
                            result = await result
                        if result is not None:
                            made += result
                    except ComponentFailed:
                        raise
                    except (Exception, asyncio.CancelledError) as error:
                        further = await self._failed(unit, own_failure(error), made[:before], marks)
                        units += further
                        left, made = left + len(further), []
                        continue
                    if left and not is_async:
                        continue  # what plain code makes of a batch goes on together
                    if only is None or not only.is_free or only.pending:
                        if made or any(map(_PENDING, self._outs)):
                            await self.send(made)
                    elif made:
                        connector = only.connector
                        if (call := connector.call) is not None:
                            if not connector.usual.issuperset(map(type, made)):
                                connector.check(made)
                            await call(made)
                        elif not connector.offer(made, current.get()):
                            await connector.send(made, current.get())
                    made = []
            finally:
                crowd.count -= 1
                if gate.is_watched:
                    gate.left()
                else:
                    gate.free += 1
        finally:
            flow.inside -= size
            if not flow.inside and flow.idlers.waiting:
                flow.idlers.changed()
        flow.passed += size
        self._counters["items"] += size

    async def _perform_with(self, receipts: Sequence[Receipt | None], items: Sequence[Any]) -> None:
        if self._is_whole:
            batches = [(joint(receipts), items)]
        else:
            batches = [(receipt, [item]) for item, receipt in zip(items, receipts, strict=True)]
        crowd = self._gate.try_enter() or await self._gate.enter()
        try:
            for receipt, batch in batches:
                token = current.set(receipt)
                try:
                    await self.perform(batch, gate=_OPEN)
                finally:
                    current.reset(token)
                if receipt is not None:
                    receipt.release()
        finally:
            self._gate.leave(crowd)

    async def _failed(self, unit: Any, cause: Exception, made: list[Any], marks: Sequence[int]) -> list[Any]:
        """Send what was `made` of those before, then let the failed item be answered. A batch is handled whole or not at all: one
        that fails is given one by one, and these units are returned."""
        self._take_back(marks)
        await self.send(made)
        if self._is_whole and len(unit) > 1:
            return [[item] for item in unit]
        await self._performer.recover(self, unit, unit[0] if self._is_whole else unit, cause)
        return []

    async def again(self, unit: Any) -> None:
        """Hand what has failed to the method once more, after a restart. Raises what the method raises."""
        marks = tuple(map(len, map(_PENDING, self._outs)))
        try:
            result = self._method(unit)
            made = list((await result if self._is_async else result) or ())
        except BaseException:
            if not self._is_async:
                self._take_back(marks)
            raise
        await self.send(made)

    async def send(self, made: Sequence[Any]) -> None:
        if self._only is not None:
            await self._only.send_many(made)
        elif made:
            name = type(self._performer.component).__name__
            raise TypeError(
                f"{name} returned items but has {len(self._outs)} outputs: emit or send them by name instead"
            )
        for out in self._outs:
            if out.pending:
                await out.flush()

    def _take_back(self, marks: Sequence[int]) -> None:
        for out, keep in zip(self._outs, marks, strict=False):
            out.take_back(keep)


def own_failure(error: BaseException) -> Exception:
    """The failure of a component's code.

    A cancellation that was not meant for this task came out of something that the code waited for: it is a failure like any
    other. If it passed for a cancellation of the task, a worker would end unnoticed. Raises CancelledError: this task is being
    cancelled."""
    if isinstance(error, Exception):
        return error
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    return RuntimeError("something that it waited for was cancelled")


# -- where one fails


class ErrorPolicy(msgspec.Struct, frozen=True):
    """The answer to a component that raises."""

    on_error: str = "stop"
    """`stop` ends the crawl; `restart` stops and starts the unit and gives it the item once more, then ends the crawl; `skip`
    sets the item aside, lets it go on as it came, and ends the crawl after too many."""
    restarts: int = 3
    """Restarts in the unit's life; a unit that needs more is not getting better by it."""
    errors: int = 100
    """Items that may be set aside; a unit that fails on more is not failing on an item."""


KeepFailed = Callable[[str, Any, Exception], None]
"""Keeps an item that a component could not handle for a person to look at: the component's name, the item, the error."""


def forget(name: str, item: Any, error: Exception) -> None:
    """Keep nothing."""


class Performer:
    """Answers the failures of one instance of a component, by its policy."""

    def __init__(
        self,
        component: "Component[Any]",
        gate: Gate,
        policy: ErrorPolicy,
        report: Callable[[str], None] = lambda line: None,
        keep_failed: KeepFailed = forget,
    ) -> None:
        self.component = component
        self.gate = gate
        self.policy = policy
        self.report = report
        self.keep_failed = keep_failed
        self._restarting = asyncio.Lock()
        self._incarnation = 0

    async def recover(self, handling: Handling, unit: Any, item: Any, cause: Exception) -> None:
        """Let the component replace a failed item; or restart it and try once more; or set the item aside."""
        self.component.metrics.count("failures")
        try:
            instead = self.component.failed(item, cause)
            produced = list(instead) if instead is not None else []
        except Exception as error:
            if self.policy.on_error == "skip":
                await self._skip(handling, item, error)
                return
            await self.restart(error, item)
            try:
                await handling.again(unit)
            except ComponentFailed:
                raise
            except (Exception, asyncio.CancelledError) as again:
                failure = own_failure(again)
                raise self.failure(failure, item) from failure
        else:
            await handling.send(produced)

    async def _skip(self, handling: Handling, item: Any, error: Exception) -> None:
        """Set an item aside and let it go on as it came, as if the component were not there. Raises ComponentFailed: the
        component has failed on too many."""
        name, counters = self.component.name, self.component.metrics.counters
        if counters["skipped"] >= self.policy.errors:
            raise ComponentFailed(
                f"component {name!r} failed on {counters['skipped'] + 1} items and may on {self.policy.errors} (`errors` in the "
                f"wiring); the last error: {type(error).__name__}: {error}"
            ) from error
        counters["skipped"] += 1
        if counters["skipped"] == 1:
            self.report(
                f"component {name!r} failed on an item, which goes on without it: {type(error).__name__}: {error}"
            )
        self.keep_failed(name, item, error)
        if self.component.outs:
            await handling.send([item])

    async def restart(self, error: Exception, item: Any) -> None:
        """Stop and start the unit, if its policy allows that once more, when no other worker is in the middle of an item.
        Raises ComponentFailed: it does not, or the unit does not come back."""
        if self.policy.on_error != "restart":
            raise self.failure(error, item) from error
        incarnation = self._incarnation
        with self.gate.awaiting_repair():
            async with self._restarting:
                if incarnation != self._incarnation:
                    return  # Several workers failed on one cause; another of them has restarted the unit meanwhile.
                counters = self.component.metrics.counters
                if counters["restarts"] >= self.policy.restarts:
                    raise self.failure(error, item) from error
                counters["restarts"] += 1
                self.report(f"component {self.component.name!r} is restarted: {type(error).__name__}: {error}")
                async with self.gate.alone():
                    try:
                        await self.component.stop()
                        await self.component.start()
                    except Exception as again:
                        what = f"component {self.component.name!r} could not be restarted"
                        raise ComponentFailed(f"{what}: {type(again).__name__}: {again}") from again
                self._incarnation += 1

    def failure(self, error: Exception, item: Any) -> ComponentFailed:
        held = f" on {item!r:.200}" if item is not None else ""
        return ComponentFailed(f"component {self.component.name!r} failed{held}: {type(error).__name__}: {error}")


# -- synchronous filters: one item of each input at a time, until one input has no more

#: Takes a batch of at most so many from an input; None when there will be none.
Receive = Callable[[In[Any], int], Awaitable[tuple[list[Any], Receipts] | None]]


async def serve_in_step(component: "SynchronousFilter[Any]", handling: Handling, receive: Receive) -> None:
    """One item of each input at a time, in hands that are filled together and emptied together.

    The first input gives a batch, the others at most as many, so that nothing is left in hand when the filter leaves.
    """
    hands: dict[str, deque[tuple[Any, Receipt | None]]] = {role: deque() for role in component.ins}
    while True:
        for role, hand in hands.items():
            if hand:
                continue
            port, ahead = component.ins[role], max(map(len, hands.values()))
            try:
                batch = await (port.take(ahead) if ahead else receive(port, component.batch))
            except EndOfItems:
                batch = None
            if batch is None:
                await _drop_unpaired(component, hands, receive)
                return
            items, receipts = batch
            hand.extend(zip(items, receipts or repeat(None), strict=False))
        steps = min(map(len, hands.values()))
        rounds = list(zip(*([hand.popleft() for _ in range(steps)] for hand in hands.values()), strict=True))
        held = [joint(receipt for _, receipt in row) for row in rounds]
        rows = [dict(zip(hands, (item for item, _ in row), strict=True)) for row in rounds]
        await handling.perform(rows, held if any(held) else None)


async def _drop_unpaired(
    component: "SynchronousFilter[Any]", hands: Mapping[str, deque[tuple[Any, Receipt | None]]], receive: Receive
) -> None:
    """Take what still comes, from all inputs at once: one producer may feed several and must not be stuck at any."""

    def drop(receipts: Sequence[Receipt | None]) -> None:
        component.metrics.count("unpaired", len(receipts))
        for receipt in receipts:
            if receipt is not None:
                receipt.release()

    async def drop_all(port: In[Any]) -> None:
        while (batch := await receive(port, component.batch)) is not None:
            drop(batch[1] or [None] * len(batch[0]))

    for hand in hands.values():
        drop([receipt for _, receipt in hand])
    async with asyncio.TaskGroup() as group:
        for port in component.ins.values():
            group.create_task(drop_all(port))
