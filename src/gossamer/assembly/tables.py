"""Tables beside a crawl: closed row logs become Parquet and index, in a process of their own, now and then and at the end.

And what has to be done for them while the crawl's own process has its stores open: writing down what is known of hosts.

The process is :mod:`gossamer.query`; the crawl's own never imports it. When it fails or is killed nothing is lost: rows stay in
their logs, where `gossamer query` finds them, and the next one goes on.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from gossamer.flow import children
from gossamer.flow.clock import Clock, SystemClock
from gossamer.flow.running import RunningGraph
from gossamer.query.noted import failure_of, note_failure, unmade
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.segments import closed_segments, segments
from gossamer.stores.tablelog import TableLog
from gossamer.stores.tables.host_notes import HOST_NOTES, host_row


def write_hosts(running: RunningGraph) -> None:
    """Write down what the ledgers know of hosts, for the table of that name. Call it when everything is committed."""
    logs = [provider for provider in running.providers.values() if isinstance(provider, TableLog)]
    for ledger in running.providers.values():
        if isinstance(ledger, RocksLedger) and logs:
            log, now = logs[0], ledger.clock.now()
            log.add(HOST_NOTES.name, (host_row(state, now) for state in ledger.hosts()))
            ends = log.ends()
            with ledger.group() as group:
                for file, end in ends.items():
                    group.written(file, end)
            log.committed(ends)


#: Seconds between two looks for closed row logs. A segment takes minutes to fill, and whoever asks meanwhile reads logs.
INTERVAL = 60.0


class TableMaker:
    """Makes the tables of one crawl directory."""

    def __init__(self, directory: Path, report: Callable[[str], None], clock: Clock | None = None) -> None:
        self._directory = directory
        self._report = report
        self._clock = clock or SystemClock()
        self._child: asyncio.subprocess.Process | None = None
        self._is_aborted = False

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
            if closed_segments(self._directory):
                await self.make()

    async def finish(self) -> str:
        """The crawl has ended and everything is committed: make all tables and the index. Returns why that failed, and notes it."""
        if self._is_aborted or not (segments(self._directory) or failure_of(self._directory)):
            return ""
        why = await self.make("--ended")
        with contextlib.suppress(OSError):  # a disk that takes no note takes no table: the next run tries again
            note_failure(self._directory, why)
        return why

    def abort(self) -> None:
        """Let go of what is being made: rows stay in their logs. Safe to call at any time."""
        self._is_aborted = True
        if self._child is not None and self._child.returncode is None:
            self._child.kill()

    async def make(self, *options: str) -> str:
        """Make tables of what is closed, in a process of their own; `--ended`: of everything. Tells what fails, and returns it."""
        self._child = child = await children.begun(
            "gossamer.query", str(self._directory), *options, stdin=asyncio.subprocess.DEVNULL
        )
        try:
            told, said = await child.communicate()
        except asyncio.CancelledError:
            child.kill()
            await child.wait()
            raise
        if self._is_aborted:
            self._report("tables and index are not complete; the next run, and `gossamer query`, go on with them")
        elif child.returncode:
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
            why = last or f"its process ended with {child.returncode}"
            self._report(f"{unmade(why)}; `gossamer query` reads them, and the next run tries again")
            return why
        elif told:
            self._report(told.decode("utf-8", "replace").strip())
        return ""
