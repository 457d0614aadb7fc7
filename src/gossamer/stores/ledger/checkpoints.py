"""Where a ledger lies, and how one takes the place of another: made, checkpointed, gone back to, killed at any step.

A directory bears the name `ledger` only when it is whole. What is being made is called `making`; what is whole and about
to replace another, `made`; what was replaced, `replaced`. Whoever opens the ledger finishes what a kill interrupted.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gossamer.flow.crashing import Point, crash_at
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.stores.ledger.keys import END_PREFIX
from gossamer.stores.ledger.lock import ProcessLock
from gossamer.stores.ledger.store import RocksStore, StoreLimits
from gossamer.stores.sums import SUMS, sum_up

#: What a checkpoint may be called: a plain file name on every system, and never a path.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

#: Files of a checkpoint that are summed up; tables have checksums of their own, and may be large.
_SUMMED = ("CURRENT", "MANIFEST-*", "OPTIONS-*", "*.json")

#: Of a directory that its owner alone may read.
_PRIVATE = 0o700


def check_is_free(name: str, taken: Collection[str]) -> None:
    """Refuse the name of a checkpoint that there is. Raises UsageError."""
    if name in taken:
        raise UsageError(f"there is a checkpoint {name!r} already; take another name")


class Places:
    """The names inside an agent's state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.lock = state / "lock"
        self.ledger = state / "ledger"
        self.making = state / "making"
        self.made = state / "made"
        self.replaced = state / "replaced"
        self.checkpoints = state / "checkpoints"

    def recover(self) -> None:
        """Finish a replacement that a kill interrupted, drop what was only half made."""
        shutil.rmtree(self.making, ignore_errors=True)
        crash_at(Point.RECOVERY)
        if self.made.exists():
            if self.ledger.exists():
                shutil.rmtree(self.replaced, ignore_errors=True)
                self.ledger.rename(self.replaced)
            crash_at(Point.RECOVERY)
            self.made.rename(self.ledger)
        crash_at(Point.RECOVERY)
        shutil.rmtree(self.replaced, ignore_errors=True)
        for half in self.checkpoints.glob(".*"):
            shutil.rmtree(half, ignore_errors=True)

    def install(self, make: Callable[[Path], None]) -> None:
        """Put what `make` writes into a directory in the place of the ledger."""
        self.recover()
        make(self.making)
        self.making.rename(self.made)
        self.recover()

    def close_to_others(self) -> None:
        """Let the owner alone read ledger and checkpoints. Raises OSError."""
        self.checkpoints.mkdir(exist_ok=True)
        for path in (self.ledger, self.checkpoints):
            path.chmod(_PRIVATE)

    def names(self) -> list[str]:
        """Checkpoints, the oldest first."""
        found = [path for path in self.checkpoints.glob("[!.]*") if path.is_dir()]
        return [path.name for path in sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))]

    def check_name(self, name: str) -> None:
        """Refuse what no checkpoint can be called, and names that are taken. Raises UsageError."""
        if not NAME.fullmatch(name):
            raise UsageError(f"a checkpoint cannot be called {name!r}; take letters, digits, dot, dash, underscore")
        check_is_free(name, self.names())

    def add(self, name: str, snapshot: Callable[[Path], None]) -> Path:
        """Make a checkpoint.

        Raises:
            UsageError: the name cannot be used, or is taken.
        """
        self.check_name(name)
        path = self.checkpoints / name
        self.checkpoints.mkdir(exist_ok=True)
        half = self.checkpoints / f".{name}"
        shutil.rmtree(half, ignore_errors=True)
        snapshot(half)
        sum_up(half, _SUMMED)
        crash_at(Point.CHECKPOINT)
        half.rename(path)
        return path


def restore(state: Path, name: str, limits: StoreLimits, ends: Mapping[str, int]) -> None:
    """Go back to a checkpoint. The ledger must be closed; the checkpoint stays.

    Args:
        state: the agent's state directory.
        name: of the checkpoint.
        limits: for the moment in which it is opened.
        ends: file of the crawl directory -> its size now. What was archived after the checkpoint is kept: these count as
            committed ends from now on, and who writes on starts new files (design question 10).

    Raises:
        UsageError: there is no such checkpoint.
        CrawlDirectoryError: the ledger is in use, or the checkpoint is damaged.
    """
    places = Places(state)
    known = places.names()
    if name not in known:
        raise UsageError(f"there is no checkpoint {name!r}; known: {', '.join(known) or 'none'}")
    replace(places, lambda path: _link(places.checkpoints / name, path), limits, ends)


def replace(places: Places, make: Callable[[Path], None], limits: StoreLimits, ends: Mapping[str, int]) -> None:
    """Put what `make` writes, with committed ends of files, in the place of a ledger that is closed, lost or damaged.

    Raises:
        CrawlDirectoryError: the ledger is in use, or what was made is damaged.
    """
    lock = ProcessLock(places.lock)
    try:

        def make_with_ends(path: Path) -> None:
            make(path)
            store = RocksStore(path, limits)
            try:
                batch = store.batch()
                for file, end in ends.items():
                    batch.put("meta", END_PREFIX + file.encode(), str(end).encode())
                store.write(batch)
                store.sync()
            finally:
                store.close()

        places.install(make_with_ends)
    finally:
        lock.close()


def _link(source: Path, target: Path) -> None:
    """A copy of a database. Its tables never change, so the copy shares them; the rest is small."""
    target.mkdir(mode=stat.S_IMODE(source.parent.stat().st_mode))
    for path in source.iterdir():
        if path.suffix == ".sst":
            try:
                os.link(path, target / path.name)
                continue
            except OSError:  # a file system without hard links
                pass
        if path.is_file() and path.name != SUMS:
            shutil.copy2(path, target / path.name)


def missing(state: Path) -> CrawlDirectoryError:
    """The error of who wants to go on where nothing is."""
    return CrawlDirectoryError(f"there is no ledger in {state}; name the directory of a crawl")
