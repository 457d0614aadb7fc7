"""`gossamer status`, `log` and `watch`: how a crawl stands, asked of it while it runs, read from its ledger while it rests.

:class:`CrawlLog` is one log of a whole crawl, in the order of time: visits of all agents, lines that it told, and commands that
steered it. Nothing is asked of the crawl itself: its files are read as they grow. Each agent's log keeps its own order, and of two
agents the entry goes first whose agent has come less far in time, as in the merged log of the crawl.
"""

import contextlib
import heapq
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gossamer.cli import showing
from gossamer.cli.helping import STORE, Seconds, crawl_to_read, option
from gossamer.cli.saying import empty_terminal, leave_terminal, say_json, say_lines, seen, shown
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.messages import Status
from gossamer.engine.sheet import show_bytes, show_seconds
from gossamer.storage.logs import LOG_PATH, NOTES_LOG, STEERING_LOG, SUM, log_path, printable
from gossamer.storage.members import AGENTS, holder_of, members_of
from gossamer.storage.tables.places import begun_crawl
from gossamer.storage.tables.row_tables import FINE
from gossamer.values.agents import member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.instants import utc_text
from gossamer.values.outcome import ERRORS

if TYPE_CHECKING:
    from rich.text import Text

    from gossamer.analysis.watching import CrawlWatch
    from gossamer.crawls.control.standing import CrawlStanding

#: The kinds of entries. An entry of another kind is of a table that a plug-in logs.
KINDS = ("page", "robots", "item", "note", "steering", "error")

#: Bytes of one line that are read: a row with its longest fields is far shorter.
MAX_LINE = 4 << 20

Entry = dict[str, Any]


class CrawlLog:
    def __init__(
        self, directory: str, agents: Sequence[str] = (), hosts: Sequence[str] = (), kinds: Sequence[str] = ()
    ) -> None:
        """Choose entries of these agents, of these hosts and those below them, and of these of :data:`KINDS`, where `error`
        stands for visits that failed; nothing given leaves nothing out. Nothing is read yet.
        Raises UsageError: there is no crawl, or it has no such agent. Raises CrawlDirectoryError: the directory is damaged."""
        self.directory = begun_crawl(directory)
        self._agents, self._hosts, self._kinds = agents, hosts, kinds
        known = self._members()
        if missing := sorted(set(agents) - set(known)):
            has = f"it has {', '.join(known)}" if known else "one process runs it"
            raise UsageError(f"{directory} has no agent {missing[0]!r}; {has}")
        self._known = set(known)
        self._files = [_GrowingFile(self.directory / NOTES_LOG), _GrowingFile(self.directory / STEERING_LOG)]
        self._files += self._logs(known)

    def _members(self) -> list[str]:
        return [member(text).agent for text in members_of(self.directory)]

    def _logs(self, agents: list[str]) -> list["_GrowingFile"]:
        """The logs of visits: each agent's own, of which that of a divided crawl is merged with a delay."""
        if not agents:
            return [_GrowingFile(self.directory / LOG_PATH)]
        return [_GrowingFile(self.directory / log_path(name), name) for name in self._agents or agents]

    @property
    def is_at_work(self) -> bool:
        """The crawl runs, or an agent of it works on alone."""
        return any(holder_of(lock) for lock in (self.directory / AGENTS).parent.glob("*/lock"))

    def read(self) -> Iterator[Entry]:
        """The wanted entries that were written since the last time, in the order of time."""
        if self._known and not self._agents:
            joined = [name for name in self._members() if name not in self._known]
            self._known.update(joined)
            self._files += self._logs(joined) if joined else []
        for _, _, entry in heapq.merge(*(file.entries(number) for number, file in enumerate(self._files))):
            kind, host = entry["event"], str(entry.get("host", ""))
            if kind == "page" and entry.get("outcome") in ERRORS and "error" in self._kinds:
                kind = "error"
            if (
                (not self._kinds or kind in self._kinds)
                and (not self._agents or entry.get("agent") in self._agents)
                and (not self._hosts or any(host == name or host.endswith(f".{name}") for name in self._hosts))
            ):
                yield entry


class _GrowingFile:
    def __init__(self, path: Path, agent: str = "") -> None:
        self._path, self._agent, self._place = path, agent, 0

    def entries(self, number: int) -> Iterator[tuple[str, int, Entry]]:
        """Whole lines that were written since the last time: how far the file has come in time, its number, the entry."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        latest = ""
        with file:
            # A file is cut back when what it said last was not committed: a crawl was killed and goes on.
            self._place = min(self._place, file.seek(0, 2))
            file.seek(self._place)
            while (line := file.readline(MAX_LINE)).endswith(b"\n"):
                self._place += len(line)
                entry = _entry(line, self._agent)
                if entry is not None:
                    latest = max(latest, entry["at"])
                    yield latest, number, entry


def _entry(line: bytes, agent: str) -> Entry | None:
    """One line as an entry, with the time `at`, the `event` and, where one wrote it, the `agent`; None where it says nothing."""
    try:
        found = msgspec.json.decode(line, type=dict[str, Any])
    except ValueError:
        return None
    event = found.pop("event", "steering")
    if event == "deleted":
        return None
    found.pop(SUM, None)  # of the line in its file
    at = found.pop("at", None) or found.get("fetched_at") or ""
    head = {"at": str(at).replace("+00:00", "Z"), "event": str(event)}
    return {**head, **({"agent": agent} if agent else {}), **found}


#: Problems that are told: the worst. `--json` has all of them.
PROBLEMS = 2


@click.command()
@partial(crawl_to_read, whole=False)
@option("--units", "Also show the counters of every unit, and the number of items that passed each connector.")
@option("--watch", "Repeat until the crawl ends.")
@option(
    "--interval",
    "Wait this many seconds between two looks.",
    type=Seconds(0.1, 60),
    default=2.0,
    show_default=True,
)
@option("--json as_json", "Print one line of JSON for each look.")
def status(directory: str, units: bool, watch: bool, interval: float, as_json: bool) -> None:
    """Show how a crawl stands: pages, queue, hosts, speed, outcomes, errors, why it waits and until when, limits,
    sizes.

    This works while the crawl runs, and after. A crawl that runs is running, paused or stopping. One that ended is
    finished, limit (it reached one), stopped, incomplete, or killed (its process died). `gossamer resume` goes
    on with any crawl that is not finished. Where DIR is a store, it shows the last checkpoint, its age, and who has
    the crawl; a crawl at work is then elsewhere.
    """
    from gossamer.crawls.control.standing import CrawlStanding

    path = Path(directory)
    if STORE in click.get_current_context().meta:
        from gossamer.backup.elsewhere import standing_of_store
        from gossamer.backup.opening import open_store

        _print(standing_of_store(open_store(directory)), as_json=as_json, screen=False)
        return
    try:
        with Control(path) as control:
            while True:
                now = control.told(Status(units), CrawlStanding)
                _print(now, as_json=as_json, screen=watch and not as_json and sys.stdout.isatty())
                if not watch:
                    return
                time.sleep(interval)
    except NotRunning:
        from gossamer.crawls.control.at_rest import out_of_date, standing_at_rest
        from gossamer.crawls.directory import read_wiring

        now = standing_at_rest(path)
        if now.state == "killed":
            from gossamer.backup.elsewhere import gone_elsewhere

            now = out_of_date(now, gone_elsewhere(path))
        _print(now, as_json=as_json, screen=False)
        read_wiring(path)  # the figures need no wiring, but a crawl whose wiring is damaged does not go on


def _print(now: "CrawlStanding", *, as_json: bool, screen: bool) -> None:
    if screen:
        empty_terminal()
    say_json(now) if as_json else say_lines(lines_of(now, time.time()))


def lines_of(now: "CrawlStanding", at: float) -> list[str]:
    """A standing, for people; `at` is in seconds since the epoch."""
    from gossamer.cli.showing import rows_of

    head = f"{now.crawl}: {now.state}" + (f", process {now.process}" if now.is_at_work else "")
    rows = rows_of(now, at, problems=PROBLEMS)
    lines = [head, *(f"{f'{title}:' if title else '':<10}{text}" for title, text in rows)]
    for unit in now.units:
        figures = ", ".join(f"{name} {value:g}" for name, value in unit.metrics.items())
        lines.append(f"  {unit.name} ({unit.use}): {figures or 'nothing'}")
    for one in now.connectors:
        stalled = f"peak {one.peak}, stalled {one.stalled:.2f} s"
        lines.append(f"  {one.name}: {one.passed} passed, {one.waiting} waiting, {stalled}")
    return lines


# `gossamer log DIR`: everything that a crawl did and said, in the order of time.

#: Seconds between two looks at files that grow.
LOOK = 0.5

#: Entries that `--follow` begins with, as `tail` does.
FIRST = 10


@click.command()
@crawl_to_read
@option("-f --follow", "Go on with what comes, until the crawl ends or Ctrl-C.")
@option("--agent agents NAME...", "Show only entries of this agent (repeatable).")
@option("--host hosts HOST...", "Show only entries of this host or below it (repeatable).")
@option(
    "--kind kinds",
    "Show only entries of this kind; `error` stands for visits that failed (repeatable).",
    multiple=True,
    type=click.Choice(KINDS),
)
@option(
    "-n --last",
    f"Begin with this many of the last entries [default: {FIRST} with --follow, else all].",
    type=click.IntRange(0, 1_000_000),
)
@option("--json as_json", "Write JSON, one line an entry, with all fields.")
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
    found = CrawlLog(directory, agents, [host.strip(".").lower() for host in hosts], kinds)
    most = FIRST if follow and last is None else last
    with contextlib.suppress(KeyboardInterrupt):  # the way to leave
        is_at_work = follow and found.is_at_work
        _tell(found.read() if most is None else deque(found.read(), maxlen=most), as_json=as_json)
        while is_at_work:
            time.sleep(LOOK)
            # Asked first: lines written before the end are read after it.
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


# `gossamer watch`: the numbers of `status`, the problems ranked, and the speed over time.

#: Bars of a plot, from nothing to the most.
BARS = " ▁▂▃▄▅▆▇█"

#: Styles that draw the eye to a problem, by its severity.
STYLES = {"halt": "bold red", "loss": "red", "slow": "yellow", "note": "cyan"}

#: Problems, reasons to wait and hosts that are shown: more than fit on most terminals.
MOST = 8

#: Columns of a title.
_TITLE = 10


def overview(now: "CrawlStanding", speeds: Sequence[float], width: int, at: float) -> "list[Text]":
    """The lines, each of at most `width` columns; `speeds` are pages a second, the latest last, `at` is in seconds since the
    epoch."""
    rows = showing.rows_of(now, at, most=MOST, digits=",")
    lines = [*_head(now, speeds, width), *_problems(now), *(_line(title, text) for title, text in rows)]
    for line in lines:
        line.truncate(max(1, width), overflow="ellipsis")
    return lines


def _head(now: "CrawlStanding", speeds: Sequence[float], width: int) -> "Iterator[Text]":
    from rich.text import Text

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


def _problems(now: "CrawlStanding") -> "Iterator[Text]":
    if not now.problems:
        yield _line("problems", "none", "green")
    for number, one in enumerate(now.problems[:MOST]):
        title = "problems" if number == 0 else ""
        yield _line(title, f"{one.reason} ({one.evidence})", STYLES[one.severity])
        if one.command:
            yield _line("", f"  $ {one.command}", "bold")


def _line(title: str, text: str, style: str = "") -> "Text":
    from rich.text import Text

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
    type=Seconds(0.5, 60),
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

    leave_terminal()  # moving about on it takes what the guard of a terminal escapes
    console = Console()
    # A directory that cannot be looked at at all is refused before the screen is taken.
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
