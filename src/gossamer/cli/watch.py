"""The overview of a crawl as lines of a terminal: the numbers of `status`, the problems ranked, and the speed over time.

Place in the flow: :mod:`gossamer.cli.watch` draws it again and again. Everything is text: what strangers wrote is no markup, and
what would command a terminal is not written.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from gossamer.cli import showing
from gossamer.cli.helping import option
from gossamer.cli.saying import leave_terminal, seen
from gossamer.engine.sheet import show_bytes, show_seconds
from gossamer.storage.tables.row_tables import FINE
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.instants import utc_text

if TYPE_CHECKING:
    from gossamer.analysis.watching import CrawlWatch
    from gossamer.crawls.control.standing import CrawlStanding

#: Bars of a plot, from nothing to the most.
BARS = " ▁▂▃▄▅▆▇█"

#: What draws the eye to a problem, by its severity.
STYLES = {"halt": "bold red", "loss": "red", "slow": "yellow", "note": "cyan"}

#: Problems, reasons to wait and hosts that are shown: more than fit on most terminals.
MOST = 8

#: Columns of a title.
_TITLE = 10


def overview(now: "CrawlStanding", speeds: Sequence[float], width: int, at: float) -> list[Text]:
    """The lines, each of at most `width` columns; `speeds` are pages a second, the latest last, `at` is in seconds since the
    epoch."""
    rows = showing.rows_of(now, at, most=MOST, digits=",")
    lines = [*_head(now, speeds, width), *_problems(now), *(_line(title, text) for title, text in rows)]
    for line in lines:
        line.truncate(max(1, width), overflow="ellipsis")
    return lines


def _head(now: "CrawlStanding", speeds: Sequence[float], width: int) -> Iterator[Text]:
    style = "green" if now.state == "running" else "yellow" if now.is_at_work else "bold"
    slots = f"{now.in_flight:,} of {now.concurrency:,} slots" if now.concurrency else ""
    busy = f"{now.busy:.0%} busy" if now.busy else ""
    free = f"{show_bytes(now.disk_free)} of disk free" if now.disk_free else ""
    more = ", ".join(filter(None, (show_seconds(now.seconds), showing.shown_left(now), slots, busy, free)))
    yield Text.assemble((_plain(now.crawl), "bold"), "  ", (now.state, style), f"  {more}")
    shown = list(speeds[-max(0, width - _TITLE - 12) :])
    most = max(shown, default=0.0)
    if most > 0:
        bars = "".join(BARS[min(len(BARS) - 1, round(speed / most * (len(BARS) - 1)))] for speed in shown)
        yield Text.assemble(("pages/s".ljust(_TITLE), "dim"), (bars, "green"), f" {most:.1f}")


def _problems(now: "CrawlStanding") -> Iterator[Text]:
    if not now.problems:
        yield _line("problems", "none", "green")
    for number, one in enumerate(now.problems[:MOST]):
        title = "problems" if number == 0 else ""
        yield _line(title, f"{one.reason} ({one.evidence})", STYLES[one.severity])
        if one.command:
            yield _line("", f"  $ {one.command}", "bold")


def _line(title: str, text: str, style: str = "") -> Text:
    return Text.assemble((title.ljust(_TITLE), "dim"), (_plain(text), style))


def _plain(text: str) -> str:
    """A text without what a terminal would obey."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in text)


# `gossamer watch DIR`: the overview of a crawl on a terminal, until Ctrl-C.

#: Seconds of the past that the plot shows, where the terminal is wide enough.
PAST = 3_600.0


@click.command()
@click.argument("directory", metavar="DIR")
@option(
    "--interval",
    "Wait this many seconds between two looks.",
    type=click.FloatRange(0.5, 60),
    default=2.0,
    show_default=True,
)
def watch(directory: str, interval: float) -> int:
    """Show the overview of a crawl on the terminal: figures, problems with their remedies, waits, hosts. Ctrl-C leaves
    it.

    It shows the same numbers as `gossamer status`. The crawl may run, rest, or begin and end meanwhile; watching does
    not disturb it.
    """
    if not sys.stdout.isatty():
        raise UsageError(
            f"watch draws on a terminal, and standard output is not a terminal; use gossamer status {directory} --watch"
        )
    from gossamer.analysis.watching import CrawlWatch

    looking = CrawlWatch(Path(directory))
    try:
        _shown(looking, interval)
    except KeyboardInterrupt:
        pass  # the way to leave
    finally:
        looking.close()
    return 0


def _shown(looking: "CrawlWatch", interval: float) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    leave_terminal()  # moving about on it takes what the guard of a terminal escapes
    console = Console()
    # What cannot be looked at at all is refused before the screen is taken.
    now, past, due = looking.look(), past_speeds(looking.directory), time.monotonic() + FINE
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            told = ""
            try:
                now = looking.look()
            except CrawlDirectoryError as error:
                told = str(error)
            if time.monotonic() >= due:
                past, due = past_speeds(looking.directory), time.monotonic() + FINE
            lines = overview(now, past, console.width, time.time())
            if told:
                lines.insert(0, Text(told, "bold red"))
            for line in lines:
                if not line.plain.isprintable():
                    line.plain = seen(line.plain)
            live.update(Group(*lines), refresh=True)
            time.sleep(interval)


def past_speeds(directory: Path) -> list[float]:
    """Pages a second over the last time, by the samples of the crawl."""
    from gossamer.analysis.watching import combined, read_samples, speeds

    return speeds(combined(read_samples(directory, utc_text(time.time() - PAST))))
