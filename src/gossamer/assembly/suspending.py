"""Single units of a crawl that are suspended, and go on.

Place in the flow: `gossamer pause DIR --unit NAME` and the dashboard ask for it (:mod:`~gossamer.assembly.control.messages`), and a
running :mod:`crawl` keeps one of these. Items for a suspended component wait in its connectors, and so do those who send them once
these are full. Nothing of it is kept: a crawl that goes on has no suspended units.
"""

import asyncio
from collections.abc import Callable

from gossamer.flow.graph import Graph
from gossamer.flow.running import RunningGraph
from gossamer.flow.sheet import nearest
from gossamer.flow.wiring import MAIN_PROCESS
from gossamer.model.errors import UsageError

#: Seconds for what a component has in hand. It may be one that waits for another suspended one, so that it never ends.
PATIENCE = 10.0


class Suspensions:
    """The components of one process that take up nothing now."""

    def __init__(self, running: Callable[[], RunningGraph]) -> None:
        """`running` is the graph of the process, once it runs."""
        self._running = running
        self._suspended: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"<Suspensions: {', '.join(self._suspended) or 'none'}>"

    @property
    def names(self) -> frozenset[str]:
        """The components that are suspended."""
        return frozenset(self._suspended)

    async def suspend(self, name: str) -> bool:
        """Let a component take up nothing more. Returns, after some seconds at most, whether it has nothing in hand any more.

        Raises:
            UsageError: there is no such component in this process.
        """
        running = self._running()
        _check(running.whole, name)
        if name not in self._suspended:
            self._suspended[name] = asyncio.create_task(running.suspend(name))
        done, _ = await asyncio.wait([self._suspended[name]], timeout=PATIENCE)
        return bool(done)

    def unsuspend(self, name: str) -> None:
        """Let a component go on, if it is suspended. Raises UsageError: there is no such component in this process."""
        _check(self._running().whole, name)
        if name in self._suspended:
            self._go_on(name)

    def end(self) -> None:
        """Let all go on: a crawl that is to end finishes what is in flight."""
        for name in list(self._suspended):
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        running = self._running()
        del self._suspended[name]
        if name in running.whole.components:  # the graph may have changed
            running.resume(name)


def _check(graph: Graph, name: str) -> None:
    if name in graph.providers:
        raise UsageError(f"{name} is a provider, which works for components; suspend one of these")
    if name not in graph.components:
        raise UsageError(f"no component {name!r} runs here{nearest(name, graph.components)}")
    process = graph.components[name].plan.process
    if process != MAIN_PROCESS:
        raise UsageError(
            f"{name} runs in process {process!r}; only components of the crawl's own process can be suspended"
        )
