"""The archive: every answer as it came, in WARC/1.1 files that grow by whole groups of visits.

Place in the flow: the committing component calls `append` with the visits of a group *before* it commits them, so that
what the ledger points to is there (design promise 1), and notes the ends in the same commit. Bytes of records:
:mod:`gossamer.storage.archive.records`; what a kill leaves behind: :mod:`gossamer.storage.recovery`.

An answer whose body is on disk is *laid down* before its group, in a thread and into a file for such answers alone: packing
a gigabyte takes seconds, in which the groups of others go on into theirs.

A run writes into files of its own. A crawl that goes on begins new ones: a file that was cut back is never
written into again, so nothing that goes wrong later can touch what was committed.
"""

import asyncio
import contextlib
import errno
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer._version import __version__
from gossamer.engine.files import AppendFile, LastWrites
from gossamer.engine.sheet import NoSettings, setting
from gossamer.engine.unit import Provider, Unit
from gossamer.storage.archive.records import (
    RecordForm,
    Written,
    exchange,
    form_of,
    lines_beside,
    lines_of_journey,
    warcinfo,
)
from gossamer.storage.contract import AgentSheet
from gossamer.values.body import SpoolFile, StoredBody
from gossamer.values.visit import Location, Visit

#: Directory of the WARC files inside the crawl directory (docs/kept.md).
WARC_DIRECTORY = "warc"

#: The words of the archive where servers' certificates were not verified, of the crawl and of each answer (fault 98).
UNVERIFIED = "certificates not verified"

#: Errors which say that a disk is full or broken, and another may not be.
_DISK_TROUBLE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENODEV, errno.ENOENT, errno.EACCES}
)

#: Settings of the file that is open, and those that each file tells in its first record.
_kept = partial(setting, restart="it is part of the file that is open")
_told = partial(setting, restart="it is told in the first record of each file")


class WarcSheet(AgentSheet, frozen=True):
    prefix: Annotated[
        str, _kept("Begin file names with this: `PREFIX-AGENT-TIMESTAMP-SERIAL.warc.gz`.", pattern=r"^[A-Za-z0-9._-]+$")
    ] = "gossamer"
    disks: Annotated[
        tuple[str, ...],
        _kept(
            "Also write archive files to these directories on other disks, in turn with the crawl directory; `warc/` "
            "holds links to them. A disk that fails is left out, and the next one takes its group.",
            names="a folder",
        ),
    ] = ()
    rotate_bytes: Annotated[
        int, setting("Begin a new file when the current one reaches this size.", unit="bytes", ge=1)
    ] = 1_000_000_000
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written, so that it survives a power cut.")
    ] = False
    metadata: Annotated[
        bool,
        setting(
            "Write a metadata record beside an answer whose URL was found on another page, or that had trouble. An "
            "answer from a server whose certificate was not verified always gets one."
        ),
    ] = True
    originals: Annotated[
        int,
        setting(
            "Remember the dates of at most this many documents, for revisit records; each takes about 150 bytes.",
            unit="documents",
            ge=0,
        ),
    ] = 65_536
    operator: Annotated[str, _told("Name this operator of the crawl in the archive.")] = ""
    contact: Annotated[str, _told("Name this contact of the operator in the archive.")] = ""
    user_agent: Annotated[str, _told("Name this User-Agent field in the archive, as the one that was sent.")] = ""
    description: Annotated[str, _told("Describe the purpose of the crawl in the archive.")] = ""
    robots: Annotated[str, _told("Note in the archive whether the crawl obeyed robots.txt: `obey` or `ignore`.")] = ""
    tls: Annotated[
        str, _told("Note this about the servers' certificates in the archive; empty if they were verified.")
    ] = ""
    software: Annotated[str, _told("Name this program and version in the archive.")] = f"Gossamer/{__version__}"


class WarcLane:
    """A file that grows, and the directory that it lies in."""

    def __init__(self) -> None:
        self.file: AppendFile | None = None
        self.place = Path()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


class WarcFiles:
    """Opens files for an archive, on its disks in turn."""

    def __init__(self, archive: Unit[WarcSheet]) -> None:
        self._archive = archive
        self._serial = 0
        self._places = [Path(archive.sheet.directory, WARC_DIRECTORY), *map(Path, archive.sheet.disks)]

    def open(self, lane: WarcLane) -> AppendFile:
        """The file that takes what follows in a lane. Raises OSError: it cannot be made; nothing of it is there."""
        if lane.file is not None and lane.file.end >= self._archive.sheet.rotate_bytes:
            lane.close()
        if lane.file is None:
            lane.file = self._create(lane)
        return lane.file

    def leave(self, lane: WarcLane, error: OSError) -> bool:
        """Whether a disk has failed and another is left: records committed on it stay, nothing more goes there."""
        if len(self._places) == 1 or error.errno not in _DISK_TROUBLE:
            return False
        self._archive.metrics.count("disks_left")
        if lane.place in self._places:
            self._places.remove(lane.place)
            self._archive.report(
                f"no archive file goes to {lane.place} any more: {error.strerror or error}; the others take them"
            )
        lane.close()
        return True

    def _create(self, lane: WarcLane) -> AppendFile:
        """A new file under a free name, with its warcinfo record."""
        sheet, now = self._archive.sheet, self._archive.clock.now()
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
        while True:
            lane.place = self._places[self._serial % len(self._places)]
            path = lane.place / f"{sheet.prefix}-{sheet.agent}-{stamp}-{self._serial:05d}.warc.gz"
            link = Path(sheet.directory, WARC_DIRECTORY, path.name)
            self._serial += 1
            if link.exists() or link.is_symlink():
                continue
            try:
                file = AppendFile(path, fresh=True)
            except FileExistsError:
                continue
            break
        try:
            if link != path:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path.resolve())
            told = {  # by the names that ISO 28500 recommends (section 6.2)
                "software": sheet.software,
                "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
                "operator": " ".join(filter(None, (sheet.operator, sheet.contact and f"<{sheet.contact}>"))),
                "http-header-user-agent": sheet.user_agent,
                "robots": sheet.robots,
                "tls": sheet.tls,
                "description": sheet.description,
            }
            file.append(warcinfo(path.name, now, told), sync=sheet.sync)
        except OSError:
            file.close()
            with contextlib.suppress(OSError):  # a disk that takes nothing may not let go either
                link.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            raise
        self._archive.metrics.count("files")
        return file


class _Laid(msgspec.Struct, frozen=True):
    """An answer that lies in its file, and in no group that is kept."""

    body: SpoolFile
    start: int
    """Where its first record begins: the file is cut back to there when it is not wanted."""
    location: Location


class WarcArchive(Provider[WarcSheet]):
    """Writes `warcinfo`, `request`, `metadata`, `response`, `resource`, `conversion` and `revisit` records, one gzip member each.

    Contract: `Archive`. It creates the first file at the first record, so a refused crawl leaves no file.
    """

    def __init__(self, sheet: WarcSheet | None = None) -> None:
        super().__init__(sheet)
        self._main, self._large = WarcLane(), WarcLane()
        self._laying: asyncio.Future[list[Location]] | None = None
        self._is_stopping = False
        self._laid: _Laid | None = None
        self._is_laid_kept = False
        """Whether the last group has the answer that is laid down: the next one shows that it was kept."""
        self._ends: dict[str, int] = {}
        self._last = LastWrites()
        self._files = WarcFiles(self)
        self._dates: OrderedDict[str, float] = OrderedDict()
        self.metrics.gauge("originals", lambda: len(self._dates))

    async def stop(self) -> None:
        self._begin_group()
        if self._laying is not None:  # it writes into one of them
            self._is_stopping = True
            await asyncio.wait([self._laying])
        with contextlib.suppress(OSError):  # the next start cuts it off
            self._unlay()
        self._main.close()
        self._large.close()

    def open_files(self) -> list[str]:
        """The files that grow, inside the crawl directory. One that is closed is never written again."""
        lanes = (self._main, self._large)
        return [f"{WARC_DIRECTORY}/{lane.file.path.name}" for lane in lanes if lane.file is not None]

    async def lay(self, visit: Visit) -> None:
        """See the contract: this concerns bodies on disk that are kept whole. Raises OSError: it could not be written; nothing of
        it is in the file."""
        body = visit.response.body
        if type(body) is not StoredBody or not visit.is_answered:
            return
        if self._laid is not None and _has(visit, self._laid.body):
            return  # the group that was to have it could not be kept, and is tried again
        self._begin_group()
        self._unlay()
        if form_of(visit) is not RecordForm.WHOLE:
            return
        while True:
            file = self._files.open(self._large)
            start = file.end
            # In a thread: no other thread has this file meanwhile.
            writing = asyncio.to_thread(self._write, file, [self._exchange(visit, RecordForm.WHOLE)])
            self._laying = asyncio.ensure_future(writing)
            try:
                [location] = await asyncio.shield(self._laying)
            except OSError as error:
                if not self._files.leave(self._large, error):
                    raise
                continue
            finally:
                if self._laying.done():
                    self._laying = None
            self._laid = _Laid(body.file, start, location)
            self.metrics.counters["bytes"] += file.end - start
            return

    def _unlay(self) -> None:
        laid, self._laid = self._laid, None
        if laid is not None and self._large.file is not None:
            self._large.file.cut_back(laid.start)

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """Write the answers of a group in one write; a location for each visit, None where nothing was answered. Raises OSError:
        the group could not be written; nothing of it is in the file."""
        self._begin_group()
        # A body on disk is packed while it is written: after a failure, what was begun has to be made anew.
        while any(written := list(map(self._records_of, visits))):
            fresh = [records for records in written if type(records) is Written]
            placed: Iterator[Location] = iter(())
            try:
                if fresh:
                    file = self._files.open(self._main)
                    self._last.about_to(file)
                    start = file.end
                    placed = iter(self._write(file, fresh))
                    self._ends[f"{WARC_DIRECTORY}/{file.path.name}"] = file.end
                    self.metrics.counters["bytes"] += file.end - start
            except OSError as error:
                if not self._files.leave(self._main, error):
                    raise
                self._last.begin()  # nothing of this group is there, and the file is closed
                continue
            locations: list[Location | None] = []
            for records in written:
                if type(records) is Location:
                    self._ends[records.file] = records.offset + records.length
                    self._is_laid_kept = True
                    locations.append(records)
                else:
                    locations.append(None if records is None else next(placed))
            self.metrics.counters["visits"] += len(visits) - locations.count(None)
            return locations
        return [None] * len(visits)

    def _begin_group(self) -> None:
        """Records of the group before stay, laid down or not."""
        self._last.begin()
        if self._is_laid_kept:
            self._laid, self._is_laid_kept = None, False

    def _write(self, file: AppendFile, group: Sequence[Written]) -> list[Location]:
        """Write records, all of them or none, in as few writes as their bodies allow: one, where all of them are in memory."""
        name = f"{WARC_DIRECTORY}/{file.path.name}"
        locations: list[Location] = []
        waiting: list[bytes] = []
        before = end = file.end
        try:
            for records in group:
                waiting.append(records.data)
                start, end = end + records.start, end + len(records.data)
                if records.rest is not None:
                    file.append(b"".join(waiting))
                    waiting.clear()
                    for piece in records.rest:
                        if self._is_stopping:
                            raise InterruptedError("the archive stops")
                        file.append(piece)
                    end = file.end
                locations.append(Location(name, start, end - start, records.dom))
            file.append(b"".join(waiting))
            if self.sheet.sync:
                file.sync()
        except OSError:
            file.cut_back(before)
            raise
        return locations

    def take_back(self) -> None:
        self._last.take_back()
        self._is_laid_kept = False
        self._ends.clear()

    def ends(self) -> Mapping[str, int]:
        ends, self._ends = self._ends, {}
        return ends

    def _records_of(self, visit: Visit) -> Written | Location | None:
        if not visit.is_answered:
            return None
        form = form_of(visit)
        if form is RecordForm.HEAD_ONLY:
            self.metrics.count("noarchive")
        records: Written | Location
        if self._laid is None or not _has(visit, self._laid.body):
            records = self._exchange(visit, form)
        elif form is RecordForm.WHOLE:
            records = self._laid.location
        else:  # another group was kept meanwhile that has the same document
            self._unlay()
            records = self._exchange(visit, form)
        if form is RecordForm.WHOLE and visit.digest and not visit.is_part:
            self._dates.setdefault(visit.digest, self._sent_at(visit))
            while len(self._dates) > self.sheet.originals:  # the newest only: memory does not follow the crawl
                self._dates.popitem(last=False)
        return records

    def _exchange(self, visit: Visit, form: RecordForm) -> Written:
        lines = lines_beside(visit, form) if self.sheet.metadata else {}
        if visit.response.is_unverified:
            lines["tls"] = UNVERIFIED
        if visit.response.brought is not None:
            lines = {**lines, **lines_of_journey(visit.response, visit.response.brought)}
        known = self._dates.get(visit.digest, 0.0)
        return exchange(visit, self._sent_at(visit), form, original_at=known, lines=lines)

    def _sent_at(self, visit: Visit) -> float:
        return visit.response.started or self.clock.now()


def _has(visit: Visit, file: SpoolFile) -> bool:
    body = visit.response.body
    return type(body) is StoredBody and body.file is file


class NoArchive(Provider[NoSettings]):
    """Archives nothing (`--no-warc`). Contract: `Archive`, whose first promise it extends to every visit."""

    async def lay(self, visit: Visit) -> None:
        """Nothing."""

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        return [None] * len(visits)

    def take_back(self) -> None:
        """There is nothing to drop."""

    def ends(self) -> Mapping[str, int]:
        return {}
