"""Whether a crawl directory is whole: what its ledgers committed against its files, and with `deep`, all that is in them.

Place in the flow: `gossamer verify` asks here. Nothing is changed. It works while the crawl runs: everything is judged up to what
one look at the ledgers says. Memory: 16 bytes for each answer in the archive, where that is read.
"""

import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from gossamer.crawls.damage import damages_of, refuse_without_ledger
from gossamer.crawls.directory import read_wiring
from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import is_as_written
from gossamer.storage.archive.cdxj import read_line
from gossamer.storage.archive.contract import INDEX
from gossamer.storage.archive.reading import CAPTURES, Gap, is_readable, opened, scan
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, RocksLedger, ledgers_of
from gossamer.storage.logs import LOG_FOLDER, LOG_PATH, read_mark
from gossamer.storage.members import CRAWL_ID, is_id_damaged
from gossamer.storage.recovery import ROW_LOG, changed_files, in_store, is_away, unreadable_lines
from gossamer.storage.rewrite_journals import DELETED, refuse_unfinished
from gossamer.storage.tables.manifest import failure_of, unmade
from gossamer.storage.tables.places import COMMITTED, CRAWL_FILE, INDEX_DIRECTORY, TABLES, is_mark_damaged
from gossamer.values.errors import CrawlDirectoryError

#: Findings that are told in full; a damaged disk would fill pages.
MOST = 50


class Verified(msgspec.Struct):
    crawl: str
    findings: list[str] = []
    """Damages; the first :data:`MOST` of them."""
    more: int = 0
    """Further findings."""
    notes: list[str] = []
    """Things to know that are no damage."""
    files: int = 0
    """Files of which something was committed."""
    records: int = 0
    """Records of the archive that were read; 0 where they were not."""
    rows: int = 0
    """Documents of the ledgers whose records were looked for; 0 where they were not."""

    @property
    def is_whole(self) -> bool:
        return not self.findings

    def find(self, text: str) -> None:
        if len(self.findings) < MOST:
            self.findings.append(text)
        else:
            self.more += 1

    @contextmanager
    def finding(self, about: str = "") -> Iterator[None]:
        """While the block runs, a crawl directory that is damaged is a finding, and ends the block."""
        try:
            yield
        except (CrawlDirectoryError, WiringError) as error:
            self.find(f"{about}{error}")


def verify(directory: Path, *, deep: bool = False) -> Verified:
    """Compare what was committed with what is there. With `deep`, every record of the archive, every line of log and index,
    every table and every block of the ledgers is read."""
    told = Verified(str(directory))
    with told.finding():
        read_wiring(directory)
    with ExitStack() as stack:
        ends: dict[str, int] = {}
        known: list[RocksLedger] = []
        ledgers = []
        with told.finding():
            refuse_without_ledger(directory)
            known = ledgers_of(directory)
        for ledger in known:
            with told.finding():
                stack.enter_context(ledger.looking())
                ledgers.append(ledger)
                ends.update(ledger.committed_ends())
        told.files = len(ends)
        with told.finding():
            damages = damages_of(directory, ends, deep=deep)
            for damage in (*damages.files, *damages.tables, *filter(None, [damages.index])):
                told.find(str(damage))
        if why := failure_of(directory):
            told.find(f"{unmade(why)}; try again: gossamer resume {directory}")
        with told.finding():
            refuse_unfinished(directory, also_free=True)
        for file, end in sorted(ends.items()):
            path = directory / file
            if is_away(path):
                told.notes.append(f"{file} lies on a disk that is not there")
            elif path.exists() and (rest := path.stat().st_size - end) > 0:
                told.notes.append(
                    f"{file} has {rest} bytes that are not committed: a kill left them, or the crawl is running"
                )
        if deep:
            _read_all(directory, ledgers, ends, told)
        else:
            for file in ends:  # archive files that are in a store alone, and of which that has lost something
                if file.startswith(f"{WARC_DIRECTORY}/") and in_store(directory / file):
                    with told.finding(f"{file}: "):
                        opened(directory / file, whole=True).close()
    return told


def _find_changed(directory: Path, ledgers: list[RocksLedger], told: Verified) -> None:
    """Files that are written once, and whose bytes are no more what they were."""
    state = directory / STATE_DIRECTORY
    with suppress(OSError):  # of a file that is gone it was told above
        if not is_as_written(directory / CRAWL_FILE):
            told.find(
                f"{CRAWL_FILE} is not as the crawl wrote it: it was edited, or a byte of it has changed; compare a copy"
            )
    if is_id_damaged(directory):
        told.find(f"{CRAWL_ID} is damaged, so that this crawl could be taken for another; bring it back from a copy")
    folders = [*state.glob("*/rows"), *(directory / TABLES).glob("*"), directory / INDEX_DIRECTORY]
    for folder in sorted(filter(Path.is_dir, folders)):
        for what in changed_files(folder):
            told.find(f"{folder.relative_to(directory)}/{what}")
    for agent in sorted(path.parent.parent.name for path in state.glob(f"*/rows/{COMMITTED}")):
        if is_mark_damaged(directory, agent):
            told.find(f"{STATE_DIRECTORY}/{agent}/rows/{COMMITTED} is damaged; the next run writes it anew")
    for ledger in ledgers:
        for name in ledger.checkpoints():
            if what := ledger.damage_of_checkpoint(name):
                told.find(f"checkpoint {name} of {ledger.sheet.agent} is damaged, and cannot be gone back to: {what}")


# -- deep


class RecordPlaces:
    """Facts about records by file and offset, in order: some whole numbers each."""

    def __init__(self) -> None:
        self._by_file: dict[str, list[array[int]]] = {}

    def add(self, file: str, offset: int, *numbers: int) -> None:
        columns = self._by_file.setdefault(file, [array("Q") for _ in range(1 + len(numbers))])
        for column, number in zip(columns, (offset, *numbers), strict=True):
            column.append(number)

    def at(self, file: str, offset: int) -> tuple[int, ...] | None:
        """The numbers of a record; None where none is known to lie there."""
        columns = self._by_file.get(file)
        if columns is None:
            return None
        place = bisect_left(columns[0], offset)
        is_there = place < len(columns[0]) and columns[0][place] == offset
        return tuple(column[place] for column in columns[1:]) if is_there else None


def _read_all(directory: Path, ledgers: list[RocksLedger], ends: Mapping[str, int], told: Verified) -> None:
    for ledger in ledgers:
        with told.finding():
            ledger.read_through()
    _find_changed(directory, ledgers, told)
    places, shown = _read_archive(directory, ends, told)
    for ledger in ledgers:
        with suppress(CrawlDirectoryError, ValueError):  # what cannot be read was found above
            _check_rows(directory, ledger, places, ends, told)
    for file, end in {LOG_PATH: read_mark(directory).end, DELETED: sys.maxsize, **ends}.items():
        if file.startswith(LOG_FOLDER) or ROW_LOG in file or file == DELETED:
            # Each line is an event, or a row. The record that it names may be lost, where a crawl went on without.
            kind = "a row" if ROW_LOG in file else "an event"
            with suppress(FileNotFoundError):  # rows that are tables meanwhile
                for number, _, _ in unreadable_lines(directory / file, end):
                    told.find(f"{file}, line {number} is not {kind} that was written")
    _check_index(directory, ends, places, shown, told)


def _read_archive(directory: Path, ends: Mapping[str, int], told: Verified) -> tuple[RecordPlaces, int]:
    """Every record that was committed; where captures lie, and how many of them an index has to have."""
    places, shown = RecordPlaces(), 0
    for file, end in sorted(ends.items()):
        path = directory / file
        if not file.startswith(f"{WARC_DIRECTORY}/") or not is_readable(path):
            continue
        with told.finding(f"{file}: "):  # it is in a store alone, and cannot be read there
            for found in scan(path, end):
                if isinstance(found, Gap):
                    told.find(f"{file} is damaged at byte {found.offset}: {found.length} bytes hold no whole record")
                    continue
                told.records += 1
                if found.kind in CAPTURES:
                    places.add(file, found.offset, found.length)
                    # A record that was cut behind its header block may be one of a page that asks for no copy.
                    shown += bool(found.size or found.kind == "revisit" or "warc-truncated" not in found.fields)
    return places, shown


def _check_rows(
    directory: Path, ledger: RocksLedger, places: RecordPlaces, ends: Mapping[str, int], told: Verified
) -> None:
    gone: Counter[str] = Counter()
    for row in ledger.documents():
        told.rows += 1
        place = row.location
        if place is None:
            continue
        if not is_readable(directory / place.file):
            # A file that a ledger still counts as written was told of already.
            gone[place.file] += place.file not in ends
            continue
        if places.at(place.file, place.offset) != (place.length,):
            told.find(f"{row.url} is done, and {place.file} has no record of it at byte {place.offset}")
    for file, count in (+gone).items():
        told.find(f"{count} documents of {ledger.sheet.agent} are done, and {file}, which held them, is missing")


def _check_index(directory: Path, ends: Mapping[str, int], places: RecordPlaces, shown: int, told: Verified) -> None:
    """Each line names a record, in order; where no rows wait to be merged, each capture has one."""
    path = directory / INDEX
    if not path.exists():
        return
    count, before = 0, b""
    with path.open("rb") as index:
        for number, line in enumerate(index, 1):
            try:
                entry = read_line(line).entry
                file, offset, length = f"{WARC_DIRECTORY}/{entry.filename}", int(entry.offset), int(entry.length)
            except ValueError:
                told.find(f"{INDEX}, line {number} is not a capture")
                continue
            if line < before:
                told.find(f"{INDEX}, line {number} is not in order")
            before = line
            count += 1
            is_there = is_readable(directory / file) and offset + length <= ends.get(file, 0)
            if is_there and places.at(file, offset) != (length,):
                told.find(f"{INDEX}, line {number} names a record that {file} does not have at byte {offset}")
    waits = any(directory.glob("state/*/index/*.cdxj")) or any(directory.glob("state/*/rows/pages-*.jsonl"))
    if count < shown and not waits:
        told.find(f"{INDEX} has {count} captures, and the archive has {shown}")
