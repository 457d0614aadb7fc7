"""Components: the active units, and the kinds of them that Hunyadi 2007 names (section 4.6.2).

A component says *what* to do with items; its :class:`~gossamer.engine.runner.Runner` does the rest: receiving, pooling,
suspending, sending, counting, restarting. The kinds differ in when they are given items:

=====================  ==========================================================================================
`Producer`             no inputs: `produce` makes items
`Consumer`             one input: `consume` (or `consume_many`) takes them
`Filter`               one input, any outputs: `filter` (or `filter_many`) turns an item into items
`SynchronousFilter`    waits until *every* input has an item, then `filter(**items)` is called with one of each
`SemiSynchronousFilter`  `on_<input>` is called for an item of *any* input; what it makes is sent at once
`AsynchronousFilter`   `on_<input>` in any order; `take_<output>` is asked for items when slots are free, by signal
=====================  ==========================================================================================

Methods may be plain or `async`. What they return (an iterable of items, or None) goes to the only output; with several
outputs plain code calls `self.<output>.emit(item)` and async code `await self.<output>.send(item)`.

When a method raises, what *plain* code made of the item is taken back before the item is given again; what async code has
sent is sent. A method that takes many handles all of them or none: when it raises, it is given them one by one.
"""

import asyncio
import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Any, ClassVar

from gossamer.engine.ends import In, Out, declared
from gossamer.engine.unit import S, Unit


class Component(Unit[S]):
    """Root of all kinds."""

    kind: ClassVar[str] = "component"
    batch: ClassVar[int] = 64
    """Items that are taken at once from a queue; a fused connector gives what the producer sends at once. Async handlers
    of one item take one, so that a pool shares the work."""

    optional: ClassVar[frozenset[str]] = frozenset()
    """Ports that a wiring may leave unbound; then `ins` and `outs` do not have them."""

    lasts: ClassVar[str] = ""
    """Why no other can take its place while the graph runs, as `it knows what is in flight`; empty where one can."""

    is_entrance: ClassVar[bool] = False
    """Items that come in here come out of another graph, which may last longer: draining, it takes nothing more."""

    handles: ClassVar[str] = ""
    """The method that takes an item of an input, with `{}` for the input's name; with `_many` behind it, one that takes a list."""

    ins: Mapping[str, In[Any]]
    outs: Mapping[str, Out[Any]]

    def bind(self, ins: Mapping[str, In[Any]], outs: Mapping[str, Out[Any]]) -> None:
        self.ins, self.outs = ins, outs
        for role, end in {**ins, **outs}.items():
            setattr(self, role, end)

    def methods(self, role: str) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
        name = self.handles.format(role)
        return getattr(self, name, None), getattr(self, f"{name}_many", None)

    def failed(self, item: Any, error: Exception) -> Iterable[Any] | None:
        """`item` could not be handled. Return what should go on in its place, or raise `error` again (the default),
        which leaves the matter to the unit's policy (`on_error` in the wiring)."""
        raise error

    def drain(self) -> None:
        """Start nothing new; work in hand is finished. Kinds that make items of their own override this."""

    @classmethod
    def problems(cls) -> list[str]:
        return [f"class {cls.__name__} is not runnable: derive it from Filter, Consumer or Producer"]


class OneInput(Component[S]):
    """The base of consumers and filters: one input, handled in batches."""

    @property
    def only_input(self) -> In[Any]:
        return next(iter(self.ins.values()))


def _lacks(cls: type, *names: str) -> list[str]:
    """One of these methods must be there, and those that are must be of a form that can be called for items."""
    found = {name: method for name in names if callable(method := getattr(cls, name, None))}
    if not found:
        return [f"class {cls.__name__} has to define one of these: {', '.join(names)}"]
    return [
        f"{cls.__name__}.{name} is an async generator; let it return a list, or send by name"
        for name, method in found.items()
        if inspect.isasyncgenfunction(method)
    ]


class Consumer(OneInput[S]):
    """Takes items and produces none: logging, storing, showing."""

    kind = "consumer"
    handles = "consume"

    @classmethod
    def problems(cls) -> list[str]:
        ports = declared(cls)
        wrong = _lacks(cls, "consume", "consume_many")
        if len(ports.inputs) != 1 or ports.outputs:
            wrong.append(f"class {cls.__name__} is a consumer, which declares exactly one In and no Out")
        return wrong


class Filter(OneInput[S]):
    """Turns each item into any number of items."""

    kind = "filter"
    handles = "filter"

    @classmethod
    def problems(cls) -> list[str]:
        wrong = _lacks(cls, "filter", "filter_many")
        if len(declared(cls).inputs) != 1:
            wrong.append(
                f"class {cls.__name__} is a filter, which declares exactly one In; use a complex filter for several"
            )
        return wrong


class Producer(Component[S]):
    """Makes items: `produce` is a generator, plain or async. After a restart it is called again, so it remembers where it was."""

    kind = "producer"
    drained = False
    """It makes no more items."""

    def produce(self) -> Iterable[Any] | AsyncIterable[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define produce(), which every producer has to")

    def drain(self) -> None:
        """Make no more items. A wait of `produce` is cancelled then; a yielded item is still sent."""
        self.drained = True

    @classmethod
    def problems(cls) -> list[str]:
        ports = declared(cls)
        wrong = [] if cls.produce is not Producer.produce else [f"class {cls.__name__} does not define: produce"]
        if ports.inputs or len(ports.outputs) != 1:
            wrong.append(f"class {cls.__name__} is a producer, which declares exactly one Out and no In")
        return wrong


class SynchronousFilter(Component[S]):
    """Called when every input has an item, with one of each by name. Ends when one input has ended; what then still
    comes on the others is counted as `unpaired` and dropped, so that their producers can end too."""

    kind = "synchronous"

    def methods(self, role: str) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
        method: Callable[..., Any] = self.filter  # type: ignore[attr-defined]  # its parameters are the inputs' names
        if not inspect.iscoroutinefunction(method):
            return lambda items: method(**items), None

        async def wait_for(items: dict[str, Any]) -> Any:
            return await method(**items)

        return wait_for, None

    @classmethod
    def problems(cls) -> list[str]:
        inputs = declared(cls).inputs
        wrong = _lacks(cls, "filter")
        if len(inputs) < 2:
            wrong.append(f"class {cls.__name__} is a synchronous filter, which declares at least two In")
        elif not wrong:
            takes = set(inspect.signature(cls.filter).parameters) - {"self"}  # type: ignore[attr-defined]  # by name
            if takes != set(inputs):
                wrong.append(f"{cls.__name__}.filter takes {sorted(takes)}; its inputs are {sorted(inputs)}")
        return wrong


class SemiSynchronousFilter(Component[S]):
    """Called for an item of any input, as it comes; its items are sent before the next one, of whichever input."""

    kind = "semi-synchronous"
    handles = "on_{}"

    @classmethod
    def problems(cls) -> list[str]:
        inputs = declared(cls).inputs
        if not inputs:
            return [f"class {cls.__name__} declares no In; derive it from Producer if it makes items of its own"]
        return [wrong for role in inputs for wrong in _lacks(cls, f"on_{role}", f"on_{role}_many")]


class AsynchronousFilter(SemiSynchronousFilter[S]):
    """Inputs in any order; outputs when slots are free.

    `take_<output>(free)` returns up to `free` items. It is asked after :meth:`signal`, and again until it returns none.
    All methods run on the event loop, so that they share state without locks (Hunyadi 2007, appendix B needed them).
    """

    kind = "asynchronous"
    spills: ClassVar[frozenset[str]] = frozenset()
    """Inputs that accept always, whatever the outputs do: what breaks a ring of bounded queues (ARCHITECTURE.md)."""
    gives_all: ClassVar[bool] = False
    """`take_<output>` returns fewer items than it is asked for only where there are no more: it is not asked again to say so."""

    def __init__(self, sheet: S | None = None) -> None:
        super().__init__(sheet)
        self.signals: dict[str, asyncio.Event] = {}
        """For each output, whether items for it may be there: the runner waits for it, and clears it."""
        self.finished = False
        """The end was announced."""

    def bind(self, ins: Mapping[str, In[Any]], outs: Mapping[str, Out[Any]]) -> None:
        super().bind(ins, outs)
        self.signals = {role: asyncio.Event() for role in outs}

    def signal(self, output: str) -> None:
        self.signals[output].set()

    def finish(self) -> None:
        """No more items will come out than `take_<output>` still returns; the outputs close after that."""
        self.finished = True
        for signal in self.signals.values():
            signal.set()

    def input_ended(self, role: str) -> None:
        """An input has ended and all its items were handled. With the last one the component finishes by itself."""

    @classmethod
    def problems(cls) -> list[str]:
        ports = declared(cls)
        wrong = super().problems() + [wrong for role in ports.outputs for wrong in _lacks(cls, f"take_{role}")]
        for role in ports.outputs:
            if inspect.iscoroutinefunction(getattr(cls, f"take_{role}", None)):
                wrong.append(f"{cls.__name__}.take_{role} is async; it returns what is there, without waiting")
        for role in sorted(cls.spills - set(ports.inputs)):
            wrong.append(
                f"class {cls.__name__} spills {role!r}, which is not one of its inputs: {', '.join(ports.inputs)}"
            )
        return wrong
