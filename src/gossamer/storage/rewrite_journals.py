"""The journals of a deletion and of a trim that are under way, and the notes of deletions that are done.

Place in the flow: :mod:`gossamer.analysis.deleting` and :mod:`gossamer.analysis.trimming` write here before each step, so that a
deletion or trim that was killed goes on. Commands that open a crawl to work on it ask :func:`refuse_unfinished` first. The journal
of a deletion names what is deleted, and goes when the deletion is done. The notes hold no name: a hash of it, and counts.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import DeletionTarget
from gossamer.values.url import host_of

#: The deletion that is under way, inside the crawl directory.
DELETION_JOURNAL = "state/deletion.json"

#: Where its records lie in the archive; whole before the first of them is overwritten.
PLACES = "state/deletion-places"

#: One line for each deletion that was done.
DELETED = "state/deleted.jsonl"


class Deletion(msgspec.Struct, frozen=True):
    """A deletion that was begun."""

    id: str
    at: str
    target: DeletionTarget
    forget: bool = False
    """Deleted pages may be fetched again when they are met."""
    hosts: tuple[str, ...] | None = None
    """The hosts that go whole; None while they are not known. They are found by what they have, and that goes."""
    is_placed: bool = False
    """The places of its records are known."""
    records: int = 0
    """Records of the archive that go."""
    documents: int = 0
    """Rows of the ledgers that are gone."""
    tasks: int = 0
    """Tasks that were queued and are not any more."""
    again: int = 0
    """URLs that are fetched again, since the only copy of their document goes."""
    rows: int = 0
    """Rows of tables that are gone."""
    lines: int = 0
    """Lines of logs that are gone."""
    is_free: bool = False
    """It failed where nothing in the crawl is half done, so that the crawl may go on before it is finished: nothing is done yet, or
    what follows the crawl alone is left."""


class Deleted(msgspec.Struct, frozen=True):
    """The note of a deletion that was done."""

    id: str
    at: str
    kind: str
    sha256: str
    """Of the name that was deleted."""
    forget: bool
    records: int
    documents: int
    tasks: int
    again: int
    rows: int
    lines: int


class DeletedPlace(msgspec.Struct, frozen=True, array_like=True):
    """Bytes of the archive that go."""

    file: str
    """Inside the crawl directory."""
    offset: int
    length: int


def unfinished(directory: Path) -> Deletion | None:
    """The deletion that is under way; None where none is.

    Raises:
        CrawlDirectoryError: its journal cannot be read.
    """
    return _begun(directory / DELETION_JOURNAL, Deletion, "remove it, and delete once more")


def refuse_unfinished(directory: Path) -> None:
    """Refuse to work on a crawl of which something is half deleted, or whose archive is half trimmed.

    One that failed before it changed anything, or after all but the stores that follow the crawl, is in no one's way.

    Raises:
        CrawlDirectoryError: that is so.
    """
    if (begun := unfinished(directory)) is None or not begun.is_free:
        refuse_begun(directory)
    refuse_unfinished_trim(directory)


def refuse_begun(directory: Path) -> None:
    """Say that a deletion was begun and is not finished.

    Raises:
        CrawlDirectoryError: that is so.
    """
    if unfinished(directory) is not None:
        raise CrawlDirectoryError(f"a deletion in {directory} is not finished; finish it: gossamer delete {directory}")


def seek_again(directory: Path) -> None:
    """The ledger begins anew: let a deletion that is under way look for its records once more, and give a trim up."""
    if (begun := unfinished(directory)) is not None:
        note_progress(directory, msgspec.structs.replace(begun, is_placed=False, is_free=True))
    end_trim(directory)


def note_progress(directory: Path, deletion: Deletion) -> None:
    """Replace the journal, whole or not at all; it is on the disk when this returns."""
    _write(directory / DELETION_JOURNAL, [msgspec.json.encode(deletion)])


def write_places(directory: Path, places: Iterator[DeletedPlace]) -> None:
    """Keep the places of records, whole or not at all; they are on the disk when this returns."""
    _write(directory / PLACES, (msgspec.json.encode(place) + b"\n" for place in places))


def read_places(directory: Path) -> Iterator[DeletedPlace]:
    """The places, in the order of files and bytes."""
    with (directory / PLACES).open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=DeletedPlace)


def deletion_of(directory: Path, url: str) -> Deleted | None:
    """The last deletion that was done of this canonical URL, of its host, or of a domain above it; None where there was none."""
    try:
        lines = (directory / DELETED).read_bytes().splitlines()
    except FileNotFoundError:
        return None
    labels = host_of(url).split(".")
    names: set[tuple[Literal["url", "host"], str]] = {("url", url)}
    names |= {("host", ".".join(labels[place:])) for place in range(len(labels))}
    digests = {(kind, DeletionTarget(kind, name).digest) for kind, name in names}
    notes = [msgspec.json.decode(line, type=Deleted) for line in lines]
    return next((note for note in reversed(notes) if (note.kind, note.sha256) in digests), None)


def note_done(directory: Path, deletion: Deletion) -> Deleted:
    """Note a deletion that is done, once, and end its journal."""
    target = deletion.target
    note = Deleted(
        deletion.id,
        deletion.at,
        target.kind,
        target.digest,
        deletion.forget,
        deletion.records,
        deletion.documents,
        deletion.tasks,
        deletion.again,
        deletion.rows,
        deletion.lines,
    )
    path = directory / DELETED
    known = path.read_bytes().splitlines() if path.exists() else []
    if not any(deletion.id.encode() in line for line in known[-1:]):
        _write(path, [*(line + b"\n" for line in known), msgspec.json.encode(note) + b"\n"])
    (directory / PLACES).unlink(missing_ok=True)
    (directory / DELETION_JOURNAL).unlink(missing_ok=True)
    return note


#: The trim that is under way, inside the crawl directory.
TRIM_JOURNAL = "state/trim.json"

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
    """Records that move and records that go are known, and the new files of the archive are written."""
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
    """As of a :class:`Deletion`."""


def begun_trim(directory: Path) -> Trim | None:
    """The trim that is under way; None where none is.

    Raises:
        CrawlDirectoryError: its journal cannot be read.
    """
    return _begun(directory / TRIM_JOURNAL, Trim, "bring it back from a copy")


def refuse_unfinished_trim(directory: Path) -> None:
    """Refuse to work on a crawl whose archive is half trimmed. See :func:`refuse_unfinished`.

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
    _write(directory / TRIM_JOURNAL, [msgspec.json.encode(trim)])


def end_trim(directory: Path) -> None:
    """The trim is done: its journal goes, and then what it knew."""
    (directory / TRIM_JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(directory / FOLDER, ignore_errors=True)


J = TypeVar("J", Deletion, Trim)


def _begun(path: Path, kind: type[J], advice: str) -> J | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; {advice}") from None


def _write(path: Path, parts: Iterable[bytes]) -> None:
    """Replace a file piece by piece, whole or not at all; it is on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
