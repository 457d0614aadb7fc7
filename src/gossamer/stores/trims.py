"""The journal of a trim that is under way: which records move to which files, which visits go, and whether that is known.

Place in the flow: :mod:`gossamer.operations.trimming` writes here before each step, so that a trim that was killed goes on; whoever
opens a crawl to work on it asks :func:`refuse_unfinished_trim` first.
"""

import os
import shutil
from pathlib import Path

import msgspec

from gossamer.model.errors import CrawlDirectoryError

#: The trim that is under way, inside the crawl directory.
JOURNAL = "state/trim.json"

#: What is known of it: the files below, each whole before the journal says so.
FOLDER = "state/trim"

#: Captures of the archive that move: `file`, `start` (its first byte, with what stands beside it), `offset`, `length`, `new_file`,
#: `new_offset`.
MOVES = "moves.parquet"

#: Visits that go: `url`, `visit`, `fetched_at`, `attempt`.
VISITS = "visits.parquet"

#: Documents of which no record is left under their URL: `digest`, `url`.
DIGESTS = "digests.parquet"


class Trim(msgspec.Struct, frozen=True):
    """A trim that was begun."""

    versions: int
    """How many versions of each page stay."""
    is_placed: bool = False
    """What moves and what goes is known, and the new files of the archive are written."""
    old: tuple[str, ...] = ()
    """Archive files that go, inside the crawl directory."""
    new: dict[str, dict[str, int]] = {}
    """Agent -> the archive files that take what stays of these -> their bytes."""
    visits: int = 0
    """Visits that go."""
    records: int = 0
    """Answers that go from the archive."""
    freed: int = 0
    """Bytes by which the archive shrinks."""
    rows: int = 0
    """Rows of tables that are gone."""
    is_free: bool = False
    """See :class:`~gossamer.stores.deletions.Deletion`."""


def begun_trim(directory: Path) -> Trim | None:
    """The trim that is under way; None where none is.

    Raises:
        CrawlDirectoryError: its journal cannot be read.
    """
    path = directory / JOURNAL
    try:
        return msgspec.json.decode(path.read_bytes(), type=Trim)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; bring it back from a copy") from None


def refuse_unfinished_trim(directory: Path) -> None:
    """Refuse to work on a crawl whose archive is half trimmed. See :func:`~gossamer.stores.deletions.refuse_unfinished`.

    Raises:
        CrawlDirectoryError: that is so.
    """
    if (begun := begun_trim(directory)) is None or not begun.is_free:
        refuse_begun_trim(directory)


def refuse_begun_trim(directory: Path) -> None:
    """Say that a trim was begun and is not finished.

    Raises:
        CrawlDirectoryError: that is so.
    """
    if begun_trim(directory) is not None:
        raise CrawlDirectoryError(f"a trim of {directory} is not finished; finish it: gossamer trim {directory}")


def note_trim(directory: Path, trim: Trim) -> None:
    """Replace the journal, whole or not at all; it is on the disk when this returns."""
    path = directory / JOURNAL
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(trim))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def end_trim(directory: Path) -> None:
    """The trim is done: its journal goes, and then what it knew."""
    (directory / JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(directory / FOLDER, ignore_errors=True)
