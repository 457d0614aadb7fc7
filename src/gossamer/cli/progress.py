"""A crawl as it is shown while it runs: its progress on standard error, and its dashboard in the browser.

Place in the flow: :mod:`gossamer.cli.crawl` enters :func:`progress_display` and :func:`dashboard_beside` around the run. Progress
is a live panel on a terminal, one line every ten seconds elsewhere; both show the value that `status` shows
(:mod:`gossamer.crawls.control.standing`), in the words of :mod:`gossamer.cli.showing`. The dashboard (`--dashboard`) is a process
of its own, which the crawl starts, does not notice, and ends: when it cannot start, or dies, a line says so.
"""

import asyncio
import contextlib
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.helping import option
from gossamer.cli.saying import beneath, has_gone, tell, tell_plain
from gossamer.engine.unit import meanwhile
from gossamer.values.errors import UsageError

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


# `gossamer dashboard [DIR...]`: crawls in the browser.


@click.command()
@click.argument("directories", metavar="[DIR...]", nargs=-1)
@option("--address [HOST:]PORT", "Listen here; otherwise at a free port of 127.0.0.1.", default="")
@option("--certificate FILE", "Speak TLS with this certificate (PEM).", default="")
@option("--key FILE", "The key of the certificate (PEM).", default="")
@option("--without-tls", "Let other machines in without TLS; every reader of the traffic then gets the token.")
def dashboard(directories: tuple[str, ...], address: str, certificate: str, key: str, without_tls: bool) -> int:
    """Show crawls in the browser, until Ctrl-C: how they stand, their problems, and the remedies.

    DIR is a crawl, or a folder with crawls; without any, the crawls in the current folder are shown. The crawls may run or rest,
    and do not notice. Each line that is printed is an address: the first opens everything, the second shows and changes nothing.
    """
    from gossamer.dashboard.app import read_address

    listening = read_address(address, certificate, key, is_open=without_tls)
    places = [Path(name) for name in directories or (".",)]
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is not a directory; name a crawl, or a folder with crawls")
    from gossamer.dashboard.app import serve

    serve(places, listening, lambda full, read: print(f"{full}\n{read}", flush=True))
    return 0


#: Seconds between two looks whether the crawl has begun, and that the dashboard has to end.
LOOK, GRACE = 0.1, 3.0

#: The form of an address to listen at. Anything else after the option is a seed: `--dashboard https://example.org/`.
ADDRESS = re.compile(r"([\w.-]*:|\[[0-9a-f:]+\]:)?\d+", re.ASCII | re.IGNORECASE)


def parted(given: str | None) -> tuple[str | None, list[str]]:
    """The text behind the option, as the address of the dashboard (None: there is to be none), and seeds.
    Raises UsageError: no dashboard can be at this address."""
    if given is None:
        return None, []
    address, seeds = (given, []) if not given or ADDRESS.fullmatch(given) else ("", [given])
    from gossamer.dashboard.app import read_address

    read_address(address)
    return address, seeds


@contextlib.asynccontextmanager
async def dashboard_beside(job: "SupervisedCrawl", address: str | None) -> AsyncIterator[None]:
    """Show the crawl in the browser while the block runs, if there is an address; empty: a free port of this machine."""
    if address is None:
        yield
        return
    told: list[str] = []
    try:
        async with meanwhile(_in_browser(job, address, told)):
            yield
    finally:
        if not told and job.directory.exists():
            shown = shlex.quote(str(job.directory))
            tell(f"the crawl ended before its dashboard had begun; `gossamer dashboard {shown}` shows it")


async def _in_browser(job: "SupervisedCrawl", address: str, told: list[str]) -> None:
    """Let the dashboard show the crawl. `told` gets the line that the dashboard began with, or why it did not."""
    from gossamer.engine import processes

    while not job.working:
        await asyncio.sleep(LOOK)
    child = await processes.begun(
        "gossamer.dashboard.app", str(job.directory), address, stderr=asyncio.subprocess.DEVNULL
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        line = (await child.stdout.readline()).decode().strip()
        told.append(line)
        if not line or line.startswith("!"):
            tell(f"the dashboard did not start: {line.removeprefix('!') or 'its process ended'}")
            return
        tell(f"dashboard: {line}")
        await child.wait()
        tell("the dashboard has ended, but the crawl goes on; `gossamer dashboard` shows it again")
    finally:
        child.stdin.close()
        try:
            async with asyncio.timeout(GRACE):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()
