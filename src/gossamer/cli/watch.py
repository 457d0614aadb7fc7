"""`gossamer watch DIR`: the overview of a crawl on a terminal, until Ctrl-C."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.model.dates import utc_text
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.query.samples import combined, read_samples, speeds
from gossamer.stores.tables.samples import FINE

if TYPE_CHECKING:
    from gossamer.operations.watching import CrawlWatch

#: Seconds of the past that the plot shows, where the terminal is wide enough.
PAST = 3_600.0


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--interval",
    type=click.FloatRange(0.5, 60),
    default=2.0,
    show_default=True,
    help="Wait this many seconds between two looks.",
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
    from gossamer.operations.watching import CrawlWatch

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

    from gossamer.cli.overview import overview

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
            live.update(Group(*lines), refresh=True)
            time.sleep(interval)


def past_speeds(directory: Path) -> list[float]:
    """Pages a second over the last time, by the samples of the crawl."""
    return speeds(combined(read_samples(directory, utc_text(time.time() - PAST))))
