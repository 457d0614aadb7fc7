"""Other processes of a wiring: started, watched, started again when they die, ended with the crawl.

A component with `process = "parse"` runs in a child process of that name. The child reads the same wiring and runs its
part of it; the arrows between the two are remote connectors, so that nothing in a component differs.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.children import CATALOG, Child, Figures
from gossamer.crawls.compiling import provider_names
from gossamer.engine import processes
from gossamer.engine.errors import ComponentFailed, SettingError, WiringError
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog
from gossamer.engine.sheet import nearest
from gossamer.engine.wiring import MAIN_PROCESS, ProviderPlan, Wiring, write
from gossamer.values.visit import Record, Visit

#: Processes of this name, or of one that begins with it and a hyphen, are started by another program: their part of the wiring
#: is a program of the user's own. Its connectors have addresses with a path or port, since it must know them.
OUTSIDE = "outside"

#: Parts of the ledger, which one process has open, and what stands in for them elsewhere: a stage there only filters ahead
#: of the committer, who decides (design question 1).
HINTS = {"ledger-seen": "memory-seen", "ledger-contents": "memory-contents"}

#: The file for the children in the folder where they meet.
WIRING = "wiring.toml"

#: Deaths of one child within :data:`DEATH_WINDOW` seconds after which it is not started again: it would never get better.
MAX_DEATHS = 5
DEATH_WINDOW = 10.0

#: Connectors that cut what they carry into frames.
_WITH_FRAMES = frozenset({"unix", "tcp", "peer"})

#: Seconds that a child has to end by itself once the crawl is over.
GRACE = 5.0


def check_bodies_cross(graph: Graph) -> None:
    """The largest body may cross every arrow that it has to: as sent and decoded, in one frame. Raises WiringError: one of them
    is too narrow; says what to change."""
    largest = max((getattr(node.sheet, "max_body", 0) for node in graph.providers.values()), default=0)
    for name, node in graph.connectors.items():
        if node.scheme not in _WITH_FRAMES or node.item_type not in (Visit, Record):
            continue
        from gossamer.engine.remote.frames import FRAME_LIMIT  # for a crawl that is divided

        limit = int(node.plan.options.get("frame_limit", FRAME_LIMIT))
        if 2 * largest > limit:
            raise WiringError(
                f"connector {name!r} leads to another process and takes {limit} bytes at once, but a page of {largest} "
                f"bytes may need twice that; lower --max-page-size, or set its frame_limit to {2 * largest} or more"
            )


def with_pre_filters(wiring: Wiring) -> Wiring:
    """A copy in which a stage that stands elsewhere asks a stand-in of its own, in the place of a part of the ledger.

    The stand-in only filters ahead: it forgets, and the committer's check-and-put decides (design question 1).
    """
    for process in wiring.processes:
        if process != MAIN_PROCESS and not is_outside(process):
            wiring = _with_own_providers(wiring, process, copies=False)
    return wiring


def check_children_can_import(graph: Graph, catalog: Catalog) -> None:
    """Every class of the program's own that another process runs can be imported there. Raises WiringError: one cannot; says
    which, and what to do."""
    for process in graph.wiring.processes:
        if process == MAIN_PROCESS or is_outside(process):
            continue
        part = graph.part(process)
        for table, nodes in (("components", part.components), ("providers", part.providers)):
            for name, node in nodes.items():
                if why := catalog.why_not_elsewhere(table, node.use):
                    raise WiringError(
                        f"{graph.wiring.source}: {table}.{name}: process {process!r} cannot import {node.use!r}, which {why}; "
                        "put the class into a module of its own"
                    )


def divide(wiring: Wiring, components: Collection[str], process: str) -> Wiring:
    """A copy in which some components run in another process, and every arrow that now crosses is a socket. A provider that
    keeps state and is used on both sides gets a copy for the other side, as the URL-seen stage may have one that only filters
    ahead of the committer's check-and-put (design question 1). Raises WiringError: the wiring has no such component."""
    for name in components:
        if name not in wiring.components:
            raise WiringError(f"{wiring.source}: there is no component {name!r}{nearest(name, wiring.components)}")
    moved = {
        name: msgspec.structs.replace(plan, process=process) if name in components else plan
        for name, plan in wiring.components.items()
    }
    ends: dict[str, set[str]] = {}
    for plan in moved.values():
        for connector in plan.ports.values():
            ends.setdefault(connector, set()).add(plan.process)
    connectors = {
        name: msgspec.structs.replace(plan, address="unix:") if len(ends.get(name, ())) > 1 else plan
        for name, plan in wiring.connectors.items()
    }
    divided = msgspec.structs.replace(wiring, components=moved, connectors=connectors)
    return _with_own_providers(divided, process, copies=True)


def _with_own_providers(wiring: Wiring, process: str, *, copies: bool) -> Wiring:
    """A copy in which what belongs to the ledger has a stand-in in `process`.

    With `copies`, any other provider that components of two processes use has a second one there, of its own name.
    """
    here = provider_names(plan for plan in wiring.components.values() if plan.process == process)
    there = provider_names(plan for plan in wiring.components.values() if plan.process != process)
    hints = {name for name in here if name in wiring.providers and wiring.providers[name].use in HINTS}
    renamed = {name: f"{name}-{process}" for name in ((here & there) if copies else set()) | hints}
    components = {
        name: msgspec.structs.replace(plan, providers=with_other_names(plan.providers, renamed))
        if plan.process == process
        else plan
        for name, plan in wiring.components.items()
    }
    own = {
        new: ProviderPlan(use=HINTS[wiring.providers[old].use]) if old in hints else wiring.providers[old]
        for old, new in renamed.items()
    }
    kept = {name: plan for name, plan in wiring.providers.items() if name in there or name not in hints}
    return msgspec.structs.replace(wiring, components=components, providers={**kept, **own})


def with_other_names(value: Any, names: Mapping[str, str]) -> Any:
    """Bound roles with some providers' names replaced, whatever their form."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [with_other_names(inner, names) for inner in value]
    return {key: with_other_names(inner, names) for key, inner in value.items()}


def is_outside(process: str) -> bool:
    return process == OUTSIDE or process.startswith(f"{OUTSIDE}-")


class Fleet:
    """The child processes of one crawl."""

    def __init__(
        self, wiring: Wiring, catalog: Catalog, folder: str, directory: Path, report: Callable[[str], None]
    ) -> None:
        """The children of a crawl in `directory`; they meet in `folder`."""
        self._wiring = wiring
        self._catalog = catalog
        self._folder = Path(folder)
        self._directory = directory
        self._report = report
        self._names = [name for name in wiring.processes if name != MAIN_PROCESS and not is_outside(name)]
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._ending = False
        self.children: dict[str, asyncio.subprocess.Process] = {}
        self._lines: dict[str, Child] = {}

    async def start(self) -> None:
        """Write the wiring where children can read it, and start them."""
        if not self._names:
            return
        path = self._folder / WIRING
        self.keep(self._wiring)
        places = self._catalog.places_of_own()
        (self._folder / CATALOG).write_bytes(msgspec.json.encode(places))
        for name in self._names:
            await self._spawn(name, path)
            self._watchers[name] = asyncio.create_task(self._watch(name, path))

    def keep(self, wiring: Wiring) -> None:
        """Write the wiring that a child reads when it starts, also when it starts again."""
        if self._names:
            write(self._folder / WIRING, wiring, is_private=True)

    async def figures(self) -> list[Figures]:
        """The counters of the units of all children; a child that does not answer is left out."""
        return list(await asyncio.gather(*(line.look() for line in self._lines.values())))

    async def give(self, process: str, unit: str, settings: dict[str, Any]) -> None:
        """Change settings of a child's unit. Raises SettingError: the unit refuses them."""
        line = self._lines.get(process)
        if line is not None and (refused := await line.give(unit, settings)):
            raise SettingError(refused)

    async def _spawn(self, name: str, path: Path) -> None:
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        self.children[name] = await processes.begun(
            *("gossamer.crawls.children", str(path), name, str(self._directory), str(number)),
            own=True,
            stdin=None,
            stdout=None,
            stderr=None,
            pass_fds=(number,),
        )
        theirs.close()
        if (before := self._lines.get(name)) is not None:
            before.close()
        ours.setblocking(False)
        self._lines[name] = Child(ours)

    async def _watch(self, name: str, path: Path) -> None:
        """Start the child again when it dies before its work is done. Raises WiringError: its part of the wiring cannot be run;
        ComponentFailed: it keeps dying."""
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        while True:
            code = await self.children[name].wait()
            if code == 0 or self._ending:
                return
            deaths = [*(moment for moment in deaths if loop.time() - moment < DEATH_WINDOW), loop.time()]
            if code == WiringError.exit_code:
                raise WiringError(f"process {name!r} cannot run its part of the wiring; see its message above")
            if len(deaths) >= MAX_DEATHS:
                raise ComponentFailed(
                    f"process {name!r} died {len(deaths)} times within {DEATH_WINDOW:g} s ({processes.told_death(code)}); see "
                    "its messages above. What was kept is kept: gossamer resume goes on"
                )
            self._report(f"process {name!r} died ({processes.told_death(code)}); it is started again")
            await self._spawn(name, path)

    def end(self, name: str, life: str) -> None:
        """End a child that does not do what it is for, also one that hangs, where it is still in the life of this name, which
        begins with the number of its process; it is started again."""
        child = self.children.get(name)
        if child is not None and life.startswith(f"{child.pid}-"):
            processes.kill(child)

    async def watch_over(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`; a child that keeps dying ends it."""
        task = asyncio.ensure_future(work)
        pending: set[asyncio.Future[None]] = {task, *self._watchers.values()}
        try:
            while not task.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for finished in done - {task}:
                    finished.result()
            task.result()
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def stop(self) -> None:
        """Let children end, then end them."""
        self._ending = True
        for child in self.children.values():
            if child.returncode is None:
                try:
                    await asyncio.wait_for(child.wait(), GRACE)
                except TimeoutError:
                    processes.kill(child)
                    await child.wait()
        for watcher in self._watchers.values():
            watcher.cancel()
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)
        for line in self._lines.values():
            line.close()
