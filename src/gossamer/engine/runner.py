"""The runner of a component: one for each running instance, between the component and its connectors.

Place in the flow: it receives batches and hands each to the :class:`~gossamer.engine.handling.Handling` of its input; it asks and
sends where the component makes items of its own; a fused input is called without it. It knows pools of workers,
suspension, turnover for exchanges and the end, so components stay plain.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from gossamer.engine.component import (
    AsynchronousFilter,
    Component,
    OneInput,
    Producer,
    SemiSynchronousFilter,
    SynchronousFilter,
)
from gossamer.engine.connector import Receipts, Retired
from gossamer.engine.ends import In
from gossamer.engine.errors import ComponentFailed, EndOfItems
from gossamer.engine.gate import Gate
from gossamer.engine.handling import ErrorPolicy, Handling, KeepFailed, Performer, forget, own_failure, serve_in_step
from gossamer.engine.local import FusedConnector

#: There is no more: any item may be None.
_END = object()

#: Seconds after which an idle worker of a pool ends. A new one costs some microseconds, and one that waits some
#: kilobytes, so that this only has to be longer than the pauses of a crawl that goes on.
IDLE = 10.0


class Runner:
    """Runs one instance of a component until its inputs end. The component's ends are bound already."""

    def __init__(
        self,
        component: Component[Any],
        *,
        workers: int = 1,
        idle: float = IDLE,
        policy: ErrorPolicy | None = None,
        report: Callable[[str], None] = lambda line: None,
        keep_failed: KeepFailed = forget,
        is_called: bool = True,
    ) -> None:
        """A runner; one whose fused input calls another component yet waits for :meth:`attach` (`is_called=False`)."""
        self.component = component
        self.workers = workers
        """The most that are at work at once. A pool begins with one, and grows while all are busy."""
        self.idle = idle
        """Seconds after which idle workers end; one stays."""
        self._alive = 0
        self._waiting = 0
        self._least_waiting = 0
        self._surplus = 0
        """Workers that were told to end and are not gone yet: they count as alive, but not as going on."""
        self._shrinking: asyncio.Task[None] | None = None
        places = (
            None if isinstance(component, AsynchronousFilter) else workers if isinstance(component, OneInput) else 1
        )
        self.gate = Gate(places)
        """Every piece of work passes it: by it the component is suspended, and a turnover waited for, after which no handler uses
        anything that was bound before."""
        self._performer = Performer(component, self.gate, policy or ErrorPolicy(), report, keep_failed)
        self._receiving: set[asyncio.Task[Any]] = set()
        self._leaving = False
        if isinstance(component, OneInput):
            component.metrics.gauge("workers", lambda: self._alive)
            self._handling = self._handled(component.only_input.role)
            if is_called:
                self.attach()

    def __repr__(self) -> str:
        state = "suspended" if self.gate.suspended else f"{self.gate.inside} busy"
        return f"<Runner of {self.component.name}: {state}, {self.workers} workers>"

    def attach(self) -> None:
        """Let a fused input call this component in place. Before anything runs: a producer may begin first."""
        if isinstance(self.component, OneInput) and isinstance(self.component.only_input.connector, FusedConnector):
            self.component.only_input.connector.attach(self._handling)

    def _handled(self, role: str) -> Handling:
        return Handling(self._performer, *self.component.methods(role))

    # -- the life of the unit

    async def run(self) -> None:
        """Work until the inputs end, then close the outputs.

        After a failure they stay open: what comes out of them is not whole, and no one must take it for that. Raises
        ComponentFailed: an item could not be handled and the policy says stop."""
        try:
            async with asyncio.TaskGroup() as group:
                if isinstance(self.component, OneInput):
                    # As many workers as are needed, until the input ends (the worker-thread model of Hunyadi 2007, section 2.2).
                    self._grow(self.component.only_input, group)
                else:
                    for loop in self._loops(self.component):
                        group.create_task(loop)
        except ExceptionGroup as group_error:
            raise _first_failure(group_error, self.component) from group_error
        self.close_outputs()

    def close_outputs(self) -> None:
        for out in self.component.outs.values():
            out.close()

    def _loops(self, component: Component[Any]) -> Iterable[Coroutine[Any, Any, None]]:
        if isinstance(component, AsynchronousFilter):
            yield self._serve_until_all_end(component)
            for role in component.outs:
                yield self._supply(component, role)
        elif isinstance(component, SemiSynchronousFilter):
            for port in component.ins.values():
                yield self._serve(port)
        elif isinstance(component, SynchronousFilter):
            yield serve_in_step(component, self._handled(""), self._receive)
        elif isinstance(component, Producer):
            yield self._produce(component)
        else:
            raise TypeError(f"{type(component).__name__} is not runnable: derive it from Filter, Consumer or Producer")

    # -- pools

    def _grow(self, port: In[Any], group: asyncio.TaskGroup) -> None:
        self._alive += 1
        self._waiting += 1
        group.create_task(self._work(port, group))
        if self._alive > 1 and (self._shrinking is None or self._shrinking.done()):
            self._shrinking = group.create_task(self._shrink())

    async def _work(self, port: In[Any], group: asyncio.TaskGroup) -> None:
        """One worker: counted as waiting whenever it has nothing in hand, here and when it begins and ends."""
        perform, limit = self._handling.perform, self._handling.limit
        try:
            while (batch := await self._receive(port, limit)) is not None:
                self._waiting -= 1
                if self._waiting < self._least_waiting:
                    self._least_waiting = self._waiting
                if not self._waiting and self._alive < self.workers:
                    self._grow(port, group)
                try:
                    await perform(*batch)
                finally:
                    self._waiting += 1
                if self._alive - self._surplus > self.workers:
                    return
        finally:
            self._alive -= 1
            self._waiting -= 1
            if not self._alive and self._shrinking is not None:
                self._shrinking.cancel()

    async def _shrink(self) -> None:
        """End workers that had nothing to do for the whole of an idle time, time after time."""
        while self._alive > 1:
            self._least_waiting = self._waiting
            await self.component.clock.sleep(self.idle)
            self._end_workers(self._least_waiting)

    def _end_workers(self, count: int) -> None:
        """End some of those that wait; the others, and one of all, go on."""
        for task in list(self._receiving)[: max(0, min(count, self._alive - self._surplus - 1))]:
            self._surplus += 1
            self._receiving.discard(task)
            task.cancel()

    def resize(self, workers: int, idle: float) -> None:
        """Let at most so many be at work from now on; a worker in the middle of an item finishes it."""
        self.workers, self.idle = workers, idle
        self.gate.resize(workers)
        self._end_workers(max(0, self._alive - self._surplus - workers))

    # -- taking items

    async def _serve(self, port: In[Any]) -> None:
        handling = self._handled(port.role)
        while (batch := await self._receive(port, handling.limit)) is not None:
            await handling.perform(*batch)
        if isinstance(self.component, AsynchronousFilter):
            self.component.input_ended(port.role)

    async def _receive(self, port: In[Any], limit: int) -> tuple[list[Any], Receipts] | None:
        """The next batch; None when there will be none, or when the component leaves. A suspended one takes nothing."""
        while True:
            if self.gate.shut and not self._leaving:
                await self.gate.opened()
            if self._leaving:
                return None
            connector, task = port.connector, asyncio.current_task()
            assert task is not None
            self._receiving.add(task)
            try:
                return await connector.take(limit)
            except (EndOfItems, Retired):
                # The end of an exchanged connector is not the end: items that waited there have gone over into the new one.
                if connector is port.connector:
                    return None
            except asyncio.CancelledError:
                if not self._is_cut(task):
                    raise
                if self._surplus:
                    self._surplus -= 1
                    return None
            finally:
                self._receiving.discard(task)

    def _is_cut(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task was cancelled because its wait is of no use any more, and by nothing else."""
        return task not in self._receiving and not task.uncancel()

    def look_again(self) -> None:
        """Cancel the tasks that only wait for items; nothing is in hand there. A task that is missing from the set was cut."""
        waiting, self._receiving = self._receiving, set()
        for task in waiting:
            task.cancel()

    async def _serve_until_all_end(self, component: AsynchronousFilter[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            for port in component.ins.values():
                group.create_task(self._serve(port))
        component.finish()

    async def _supply(self, component: AsynchronousFilter[Any], role: str) -> None:
        """Ask for items whenever the component has signalled that there are some, as many as there is room for, and send them."""
        out, signal, gate = component.outs[role], component.signals[role], self.gate
        take: Callable[[int], Iterable[Any] | None] = getattr(component, f"take_{role}")
        while True:
            await signal.wait()
            signal.clear()
            sent, free = 1, 0
            while sent and not (component.gives_all and sent < free):
                free = await out.room()
                crowd = gate.try_enter() or await gate.enter()
                try:
                    try:
                        items = list(take(free) or ())
                    except Exception as error:
                        await self._performer.restart(error, None)
                        try:
                            items = list(take(free) or ())
                        except Exception as again:
                            raise self._performer.failure(again, None) from again
                    if items:
                        await out.send_many(items)
                    sent = len(items)
                finally:
                    gate.leave(crowd)
            if component.finished:
                break
        out.close()

    # -- producing

    async def _produce(self, component: Producer[Any]) -> None:
        while True:
            try:
                items = component.produce()
                await self._send_all(
                    component, items if isinstance(items, AsyncIterable) else _spread(items, component.batch)
                )
                return
            except ComponentFailed:
                raise
            except (Exception, asyncio.CancelledError) as error:
                await self._performer.restart(own_failure(error), None)

    async def _send_all(self, component: Producer[Any], made: AsyncIterable[Any]) -> None:
        out, task, items = next(iter(component.outs.values())), asyncio.current_task(), aiter(made)
        assert task is not None
        try:
            while not component.drained:
                self._receiving.add(task)
                try:
                    item = await anext(items, _END)
                except asyncio.CancelledError:
                    if self._is_cut(task):
                        return
                    raise
                finally:
                    self._receiving.discard(task)
                if item is _END:
                    return
                crowd = self.gate.try_enter() or await self.gate.enter()
                try:
                    await out.send(item)
                finally:
                    self.gate.leave(crowd)
                component.metrics.counters["items"] += 1
        finally:
            if hasattr(items, "aclose"):
                await items.aclose()

    # -- the end

    def drain(self) -> None:
        """Start nothing new: :meth:`run` ends when what is in hand is finished and the inputs have ended.

        An entrance takes nothing more, as if its inputs had ended.
        """
        self.component.drain()
        self.gate.resume()
        if self.component.is_entrance:
            self._leaving = True
            self.look_again()
        if isinstance(self.component, Producer) and self.component.drained:
            self.look_again()

    async def leave(self) -> None:
        """Finish what is in hand and take up nothing more, for good: :meth:`run` then ends as if the inputs had ended."""
        self._leaving = True
        self.drain()
        self.look_again()
        await self.gate.turnover()


async def _spread(items: Iterable[Any], batch: int) -> AsyncIterator[Any]:
    """A plain generator into a fused connector never waits; the others get their turn after each batch."""
    for sent, item in enumerate(items, 1):
        yield item
        if sent % batch == 0:
            await asyncio.sleep(0)


def _first_failure(group: BaseExceptionGroup[BaseException], component: Component[Any]) -> Exception:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first_failure(error, component)
        if isinstance(error, ComponentFailed):
            return error
    cause = group.exceptions[0]
    return ComponentFailed(f"component {component.name!r} failed: {type(cause).__name__}: {cause}")
