"""The files of a crawl's items as options name them: `--items FILE`.

Place in the flow: :mod:`gossamer.crawls.followers` checks them before a crawl begins, registers them when its directory is made,
and has them fed. A crawl that goes on goes on with the files that it had.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.crawls.options import CrawlOptions
from gossamer.storage.tables.places import ITEM_FILE_NOTES
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.query.item_files import ItemLayout

#: How an item file may end: that says how it is written.
FORMS = (".jsonl", ".csv", ".json", ".parquet", ".xlsx")

#: `KIND=FILE`. A file whose name looks so is written with its folder: `./a=b.csv`.
_OF_KIND = re.compile(r"(?P<kind>[\w.:-]+)=(?P<file>.+)", re.DOTALL)


class ItemFiles:
    """The item files of one crawl directory."""

    def __init__(self, directory: Path, options: CrawlOptions) -> None:
        """Name files that items are written to, besides those that the crawl has.

        Args:
            directory: the crawl directory.
            options: `items` and the options that begin so.

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
            raise UsageError("--item-columns, --item-key and --item-formulas need --items FILE; name a file")

    @staticmethod
    def _named(text: str) -> tuple[Path, str]:
        """A file, and the kind of items that it takes; empty for all."""
        of_kind = _OF_KIND.fullmatch(text)
        file, kind = (of_kind["file"], of_kind["kind"]) if of_kind else (text, "")
        if Path(file).suffix not in FORMS:
            raise UsageError(f"--items {text}: the name decides the format; let it end in {', '.join(FORMS)}")
        return Path(file), kind

    def _layout(self, kind: str) -> "ItemLayout":
        from gossamer.query.item_files import ItemLayout  # few crawls have item files

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
        if known is None and file.exists() and file.stat().st_size:  # an empty one may be what a kill left
            raise UsageError(f"{file} exists; name another file with --items, or replace it with --overwrite")
        if known is not None and known != self._layout(kind):
            raise UsageError(
                f"--items {file}: this crawl writes it with another kind, --item-columns, --item-key or --item-formulas; "
                "name another file"
            )

    def register(self) -> None:
        """Note the files in the crawl's directory, so that they are written from now on.

        Raises:
            UsageError: a file cannot be written.
        """
        for file, kind in self._files.items():
            from gossamer.query.item_files import register  # few crawls have item files

            try:
                register(self._directory, file, self._layout(kind))
            except OSError as error:
                raise UsageError(f"--items {file} cannot be written: {error.strerror}") from None
