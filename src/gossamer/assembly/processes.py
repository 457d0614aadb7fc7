"""Other processes of a wiring: started, watched, started again when they die, ended with the crawl.

A component with `process = "parse"` runs in a child process of that name. The child reads the same wiring and runs its
part of it; the arrows between the two are remote connectors, so that nothing in a component differs.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from gossamer.flow.errors import FlowError
from gossamer.flow.wiring import MAIN_PROCESS, Wiring, to_toml

#: Deaths of one child within :data:`DEATH_WINDOW` seconds after which it is not started again: it would never get better.
MAX_DEATHS = 5
DEATH_WINDOW = 10.0

#: Seconds that a child has to end by itself once the crawl is over.
GRACE = 5.0


class Fleet:
    """The child processes of one crawl."""

    def __init__(self, wiring: Wiring, report: Callable[[str], None]) -> None:
        self._wiring = wiring
        self._report = report
        self._names = [name for name in wiring.processes if name != MAIN_PROCESS]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._ending = False
        self.children: dict[str, asyncio.subprocess.Process] = {}

    def __repr__(self) -> str:
        return f"<Fleet of {', '.join(self._names) or 'nobody'}>"

    async def start(self) -> None:
        """Write the wiring where children can read it, and start them."""
        if not self._names:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="gossamer-")
        path = Path(self._folder.name) / "wiring.toml"
        path.write_text(to_toml(self._wiring), encoding="utf-8")
        for name in self._names:
            await self._spawn(name, path)
            self._watchers[name] = asyncio.create_task(self._watch(name, path))

    async def _spawn(self, name: str, path: Path) -> None:
        command = [sys.executable, "-m", "gossamer.assembly.child", str(path), name]
        source = str(Path(__file__).resolve().parents[2])
        path_variable = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "PYTHONPATH": path_variable}
        # A session of its own: Ctrl-C in the terminal is the main process' to handle, which then drains the children.
        self.children[name] = await asyncio.create_subprocess_exec(*command, env=environment, start_new_session=True)

    async def _watch(self, name: str, path: Path) -> None:
        """Start the child again when it dies before its work is done.

        Raises:
            FlowError: it keeps dying.
        """
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        while True:
            code = await self.children[name].wait()
            if code == 0 or self._ending:
                return
            deaths = [*(moment for moment in deaths if loop.time() - moment < DEATH_WINDOW), loop.time()]
            if code == 2 or len(deaths) >= MAX_DEATHS:
                raise FlowError(
                    f"process {name!r} ended with status {code} {len(deaths)} times in a row; see its messages above"
                )
            self._report(f"process {name!r} died ({_death(code)}); it is started again")
            await self._spawn(name, path)

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
                    child.kill()
                    await child.wait()
        for watcher in self._watchers.values():
            watcher.cancel()
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)
        if self._folder is not None:
            self._folder.cleanup()


def _death(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit status {code}"
