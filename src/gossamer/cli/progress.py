"""Progress of a crawl on standard error: a live panel on a terminal, one line every ten seconds elsewhere.

Place in the flow: both show the value that `status` shows (:mod:`gossamer.crawls.control.standing`), in the words of
:mod:`gossamer.cli.showing`.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from gossamer.cli.saying import beneath, has_gone, tell_plain
from gossamer.engine.unit import meanwhile

if TYPE_CHECKING:
    from gossamer.agents.crawl import SupervisedCrawl
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.values.visit import Record

#: Seconds between lines where there is no terminal.
LINE_INTERVAL = 10.0

#: Seconds between redraws: often enough to look alive, too seldom to cost.
PANEL_INTERVAL = 1.0

#: Part of the crawl's time that redraws may take: with thousands of hosts that wait, there are fewer of them.
SHARE = 0.01

#: Reasons to wait that a line names.
REASONS = 3


def progress_display(job: "SupervisedCrawl") -> AbstractAsyncContextManager[None]:
    """Show progress while the block runs."""
    return meanwhile(_shown(job))


async def _shown(job: "SupervisedCrawl") -> None:
    """Show progress until the reader goes: then the crawl stops gracefully, as any program does behind `| head`."""
    try:
        await (_panel(job) if sys.stderr.isatty() else _lines(job))
    except OSError as error:
        if has_gone(error):
            job.stop()


async def _lines(job: "SupervisedCrawl") -> None:
    is_first = True
    while True:
        await asyncio.sleep(LINE_INTERVAL)
        if not job.working:
            continue
        now = job.glance()
        text = line_of(now, time.time())
        if is_first:
            from gossamer.cli.showing import shown_hint

            text, is_first = f"{now.crawl}: {shown_hint(now.crawl)}\n{text}", False
        if not tell_plain(text):
            job.stop()
            return


def line_of(now: "CrawlStanding", at: float) -> str:
    """One line of progress; `at` is in seconds since the epoch."""
    from gossamer.cli import showing
    from gossamer.engine.sheet import show_bytes, show_count, show_seconds

    pieces = [
        show_count(now.pages, "page"),
        showing.shown_speed(now),
        f"{now.queued:,} queued",
        f"{now.in_flight:,} in flight",
        show_count(now.hosts, "host"),
        show_bytes(now.bytes),
        showing.shown_left(now),
    ]
    errors, hosts = showing.shown_errors(now), showing.shown_failing(now)
    waits = [showing.shown_wait(wait, at, now.crawl) for wait in now.waits[:REASONS]]
    told = (f"errors: {errors}" if errors else "") + (f" (most at {hosts})" if hosts else "")
    parts = [", ".join(filter(None, pieces)), told, *waits]
    state = f" {now.state}" if now.state != "running" else ""
    return f"{show_seconds(now.seconds)}{state}: {'; '.join(filter(None, parts))}"


async def _panel(job: "SupervisedCrawl") -> None:
    from gossamer.cli.showing import Panel, size_of

    def write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    panel = Panel(write, lambda: size_of(sys.stderr))
    with beneath(panel):
        try:
            took = 0.0
            while True:
                await asyncio.sleep(max(PANEL_INTERVAL, took / SHARE))
                if job.working:
                    began = time.process_time()
                    panel.draw(panel_lines(job.glance(), panel.width, time.time()))
                    took = time.process_time() - began
        finally:
            with contextlib.suppress(OSError, ValueError):
                panel.clear()


def panel_lines(now: "CrawlStanding", width: int, at: float) -> list[str]:
    """Four lines for a terminal of so many columns; `at` is in seconds since the epoch."""
    from gossamer.cli import showing
    from gossamer.cli.showing import Piece, fitted
    from gossamer.engine.sheet import show_bytes, show_count, show_seconds

    waits = [showing.shown_wait(wait, at, now.crawl) for wait in now.waits]
    errors, hosts = showing.shown_errors(now), showing.shown_failing(now)
    slowest = ", ".join(f"{one.host} {one.seconds * 1000:.0f} ms" for one in now.slowest[:2])
    state = now.state if now.state != "running" else ""
    nothing_known = show_count(now.in_flight, "answer") if now.in_flight else "nothing"
    hint = showing.shown_hint(now.crawl)
    lines: list[list[Piece]] = [
        [
            show_count(now.pages, "page"),
            (showing.shown_speed(now), f"{now.recent_pages_per_second:.1f}/s"),
            f"{now.queued:,} queued",
            f"{now.in_flight:,} in flight",
            show_bytes(now.bytes),
            show_count(now.hosts, "host"),
            showing.shown_outcomes(now),
        ],
        [
            show_seconds(now.seconds),
            state,
            (f"errors: {errors}", f"{now.errors:,} errors") if errors else "",
            showing.shown_left(now),
            f"most at {hosts}" if hosts else "",
            f"slowest: {slowest}" if slowest else "",
        ],
        [f"waits: {waits[0]}", *waits[1:]] if waits else [f"waits: for {nothing_known}"],
        [(hint, hint.partition(";")[0]), *(showing.shown_size(one) for one in now.sizes)],
    ]
    return [fitted(pieces, width) for pieces in lines]


def url_teller(job: "SupervisedCrawl") -> "Callable[[Record], None]":
    """The teller of one line for each URL that is committed: outcome, status, bytes, milliseconds, depth, URL. When its reader has
    gone
    the crawl stops."""
    is_told = True

    def tell_url(record: "Record") -> None:
        nonlocal is_told
        visit, response = record.visit, record.visit.response
        line = (
            f"{response.outcome:<14} {response.status or '-':>3} {len(response.body):>9,} B "
            f"{response.elapsed * 1000:>7,.0f} ms  depth {visit.task.depth}  {visit.task.url}"
        )
        if is_told and not tell_plain(line):
            is_told = False
            job.stop()

    return tell_url
