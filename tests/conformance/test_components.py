"""One sample of each kind keeps the promises of its kind, and what only looks like it is found out."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from gossamer.engine.component import (
    AsynchronousFilter,
    Component,
    Consumer,
    Filter,
    Producer,
    SemiSynchronousFilter,
    SynchronousFilter,
)
from gossamer.engine.ends import In, Out
from gossamer.testing import (
    check_asynchronous,
    check_consumer,
    check_filter,
    check_producer,
    check_semi_synchronous,
    check_synchronous,
)

PAIRS = {"left": [1, 2, 3], "right": ["a", "b", "c"]}
JOINED = {"outbox": ["1a", "2b", "3c"]}
MIXED = [("left", 1), ("right", "a"), ("right", "b"), ("left", 2)]
MERGED = [("outbox", "1"), ("outbox", "a"), ("outbox", "b"), ("outbox", "2")]


class Keep(Consumer):
    """Consumes."""

    inbox: In[int]

    def consume(self, item: int) -> None:
        pass


class KeepMany(Consumer):
    """Consumes lists, async."""

    inbox: In[int]

    async def consume_many(self, items: list[int]) -> None:
        pass


class Double(Filter):
    """Filters."""

    inbox: In[int]
    outbox: Out[int]

    def filter(self, item: int) -> list[int]:
        return [item, item]


class DoubleMany(Filter):
    """Filters lists."""

    inbox: In[int]
    outbox: Out[int]

    def filter_many(self, items: list[int]) -> Iterator[int]:
        for item in items:
            yield from (item, item)


class SendTwice(Filter):
    """Sends by name."""

    inbox: In[int]
    outbox: Out[int]

    async def filter(self, item: int) -> None:
        await self.outbox.send(item)
        await self.outbox.send(item)


class EmitTwice(Filter):
    """Emits by name."""

    inbox: In[int]
    outbox: Out[int]

    def filter(self, item: int) -> None:
        self.outbox.emit(item)
        self.outbox.emit(item)


class Count(Producer):
    """Produces."""

    outbox: Out[int]

    def produce(self) -> Iterable[int]:
        return range(1, 6)


class CountAsync(Producer):
    """Produces, async."""

    outbox: Out[int]

    async def produce(self) -> AsyncIterator[int]:
        for number in range(1, 6):
            yield number


class Join(SynchronousFilter):
    """Waits for both."""

    left: In[int]
    right: In[str]
    outbox: Out[str]

    def filter(self, left: int, right: str) -> list[str]:
        return [f"{left}{right}"]


class JoinAsync(SynchronousFilter):
    """Waits for both, async."""

    left: In[int]
    right: In[str]
    outbox: Out[str]

    async def filter(self, left: int, right: str) -> list[str]:
        return [f"{left}{right}"]


class Merge(SemiSynchronousFilter):
    """Runs on any."""

    left: In[int]
    right: In[str]
    outbox: Out[str]

    def on_left(self, item: int) -> list[str]:
        return [str(item)]

    async def on_right(self, item: str) -> list[str]:
        return [item]


class Pool(AsynchronousFilter):
    """Takes always, gives when asked."""

    left: In[int]
    right: In[str]
    outbox: Out[str]

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def on_left(self, item: int) -> None:
        self.keep(str(item))

    def on_right(self, item: str) -> None:
        self.keep(item)

    def keep(self, item: str) -> None:
        self.kept.append(item)
        self.signal("outbox")

    def take_outbox(self, free: int) -> list[str]:
        taken, self.kept = self.kept[:free], self.kept[free:]
        return taken


SOUND: list[Any] = [
    (Keep, check_consumer, {"given": [1, 2, 3]}),
    (KeepMany, check_consumer, {"given": [1, 2, 3]}),
    (Double, check_filter, {"given": [1, 2, 3], "expected": [1, 1, 2, 2, 3, 3]}),
    (DoubleMany, check_filter, {"given": [1, 2, 3], "expected": [1, 1, 2, 2, 3, 3]}),
    (SendTwice, check_filter, {"given": [1, 2, 3], "expected": [1, 1, 2, 2, 3, 3]}),
    (EmitTwice, check_filter, {"given": [1, 2, 3], "expected": {"outbox": [1, 1, 2, 2, 3, 3]}}),
    (Count, check_producer, {"expected": [1, 2, 3, 4, 5]}),
    (CountAsync, check_producer, {"expected": [1, 2, 3, 4, 5]}),
    (Join, check_synchronous, {"given": PAIRS, "expected": JOINED}),
    (JoinAsync, check_synchronous, {"given": PAIRS, "expected": JOINED}),
    (Merge, check_semi_synchronous, {"given": MIXED, "expected": MERGED}),
    (Pool, check_asynchronous, {"given": MIXED, "expected": {"outbox": ["1", "2", "a", "b"]}}),
]


@pytest.mark.parametrize(("make", "check", "known"), SOUND, ids=lambda case: getattr(case, "__name__", ""))
def test_a_sample_of_each_kind(
    make: type[Component[Any]], check: Callable[..., Awaitable[None]], known: Mapping[str, Any], run: Any
) -> None:
    run(check(make, **known))


@pytest.mark.parametrize("sample", [Keep, Double, Count, Join, Merge, Pool], ids=lambda sample: str(sample.kind))
@pytest.mark.parametrize(
    ("proper", "check", "known"), [SOUND[i] for i in (0, 2, 6, 8, 10, 11)], ids=lambda x: getattr(x, "__name__", "")
)
def test_every_suite_tells_its_kind_from_the_others(
    sample: type[Component[Any]], proper: type[Component[Any]], check: Any, known: Any, run: Any
) -> None:
    if sample is proper:
        run(check(sample, **known))
    else:
        with pytest.raises(AssertionError, match=f"is a {sample.kind}, not a {proper.kind}"):
            run(check(sample, **known))


class Greedy(Double):
    """Makes less than it should."""

    def filter(self, item: int) -> list[int]:
        return [item]


class Endless(Count):
    """Does not listen to drain."""

    def drain(self) -> None:
        pass

    def produce(self) -> Iterator[int]:
        number = 0
        while True:
            number += 1
            yield number


class Impatient(Join):
    """Does not wait: an item without partner is passed on by what it remembers."""

    kind = "synchronous"

    def filter(self, left: int, right: str) -> list[str]:
        return [f"{left}"]


class Hoarder(Merge):
    """Keeps what it makes until the next item."""

    def __init__(self) -> None:
        super().__init__()
        self.last: list[str] = []

    def on_left(self, item: int) -> list[str]:
        made, self.last = self.last, [str(item)]
        return made

    async def on_right(self, item: str) -> list[str]:
        return self.on_left(item)  # type: ignore[arg-type]


class Silent(Pool):
    """Forgets to signal."""

    def keep(self, item: str) -> None:
        self.kept.append(item)


class Stubborn(Pool):
    """Waits for its output, so that its inputs wait, too."""

    async def on_left(self, item: int) -> None:
        await self.outbox.send(str(item))

    async def on_right(self, item: str) -> None:
        await self.outbox.send(item)


class Overflowing(Pool):
    """Gives more than there is room for, and forgets the rest."""

    def take_outbox(self, free: int) -> list[str]:
        taken, self.kept = self.kept[:free], []
        return taken


class NoHandler(Merge):
    """One input has no handler."""

    on_left = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("wrong", "check", "known", "broken"),
    [
        (Greedy, check_filter, SOUND[2][2], r"outbox: made \[1, 2, 3\]"),
        (Endless, check_producer, SOUND[6][2], "items came out of a drained producer"),
        (Impatient, check_synchronous, SOUND[8][2], "outbox: made"),
        (Hoarder, check_semi_synchronous, SOUND[10][2], "made"),
        (Silent, check_asynchronous, SOUND[11][2], "0 items are out, and there is one slot"),
        (Stubborn, check_asynchronous, SOUND[11][2], "inputs wait for outputs"),
        (Overflowing, check_asynchronous, SOUND[11][2], "outbox: made"),
        (NoHandler, check_semi_synchronous, SOUND[10][2], "has to define one of these: on_left, on_left_many"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_broken_promise_is_named(wrong: Any, check: Any, known: Any, broken: str, run: Any) -> None:
    with pytest.raises(AssertionError, match=broken):
        run(check(wrong, **known))
