"""Batches: how they are handed to the methods of a component, and what happens where one fails.

Place in the flow: a runner receives batches and hands them to its :class:`Performer`, which asks the gate, calls the handler
and releases receipts; a fused connector asks the same performer for the gate and for recovery. A synchronous filter has no
batches but rounds, made by :func:`serve_in_step`.

A component's method takes one item or a list, and is plain or async. :func:`handling` makes of each one coroutine function of a
batch that sends what the method made, and says with :class:`ItemFailed` which item it failed on. Its promise: all items before
that position are handled and their results sent, and plain code has sent nothing for it or for those after.

The performer's promise: nothing that happens to an item is silent. The component handles it, or replaces it by `failed`, or gets
it once more after a restart; or the item is set aside and goes on as it came; or the crawl stops with the component's name.
"""

import asyncio
import inspect
import operator
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gossamer.engine import gate as receipts_
from gossamer.engine.connector import Receipts
from gossamer.engine.ends import In
from gossamer.engine.errors import ComponentFailed, EndOfItems
from gossamer.engine.gate import Gate, Receipt

if TYPE_CHECKING:
    from gossamer.engine.component import Component, SynchronousFilter

Handler = Callable[[list[Any]], Awaitable[None]]


class Handling(NamedTuple):
    """How a component takes the items of one input."""

    handle: Handler
    limit: int
    """Items that it likes at once."""
    whole: bool = False
    """It takes a batch as one: its results belong to all items of the batch."""


class ItemFailed(Exception):
    """Internal: the item at `position` of a batch raised `cause`; those before it are handled and sent."""

    def __init__(self, position: int, cause: Exception) -> None:
        super().__init__(str(cause))
        self.position = position
        self.cause = cause


def handling(
    component: "Component[Any]", single: Callable[..., Any] | None, many: Callable[..., Any] | None = None
) -> Handling:
    """The batch handler of a method that takes an item (`single`) or of one that takes a list (`many`, preferred)."""
    if many is not None:
        return Handling(_whole_batch(component, many), component.batch, whole=True)
    assert single is not None
    if inspect.iscoroutinefunction(single):
        # One at a time, so that the workers of a pool share what waits.
        return Handling(_each_async(component, single), 1)
    return Handling(_each(component, single), component.batch)


def _whole_batch(component: "Component[Any]", many: Callable[..., Any]) -> Handler:
    is_async = inspect.iscoroutinefunction(many)

    async def handle(items: list[Any]) -> None:
        marks = _marks(component)
        try:
            made = await many(items) if is_async else many(items)
            produced = list(made) if made is not None else ()
        except ComponentFailed:
            raise
        except (Exception, asyncio.CancelledError) as error:
            cause = own_failure(error)
            if not is_async:
                _take_back(component, marks)
            if len(items) == 1:
                raise ItemFailed(0, cause) from cause
        else:
            if (sending := component.emitting(produced)) is not None:
                await sending
            return
        # A batch is handled whole or not at all, so which item it was is found by giving them one by one.
        for position, item in enumerate(items):
            try:
                await handle([item])
            except ItemFailed as failure:
                raise ItemFailed(position, failure.cause) from failure.cause

    return handle


def _each(component: "Component[Any]", single: Callable[..., Any]) -> Handler:
    async def handle(items: list[Any]) -> None:
        produced: list[Any] = []
        position = made = 0
        marks: list[int] = []
        # Plain code is not interrupted, so these lists stay the same ones until the last item.
        put_by = list(map(_PENDING, component.outs.values()))
        try:
            for position, item in enumerate(items):
                made, marks = len(produced), list(map(len, put_by))
                result = single(item)
                if result is not None:
                    produced.extend(result)
        except Exception as error:
            # Half of what the item makes is nothing: it will be given once more, or be replaced.
            del produced[made:]
            _take_back(component, marks)
            if (sending := component.emitting(produced)) is not None:
                await sending
            raise ItemFailed(position, error) from error
        if (sending := component.emitting(produced)) is not None:
            await sending

    return handle


def _each_async(component: "Component[Any]", single: Callable[..., Any]) -> Handler:
    async def handle(items: list[Any]) -> None:
        for position, item in enumerate(items):
            try:
                made = await single(item)
                produced = list(made) if made is not None else ()
            except ComponentFailed:
                raise
            except (Exception, asyncio.CancelledError) as error:
                cause = own_failure(error)
                raise ItemFailed(position, cause) from cause
            if (sending := component.emitting(produced)) is not None:
                await sending

    return handle


_PENDING = operator.attrgetter("pending")


def _marks(component: "Component[Any]") -> list[int]:
    return list(map(len, map(_PENDING, component.outs.values())))


def _take_back(component: "Component[Any]", marks: list[int]) -> None:
    for out, keep in zip(component.outs.values(), marks, strict=True):
        out.take_back(keep)


def own_failure(error: BaseException) -> Exception:
    """The failure of a component's code.

    A cancellation that was not meant for this task came out of something that the code waited for: it is a failure like
    any other. If it passed for a cancellation of the task, a worker would end unnoticed.

    Raises:
        CancelledError: this task is being cancelled.
    """
    if isinstance(error, Exception):
        return error
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    return RuntimeError("something that it waited for was cancelled")


# -- one batch through gate and handler


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
    """Handles batches for one instance of a component."""

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

    async def perform(self, handling: Handling, items: list[Any], receipts: Receipts = None) -> None:
        """Hand a batch to the component, when it is not suspended and has a place free, and release the receipts."""
        number = self.gate.try_enter() or await self.gate.enter()
        try:
            if receipts is None:
                await handling.handle(items)
            else:
                await self._perform_with(receipts, handling, items)
        except ItemFailed as failure:
            await self.recover(handling.handle, items, failure)
        finally:
            self.gate.leave(number)
        self.component.metrics.counters["items"] += len(items)

    async def _perform_with(self, receipts: Sequence[Receipt | None], handling: Handling, items: list[Any]) -> None:
        """Pass the receipt of each item on to everything that the item causes."""
        if handling.whole:
            batches = [(receipts_.joint(receipts), items)]
        else:
            batches = [(receipt, [item]) for item, receipt in zip(items, receipts, strict=True)]
        for receipt, batch in batches:
            token = receipts_.current.set(receipt)
            try:
                await handling.handle(batch)
            except ItemFailed as failure:
                await self.recover(handling.handle, batch, failure)
            finally:
                receipts_.current.reset(token)
            if receipt is not None:
                receipt.release()

    async def recover(self, handle: Handler, items: list[Any], failure: ItemFailed) -> None:
        """Let the component replace the failed item, or restart it and try once more; then go on with the rest."""
        while True:
            items = items[failure.position :]
            await self._replace_or_retry(handle, items[0], failure.cause)
            items = items[1:]
            try:
                if items:
                    await handle(items)
                return
            except ItemFailed as next_failure:
                failure = next_failure

    async def _replace_or_retry(self, handle: Handler, item: Any, cause: Exception) -> None:
        self.component.metrics.count("failures")
        try:
            instead = self.component.failed(item, cause)
            produced = list(instead) if instead is not None else []
        except Exception as error:
            if self.policy.on_error == "skip":
                await self._skip(item, error)
                return
            await self.restart(error, item)
            try:
                await handle([item])
            except ItemFailed as again:
                raise self.failure(again.cause, item) from again.cause
        else:
            await self._send(produced)

    async def _skip(self, item: Any, error: Exception) -> None:
        """Set an item aside and let it go on as it came, as if the component were not there.

        Raises:
            ComponentFailed: the component has failed on too many.
        """
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
            await self._send([item])

    async def _send(self, produced: list[Any]) -> None:
        if (sending := self.component.emitting(produced)) is not None:
            await sending

    async def restart(self, error: Exception, item: Any) -> None:
        """Stop and start the unit, if its policy allows that once more, when no other worker is in the middle of an item.

        Raises:
            ComponentFailed: it does not, or the unit does not come back.
        """
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
                    await self._stop_and_start()
                self._incarnation += 1

    async def _stop_and_start(self) -> None:
        try:
            await self.component.stop()
            await self.component.start()
        except Exception as error:
            what = f"component {self.component.name!r} could not be restarted"
            raise ComponentFailed(f"{what}: {type(error).__name__}: {error}") from error

    def failure(self, error: Exception, item: Any) -> ComponentFailed:
        """The component's failure under its name, with what it held."""
        held = f" on {item!r:.200}" if item is not None else ""
        return ComponentFailed(f"component {self.component.name!r} failed{held}: {type(error).__name__}: {error}")


# -- synchronous filters: one item of each input at a time, until one input has no more

#: Takes a batch of at most so many from an input; None when there will be none.
Receive = Callable[[In[Any], int], Awaitable[tuple[list[Any], Receipts] | None]]

#: Has the filter handle rows, with their receipts; None where no row has one.
Perform = Callable[[Handling, list[Any], Receipts], Awaitable[None]]


class _Hand:
    """Items that a synchronous filter has taken from one input and not handled yet."""

    def __init__(self, role: str, port: In[Any]) -> None:
        self.role = role
        self.port = port
        self.items: deque[Any] = deque()
        self.held: deque[Receipt | None] = deque()
        """A receipt for each item, or nothing at all while no item has one."""

    def put(self, items: list[Any], receipts: Receipts) -> None:
        """More items, perhaps with receipts."""
        if receipts is not None or self.held:
            self.held.extend([None] * (len(self.items) - len(self.held)))
            self.held.extend(receipts if receipts is not None else [None] * len(items))
        self.items.extend(items)

    def take(self, count: int) -> list[Any]:
        return [self.items.popleft() for _ in range(count)]

    def release(self, count: int) -> list[Receipt | None]:
        """The receipts of the first items."""
        return [self.held.popleft() if self.held else None for _ in range(count)]


async def serve_in_step(component: "SynchronousFilter[Any]", receive: Receive, perform: Perform) -> None:
    """One item of each input at a time, in hands that are filled together and emptied together.

    The first input gives a batch, the others at most as many, so that nothing is left in hand when the filter leaves.
    """
    handling = component.handler()
    hands = [_Hand(role, port) for role, port in component.ins.items()]
    while True:
        for hand in hands:
            if hand.items:
                continue
            ahead = max(len(other.items) for other in hands)
            batch = await (_take(hand.port, ahead) if ahead else receive(hand.port, component.batch))
            if batch is None:
                await _drop_unpaired(component, hands, receive)
                return
            hand.put(*batch)
        steps = min(len(hand.items) for hand in hands)
        rows = [
            dict(zip(component.ins, row, strict=True))
            for row in zip(*(hand.take(steps) for hand in hands), strict=True)
        ]
        if any(hand.held for hand in hands):
            held = [receipts_.joint(row) for row in zip(*(hand.release(steps) for hand in hands), strict=True)]
            await perform(handling, rows, held)
        else:
            await perform(handling, rows, None)


async def _drop_unpaired(component: "SynchronousFilter[Any]", hands: list[_Hand], receive: Receive) -> None:
    """Take what still comes, from all inputs at once: one producer may feed several and must not be stuck at any."""
    for hand in hands:
        component.metrics.count("unpaired", len(hand.items))
        _release(hand.release(len(hand.items)))

    async def drop(port: In[Any]) -> None:
        while (batch := await receive(port, component.batch)) is not None:
            component.metrics.count("unpaired", len(batch[0]))
            _release(batch[1])

    async with asyncio.TaskGroup() as group:
        for port in component.ins.values():
            group.create_task(drop(port))


async def _take(port: In[Any], limit: int) -> tuple[list[Any], Receipts] | None:
    """The next batch, waited for whatever happens; None when there will be none."""
    try:
        return await port.take(limit)
    except EndOfItems:
        return None


def _release(receipts: Receipts) -> None:
    for receipt in receipts or ():
        if receipt is not None:
            receipt.release()
