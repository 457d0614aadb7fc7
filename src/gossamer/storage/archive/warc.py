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
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gossamer.documents.statements import NO_COPY, keeps_copy
from gossamer.engine.files import AppendFile, LastWrites
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.storage.archive.files import UNVERIFIED, WARC_DIRECTORY, WarcFiles, WarcLane, WarcSheet
from gossamer.storage.archive.records import RecordForm, Written, exchange, form_of
from gossamer.values.body import SpoolFile, StoredBody
from gossamer.values.visit import Location, MobileOrigin, Response, Visit

__all__ = ["WARC_DIRECTORY", "NoArchive", "WarcArchive", "WarcSheet"]

#: Stands for the date of a document that was fetched and whose body was not kept: nothing may refer to it.
_NO_BODY = -1.0


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
        self._laying: asyncio.Future[Location] | None = None
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
        """Close the open files; what was laid down for nothing goes."""
        self._begin_group()
        if self._laying is not None:  # it writes into one of them
            self._is_stopping = True
            await asyncio.wait([self._laying])
        with contextlib.suppress(OSError):  # the next start cuts it off
            self._unlay()
        self._main.close()
        self._large.close()

    async def lay(self, visit: Visit) -> None:
        """See the contract: this concerns bodies on disk that are kept whole.

        Raises:
            OSError: it could not be written; nothing of it is in the file.
        """
        body = visit.response.body
        if type(body) is not StoredBody or not visit.is_answered:
            return
        if self._laid is not None and _has(visit, self._laid.body):
            return  # the group that was to have it could not be kept, and is tried again
        self._begin_group()
        self._unlay()
        if self._form(visit) is not RecordForm.WHOLE:
            return
        while True:
            file = self._files.open(self._large)
            start = file.end
            writing = asyncio.to_thread(self._lay_down, file, self._exchange(visit, RecordForm.WHOLE))
            self._laying = asyncio.ensure_future(writing)
            try:
                location = await asyncio.shield(self._laying)
            except OSError as error:
                if not self._files.leave(self._large, error):
                    raise
                continue
            finally:
                if self._laying.done():
                    self._laying = None
            self._laid = _Laid(body.file, start, location)
            self.metrics.count("bytes", file.end - start)
            return

    def _lay_down(self, file: AppendFile, records: Written) -> Location:
        """Write the records of one visit, whole or not at all. In a thread: no other thread has this file meanwhile."""
        start = file.end
        try:
            [location] = self._write(file, [records])
            if self.sheet.sync:
                file.sync()
        except OSError:
            file.cut_back(start)
            raise
        return location

    def _unlay(self) -> None:
        """Drop what was laid down, if no group has it."""
        laid, self._laid = self._laid, None
        if laid is not None and self._large.file is not None:
            self._large.file.cut_back(laid.start)

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """Write the answers of a group in one write; a location for each visit, None where nothing was answered.

        Raises:
            OSError: the group could not be written; nothing of it is in the file.
        """
        self._begin_group()
        written = self._records(visits)
        if not any(written):
            return [None] * len(visits)
        while True:
            try:
                locations = self._kept(written)
            except OSError as error:
                if not self._files.leave(self._main, error):
                    raise
                self._last.begin()  # nothing of this group is there, and the file is closed
                # A body on disk is packed while it is written: what was begun has to be made anew.
                written = self._records(visits)
                continue
            self.metrics.count("visits", len(visits) - locations.count(None))
            return locations

    def _begin_group(self) -> None:
        """Records of the group before stay, laid down or not."""
        self._last.begin()
        if self._is_laid_kept:
            self._laid, self._is_laid_kept = None, False

    def _kept(self, group: Sequence[Written | Location | None]) -> list[Location | None]:
        """Write a group to the open file, whole or not at all."""
        fresh = [records for records in group if type(records) is Written]
        if not fresh:
            return self._located(group, iter(()))
        file = self._files.open(self._main)
        self._last.about_to(file)
        start = file.end
        try:
            locations = self._write(file, fresh)
            if self.sheet.sync:
                file.sync()
        except OSError:
            file.cut_back(start)
            raise
        self._ends[f"{WARC_DIRECTORY}/{file.path.name}"] = file.end
        self.metrics.count("bytes", file.end - start)
        return self._located(group, iter(locations))

    def _located(
        self, group: Sequence[Written | Location | None], written: Iterator[Location]
    ) -> list[Location | None]:
        """The location of each: of what was written, of what was laid down before, or none."""
        locations: list[Location | None] = []
        for records in group:
            if type(records) is Location:
                self._ends[records.file] = records.offset + records.length
                self._is_laid_kept = True
                locations.append(records)
            else:
                locations.append(None if records is None else next(written))
        return locations

    def _write(self, file: AppendFile, group: Sequence[Written]) -> list[Location]:
        """Write records in as few writes as their bodies allow: one, where all of them are in memory."""
        name = f"{WARC_DIRECTORY}/{file.path.name}"
        locations: list[Location] = []
        waiting: list[bytes] = []
        end = file.end
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
            locations.append(Location(name, start, end - start))
        file.append(b"".join(waiting))
        return locations

    def take_back(self) -> None:
        """As the contract says. A record that was laid down stays for the next try."""
        self._last.take_back()
        self._is_laid_kept = False
        self._ends.clear()

    def ends(self) -> Mapping[str, int]:
        """The file that was written since the last call, and its end."""
        ends, self._ends = self._ends, {}
        return ends

    def _records(self, visits: Sequence[Visit]) -> list[Written | Location | None]:
        """The records to write of each visit, or where they lie already; None where nothing was answered."""
        return [self._records_of(visit) if visit.is_answered else None for visit in visits]

    def _records_of(self, visit: Visit) -> Written | Location:
        form = self._form(visit)
        if form is RecordForm.HEAD_ONLY:
            self.metrics.count("noarchive")
            self._remember(visit.digest, _NO_BODY)
        records: Written | Location
        if self._laid is None or not _has(visit, self._laid.body):
            records = self._exchange(visit, form)
        elif form is RecordForm.WHOLE:
            records = self._laid.location
        else:  # another group was kept meanwhile that has the same document
            self._unlay()
            records = self._exchange(visit, form)
        if form is RecordForm.WHOLE and not visit.is_part:
            self._remember(visit.digest, self._sent_at(visit))
        return records

    def _form(self, visit: Visit) -> RecordForm:
        keep = "store" not in visit.barred and keeps_copy(visit.directives, visit.response.headers)
        return form_of(visit, keep=keep, original_kept=self._dates.get(visit.digest, 0.0) != _NO_BODY)

    def _exchange(self, visit: Visit, form: RecordForm) -> Written:
        lines = _beside(visit, form) if self.sheet.metadata else {}
        if visit.response.is_unverified:
            lines["tls"] = UNVERIFIED
        if visit.response.brought is not None:
            lines = {**lines, **_of_journey(visit.response, visit.response.brought)}
        known = self._dates.get(visit.digest, 0.0)
        return exchange(visit, self._sent_at(visit), form, original_at=max(known, 0.0), lines=lines)

    def _sent_at(self, visit: Visit) -> float:
        return visit.response.started or self.clock.now()

    def _remember(self, digest: str, at: float) -> None:
        """Keep the date of a document's first record, the newest ones only: memory does not follow the crawl."""
        if not digest:
            return
        if self._dates.get(digest, _NO_BODY) == _NO_BODY:
            self._dates[digest] = at
        while len(self._dates) > self.sheet.originals:
            self._dates.popitem(last=False)


def _has(visit: Visit, file: SpoolFile) -> bool:
    body = visit.response.body
    return type(body) is StoredBody and body.file is file


def _beside(visit: Visit, form: RecordForm) -> dict[str, str]:
    """The fields of a visit's metadata record, by the names of section 6.6 where it has some; empty: there is no record."""
    task, lines = visit.task, {}
    if task.source:
        lines["via"] = task.source
        lines["relation"] = task.relation
    if task.request is not None and task.request.mark:
        lines["request"] = task.request.mark
    if visit.trouble:
        lines["trouble"] = visit.trouble
    if visit.response.error:
        lines["error"] = visit.response.error
    if visit.response.notes:
        lines["notes"] = " ".join(visit.response.notes)
    if form is RecordForm.HEAD_ONLY:
        lines["noarchive"] = visit.barred.get("store", NO_COPY)
    if lines:
        lines["fetchTimeMs"] = f"{visit.response.elapsed * 1000:.0f}"
    return lines


def _of_journey(response: Response, brought: MobileOrigin) -> dict[str, str]:
    """The crawler that brought a document, and the claims of its runtime, which no request of ours has confirmed."""
    claimed = {"status": response.status, "headers": response.headers}
    return {
        "runtime": brought.runtime,
        "crawler": brought.crawler,
        "program": f"sha256:{brought.program}",
        "sequence": str(brought.sequence),
        "claimedDigest": f"sha1:{brought.digest}",
        "claimedSize": str(brought.size),
        "claimedHead": msgspec.json.encode(claimed).decode(),
    }


class NoArchive(Provider[NoSettings]):
    """Archives nothing (`--no-warc`). Contract: `Archive`, whose first promise it extends to every visit."""

    async def lay(self, visit: Visit) -> None:
        """Nothing."""

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """No location for any visit."""
        return [None] * len(visits)

    def take_back(self) -> None:
        """There is nothing to drop."""

    def ends(self) -> Mapping[str, int]:
        return {}
