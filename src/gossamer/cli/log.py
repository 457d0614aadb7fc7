"""`gossamer log DIR`: everything that a crawl did and said, in the order of time."""

import contextlib
import sys
import time
from collections import deque
from collections.abc import Iterable

import click
import msgspec

from gossamer.cli.lines import shown
from gossamer.flow.quantities import show_bytes
from gossamer.operations.logs import KINDS, CrawlLog, Entry, LogChoice
from gossamer.stores.printable import printable

#: Seconds between two looks at files that grow.
LOOK = 0.5

#: Entries that `--follow` begins with, as `tail` does.
FIRST = 10


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until the crawl ends or Ctrl-C.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Show only entries of this agent (repeatable).")
@click.option(
    "--host", "hosts", multiple=True, metavar="HOST", help="Show only entries of this host or below it (repeatable)."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    help="Show only entries of this kind; `error` stands for visits that failed (repeatable).",
)
@click.option(
    "-n",
    "--last",
    type=click.IntRange(0),
    help=f"Begin with this many of the last entries [default: {FIRST} with --follow, else all].",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, one line an entry, with all fields.")
def log(
    directory: str,
    follow: bool,
    agents: tuple[str, ...],
    hosts: tuple[str, ...],
    kinds: tuple[str, ...],
    last: int | None,
    as_json: bool,
) -> int:
    """Show one log of the crawl in DIR: visits and items of all agents, the lines that it told, and the commands that
    steered it, in the order of time, while it runs and at rest.

    \b
    gossamer log mycrawl --follow
    gossamer log mycrawl --kind error --kind note --last 20
    gossamer log mycrawl --agent agent-01 --host example.org --json
    """
    found = CrawlLog(directory, LogChoice(agents, tuple(host.strip(".").lower() for host in hosts), kinds))
    most = FIRST if follow and last is None else last
    with contextlib.suppress(KeyboardInterrupt):  # the way to leave
        is_at_work = follow and found.is_at_work
        _tell(found.read() if most is None else deque(found.read(), maxlen=most), as_json=as_json)
        while is_at_work:
            time.sleep(LOOK)
            # Asked first: what is written before the end is read after it.
            is_at_work = found.is_at_work
            _tell(found.read(), as_json=as_json)
    return 0


def _tell(entries: Iterable[Entry], *, as_json: bool) -> None:
    for entry in entries:
        line = printable(msgspec.json.encode(entry)).decode() if as_json else line_of(entry)
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def line_of(entry: Entry) -> str:
    """An entry for people: its time, its agent, its kind, and what it says."""
    texts = [str(entry["at"])[:23].ljust(23), str(entry.get("agent", "")), str(entry["event"]), _said(entry)]
    return shown(" ".join(filter(None, texts)))


def _said(entry: Entry) -> str:
    if entry["event"] == "note":
        return str(entry.get("text", ""))
    if entry["event"] in ("page", "robots"):
        status = str(entry.get("status") or "")
        size = show_bytes(entry["bytes"]) if isinstance(entry.get("bytes"), int) else ""
        taken = f"{entry['elapsed_ms']:.0f} ms" if isinstance(entry.get("elapsed_ms"), float) else ""
        return " ".join(filter(None, (str(entry.get("outcome", "")), status, str(entry.get("url", "")), size, taken)))
    if entry["event"] == "item":
        return f"{entry.get('kind', '')} {entry.get('url', '')}"
    told = {name: value for name, value in entry.items() if name not in ("at", "event", "agent")}
    return msgspec.json.encode(told).decode()
