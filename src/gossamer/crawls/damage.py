"""A crawl directory that is not whole: noticed before a crawl goes on, and gone on without where a person says so.

Place in the flow: :mod:`gossamer.crawls.crawl` calls :func:`bring_back` when units are up and none has worked yet. What ledgers
committed is held against the files (:mod:`gossamer.storage.recovery`), what was made of them against its notes
(:mod:`gossamer.storage.tables.manifest`). A lost index stops no crawl: it is made again from the archive when the run ends.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from gossamer.engine.files import AppendFile
from gossamer.engine.running import RunningGraph
from gossamer.storage import recovery
from gossamer.storage.archive.contract import Keeper
from gossamer.storage.archive.warc import WARC_DIRECTORY, WarcArchive
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.logs import LOG_FOLDER
from gossamer.storage.members import JOINED, members_of
from gossamer.storage.rewrite_journals import refuse_unfinished
from gossamer.storage.tables import manifest
from gossamer.storage.tables.places import REPLACED, TABLES, converting, write_manifest
from gossamer.values.errors import CrawlDirectoryError, LedgerDamaged
from gossamer.values.instants import utc_text
from gossamer.values.visit import Location

#: A ledger that another process writes is read so many times before it counts as damaged.
_READINGS = 3

#: Behind every byte of a file.
_END = 1 << 62


class Accepted(msgspec.Struct, frozen=True):
    """The losses that a crawl goes on without."""

    what: tuple[str, ...] = ()
    """Each loss, in words."""
    again: int = 0
    """URLs that are fetched again."""


class Damages(msgspec.Struct, frozen=True):
    """The faults of a directory, without reading what its files hold."""

    files: list[recovery.Loss]
    tables: list[manifest.Damage]
    index: manifest.Damage | None


def damages_of(directory: Path, ends: Mapping[str, int], *, deep: bool = False) -> Damages:
    """Hold ends and notes against files. `deep`: read tables too."""
    files = recovery.find_losses(
        directory, ends, lambda missing: manifest.are_tables(manifest.known_notes(directory), missing)
    )
    notes = manifest.known_notes(directory)
    return Damages(
        files, manifest.damaged_tables(directory, notes, deep=deep), manifest.damaged_index(directory, notes, deep=deep)
    )


def bring_back(running: RunningGraph, directory: Path, *, accept: bool) -> tuple[recovery.Restored, Accepted]:
    """Bring archive and files of keepers back to what the ledgers committed. Call it when units are up and none has worked yet.
    Raises CrawlDirectoryError: committed bytes are missing, and that is not accepted; names the files. Or a deletion is not
    finished."""
    refuse_unfinished(directory)
    providers = running.providers.values()
    disks = [Path(disk) for unit in providers if isinstance(unit, WarcArchive) for disk in unit.sheet.disks]
    further = [pattern for unit in providers if isinstance(unit, Keeper) for pattern in unit.files()]
    ledgers = [unit for unit in providers if isinstance(unit, RocksLedger)]
    accepted = Accepted()
    if accept:
        with converting(directory, wait=True):
            accepted = accept_losses(directory, ledgers)
    ends = {file: end for ledger in ledgers for file, end in ledger.committed_ends().items()}
    damages = damages_of(directory, ends)
    if found := [*damages.files, *damages.tables]:
        raise recovery.refusal(directory, found)
    done = recovery.Restored({}, ())
    for ledger in ledgers:
        others = _ends_of_others(directory, ledger, ledgers)
        one = recovery.restore(
            directory,
            ledger.committed_ends(),
            ledger.sheet.agent,
            disks,
            further,
            others=others,
            are_tables=lambda missing: manifest.are_tables(manifest.known_notes(directory), missing),
        )
        done = recovery.Restored(done.cut | one.cut, done.removed + one.removed, done.lost + one.lost)
    return done, accepted


def restored_lines(done: recovery.Restored, accepted: Accepted, directory: Path) -> Iterator[str]:
    """The lines for a person about :func:`bring_back`; none where nothing was amiss."""
    for loss in accepted.what:
        yield f"the crawl goes on, although {loss}"
    if accepted.again:
        urls = "1 URL, whose record is" if accepted.again == 1 else f"{accepted.again} URLs, whose records are"
        yield f"fetching again {urls} lost"
    if files := len(done.cut) + len(done.removed):
        yield (
            f"{files} {'file' if files == 1 else 'files'} held data that was never committed; "
            f"the data is in {directory / recovery.QUARANTINE}, and its URLs are fetched again"
        )
    if done.lost:
        yield f"{len(done.lost)} archive files lie on a disk that is not there; the crawl goes on without them"


def _ends_of_others(directory: Path, own: RocksLedger, is_open: list[RocksLedger]) -> dict[str, int]:
    """The commits of the other agents of this directory, those of other processes too."""
    ends: dict[str, int] = {}
    by_agent = {ledger.sheet.agent: ledger for ledger in is_open}
    for path in sorted((directory / STATE_DIRECTORY).glob("*/ledger")):
        agent = path.parent.name
        if agent == own.sheet.agent:
            continue
        if agent in by_agent:
            ends.update(by_agent[agent].committed_ends())
            continue
        ends.update(_ends_of_other(RocksLedger(LedgerSheet(directory=str(directory), agent=agent))))
    return ends


def _ends_of_other(other: RocksLedger) -> Mapping[str, int]:
    """The commits in a ledger that its owner may be writing: a file may go between the look at it and its reading."""
    for _ in range(_READINGS - 1):
        with suppress(LedgerDamaged), other.looking():
            return other.committed_ends()
    with other.looking():
        return other.committed_ends()


# -- going on without


def accept_losses(directory: Path, ledgers: list[RocksLedger]) -> Accepted:
    """Give up what is lost, so that what is left is whole. Call it while `converting`."""
    told: list[str] = []
    again = 0
    notes = manifest.notes_of(directory)
    for ledger in ledgers:
        ends = ledger.committed_ends()
        losses = recovery.find_losses(directory, ends, partial(manifest.are_tables, notes))
        told += map(str, losses)
        logs = [loss for loss in losses if not loss.file.startswith(f"{WARC_DIRECTORY}/")]
        given_up = {loss.file: _what_is_left(directory / loss.file, loss) for loss in logs}
        holes = _holes(directory, ends, losses, told)
        blanked = _blank_lines(directory, ends, told)
        if members_of(directory):
            _add_files_of_others(directory, ledger, holes, told)
        if holes.by_file:
            # The ledger's own libraries sort and compare: only who has lost something imports what forgets it.
            from gossamer.storage.ledger.deleting import forget

            again += forget(ledger, holes.has, {**given_up, **holes.ends})
            # The entries of the index for these places are not true any more.
            notes = msgspec.structs.replace(notes, index=())
        elif given_up:
            ledger.give_up_ends(given_up)
        if any(f"{recovery.ROW_LOG}pages-" in file for file in (*given_up, *blanked)):
            notes = msgspec.structs.replace(notes, index=())
    tables = manifest.damaged_tables(directory, notes, deep=True)
    told += map(str, tables)
    gone = [damage.file for damage in tables if damage.file != f"{TABLES}/{REPLACED}"]
    for file in gone:
        recovery.take_away(directory, directory / file)
    if len(gone) < len(tables):
        write_manifest(directory, manifest.manifest_again(notes))
    if tables or notes.index == ():
        manifest.write_notes(
            directory, manifest.with_tables(notes, dict.fromkeys(file.removeprefix(f"{TABLES}/") for file in gone))
        )
    return Accepted(tuple(told), again)


def _blank_lines(directory: Path, ends: Mapping[str, int], told: list[str]) -> set[str]:
    """Put blanks in the place of lines of logs that are damaged; returns the logs that had some."""
    found = set()
    for file, end in ends.items():
        path = directory / file
        if (file.startswith(LOG_FOLDER) or recovery.ROW_LOG in file) and path.exists():
            for number, start, length in list(recovery.unreadable_lines(path, end)):
                recovery.blank(directory, path, start, length)
                told.append(f"{file}, line {number} is damaged")
                found.add(file)
    return found


def _what_is_left(path: Path, loss: recovery.Loss) -> int | None:
    """Where the last whole line of a log ends, or a keeper's file of a form that only it knows; None where it is gone."""
    if loss.size is None or not loss.file.endswith(".jsonl"):
        return loss.size
    file = AppendFile(path, fresh=False)
    try:
        return file.end_of_lines()
    finally:
        file.close()


class _Holes:
    """Places of the archive where no record can be read."""

    def __init__(self) -> None:
        self.by_file: dict[str, list[tuple[int, int]]] = {}
        self.ends: dict[str, int | None] = {}
        """Files that are gone or end earlier."""

    def add(self, file: str, start: int, end: int) -> None:
        self.by_file.setdefault(file, []).append((start, end))

    def has(self, place: Location) -> bool:
        end = place.offset + place.length
        return any(place.offset < last and first < end for first, last in self.by_file.get(place.file, ()))


def _holes(directory: Path, ends: Mapping[str, int], losses: list[recovery.Loss], told: list[str]) -> _Holes:
    """Read the archive, and close what is damaged in it: with records that say so, or by cutting off what has no end."""
    from gossamer.storage.archive.reading import (
        Gap,
        fill,  # a crawl without losses pays for nothing of this
        scan,
    )

    holes, short = _Holes(), {loss.file for loss in losses}
    for file, end in ends.items():
        path = directory / file
        if not file.startswith(f"{WARC_DIRECTORY}/") or recovery.is_away(path) or recovery.in_store(path):
            continue
        if not path.exists():
            holes.add(file, 0, end)
            holes.ends[file] = None
            continue
        whole = 0
        gaps = []
        for found in scan(path, end):
            if isinstance(found, Gap):
                gaps.append(found)
            else:
                whole = found.end
        for gap in gaps:
            told += [f"{file} is damaged at byte {gap.offset}"] if file not in short else []
            holes.add(file, gap.offset, gap.end)
            if gap.offset < whole:
                recovery.keep_aside(directory, path, gap.offset, gap.length)
                fill(path, gap, utc_text(path.stat().st_mtime))
        if whole < end:
            holes.add(file, whole, end)
            holes.ends[file] = whole or None
    return holes


def _add_files_of_others(directory: Path, ledger: RocksLedger, holes: _Holes, told: list[str]) -> None:
    """Rows that came with a domain lie in files of the agent that had it before, whose ledger has their ends."""
    ends = ledger.committed_ends()
    rows = Counter(row.location.file for row in ledger.documents() if row.location and row.location.file not in ends)
    for file, count in rows.items():
        if (
            not (directory / file).exists()
            and not recovery.is_away(directory / file)
            and not recovery.in_store(directory / file)
        ):
            told.append(f"{file} of another agent is missing, and held {count} documents of hosts that came from there")
            holes.add(file, 0, _END)


def refuse_without_ledger(directory: Path) -> None:
    """Refuse to begin a new ledger where files of a crawl lie whose ledger is gone. Raises CrawlDirectoryError: that is so."""
    state = directory / STATE_DIRECTORY
    if (directory / JOINED).exists() or any(
        next(state.glob(f"*/{name}"), None) for name in ("ledger", "made", "replaced")
    ):
        return
    for pattern in (f"{WARC_DIRECTORY}/*.warc.gz", "logs/crawl.jsonl", f"{TABLES}/*/*.parquet"):
        if next(directory.glob(pattern), None) is not None:
            raise CrawlDirectoryError(
                f"{directory} is damaged: its ledger ({STATE_DIRECTORY}/) is missing, and its archive is not; "
                f"bring it back from a copy, or fetch every URL again: gossamer resume {directory} --accept-loss"
            )
