"""How a synchronous filter is served: one item of each input at a time, until one of them has no more.

Place in the flow: the runner of such a filter hands it over to :func:`serve_in_step`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from gossamer.flow import receipt as receipts_
from gossamer.flow.component import SynchronousFilter
from gossamer.flow.connector import Receipts
from gossamer.flow.ends import In
from gossamer.flow.errors import EndOfItems
from gossamer.flow.handling import Handling
from gossamer.flow.receipt import Receipt

#: Takes a batch of at most so many from an input; None when there will be none.
Receive = Callable[[In[Any], int], Awaitable[tuple[list[Any], Receipts] | None]]

#: Has the filter handle rows, with their receipts; None where no row has one.
Perform = Callable[[Handling, list[Any], Receipts], Awaitable[None]]


class _Hand:
    """What a synchronous filter has taken from one input and not handled yet."""

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
        """The first items."""
        return [self.items.popleft() for _ in range(count)]

    def release(self, count: int) -> list[Receipt | None]:
        """The receipts of the first items."""
        return [self.held.popleft() if self.held else None for _ in range(count)]


async def serve_in_step(component: SynchronousFilter[Any], receive: Receive, perform: Perform) -> None:
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


async def _drop_unpaired(component: SynchronousFilter[Any], hands: list[_Hand], receive: Receive) -> None:
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
