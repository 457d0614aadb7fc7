"""Exports by a form: files that `gossamer export` writes beside a crawl, in a folder of their own, and that a browser downloads.

Place in the flow: :mod:`app` asks here. An export is a process that ends with the dashboard; its file has its name only when it is
whole. The folder lies beside the crawl, not in it: what is deleted from a crawl does not hide in a copy of it.
"""

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.dashboard.jobs import spawned
from gossamer.dashboard.sites import read_form
from gossamer.engine import processes
from gossamer.engine.errors import refusing
from gossamer.query.contract import EXPORT_FORMS, TABLE_FORMS
from gossamer.values.errors import UsageError

#: Exports that are made at once; each may take a core.
AT_ONCE = 2

#: Marks a file that is being made, by the process of the dashboard that has it made.
_PART = re.compile(r"(?P<name>.+)\.(?P<process>[0-9]+)\.part")

#: Characters of what a failed export said that are shown.
_SAID = 2_000


class ExportWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    to: str
    """One of :data:`EXPORT_FORMS`."""
    table: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] = "pages"
    """For csv, jsonl and parquet."""


class NamedExport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Export(msgspec.Struct, frozen=True):
    name: str
    state: str
    """`ready`, `being made`, or `failed`."""
    bytes: int
    """0 of a folder."""
    made_at: float
    """Seconds since the epoch."""
    is_folder: bool = False
    """It can be opened where it lies, and is not downloaded."""
    said: str = ""
    """Why it failed."""


class Exports(msgspec.Struct, frozen=True):
    folder: str
    forms: list[str]
    tables: list[str]
    exports: list[Export]
    """The newest first."""


class Exporter:
    """Has exports made. Its methods are called in threads, one at a time."""

    def __init__(self) -> None:
        self._made: dict[Path, _Making] = {}
        """By the file that they will be."""
        self._turn = threading.RLock()

    def listed(self, directory: Path) -> Exports:
        from gossamer.storage.tables.contract import SHIPPED

        folder = folder_of(directory)
        with self._turn:
            looked = {target: one.look(target) for target, one in self._made.items() if target.parent == folder}
        found = looked | {
            path: Export(path.name, "ready", _size(path), path.stat().st_mtime, path.is_dir())
            for path in _files(folder)
            if path not in looked
        }
        ordered = sorted(found.values(), key=lambda one: -one.made_at)
        return Exports(str(folder), list(EXPORT_FORMS), list(SHIPPED), ordered)

    def begin(self, directory: Path, body: bytes) -> Exports:
        """Have one made.
        Raises UsageError: it is no such form, too many are being made, or the folder cannot be written."""
        wish = read_form("export", body, ExportWish)
        if wish.to not in EXPORT_FORMS:
            raise UsageError(f"export: a crawl is exported to {', '.join(EXPORT_FORMS)}")
        what = wish.table if wish.to in TABLE_FORMS else wish.to
        target = folder_of(directory) / f"{what}-{datetime.now(UTC):%Y%m%dT%H%M%S}{EXPORT_FORMS[wish.to]}"
        with refusing(UsageError, f"{target.parent} cannot be written"):
            target.parent.mkdir(exist_ok=True)
            for path in target.parent.iterdir():
                match = _PART.fullmatch(path.name)
                if match and not processes.is_alive(int(match["process"])):  # a dashboard that is gone has left it
                    _discard(path)
        with self._turn:
            if sum(one.is_alive for one in self._made.values()) >= AT_ONCE:
                raise UsageError(f"{AT_ONCE} exports are being made already; wait for one of them")
            if target in self._made or target.exists():
                raise UsageError(f"{target.name} is there already; ask again in a second")
            self._made[target] = _Making(directory, wish, target.with_name(f"{target.name}.{os.getpid()}.part"))
        return self.listed(directory)

    def remove(self, directory: Path, body: bytes) -> Exports:
        """Remove one, or give it up while it is being made.
        Raises UsageError: there is none of this name, or it cannot be removed."""
        target = folder_of(directory) / Path(read_form("export", body, NamedExport).name).name
        with self._turn:
            making = self._made.pop(target, None)
        if making is not None:
            making.give_up()
        if target in _files(target.parent) and target.is_file():
            target.unlink()
        elif making is None:
            raise UsageError("there is no export file of this name; remove a folder by hand")
        return self.listed(directory)

    def file(self, directory: Path, name: str) -> Path:
        """The file of an export that is ready. Raises UsageError: there is none of this name."""
        for path in _files(folder_of(directory)):
            if path.name == name and path.is_file():
                return path
        raise UsageError("there is no export of this name")

    def close(self) -> None:
        """Give up those that are being made."""
        for making in self._made.values():
            if making.is_alive:
                making.give_up()


def folder_of(directory: Path) -> Path:
    whole = directory.resolve()
    return whole.with_name(f"{whole.name}-exports")


class _Making:
    def __init__(self, directory: Path, wish: ExportWish, part: Path) -> None:
        self._part, self.begun = part, time.time()
        self._said: str | None = None
        table = ["--table", wish.table] if wish.to in TABLE_FORMS else []
        words = ["export", str(directory), "--to", wish.to, *table, "--output", str(part)]
        self._child = spawned(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    def look(self, target: Path) -> Export:
        """How it stands. Once it has ended, its file has its name, or it has failed."""
        if self.is_alive:
            return Export(target.name, "being made", _size(self._part), self.begun)
        if self._said is None:
            # A damaged table is left out of the file, which the command says with status 5.
            assert self._child.stderr is not None
            said = self._child.stderr.read(1 << 16).decode("utf-8", "replace").strip()[:_SAID]
            if self._child.returncode in (0, 5) and self._part.exists():
                self._part.rename(target)
            else:
                _discard(self._part)
            self._said = said if self._child.returncode else ""
        state = "ready" if target.exists() else "failed"
        return Export(target.name, state, _size(target), self.begun, target.is_dir(), self._said)

    def give_up(self) -> None:
        if self.is_alive:
            self._child.kill()
            self._child.wait()
        _discard(self._part)


def _files(folder: Path) -> Iterator[Path]:
    """Exports that are whole: files and folders by the names that they were given, and no links."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if not path.is_symlink() and not _PART.fullmatch(path.name):
                yield path


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _discard(part: Path) -> None:
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            part.unlink()
