"""Batch handlers: what a runner calls, made from the methods that a component defines.

A component's method takes one item or a list, and is plain or async. Here each becomes one coroutine function of a batch
that sends what the method made, and says with :class:`ItemFailed` which item it failed on. The promise to the runner: all
items before that position are handled and their results sent, and plain code has sent nothing for it or for those after.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gossamer.engine.errors import ComponentFailed

if TYPE_CHECKING:
    from gossamer.engine.component import Component

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
    component: "Component[Any]", single: Callable[..., Any] | None, many: Callable[..., Any] | None
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
        marks = [] if is_async else _marks(component)
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
            if (sending := component.emit_all(produced)) is not None:
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
        put_by = [out.pending for out in component.outs.values()]
        only = put_by[0] if len(put_by) == 1 else None
        try:
            for position, item in enumerate(items):
                made = len(produced)
                marks = list(map(len, put_by)) if only is None else [len(only)]
                result = single(item)
                if result is not None:
                    produced.extend(result)
        except Exception as error:
            # Half of what the item makes is nothing: it will be given once more, or be replaced.
            del produced[made:]
            _take_back(component, marks)
            if (sending := component.emit_all(produced)) is not None:
                await sending
            raise ItemFailed(position, error) from error
        if (sending := component.emit_all(produced)) is not None:
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
            if (sending := component.emit_all(produced)) is not None:
                await sending

    return handle


def _marks(component: "Component[Any]") -> list[int]:
    return [len(out.pending) for out in component.outs.values()]


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
