"""`gossamer status DIR`, how a crawl stands, asked of it while it runs, read from its ledger while it rests; and `gossamer log
DIR`.

:class:`CrawlLog` is one log of a whole crawl, in the order of time: visits of all agents, lines that it told, and commands that
steered it. Nothing is asked of the crawl itself: its files are read as they grow. Each agent's log keeps its own order, and of two
agents the entry goes first whose agent has come less far in time, as in the merged log of the crawl.
"""

import contextlib
import heapq
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gossamer.cli.helping import crawl_to_read, option
from gossamer.cli.saying import empty_terminal, say_json, say_lines, shown
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.messages import Status
from gossamer.crawls.control.steering import STEERING_LOG
from gossamer.engine.sheet import show_bytes
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import holder_of
from gossamer.storage.logs import LOG_PATH, NOTES_LOG, SUM, log_path, printable
from gossamer.storage.recovery import members_of
from gossamer.storage.tables.places import crawl_directory
from gossamer.values.agents import member
from gossamer.values.errors import UsageError
from gossamer.values.outcome import ERRORS

if TYPE_CHECKING:
    from gossamer.crawls.control.standing import CrawlStanding

#: The kinds of entries. An entry of another kind is of a table that a plug-in logs.
KINDS = ("page", "robots", "item", "note", "steering", "error")

#: Bytes of one line that are read: a row with its longest fields is far shorter.
MAX_LINE = 4 << 20

Entry = dict[str, Any]


class LogChoice(msgspec.Struct, frozen=True):
    """The entries that are asked for; nothing given leaves nothing out."""

    agents: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """These hosts, and those below them."""
    kinds: tuple[str, ...] = ()
    """Of :data:`KINDS`; `error` stands for visits that failed."""

    def takes(self, entry: Entry) -> bool:
        kind = entry["event"]
        is_error = kind == "page" and entry.get("outcome") in ERRORS
        if self.kinds and kind not in self.kinds and not (is_error and "error" in self.kinds):
            return False
        if self.agents and entry.get("agent") not in self.agents:
            return False
        host = str(entry.get("host", ""))
        return not self.hosts or any(host == name or host.endswith(f".{name}") for name in self.hosts)


class CrawlLog:
    def __init__(self, directory: str, choice: LogChoice) -> None:
        """Nothing is read yet.
        Raises UsageError: there is no crawl, or it has no such agent. Raises CrawlDirectoryError: the directory is damaged."""
        self.directory = crawl_directory(directory)
        self._choice = choice
        known = self._members()
        if missing := sorted(set(choice.agents) - set(known)):
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
        return [_GrowingFile(self.directory / log_path(name), name) for name in self._choice.agents or agents]

    @property
    def is_at_work(self) -> bool:
        """The crawl runs, or an agent of it works on alone."""
        return any(holder_of(lock) for lock in (self.directory / STATE_DIRECTORY).glob("*/lock"))

    def read(self) -> Iterator[Entry]:
        """The wanted entries that were written since the last time, in the order of time."""
        if self._known and not self._choice.agents:
            joined = [name for name in self._members() if name not in self._known]
            self._known.update(joined)
            self._files += self._logs(joined) if joined else []
        for _, _, entry in heapq.merge(*(file.entries(number) for number, file in enumerate(self._files))):
            if self._choice.takes(entry):
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
    except msgspec.DecodeError:
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
@crawl_to_read(archive=False)
@option("--units", "Also show the counters of every unit, and the number of items that passed each connector.")
@option("--watch", "Repeat until the crawl ends.")
@option(
    "--interval",
    "Wait this many seconds between two looks.",
    type=click.FloatRange(0.1, 60),
    default=2.0,
    show_default=True,
)
@option("--json as_json", "Print one line of JSON for each look.")
def status(directory: str, units: bool, watch: bool, interval: float, as_json: bool) -> None:
    """Show how a crawl stands: pages, queue, hosts, speed, outcomes, errors, why it waits and until when, limits,
    sizes.

    This works while the crawl runs, and after. A crawl that runs is running, paused or stopping. One that ended is
    finished, limit (it reached one), stopped, incomplete, or killed (its process died). `gossamer resume` goes
    on with any crawl that is not finished.
    """
    from gossamer.crawls.control.standing import CrawlStanding

    path = Path(directory)
    try:
        with Control(path) as control:
            while True:
                now = control.told(Status(units), CrawlStanding)
                _print(now, as_json=as_json, screen=watch and not as_json and sys.stdout.isatty())
                if not watch:
                    return
                time.sleep(interval)
    except NotRunning:
        from gossamer.crawls.control.at_rest import standing_at_rest
        from gossamer.crawls.directory import read_wiring

        _print(standing_at_rest(path), as_json=as_json, screen=False)
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
    return [head, *(f"{f'{title}:' if title else '':<10}{text}" for title, text in rows), *_figures(now)]


def _figures(now: "CrawlStanding") -> Iterator[str]:
    for unit in now.units:
        figures = ", ".join(f"{name} {value:g}" for name, value in unit.metrics.items())
        yield f"  {unit.name} ({unit.use}): {figures or 'nothing'}"
    for one in now.connectors:
        yield (
            f"  {one.name}: {one.passed} passed, {one.waiting} waiting, peak {one.peak}, stalled {one.stalled:.2f} s"
        )


# `gossamer log DIR`: everything that a crawl did and said, in the order of time.

#: Seconds between two looks at files that grow.
LOOK = 0.5

#: Entries that `--follow` begins with, as `tail` does.
FIRST = 10


@click.command()
@crawl_to_read(archive=False)
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
    type=click.IntRange(0),
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
