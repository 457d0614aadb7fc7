"""A bounded cache of look-ups, good and bad, in which equal questions at once cost one look-up."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from gossamer.flow.clock import Clock
from gossamer.model.errors import AddressRefused, ResolutionFailed

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")
_Refusal = AddressRefused | ResolutionFailed

Dated = tuple[A, float]
"""An answer, and the moment (of the monotonic clock) until which it is good."""


class Answers(Generic[Q, A]):
    """Answers by question, each until its own end.

    When full, the oldest answer makes room: a crawl asks for a host in bursts, so age is as good as use, and costs
    nothing on the path that every request takes.
    """

    def __init__(self, capacity: int, negative_ttl: float) -> None:
        self.capacity = capacity
        self.negative_ttl = negative_ttl
        self._known: dict[Q, tuple[A | _Refusal, float]] = {}
        self._asked: dict[Q, asyncio.Task[tuple[A | _Refusal, float]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def under_way(self) -> int:
        """Look-ups that have not ended."""
        return len(self._asked)

    def get(self, question: Q, now: float) -> A | None:
        """The answer, if one is known and still good.

        Raises:
            ResolutionFailed, AddressRefused: that is the answer.
        """
        known = self._known.get(question)
        if known is None or known[1] <= now:
            return None
        return _spoken(known[0])

    def good_until(self, question: Q) -> float:
        """When what is known ends; 0 where nothing is, and without end while it is being looked up."""
        if question in self._asked:
            return float("inf")
        known = self._known.get(question)
        return known[1] if known is not None else 0.0

    async def ask(self, question: Q, look_up: Callable[[], Awaitable[Dated[A]]], clock: Clock) -> Dated[A]:
        """Look up what :meth:`get` did not know. Whoever gives up leaves the look-up to the others who wait for it."""
        asked = self._asked.get(question)
        if asked is None:
            asked = asyncio.get_running_loop().create_task(self._look_up(question, look_up, clock))
            self._asked[question] = asked
        answer, until = await asyncio.shield(asked)
        return _spoken(answer), until

    async def _look_up(
        self, question: Q, look_up: Callable[[], Awaitable[Dated[A]]], clock: Clock
    ) -> tuple[A | _Refusal, float]:
        answer: A | _Refusal
        try:
            answer, until = await look_up()
        except (AddressRefused, ResolutionFailed) as error:
            answer, until = error.with_traceback(None), clock.monotonic() + self.negative_ttl
        finally:
            if self._asked.get(question) is asyncio.current_task():
                del self._asked[question]
        self._known.pop(question, None)
        while len(self._known) >= self.capacity:
            del self._known[next(iter(self._known))]
        self._known[question] = (answer, until)
        return answer, until

    def clear(self) -> None:
        """Forget everything; look-ups under way are not joined any more."""
        self._known.clear()
        self._asked.clear()

    async def close(self) -> None:
        """Cancel what is under way."""
        under_way = list(self._asked.values())
        self.clear()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


def _spoken(answer: A | _Refusal) -> A:
    """Return the answer, or raise a fresh copy of it: one exception raised often would collect every trace."""
    if isinstance(answer, AddressRefused | ResolutionFailed):
        raise type(answer)(*answer.args)
    return answer
