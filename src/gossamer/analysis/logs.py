"""One log of a whole crawl, in the order of time: visits of all agents, lines that it told, and commands that steered it.

Place in the flow: `gossamer log` asks here, while the crawl runs and at rest. Nothing is asked of the crawl itself: its files are
read as they grow. Each agent's log keeps its own order, and of two agents the entry goes first whose agent has come less far in
time, as in the merged log of the crawl.
"""

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.control.steering import STEERING_LOG
from gossamer.storage.json_lines import NOTES_LOG
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import holder_of
from gossamer.storage.logs import LOG_PATH, log_path
from gossamer.storage.recovery import members_of
from gossamer.storage.tables.places import crawl_directory
from gossamer.values.agents import member
from gossamer.values.errors import UsageError
from gossamer.values.outcome import ERRORS

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
        """Whether this entry is wanted."""
        kind = entry["event"]
        is_error = kind == "page" and entry.get("outcome") in ERRORS
        if self.kinds and kind not in self.kinds and not (is_error and "error" in self.kinds):
            return False
        if self.agents and entry.get("agent") not in self.agents:
            return False
        host = str(entry.get("host", ""))
        return not self.hosts or any(host == name or host.endswith(f".{name}") for name in self.hosts)


class CrawlLog:
    """Reads the log of one crawl."""

    def __init__(self, directory: str, choice: LogChoice) -> None:
        """Nothing is read yet.

        Raises:
            UsageError: there is no crawl, or it has no such agent.
            CrawlDirectoryError: the directory is damaged.
        """
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
    """One file of lines that grows."""

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
    at = found.pop("at", None) or found.get("fetched_at") or ""
    head = {"at": str(at).replace("+00:00", "Z"), "event": str(event)}
    return {**head, **({"agent": agent} if agent else {}), **found}
