"""Progress of a crawl on standard error: a live panel on a terminal, one line every ten seconds elsewhere."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from gossamer.assembly.crawl import Crawl
from gossamer.assembly.summary import Summary
from gossamer.cli.telling import has_gone, tell_plain
from gossamer.flow.quantities import show_bytes, show_count, show_seconds

#: Seconds between lines where nobody looks at a terminal (INTERFACE).
LINE_INTERVAL = 10.0

#: Seconds between redraws: often enough to look alive, too seldom to cost.
PANEL_INTERVAL = 0.5


@contextlib.asynccontextmanager
async def progress_display(job: Crawl) -> AsyncIterator[None]:
    """Show progress while the block runs."""
    task = asyncio.create_task(_shown(job))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _shown(job: Crawl) -> None:
    """Show progress until the reader goes: then the crawl stops gracefully, as any program does behind `| head`."""
    try:
        await (_panel(job) if sys.stderr.isatty() else _lines(job))
    except OSError as error:
        if has_gone(error):
            job.stop()


async def _lines(job: Crawl) -> None:
    while True:
        await asyncio.sleep(LINE_INTERVAL)
        if job.working and not tell_plain(line_of(job.progress())):
            job.stop()
            return


def line_of(now: Summary) -> str:
    """One line of progress."""
    return (
        f"{show_seconds(now.seconds)}: {show_count(now.pages, 'page')}, {now.pages_per_second:.1f} pages/s, {now.queued:,} queued, "
        f"{show_count(now.hosts, 'host')}, {show_bytes(now.bytes)}"
    )


async def _panel(job: Crawl) -> None:
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        while True:
            await asyncio.sleep(PANEL_INTERVAL)
            if job.working:
                live.update(_table(job), refresh=True)


def _table(job: Crawl) -> Any:
    from rich.table import Table

    now = job.progress()
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "pages", f"{now.pages} ({now.pages_per_second:.1f}/s)", "queued", str(now.queued), "hosts", str(now.hosts)
    )
    left = job.time_left(now)
    table.add_row("bytes", show_bytes(now.bytes), "time", show_seconds(now.seconds), *(("left", left) if left else ()))
    outcomes = sorted(now.outcomes.items(), key=lambda pair: -pair[1])[:6]
    table.add_row("outcomes", ", ".join(f"{count} {name}" for name, count in outcomes))
    slowest = job.slowest_hosts(3)
    if slowest:
        table.add_row("slowest", ", ".join(f"{host} {seconds * 1000:.0f} ms" for host, seconds in slowest))
    return table
