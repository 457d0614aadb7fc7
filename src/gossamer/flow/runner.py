"""The runner: what stands between a component and the connectors, one for each running instance.

It receives batches, hands them to the component's handlers, sends what they make, and knows everything that a component
need not know: pools of workers, suspension, turnover for exchanges, receipts, restarts. Components stay plain.
"""

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable
from typing import Any

import msgspec

from gossamer.flow import receipt as receipts_
from gossamer.flow.component import (
    AsynchronousFilter,
    Component,
    Handler,
    ItemFailed,
    OneInput,
    Producer,
    SemiSynchronousFilter,
    SynchronousFilter,
)
from gossamer.flow.connector import In, Receipts
from gossamer.flow.errors import ComponentFailed, EndOfItems
from gossamer.flow.fused import FusedConnector
from gossamer.flow.receipt import Receipt


class Policy(msgspec.Struct, frozen=True):
    """What happens when a component raises."""

    on_error: str = "stop"
    """`stop` ends the crawl; `restart` stops and starts the unit and gives it the item once more, then ends the crawl."""
    restarts: int = 3
    """Restarts in the unit's life; a unit that needs more is not getting better by it."""


class Runner:
    """Runs one instance of a component until its inputs end."""

    def __init__(self, component: Component[Any], *, workers: int = 1, policy: Policy | None = None) -> None:
        self.component = component
        self.workers = workers
        self.policy = policy or Policy()
        self.report: Callable[[str], None] = lambda line: None
        self._open_gate = asyncio.Event()
        self._open_gate.set()
        self._suspended = False
        self._begun = 0
        self._inside: set[int] = set()
        self._turnovers: list[tuple[int, asyncio.Future[None]]] = []
        self._restarting = asyncio.Lock()
        self._receiving: set[asyncio.Task[Any]] = set()
        self._leaving = False
        if isinstance(component, OneInput):
            self._handle_input, self._limit = component.handler()

    def __repr__(self) -> str:
        state = "suspended" if self._suspended else f"{len(self._inside)} busy"
        return f"<Runner of {self.component.name}: {state}, {self.workers} workers>"

    # -- the life of the unit

    async def run(self) -> None:
        """Work until the inputs end, then close the outputs.

        Raises:
            ComponentFailed: an item could not be handled and the policy says stop.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for loop in self._loops():
                    group.create_task(loop)
        except ExceptionGroup as group_error:
            raise _first_failure(group_error, self.component) from group_error
        finally:
            self.close_outputs()

    def close_outputs(self) -> None:
        """Close every output end."""
        for out in self.component.outs.values():
            out.close()

    def _loops(self) -> Iterable[Coroutine[Any, Any, None]]:
        component = self.component
        if isinstance(component, OneInput):
            for _ in range(self.workers):
                yield self._serve(component.only_input, self._handle_input, self._limit)
        elif isinstance(component, AsynchronousFilter):
            yield self._serve_until_all_end(component)
            for role in component.outs:
                yield self._supply(component, role)
        elif isinstance(component, SemiSynchronousFilter):
            for role, (handle, limit) in component.handlers().items():
                yield self._serve(component.ins[role], handle, limit)
        elif isinstance(component, SynchronousFilter):
            yield self._serve_in_step(component)
        elif isinstance(component, Producer):
            yield self._produce(component)
        else:
            raise TypeError(f"{type(component).__name__} is of no kind that can run; derive it from one in flow.component")

    # -- loops

    async def _serve(self, port: In[Any], handle: Handler, limit: int) -> None:
        if isinstance(port.connector, FusedConnector):
            port.connector.attach(self.fused_handler(handle))
        task = asyncio.current_task()
        assert task is not None
        while not self._leaving:
            self._receiving.add(task)
            try:
                items, receipts = await port.take(limit)
            except EndOfItems:
                return
            finally:
                self._receiving.discard(task)
            await self.perform(handle, items, receipts)

    async def _serve_until_all_end(self, component: AsynchronousFilter[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            for role, (handle, limit) in component.handlers().items():
                group.create_task(self._serve_input(component, role, handle, limit))
        component.finish()

    async def _serve_input(self, component: AsynchronousFilter[Any], role: str, handle: Handler, limit: int) -> None:
        await self._serve(component.ins[role], handle, limit)
        component.input_ended(role)

    async def _supply(self, component: AsynchronousFilter[Any], role: str) -> None:
        take = getattr(component, f"take_{role}")
        out = component.outs[role]
        try:
            while True:
                await component.signalled(role)
                while items := await self._ask(take, await out.room()):
                    await out.send_many(items)
                if component.finished:
                    return
        finally:
            out.close()

    async def _ask(self, take: Callable[[int], Any], free: int) -> list[Any]:
        if self._suspended:
            await self._open_gate.wait()
        try:
            return list(take(free))
        except Exception as error:
            raise self._failure(error, None) from error

    async def _serve_in_step(self, component: SynchronousFilter[Any]) -> None:
        handle, _ = component.batched(lambda items: component.filter(**items), None)  # type: ignore[attr-defined]  # by name
        while True:
            items: dict[str, Any] = {}
            held: list[Receipt | None] = []
            try:
                for role, port in component.ins.items():
                    taken, receipts = await port.take(1)
                    items[role] = taken[0]
                    held += receipts or [None]
            except EndOfItems:
                await self._drop_unpaired(component, len(items))
                return
            whole = receipts_.joint(held)
            await self.perform(handle, [items], None if whole is None else [whole])

    async def _drop_unpaired(self, component: SynchronousFilter[Any], dropped: int) -> None:
        component.metrics.count("unpaired", dropped)
        for port in component.ins.values():
            try:
                while True:
                    items, receipts = await port.take(component.batch)
                    component.metrics.count("unpaired", len(items))
                    _release(receipts)
            except EndOfItems:
                continue

    async def _produce(self, component: Producer[Any]) -> None:
        while True:
            try:
                await self._send_produced(component, component.produce())
                return
            except ComponentFailed:
                raise
            except Exception as error:
                await self._restart(error, None)

    async def _send_produced(self, component: Producer[Any], items: Iterable[Any] | AsyncIterable[Any]) -> None:
        out = next(iter(component.outs.values()))
        if isinstance(items, AsyncIterable):
            async for item in items:
                if await self._wants_no_more(component):
                    return
                await out.send(item)
                component.metrics.count("items")
            return
        for item in items:
            if await self._wants_no_more(component):
                return
            await out.send(item)
            component.metrics.count("items")

    async def _wants_no_more(self, component: Producer[Any]) -> bool:
        if self._suspended:
            await self._open_gate.wait()
        return component.drained

    # -- handling one batch

    async def perform(self, handle: Handler, items: list[Any], receipts: Receipts = None) -> None:
        """Hand a batch to the component, when it is not suspended, and release the receipts."""
        if self._suspended:
            await self._open_gate.wait()
        self._begun += 1
        number = self._begun
        self._inside.add(number)
        try:
            if receipts is None:
                await self._attempt(handle, items)
            else:
                await self._attempt_each(handle, items, receipts)
            self.component.metrics.counters["items"] += len(items)
        finally:
            self._inside.discard(number)
            if self._turnovers:
                self._tell_turnovers()

    async def _attempt_each(self, handle: Handler, items: list[Any], receipts: Receipts) -> None:
        """As :meth:`_attempt`, with each item's receipt passed on to what it causes."""
        assert receipts is not None
        if hasattr(self.component, "filter_many") or hasattr(self.component, "consume_many"):
            whole = receipts_.joint(receipts)
            await self._attempt_under(whole, handle, items)
            if whole is not None:
                whole.release()
            return
        for item, receipt in zip(items, receipts, strict=True):
            await self._attempt_under(receipt, handle, [item])
            if receipt is not None:
                receipt.release()

    async def _attempt_under(self, receipt: Receipt | None, handle: Handler, items: list[Any]) -> None:
        token = receipts_.current.set(receipt)
        try:
            await self._attempt(handle, items)
        finally:
            receipts_.current.reset(token)

    async def _attempt(self, handle: Handler, items: list[Any]) -> None:
        try:
            await handle(items)
        except ItemFailed as failure:
            await self._recover(handle, items, failure)

    async def _recover(self, handle: Handler, items: list[Any], failure: ItemFailed) -> None:
        """Let the component replace the failed item, or restart it and try once more; then go on with the rest."""
        while True:
            items = items[failure.position :]
            self.component.metrics.count("failures")
            try:
                instead = self.component.failed(items[0], failure.cause)
                await self.component.emit_all(list(instead) if instead is not None else ())
                items = items[1:]
            except Exception as error:
                await self._restart(error, items[0])
                await self._retry(handle, items[0])
                items = items[1:]
            try:
                if items:
                    await handle(items)
                return
            except ItemFailed as next_failure:
                failure = next_failure

    async def _retry(self, handle: Handler, item: Any) -> None:
        try:
            await handle([item])
        except ItemFailed as again:
            raise self._failure(again.cause, item) from again.cause

    async def _restart(self, error: Exception, item: Any) -> None:
        """Stop and start the unit, if its policy allows that once more.

        Raises:
            ComponentFailed: it does not.
        """
        counters = self.component.metrics.counters
        if self.policy.on_error != "restart" or counters["restarts"] >= self.policy.restarts:
            raise self._failure(error, item) from error
        async with self._restarting:
            counters["restarts"] += 1
            self.report(f"component {self.component.name!r} is restarted: {type(error).__name__}: {error}")
            await self.component.stop()
            await self.component.start()

    def _failure(self, error: Exception, item: Any) -> ComponentFailed:
        held = f" on {item!r:.200}" if item is not None else ""
        return ComponentFailed(f"component {self.component.name!r} failed{held}: {type(error).__name__}: {error}")

    def fused_handler(self, handle: Handler) -> Callable[[list[Any]], Awaitable[None]]:
        """What a fused connector calls in place of a queue."""

        async def in_place(items: list[Any]) -> None:
            await self.perform(handle, items)

        return in_place

    @property
    def input_handler(self) -> Handler:
        """The handler of a component with one input, for a connector that is fused while it runs."""
        return self._handle_input

    # -- suspension and turnover

    async def suspend(self) -> None:
        """Take up nothing more; returns when what is in hand is finished."""
        self._suspended = True
        self._open_gate.clear()
        await self.turnover()

    def resume(self) -> None:
        """Go on."""
        self._suspended = False
        self._open_gate.set()

    async def leave(self) -> None:
        """Finish what is in hand and take up nothing more, for good: :meth:`run` then ends as if the inputs had ended."""
        self._leaving = True
        self.resume()
        self.component.drain()
        for task in list(self._receiving):
            task.cancel()
        await self.turnover()

    @property
    def suspended(self) -> bool:
        """The unit takes up nothing."""
        return self._suspended

    async def turnover(self) -> None:
        """Return when everything that is in hand now is finished, whatever comes after: then nobody uses what was bound before."""
        if self._inside:
            future = asyncio.get_running_loop().create_future()
            self._turnovers.append((self._begun, future))
            await future

    def _tell_turnovers(self) -> None:
        oldest = min(self._inside, default=self._begun + 1)
        waiting = []
        for number, future in self._turnovers:
            if number < oldest:
                if not future.done():
                    future.set_result(None)
            else:
                waiting.append((number, future))
        self._turnovers = waiting


def _release(receipts: Receipts) -> None:
    for receipt in receipts or ():
        if receipt is not None:
            receipt.release()


def _first_failure(group: BaseExceptionGroup[BaseException], component: Component[Any]) -> Exception:
    """The failure that started it: the others were cancelled by it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first_failure(error, component)
        if isinstance(error, ComponentFailed):
            return error
    cause = group.exceptions[0]
    return ComponentFailed(f"component {component.name!r} failed: {type(cause).__name__}: {cause}")
