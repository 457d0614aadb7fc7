"""A bounded cache of resolvers' answers, good and bad, in which equal questions at once cost one look-up."""

import asyncio
from collections.abc import Awaitable, Callable

from gossamer.contracts.resolving import Endpoint
from gossamer.flow.clock import Clock
from gossamer.model.errors import AddressRefused, ResolutionFailed

Question = tuple[str, int]
_Refusal = AddressRefused | ResolutionFailed


class Answers:
    """Answers by host and port, each until its time to live ends.

    When full, the oldest answer makes room: a crawl asks for a host in bursts, so age is as good as use, and costs
    nothing on the path that every request takes.
    """

    def __init__(self, capacity: int, ttl: float, negative_ttl: float) -> None:
        self.capacity = capacity
        self.ttl = ttl
        self.negative_ttl = negative_ttl
        self._known: dict[Question, tuple[Endpoint | _Refusal, float]] = {}
        self._asked: dict[Question, asyncio.Task[Endpoint | _Refusal]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, question: Question, now: float) -> Endpoint | None:
        """The answer, if one is known and young enough.

        Raises:
            ResolutionFailed, AddressRefused: that is the answer.
        """
        known = self._known.get(question)
        if known is None or known[1] <= now:
            return None
        return _spoken(known[0])

    async def ask(self, question: Question, look_up: Callable[[], Awaitable[Endpoint]], clock: Clock) -> Endpoint:
        """Look up what :meth:`get` did not know. Whoever gives up leaves the look-up to the others who wait for it."""
        asked = self._asked.get(question)
        if asked is None:
            asked = asyncio.get_running_loop().create_task(self._look_up(question, look_up, clock))
            self._asked[question] = asked
        return _spoken(await asyncio.shield(asked))

    async def _look_up(
        self, question: Question, look_up: Callable[[], Awaitable[Endpoint]], clock: Clock
    ) -> Endpoint | _Refusal:
        answer: Endpoint | _Refusal
        try:
            answer = await look_up()
        except (AddressRefused, ResolutionFailed) as error:
            answer = error.with_traceback(None)
        finally:
            if self._asked.get(question) is asyncio.current_task():
                del self._asked[question]
        self._put(question, answer, clock.monotonic())
        return answer

    def _put(self, question: Question, answer: Endpoint | _Refusal, now: float) -> None:
        self._known.pop(question, None)
        while len(self._known) >= self.capacity:
            del self._known[next(iter(self._known))]
        self._known[question] = (answer, now + (self.ttl if isinstance(answer, Endpoint) else self.negative_ttl))

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


def _spoken(answer: Endpoint | _Refusal) -> Endpoint:
    """Return the answer, or raise a fresh copy of it: one exception raised often would collect every trace."""
    if isinstance(answer, Endpoint):
        return answer
    raise type(answer)(*answer.args)
