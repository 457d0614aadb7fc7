"""What follows a crawl: files that grow with its items (`--items FILE`), the search index (`--index`), and databases of the
user's own (`--sinks FILE`). A process of its own keeps them, from the committed rows.

Place in the flow: :mod:`crawl` registers what the options name when the directory is made, starts the process
(`gossamer.operations.following`) when the crawl begins, and ends it when everything is committed. A crawl that goes on goes on with
what followed it.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from gossamer.flow import python
from gossamer.model.errors import UsageError
from gossamer.query.places import FOLLOWING_INDEX, ITEM_FILE_NOTES, SINKS_FILE

#: How an item file may end: that says how it is written.
FORMS = (".jsonl", ".csv")


class Followers:
    """What follows the crawl in one directory."""

    def __init__(
        self,
        directory: Path,
        file: str,
        report: Callable[[str], object],
        *,
        index: bool = False,
        sinks: str = "",
    ) -> None:
        """Name what is to follow the crawl, besides what does already.

        Args:
            directory: the crawl directory.
            file: items are written to it; empty for none.
            report: takes what goes wrong.
            index: keep a search index.
            sinks: file of databases; empty for none.

        Raises:
            UsageError: its name does not say how it is to be written.
        """
        if file and Path(file).suffix not in FORMS:
            raise UsageError(f"--items {file}: the name says how it is written; let it end in {' or '.join(FORMS)}")
        self._directory = directory
        self._file = Path(file) if file else None
        self._report = report
        self._has_index = index
        self._sinks = Path(sinks) if sinks else None
        self._child: asyncio.subprocess.Process | None = None

    def __repr__(self) -> str:
        return f"<Followers of {self._directory}>"

    def check(self, *, overwrite: bool) -> None:
        """Refuse to write over a file that this crawl did not make. Touches nothing.

        Raises:
            UsageError: there is such a file, or no folder for it.
        """
        if self._sinks is not None:
            from gossamer.query.schema import tables_of  # few crawls have databases
            from gossamer.query.sinks.mapping import read_sinks

            read_sinks(self._sinks, tables_of(self._directory))
        file = self._file
        if file is None:
            return
        if not file.absolute().parent.is_dir():
            raise UsageError(f"--items {file}: there is no directory {file.absolute().parent}")
        if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
            raise UsageError(f"--items {file} cannot be written: its permissions do not allow it")
        if file.exists() and not overwrite and not self._is_known(file):
            raise UsageError(f"{file} exists; name another file with --items, or replace it with --overwrite")

    def _is_known(self, file: Path) -> bool:
        if not (self._directory / ITEM_FILE_NOTES).is_dir():
            return False
        from gossamer.query.item_files import note_path  # few crawls have item files

        return note_path(self._directory, file).exists()

    async def start(self, *options: str) -> None:
        """Feed what follows the crawl from now on, where anything does; `options` go to the process.

        Raises:
            UsageError: the file cannot be written.
        """
        if self._file is not None:
            from gossamer.query.item_files import register  # few crawls have item files

            try:
                register(self._directory, self._file)
            except OSError as error:
                raise UsageError(f"--items {self._file} cannot be written: {error.strerror}") from None
        if self._has_index:
            (self._directory / FOLLOWING_INDEX).touch()
        if self._sinks is not None:
            _copy(self._sinks, self._directory / SINKS_FILE)
        if has_followers(self._directory):
            self._child = await _following(self._directory, *options)

    async def finish(self) -> None:
        """Everything is committed: wait until what follows has it. Safe to call when nothing was started."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        _, said = await child.communicate()
        if child.returncode:
            lines = said.decode("utf-8", "replace").strip().splitlines()
            # Lines of its own, or the last one of what it died of.
            for line in lines if child.returncode == 1 and "Traceback" not in lines[0] else lines[-1:]:
                self._report(f"rows could not be handed on, and are by the next run: {line[:300]}")


def has_followers(directory: Path) -> bool:
    """Whether anything follows the crawl in a directory."""
    return any((directory / name).exists() for name in (ITEM_FILE_NOTES, FOLLOWING_INDEX, SINKS_FILE))


def _copy(source: Path, target: Path) -> None:
    """The file as it is, whole or not at all; nobody else may read it, since it tells where databases are."""
    fresh = target.with_name(f"{target.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(source.read_bytes())
    fresh.replace(target)


async def _following(directory: Path, *options: str) -> asyncio.subprocess.Process:
    """Start the process that feeds what follows a crawl; it ends when its standard input does."""
    # A session of its own: Ctrl-C in the terminal ends the crawl, and the crawl ends this.
    return await asyncio.create_subprocess_exec(
        *python.command("gossamer.operations.following", str(directory), *options),
        env=python.environment(),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
