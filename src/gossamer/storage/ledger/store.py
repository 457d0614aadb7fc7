"""RocksDB as the ledger needs it: bounded memory, errors that a person can read, one way to write, and no log missed.

The defaults of the library are wrong here: each family would take 64 MB of write buffers and keep its share of a log
of any length, so that five families reopen in 3-4 s at 220 MB. Measured with the limits below: 0.05 s, 60 MB.

Before a ledger is opened, its write-ahead logs are looked at. The library numbers everything that is written, from one log to the
next without a gap, and replays the logs that are there without asking whether one is missing between them; what stood in that one
would be gone in silence. It also stops at the first record that it cannot read: a torn end, which a kill leaves, or a changed byte,
behind which more was written. So the last number in the logs is compared with the last one that it has read. Of a log only the
heads of its records are read.
"""

import mmap
import shutil
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import rocksdict

from gossamer.engine.files import too_little_memory
from gossamer.values.errors import CrawlDirectoryError, DiskFull, LedgerDamaged, UsageError

if TYPE_CHECKING:
    from gossamer.storage.ledger.reader import LedgerSheet

# A log is a row of blocks, a block a row of pieces: checksum (4 bytes), length (2), kind (1), and in the numbered kinds the
# log's number (4). A batch is one piece or several; it begins with its first number (8 bytes) and how many it takes (4).

_BLOCK = 32_768
_HEAD = struct.Struct("<IHB")
_BATCH = struct.Struct("<QI")

#: Kinds of pieces: the whole of a batch, its first, middle and last; the same with the number of their log.
_WHOLE, _FIRST = (1, 5), (2, 6)
_FOLLOWED, _FURTHER = (2, 3, 6, 7), (3, 4, 7, 8)
_NUMBERED, _KINDS = range(5, 9), 8

#: Bytes that a disk writes together.
_SECTOR = 512


def missing_between(folder: Path) -> str:
    """The two logs between which one is missing, in words; empty where they follow each other.

    A log that is gone when it is read was given up meanwhile by the process that writes, with all logs before it.
    """
    paths = sorted(folder.glob("*.log"), key=lambda one: (len(one.name), one.name))
    before, expected = "", 0
    for path in paths if len(paths) > 1 else ():
        try:
            numbers = _numbers(path)
        except FileNotFoundError:
            before = ""
            continue
        if numbers is None:
            continue
        first, following = numbers
        if before and first > expected:
            return f"{before} and {path.name}"
        before, expected = path.name, following
    return ""


def number_behind(folder: Path) -> int:
    """The number that follows the last batch of all logs, readable or not; 0 where none can be told.

    A kill leaves a beginning of what was written, so every batch that is there at full length was written whole. After a power cut
    sectors may be missing that were not forced to the disk. They read as zeros, and such logs tell nothing.
    """
    numbers = [0]
    for path in folder.glob("*.log"):
        with suppress(FileNotFoundError):
            if (found := _numbers(path)) is not None:
                numbers.append(found[1])
    return max(numbers)


def has_missing_sectors(folder: Path) -> bool:
    return any(bytes(_SECTOR) in path.read_bytes() for path in folder.glob("*.log"))


def _numbers(path: Path) -> tuple[int, int] | None:
    """The number of a log's first batch, and the one that follows its last whole batch; None without a whole batch."""
    first = following = None
    begun, rest, is_inside = 0, 0, False
    with path.open("rb") as file:
        if not path.stat().st_size:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            size = len(data)
            for kind, start, end in _pieces(data):
                if not (is_inside and kind in _FURTHER) and kind <= _KINDS and start + _BATCH.size <= min(end, size):
                    number, count = _BATCH.unpack_from(data, start)
                    first = number if first is None else first
                    # A changed number may be too small: they follow each other.
                    begun = max(number, begun) + count
                rest = start
                if end > size and end <= _block_end(start):
                    break
                # A piece that others follow ends where its block does.
                is_inside = kind in _FOLLOWED and end == _block_end(start)
                if not is_inside and begun:
                    following = begun
                rest = end
            # A piece whose length has changed looks torn, and hides the batch that follows it, which has the next number.
            for kind in (*_WHOLE[:1], *_FIRST[:1]) if begun else ():
                at = data.find(bytes([kind]) + begun.to_bytes(8, "little"), rest)
                if at >= 6 and at + 1 + int.from_bytes(data[at - 2 : at], "little") <= size:
                    following = begun + 1
    return None if first is None or following is None else (first, following)


def _block_end(at: int) -> int:
    return at + _BLOCK - at % _BLOCK


def _pieces(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Kind of each piece, where its content begins, and where it ends; up to one that goes on behind its block or the log."""
    at, size = 0, len(data)
    while at + _HEAD.size <= size:
        left = _BLOCK - at % _BLOCK
        if left < _HEAD.size:
            at += left
            continue
        _, length, kind = _HEAD.unpack_from(data, at)
        if not kind and not length:
            return
        start = at + _HEAD.size + (4 if kind in _NUMBERED else 0)
        block, at = _block_end(at), start + length
        yield kind, start, at
        if at > min(block, size):
            return


R = TypeVar("R")

FAMILIES = ("frontier", "hosts", "seen", "documents", "links", "contents", "meta", "spaces", "requests")

#: Bytes of a row and its key, for what waits in memory: the library knows how much memory it took for them, in large pieces,
#: and how many they are.
USUAL_ROW = 128

#: Bits for each key of a Bloom filter: 1 % of the questions for a new URL still read a block.
BLOOM_BITS = 10

#: Bytes of a block: a page's links meet in few blocks, and a single look-up does not unpack too much.
BLOCK_BYTES = 8_192

#: Files that RocksDB keeps open; agents live with a limit of 256 (fault 105).
OPEN_FILES = 128

#: Deleted keys in a window of so many that call for compaction: queues leave nothing else behind.
DELETION_WINDOW, DELETIONS = 4_096, 2_048


class Batch:
    """Changes that are written together."""

    __slots__ = ("_batch", "_handles")

    def __init__(self, handles: dict[str, rocksdict.ColumnFamily]) -> None:
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._handles = handles

    def __len__(self) -> int:
        return len(self._batch)

    def put(self, family: str, key: bytes, value: bytes) -> None:
        self._batch.put(key, value, self._handles[family])

    def putter(self, family: str) -> Callable[[bytes, bytes], None]:
        """A function that sets keys of one family: cheaper where there are many."""
        put, handle = self._batch.put, self._handles[family]
        return lambda key, value: put(key, value, handle)

    def delete(self, family: str, key: bytes) -> None:
        self._batch.delete(key, self._handles[family])

    def change(self, family: str, key: bytes, value: bytes | None) -> None:
        """Set a key, or remove it where there is no value."""
        if value is None:
            self.delete(family, key)
        else:
            self.put(family, key, value)

    def write_to(self, database: rocksdict.Rdict) -> None:
        """Write everything at once. The batch is of no use after."""
        database.write(self._batch)


class RocksStore:
    batch_type: ClassVar[type[Batch]] = Batch

    def __init__(self, path: Path, limits: "LedgerSheet", *, create: bool = False, read_only: bool = False) -> None:
        """Open the database in `path`, or make an empty one there; to read only, also while another process writes. Of its
        settings, the ledger's, `limits` bound the memory. Raises CrawlDirectoryError: it is damaged, or cannot be written."""
        self.path = path
        self.limits = limits
        self.is_read_only = read_only
        self.broken: CrawlDirectoryError | None = None
        """Why the last write failed: the library then refuses to write until it is mended."""
        self._beside = threading.Lock()
        """Held by a thread that works beside the others: it is not closed meanwhile."""
        if why := too_little_memory():
            raise UsageError(why)
        # Without this, RocksDB would quietly begin anew where a person removed a file (fault 108).
        if not create and not (path / "CURRENT").exists():
            raise self._damaged("its file CURRENT is missing")
        self._open(create=create)

    def _open(self, *, create: bool = False) -> None:
        cache = rocksdict.Cache(self.limits.cache)
        options = _options(self.limits, cache, create=create)
        names: Sequence[str] = FAMILIES
        if self.is_read_only:  # a ledger of an older version lacks families that may not be made now
            there = self._translated(lambda: rocksdict.Rdict.list_cf(str(self.path), options))
            names = [name for name in FAMILIES if name in there]
        families = {name: _options(self.limits, cache, create=create) for name in names}
        access = rocksdict.AccessType.read_only() if self.is_read_only else rocksdict.AccessType.read_write()
        self._database = self._translated(lambda: rocksdict.Rdict(str(self.path), options, families, access))
        self._families = {name: self._database.get_column_family(name) for name in names}
        self._handles = {name: self._database.get_column_family_handle(name) for name in names}

    def number_behind(self) -> int:
        """The number that the next change gets."""
        return self._database.latest_sequence_number() + 1

    def batch(self) -> Batch:
        return self.batch_type(self._handles)

    def write(self, batch: Batch) -> None:
        """Write a batch, all or nothing. It survives the death of the process. Raises CrawlDirectoryError: it is not known to be
        written. Only :meth:`mend` helps, then it shows."""
        try:
            batch.write_to(self._database)
        except Exception as error:
            self.broken = self._damaged(str(error))
            raise self.broken from error

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Write one entry. Raises as :meth:`write`."""
        batch = self.batch()
        batch.put(family, key, value)
        self.write(batch)

    def mend(self) -> bool:
        """Open again what a failed write left unusable; returns whether there was need to. Older batches are of no use then.
        Raises CrawlDirectoryError: it still cannot be written."""
        if self.broken is None:
            return False
        if shutil.disk_usage(self.path).free < self.limits.buffers:
            raise self.broken  # opening writes what the log holds; as long as it is not closed, it can be read
        self.close()
        self._open()
        self.broken = None
        return True

    def sync(self) -> None:
        """Force all that was written to the disk. Made for a thread: it waits without holding up other threads."""
        with self._beside:
            if self._families:
                self._translated(lambda: self._database.flush_wal(True))

    def flush(self) -> None:
        with self._beside:
            for family in list(self._families.values()):
                self._translated(family.flush)

    def get(self, family: str, key: bytes) -> bytes | None:
        try:
            found: bytes | None = self._families[family].get(key)
            return found
        except Exception as error:
            raise self._damaged(str(error)) from error

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        try:
            return self._families[family].get(list(keys)) or []
        except Exception as error:
            raise self._damaged(str(error)) from error

    def scan(self, family: str, start: bytes, end: bytes, *, back: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Keys from `start` to before `end`, in order, or `back`. Reads on as far as it is asked; to be used up or dropped soon."""
        options = rocksdict.ReadOptions()
        # The bounds also spare the search from walking over what was deleted behind them.
        options.set_iterate_lower_bound(start)
        options.set_iterate_upper_bound(end)
        last = end if back else start
        try:
            rows: Any = self._families[family].items(backwards=back, from_key=last, read_opt=options)
            for row in rows:
                last = row[0]
                yield row
            # Rows end at a damaged block as if nothing followed, and only another walk tells why.
            walk: Any = self._families[family].iter(options)
            (walk.seek_for_prev if back else walk.seek)(last)
            if walk.valid():
                (walk.prev if back else walk.next)()
            walk.status()
        except Exception as error:
            raise self._damaged(str(error)) from error

    def read_through(self) -> int:
        """Read every key and value, so that the checksums of all blocks are compared; returns how many there are. Raises
        CrawlDirectoryError: a block is damaged."""
        return sum(1 for family in self._families for _ in self.scan(family, b"", b"\xff" * 64))

    def snapshot_to(self, path: Path) -> None:
        """Make a copy that shares the files which no longer change.

        It writes what waits in memory first, and the library lets no other thread run until it has: :meth:`flush` before.
        """
        self._translated(lambda: rocksdict.Checkpoint(self._database).create_checkpoint(str(path)))

    def compact(self) -> None:
        """Write all tables anew, so that no byte of what was deleted is left in them. Takes as long as copying the store."""
        options = rocksdict.CompactOptions()
        # Otherwise tables of the last level would be passed over.
        options.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
        for family in self._families.values():
            self._translated(family.flush)
            self._translated(partial(family.compact_range, None, None, options))

    def sizes(self) -> dict[str, int]:
        """Bytes of each family, with what waits in memory, estimated. The library keeps these sums: no file is looked at."""
        return {name: _in_tables(family) + in_memory(family) for name, family in self._families.items()}

    def close(self) -> None:
        """Close it. Every handle must go first, or the library keeps its own lock on the directory."""
        with self._beside:
            if not self._families:  # it could not be opened again
                return
            self._handles.clear()
            while self._families:
                _, family = self._families.popitem()
                self._closed(family)
                del family
            self._closed(self._database)
            del self._database

    def _closed(self, part: rocksdict.Rdict) -> None:
        try:
            part.close()
        except Exception as error:
            # That a write has failed was said when it did.
            if self.broken is None:
                raise self._damaged(str(error)) from None

    def _translated(self, action: Callable[[], R]) -> R:
        try:
            return action()
        except Exception as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> CrawlDirectoryError:
        if self.broken is not None:
            return self.broken
        if "No space left" in what or "File too large" in what:
            return DiskFull(f"the disk of {self.path} is full; make room")
        if "Permission denied" in what or "Read-only" in what:
            return CrawlDirectoryError(f"cannot write to {self.path}: {what}; resume where it can be written")
        return damaged(self.path, " ".join(what.split()))  # the library's own words have lines


def in_memory(family: rocksdict.Rdict) -> int:
    """Bytes of what waits to be written into tables, estimated."""
    tables = ("active-mem-table", "imm-mem-tables")
    rows = sum(family.property_int_value(f"rocksdb.num-entries-{name}") or 0 for name in tables)
    return min(rows * USUAL_ROW, family.property_int_value("rocksdb.cur-size-all-mem-tables") or 0)


def _in_tables(family: rocksdict.Rdict) -> int:
    return family.property_int_value("rocksdb.total-sst-files-size") or 0


def damaged(path: Path, what: str) -> LedgerDamaged:
    """The error for a ledger in `path`, below its crawl's directory, that cannot be read: it says how to go on."""
    advice = f"bring it back from a copy, or fetch every URL again: gossamer resume {path.parents[2]} --accept-loss"
    return LedgerDamaged(f"the ledger in {path} is damaged: {what}; {advice}")


def _options(limits: "LedgerSheet", cache: rocksdict.Cache, *, create: bool) -> rocksdict.Options:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(create)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(limits.buffers // 4)
    options.set_max_write_buffer_number(3)
    options.set_db_write_buffer_size(limits.buffers)
    options.set_max_total_wal_size(limits.log)
    options.set_max_open_files(OPEN_FILES)
    # It opens a quarter of them at the beginning, and would start 15 threads for it, for each family.
    options.set_max_file_opening_threads(1)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    # After a power cut the log ends somewhere: all that precedes the first torn record is whole, and is taken.
    options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.point_in_time())
    options.add_compact_on_deletion_collector_factory(DELETION_WINDOW, DELETIONS, 0.5)
    tables = rocksdict.BlockBasedOptions()
    tables.set_block_cache(cache)
    tables.set_block_size(BLOCK_BYTES)
    tables.set_format_version(5)
    tables.set_bloom_filter(BLOOM_BITS, False)
    # Indexes and filters live in the cache, so that it bounds them too; in parts, because a whole filter is larger than
    # one of the cache's shards and would be read anew at each question (measured: 390 us instead of 3).
    tables.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
    tables.set_partition_filters(True)
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_top_level_index_and_filter(True)
    options.set_block_based_table_factory(tables)
    return options
