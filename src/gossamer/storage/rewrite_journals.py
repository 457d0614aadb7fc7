"""The journal of a rewriting of a crawl at rest, and the notes of deletions that are done.

Place in the flow: `gossamer delete` and `gossamer trim` (:mod:`gossamer.analysis.rewriting`) write here before each step, so
that the next of these commands goes on after a kill. A crawl that begins to work asks :func:`refuse_unfinished` first.

Promises: the journal is replaced whole or not at all, and is on the disk when a call returns. It names what is deleted and goes
when that is done; the notes hold no name: a hash of it, and counts.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Literal, cast

import msgspec

from gossamer.storage.logs import summed
from gossamer.storage.members import read_kept
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import DeletionTarget
from gossamer.values.url import host_of

#: The rewriting that is under way, inside the crawl directory.
JOURNAL = "state/rewriting.json"

#: The folder of its findings; each file is whole before the journal says so.
FOLDER = "state/rewriting"

#: Where the records of a deletion lie in the archive.
PLACES = f"{FOLDER}/places.jsonl"

#: One line for each deletion that was done.
DELETED = "state/deleted.jsonl"


class RewriteJournal(msgspec.Struct, frozen=True, kw_only=True, tag_field="verb"):
    """A rewriting that was begun."""

    noun: ClassVar[str]
    verb: ClassVar[str]
    """The command that finishes it."""
    older: ClassVar[tuple[str, str, str]]
    """Where Gossamer 0.2.0 kept its journal and what it had found, and where the latter is sought now."""

    is_placed: bool = False
    """It is known what goes, and new files of the archive are written."""
    is_free: bool = False
    """It failed where nothing in the crawl is half done, so that the crawl may go on before it is finished: nothing is done yet, or
    what follows the crawl alone is left."""
    records: int = 0
    """Records of the archive that go."""
    rows: int = 0
    """Rows of tables that are gone."""


class Deletion(RewriteJournal, frozen=True, tag="delete"):
    """Everything of a URL, host or domain goes."""

    noun: ClassVar[str] = "a deletion in"
    verb: ClassVar[str] = "delete"
    older: ClassVar[tuple[str, str, str]] = ("state/deletion.json", "state/deletion-places", PLACES)

    id: str
    at: str
    target: DeletionTarget
    forget: bool = False
    """Deleted pages may be fetched again when they are met."""
    hosts: tuple[str, ...] | None = None
    """The hosts that go whole; None while they are not known. They are found by what they have, and that goes."""
    documents: int = 0
    """Rows of the ledgers that are gone."""
    tasks: int = 0
    """Tasks that were queued and are not any more."""
    again: int = 0
    """URLs that are fetched again, since the only copy of their document goes."""
    lines: int = 0
    """Lines of logs that are gone."""

    @property
    def goal(self) -> object:
        return self.target


class Trim(RewriteJournal, frozen=True, tag="trim"):
    """Old versions of pages go."""

    noun: ClassVar[str] = "a trim of"
    verb: ClassVar[str] = "trim"
    older: ClassVar[tuple[str, str, str]] = ("state/trim.json", "state/trim", FOLDER)

    versions: int
    """How many versions of each page stay."""
    old: tuple[str, ...] = ()
    """Archive files that go, inside the crawl directory."""
    new: dict[str, dict[str, int]] = {}
    """Agent -> the archive files that take what stays of these -> their bytes."""
    visits: int = 0
    """Visits that go."""
    freed: int = 0
    """Bytes by which the archive shrinks."""

    @property
    def goal(self) -> object:
        return self.versions


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


def begun(directory: Path) -> Iterator[Deletion | Trim]:
    """The rewritings that are under way, in the order in which they are finished. There may be two where 0.2.0 began them. Raises
    CrawlDirectoryError: a journal cannot be read."""
    kinds = ((JOURNAL, Deletion | Trim), *((kind.older[0], kind) for kind in (Deletion, Trim)))
    for name, kind in kinds:
        one = read_kept(directory / name, cast("type[Deletion | Trim]", kind), "bring it back from a copy")
        if one is not None:
            yield one


def take_up(directory: Path) -> Deletion | Trim | None:
    """The rewriting that is to be finished next, with its files where they are sought; None where none is under way. Raises
    CrawlDirectoryError: its journal cannot be read."""
    one = next(begun(directory), None)
    if one is not None and not (directory / JOURNAL).exists():
        journal, found, place = (directory / name for name in one.older)
        if found.exists():  # otherwise a call that was killed has moved it
            shutil.rmtree(directory / FOLDER, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            found.rename(place)
        note_progress(directory, one)
        journal.unlink()
    return one


def note_progress(directory: Path, journal: Deletion | Trim) -> None:
    _write(directory / JOURNAL, [msgspec.json.encode(journal)])


def note_end(directory: Path, journal: Deletion | Trim) -> None:
    """The rewriting is done: its journal goes, and then what it had found."""
    (directory / journal.older[0]).unlink(missing_ok=True)
    (directory / JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(directory / FOLDER, ignore_errors=True)


def refuse_unfinished(directory: Path, *, also_free: bool = False) -> None:
    """Refuse to work on a crawl that is half rewritten, or with `also_free` on one that is rewritten where nothing in it is half
    done. Raises CrawlDirectoryError: that is so."""
    for one in begun(directory):
        if also_free or not one.is_free:
            raise CrawlDirectoryError(
                f"{one.noun} {directory} is not finished; finish it: gossamer {one.verb} {directory}"
            )


def seek_again(directory: Path) -> None:
    """The ledger begins anew: let a deletion that is under way look for its records once more, and give a trim up."""
    (directory / Trim.older[0]).unlink(missing_ok=True)
    shutil.rmtree(directory / Trim.older[1], ignore_errors=True)
    one = take_up(directory)
    if isinstance(one, Deletion):
        note_progress(directory, msgspec.structs.replace(one, is_placed=False, is_free=True))
    elif one is not None:
        note_end(directory, one)


def write_places(directory: Path, places: Iterable[DeletedPlace]) -> None:
    """Keep the places of records, whole or not at all; they are on the disk when this returns."""
    _write(directory / PLACES, (msgspec.json.encode(place) + b"\n" for place in places))


def read_places(directory: Path) -> Iterator[DeletedPlace]:
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
    """Note a deletion that is done, once."""
    counts = {name: getattr(deletion, name) for name in ("records", "documents", "tasks", "again", "rows", "lines")}
    target = deletion.target
    done = Deleted(deletion.id, deletion.at, target.kind, target.digest, deletion.forget, **counts)
    path = directory / DELETED
    known = path.read_bytes().splitlines() if path.exists() else []
    if not any(deletion.id.encode() in line for line in known[-1:]):
        _write(path, [*(line + b"\n" for line in known), summed(msgspec.json.encode(done))])
    return done


def _write(path: Path, parts: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
