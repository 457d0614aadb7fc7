"""Tables beside a crawl: closed row logs become Parquet and index, in a process of their own, now and then and at the end.

The process is :mod:`gossamer.query`; the crawl's own never imports it. When it fails or is killed nothing is lost: rows stay in
their logs, where `gossamer query` finds them, and the next one goes on.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from gossamer.flow.clock import Clock, SystemClock
from gossamer.stores.segments import closed, open_runs, segments

#: Seconds between two looks for closed row logs. A segment takes minutes to fill, and whoever asks meanwhile reads logs.
INTERVAL = 60.0


class TableMaker:
    """Makes the tables of one crawl directory."""

    def __init__(self, directory: Path, report: Callable[[str], None], clock: Clock | None = None) -> None:
        self._directory = directory
        self._report = report
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"<TableMaker {self._directory}>"

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Make tables of what is closed, now and then, while the block runs."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(INTERVAL)
            if closed(segments(self._directory), open_runs(self._directory)):
                await self._run()

    async def finish(self) -> None:
        """The crawl has ended and everything is committed: make all tables and the index."""
        if segments(self._directory):
            await self._run("--ended")

    async def _run(self, *options: str) -> None:
        source = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
        # A session of its own: Ctrl-C in the terminal ends the crawl, and the crawl ends this.
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gossamer.query", str(self._directory), *options),
            env={**os.environ, "PYTHONPATH": path},
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, said = await child.communicate()
        except asyncio.CancelledError:
            child.kill()
            await child.wait()
            raise
        if child.returncode:
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
            self._report(f"tables could not be made ({last}); rows stay in their logs, and `gossamer query` reads them")
