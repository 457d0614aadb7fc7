"""A ledger that lies where nothing can be written, made readable: the library writes a log of its own even to read."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from gossamer.stores.scratch import scratch

#: Files that hold the data; they are read where they are. The others are small, and some are written to.
_LARGE = frozenset({".sst", ".log"})


@contextlib.contextmanager
def readable(path: Path, can_write: Callable[[Path, int], bool] = os.access) -> Iterator[Path]:
    """A directory in which the database in `path` can be opened for reading: itself, or links to its files in a folder of ours.

    Args:
        path: the database.
        can_write: says whether files can be made in a directory; takes what `os.access` does.

    Raises:
        OSError: it cannot be read, or there is no room for its small files.
    """
    if can_write(path, os.W_OK):
        yield path
        return
    with scratch() as folder:
        beside = Path(folder, path.name)
        beside.mkdir()
        for one in path.iterdir():
            if one.suffix in _LARGE:
                (beside / one.name).symlink_to(one.resolve())
            elif one.is_file() and not one.name.startswith("LOG"):
                shutil.copyfile(one, beside / one.name)
        yield beside
