"""A seen set in files of its own that counts exactly what the ledger's groups have kept.

Place in the flow: commit and frontier offer while their group is open. New URLs are written to a log, whose end commits with the
group; it counts when the group was kept, and is cut off the log when it was not, or when a kill came between. From time to
time an heir writes its own files, and the log begins anew.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

from gossamer.engine.ends import Uses
from gossamer.engine.files import AppendFile, Point, crash_at
from gossamer.engine.sheet import setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import AgentSheet
from gossamer.storage.ledger.contract import Group
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.recovery import opened_log

_fixed = partial(setting, restart="it is part of the set that is open")


class LoggedSeenSheet(AgentSheet, frozen=True):
    """Settings that such sets have in common."""

    gathered: Annotated[
        int,
        _fixed(
            "Write the set's own files after this many additions; the log holds them until then.", unit="URLs", ge=1
        ),
    ] = 100_000
    sync: Annotated[
        bool, _fixed("Wait for the disk after writing the set's own files, so that they survive a power cut.")
    ] = False


S = TypeVar("S", bound=LoggedSeenSheet)


class LoggedSeen(Provider[S]):
    """Logs, stages and counts; heirs say which URLs are held, and keep them. Contract: `SeenSet`."""

    ledger: Uses[RocksLedger]
    keeps_state = True

    kind = ""
    """Name of the directory below that of the agent."""

    def __init__(self, sheet: S | None = None) -> None:
        super().__init__(sheet)
        self._group: Group | None = None
        self._staged: dict[str, None] = {}
        self._log: AppendFile | None = None
        self._number = 0
        self.since = 0
        """Lines of the log."""

    # -- what heirs say

    @abstractmethod
    def opened(self) -> int:
        """Open the files; returns the number of the log that goes on from them."""

    @abstractmethod
    def has(self, url: str) -> bool:
        """Whether the set holds a URL, or takes it for one that it holds."""

    @abstractmethod
    def add(self, urls: Iterable[str]) -> None:
        """Hold these."""

    @abstractmethod
    def write(self, log: int) -> None:
        """Write the files; the log with this number goes on from them."""

    # -- life

    @property
    def home(self) -> Path:
        return Path(self.sheet.directory, "state", self.sheet.agent, self.kind)

    async def start(self) -> None:
        self.open()

    async def stop(self) -> None:
        self.close()

    def open(self) -> None:
        """Open the set of the directory, or begin one. URLs that the ledger does not know of were never committed, and are
        dropped. Raises CrawlDirectoryError: it is damaged, or its log is gone."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._number = self.opened()
        for path in self.home.glob("offers-*"):
            if path.name != self._name:
                path.unlink()
        self._log = opened_log(self._path, self._committed)
        with self._path.open("rb") as log:
            for line in iter(log.readline, b""):
                self.replay(line.decode().rstrip("\n"))
                self.since += 1

    def close(self) -> None:
        if self._log is not None:
            self._settle()
            if self.since:
                self._begin_anew()
            self.abandon()

    def abandon(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def _name(self) -> str:
        return f"offers-{self._number}"

    @property
    def _path(self) -> Path:
        return self.home / self._name

    @property
    def _committed(self) -> int:
        return self.ledger.committed_ends().get(f"state/{self.sheet.agent}/{self.kind}/{self._name}", 0)

    def replay(self, text: str) -> None:
        """Do again what a line of the log says."""
        self.add((text.replace("\t", "\n"),))

    # -- the contract

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        if self._group is not None and self.ledger.open_group is not self._group:
            self._settle()
        return [url for url in urls if url not in self._staged and not self.has(url)]

    def offer(self, urls: Sequence[str]) -> list[str]:
        group = self.ledger.open_group
        if group is not None:
            return self._offered(urls, group)
        with self.ledger.group() as group:
            return self._offered(urls, group)

    def _offered(self, urls: Sequence[str], group: Group) -> list[str]:
        self._follow(group)
        new = []
        for url in urls:
            if url not in self._staged and not self.has(url):
                self._staged[url] = None
                new.append(url)
        if new:
            # A request's identity has a line break of its own; no URL has a tab.
            self.log("".join(url.replace("\n", "\t") + "\n" for url in new), group)
        return new

    def _follow(self, group: Group) -> None:
        if group is not self._group:
            self._settle()
            self._group = group

    def log(self, text: str, group: Group) -> None:
        """Write lines that count if the group is kept."""
        self._follow(group)
        assert self._log is not None
        self._log.append(text.encode())
        group.written(f"state/{self.sheet.agent}/{self.kind}/{self._name}", self._log.end)

    def _settle(self) -> None:
        """The last group has ended: its staged URLs count if it was kept."""
        if self._group is None or self._log is None:
            return
        self._group = None
        staged = list(self._staged)
        self._staged.clear()
        if self._committed >= self._log.end:
            self.add(staged)
            self.since += len(staged)
            if self.since >= self.sheet.gathered:
                self._begin_anew()
        else:
            self._log.cut_back(self._committed)

    def _begin_anew(self) -> None:
        assert self._log is not None
        old = self._path
        self.write(self._number + 1)
        crash_at(Point.RECOVERY)
        self._number += 1
        self._log.close()
        self._log = opened_log(self._path, self._committed)
        old.unlink(missing_ok=True)
        self.since = 0
