"""A place to wait for something to change, looked at again after each change. Used by both sides of a connector."""

import asyncio
from collections.abc import Callable


class Waiters:
    """Tasks that wait until a condition holds. `changed` costs a look at a list where nobody waits."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def changed(self) -> None:
        """Let everyone look again."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when the condition holds; what it raises goes to who waits."""
        while not holds():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
