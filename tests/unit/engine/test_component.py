"""Every kind tells what is wrong with a class of its kind, before anything starts."""

from collections.abc import AsyncIterator
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
from gossamer.testing import Stand


class Neither(Component):
    """Of no kind."""


class NoConsume(Consumer):
    inbox: In[int]


class Talking(Consumer):
    inbox: In[int]
    outbox: Out[int]

    def consume(self, item: int) -> None: ...


class TwoInputs(Filter):
    a: In[int]
    b: In[int]

    def filter(self, item: int) -> None: ...


class Generating(Filter):
    inbox: In[int]
    outbox: Out[int]

    async def filter(self, item: int) -> AsyncIterator[int]:
        yield item


class NoProduce(Producer):
    outbox: Out[int]


class Hearing(Producer):
    inbox: In[int]
    outbox: Out[int]

    def produce(self) -> list[int]:
        return []


class OneInput(SynchronousFilter):
    inbox: In[int]

    def filter(self, inbox: int) -> None: ...


class OtherNames(SynchronousFilter):
    a: In[int]
    b: In[int]

    def filter(self, a: int, c: int) -> None: ...


class Deaf(SemiSynchronousFilter):
    outbox: Out[int]


class HalfDeaf(SemiSynchronousFilter):
    a: In[int]
    b: In[int]

    def on_a(self, item: int) -> None: ...


class Stingy(AsynchronousFilter):
    inbox: In[int]
    outbox: Out[int]
    spills = frozenset({"inbox", "other"})

    def on_inbox(self, item: int) -> None: ...


class Late(AsynchronousFilter):
    inbox: In[int]
    outbox: Out[int]

    def on_inbox(self, item: int) -> None: ...

    async def take_outbox(self, free: int) -> list[int]:
        return []


@pytest.mark.parametrize(
    ("unit", "problems"),
    [
        (
            Neither,
            ["class Neither is not runnable: derive it from Filter, Consumer or Producer"],
        ),
        (NoConsume, ["class NoConsume has to define one of these: consume, consume_many"]),
        (Talking, ["class Talking is a consumer, which declares exactly one In and no Out"]),
        (TwoInputs, ["class TwoInputs is a filter, which declares exactly one In; use a complex filter for several"]),
        (Generating, ["Generating.filter is an async generator; let it return a list, or send by name"]),
        (NoProduce, ["class NoProduce does not define: produce"]),
        (Hearing, ["class Hearing is a producer, which declares exactly one Out and no In"]),
        (OneInput, ["class OneInput is a synchronous filter, which declares at least two In"]),
        (OtherNames, ["OtherNames.filter takes ['a', 'c']; its inputs are ['a', 'b']"]),
        (Deaf, ["class Deaf declares no In; derive it from Producer if it makes items of its own"]),
        (HalfDeaf, ["class HalfDeaf has to define one of these: on_b, on_b_many"]),
        (
            Stingy,
            [
                "class Stingy has to define one of these: take_outbox",
                "class Stingy spills 'other', which is not one of its inputs: inbox",
            ],
        ),
        (Late, ["Late.take_outbox is async; it returns what is there, without waiting"]),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_is_wrong_with_a_class_is_told(unit: type[Component[Any]], problems: list[str]) -> None:
    assert unit.problems() == problems


class TwoOutputs(Filter):
    """Returns, although there are two ways to go."""

    inbox: In[int]
    a: Out[int]
    b: Out[int]

    def filter(self, item: int) -> list[int]:
        return [item]


def test_returning_items_with_several_outputs_says_what_to_do_instead(run: Any) -> None:
    async def body() -> None:
        async with Stand(TwoOutputs()) as stand:
            await stand.give("inbox", 1)
            with pytest.raises(Exception, match="returned items but has 2 outputs: emit or send them by name instead"):
                await stand.wait()

    run(body())


def test_a_producer_without_produce_says_which_one_and_what_it_lacks() -> None:
    class Silent(Producer):
        """Makes nothing."""

    with pytest.raises(NotImplementedError, match=r"^Silent does not define produce\(\)"):
        Silent().produce()
