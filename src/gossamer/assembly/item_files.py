"""The files of a crawl's items: `--items FILE`. They are written by a process of their own, from the committed rows.

Place in the flow: :mod:`crawl` registers the files when the directory is made, starts the process (:mod:`gossamer.query.following`)
when the crawl begins, and ends it when everything is committed. A crawl that goes on goes on with the files that it had.
"""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.assembly.options import CrawlOptions
from gossamer.flow import python
from gossamer.model.errors import UsageError
from gossamer.query.places import ITEM_FILE_NOTES

if TYPE_CHECKING:
    from gossamer.query.item_rows import ItemLayout

#: How an item file may end: that says how it is written.
FORMS = (".jsonl", ".csv", ".json", ".parquet", ".xlsx")

#: `KIND=FILE`. A file whose name looks so is written with its folder: `./a=b.csv`.
_OF_KIND = re.compile(r"(?P<kind>[\w.:-]+)=(?P<file>.+)", re.DOTALL)


class ItemFiles:
    """The item files of one crawl directory."""

    def __init__(self, directory: Path, options: CrawlOptions, report: Callable[[str], object]) -> None:
        """Name files that items are written to, besides those that the crawl has.

        Args:
            directory: the crawl directory.
            options: `items` and the options that begin so.
            report: takes what goes wrong.

        Raises:
            UsageError: the name of a file does not say how it is to be written, or two are the same file.
        """
        self._directory = directory
        self._files = dict(map(self._named, options.items))
        self._options = options
        if len({path.absolute() for path in self._files}) < len(options.items):
            raise UsageError(
                "--items names a file twice; give each file once, with --items KIND=FILE for one kind of items"
            )
        if not options.items and (options.item_columns or options.item_key or options.item_formulas == "keep"):
            raise UsageError(
                "--item-columns, --item-key and --item-formulas say how --items FILE is written; name a file"
            )
        self._report = report
        self._child: asyncio.subprocess.Process | None = None

    def __repr__(self) -> str:
        return f"<ItemFiles of {self._directory}>"

    @staticmethod
    def _named(text: str) -> tuple[Path, str]:
        """A file, and the kind of items that it takes; empty for all."""
        of_kind = _OF_KIND.fullmatch(text)
        file, kind = (of_kind["file"], of_kind["kind"]) if of_kind else (text, "")
        if Path(file).suffix not in FORMS:
            raise UsageError(f"--items {text}: the name says how it is written; let it end in {', '.join(FORMS)}")
        return Path(file), kind

    def _layout(self, kind: str) -> "ItemLayout":
        from gossamer.query.item_rows import ItemLayout  # few crawls have item files

        options = self._options
        return ItemLayout(kind, options.item_columns, options.item_key, options.item_formulas == "keep")

    def check(self, *, overwrite: bool) -> None:
        """Refuse to write over a file that this crawl did not make. Touches nothing.

        Raises:
            UsageError: there is such a file, or no folder for it.
        """
        for file, kind in self._files.items():
            if not file.absolute().parent.is_dir():
                raise UsageError(f"--items {file}: there is no directory {file.absolute().parent}")
            if file.is_dir():
                raise UsageError(f"--items {file} is a directory; name a file in it")
            if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
                raise UsageError(f"--items {file} cannot be written: its permissions do not allow it")
            if not overwrite:
                self._check_known(file, kind)

    def _check_known(self, file: Path, kind: str) -> None:
        known = None
        if (self._directory / ITEM_FILE_NOTES).is_dir():
            from gossamer.query.item_files import known_layout  # few crawls have item files

            known = known_layout(self._directory, file)
        if known is None and file.exists():
            raise UsageError(f"{file} exists; name another file with --items, or replace it with --overwrite")
        if known is not None and known != self._layout(kind):
            raise UsageError(
                f"--items {file}: this crawl writes it with another kind, --item-columns, --item-key or --item-formulas; "
                "name another file"
            )

    async def start(self, *options: str) -> None:
        """Write the items from now on, where the crawl has such files; `options` go to the process.

        Raises:
            UsageError: a file cannot be written.
        """
        for file, kind in self._files.items():
            from gossamer.query.item_files import register  # few crawls have item files

            try:
                register(self._directory, file, self._layout(kind))
            except OSError as error:
                raise UsageError(f"--items {file} cannot be written: {error.strerror}") from None
        if (self._directory / ITEM_FILE_NOTES).is_dir():
            self._child = await _following(self._directory, *options)

    async def finish(self) -> None:
        """Everything is committed: wait until the files have it. Safe to call when nothing was started."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        told, said = await child.communicate()
        for line in told.decode("utf-8", "replace").splitlines():
            self._report(line)
        if child.returncode:
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
            self._report(f"items could not be written to a file ({last}); the next run goes on with it")


async def _following(directory: Path, *options: str) -> asyncio.subprocess.Process:
    """Start the process that feeds what follows a crawl; it ends when its standard input does."""
    # A session of its own: Ctrl-C in the terminal ends the crawl, and the crawl ends this.
    return await asyncio.create_subprocess_exec(
        *python.command("gossamer.query.following", str(directory), *options),
        env=python.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
