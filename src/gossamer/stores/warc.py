"""The archive: every answer as it came, in WARC/1.1 files that grow by whole groups of visits.

Place in the flow: the committing component calls `append` with the visits of a group *before* it commits them, so that
what the ledger points to is there (DESIGN 4.1), and notes the ends in the same commit. Bytes of records:
:mod:`gossamer.stores.warc_records`; what a kill leaves behind: :mod:`gossamer.stores.recovery`.

A run writes into files of its own. Whoever goes on with a crawl begins new ones: a file that was cut back is never
written into again, so nothing that goes wrong later can touch what was committed.
"""

import contextlib
import errno
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from gossamer._version import __version__
from gossamer.flow.sheet import NoSettings, Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.robots_tags import keeps_copy
from gossamer.model.visit import Location, Visit
from gossamer.stores.files import AppendFile, LastWrites
from gossamer.stores.warc_records import Form, Written, exchange, form_of, warcinfo

#: Directory of the WARC files inside the crawl directory (DESIGN 7).
WARC_DIRECTORY = "warc"

#: Stands for the date of a document that was fetched and whose body was not kept: nothing may refer to it.
_NO_BODY = -1.0

#: What says that a disk is full or broken, and another may not be.
_DISK_TROUBLE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENODEV, errno.ENOENT, errno.EACCES}
)

_IN_USE = "it is part of the file that is open"
_TOLD = "it is told in the first record of each file"


class WarcSheet(Sheet, frozen=True):
    """Settings of :class:`WarcArchive`."""

    directory: Annotated[str, setting("The crawl directory; records lie in `warc/` below it.", restart=_IN_USE)] = "."
    prefix: Annotated[
        str,
        setting(
            "How file names begin: `PREFIX-AGENT-TIMESTAMP-SERIAL.warc.gz`.",
            restart=_IN_USE,
            pattern=r"^[A-Za-z0-9._-]+$",
        ),
    ] = "gossamer"
    agent: Annotated[
        str, setting("Whose files they are: agents share a directory.", restart=_IN_USE, pattern=r"^[a-z0-9-]+$")
    ] = "agent-00"
    disks: Annotated[
        tuple[str, ...],
        setting(
            "Further directories, on other disks, that take archive files in turn with the crawl directory; links to them "
            "lie in `warc/`. A disk that fails is left out, and the next one takes its group.",
            restart=_IN_USE,
        ),
    ] = ()
    rotate_bytes: Annotated[
        int, setting("A file that has reached this size is followed by a new one.", unit="bytes", ge=1)
    ] = 1_000_000_000
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written: survives a power cut.")
    ] = False
    metadata: Annotated[
        bool, setting("Write a metadata record beside an answer that was found on another page, or had trouble.")
    ] = True
    originals: Annotated[
        int,
        setting(
            "Documents whose date is remembered, so that a revisit record can name it; about 150 bytes each.",
            unit="documents",
            ge=0,
        ),
    ] = 65_536
    operator: Annotated[str, setting("Who runs the crawl.", restart=_TOLD)] = ""
    contact: Annotated[str, setting("Where the operator can be reached.", restart=_TOLD)] = ""
    user_agent: Annotated[str, setting("The User-Agent field that was sent.", restart=_TOLD)] = ""
    description: Annotated[str, setting("What the crawl is for.", restart=_TOLD)] = ""
    robots: Annotated[str, setting("How robots.txt was obeyed: `obey` or `ignore`.", restart=_TOLD)] = ""
    software: Annotated[str, setting("The program's name and version.", restart=_TOLD)] = f"Gossamer/{__version__}"


class WarcArchive(Provider[WarcSheet]):
    """Writes `warcinfo`, `request`, `metadata`, `response`, `resource` and `revisit` records, one gzip member each.

    Contract: `storing.Archive`. The first file is made at the first record: a refused crawl leaves nothing behind.
    """

    def __init__(self, sheet: WarcSheet | None = None) -> None:
        super().__init__(sheet)
        self._file: AppendFile | None = None
        self._serial = 0
        self._ends: dict[str, int] = {}
        self._last = LastWrites()
        self._places = [Path(self.sheet.directory, WARC_DIRECTORY), *map(Path, self.sheet.disks)]
        self._place = self._places[0]
        self._dates: OrderedDict[str, float] = OrderedDict()
        self.metrics.gauge("originals", lambda: len(self._dates))

    async def stop(self) -> None:
        """Close the open file."""
        self._close()

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """Write the answers of a group in one write; a location for each visit, None where nothing was answered.

        Raises:
            OSError: the group could not be written; nothing of it is in the file.
        """
        self._last.begin()
        written = [self._records(visit) if visit.is_answered else None for visit in visits]
        if not any(written):
            return [None] * len(visits)
        while True:
            try:
                locations = self._kept(written)
            except OSError as error:
                if len(self._places) == 1 or error.errno not in _DISK_TROUBLE:
                    raise
                self._leave_disk()
                # A body on disk is packed while it is written: what was begun has to be made anew.
                written = [self._records(visit) if visit.is_answered else None for visit in visits]
                continue
            self.metrics.count("visits", len(visits) - locations.count(None))
            return locations

    def _kept(self, group: Sequence[Written | None]) -> list[Location | None]:
        """Write a group to the open file, whole or not at all."""
        file = self._open()
        self._last.about_to(file)
        start = file.end
        try:
            locations = self._write(file, group)
            if self.sheet.sync:
                file.sync()
        except OSError:
            file.cut_back(start)
            raise
        self.metrics.count("bytes", file.end - start)
        return locations

    def _leave_disk(self) -> None:
        """A disk has failed: what is committed on it stays, nothing more goes there."""
        self.metrics.count("disks_left")
        self._places.remove(self._place)
        self._close()

    def _write(self, file: AppendFile, group: Sequence[Written | None]) -> list[Location | None]:
        """Write records in as few writes as their bodies allow: one, where all of them are in memory."""
        name = f"{WARC_DIRECTORY}/{file.path.name}"
        locations: list[Location | None] = []
        waiting: list[bytes] = []
        end = file.end
        for records in group:
            if records is None:
                locations.append(None)
                continue
            waiting.append(records.data)
            start, end = end + records.start, end + len(records.data)
            if records.rest is not None:
                file.append(b"".join(waiting))
                waiting.clear()
                for piece in records.rest:
                    file.append(piece)
                end = file.end
            locations.append(Location(name, start, end - start))
        file.append(b"".join(waiting))
        self._ends[name] = file.end
        return locations

    def take_back(self) -> None:
        """See the contract."""
        self._last.take_back()

    def ends(self) -> Mapping[str, int]:
        """The file that was written since the last call, and its end."""
        ends, self._ends = self._ends, {}
        return ends

    def _records(self, visit: Visit) -> Written:
        at = visit.response.started or self.clock.now()
        known = self._dates.get(visit.digest, 0.0)
        keep = "store" not in visit.barred and keeps_copy(visit.directives, visit.response.headers)
        form = form_of(visit, keep=keep, original_kept=known != _NO_BODY)
        if form is Form.HEAD_ONLY:
            self.metrics.count("noarchive")
            self._remember(visit.digest, _NO_BODY)
        elif form is Form.WHOLE:
            self._remember(visit.digest, at)
        lines = _beside(visit, form) if self.sheet.metadata else {}
        return exchange(visit, at, form, original_at=max(known, 0.0), lines=lines)

    def _remember(self, digest: str, at: float) -> None:
        """Keep the date of a document's first record, the newest ones only: memory does not follow the crawl."""
        if not digest:
            return
        if self._dates.get(digest, _NO_BODY) == _NO_BODY:
            self._dates[digest] = at
        while len(self._dates) > self.sheet.originals:
            self._dates.popitem(last=False)

    def _open(self) -> AppendFile:
        """The file that takes the next group."""
        if self._file is not None and self._file.end >= self.sheet.rotate_bytes:
            self._close()
        if self._file is None:
            self._file = self._create()
        return self._file

    def _create(self) -> AppendFile:
        """A new file under a name that nobody has, with its warcinfo record."""
        now = self.clock.now()
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
        begin = f"{self.sheet.prefix}-{self.sheet.agent}"
        while True:
            self._place = self._places[self._serial % len(self._places)]
            path = self._place / f"{begin}-{stamp}-{self._serial:05d}.warc.gz"
            link = Path(self.sheet.directory, WARC_DIRECTORY, path.name)
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
            file.append(warcinfo(path.name, now, self._told()), sync=self.sheet.sync)
        except OSError:
            file.close()
            with contextlib.suppress(OSError):  # a disk that takes nothing may not let go either
                link.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            raise
        self.metrics.count("files")
        return file

    def _told(self) -> dict[str, str]:
        """The lines of the warcinfo record, by the names that ISO 28500 recommends (section 6.2)."""
        sheet = self.sheet
        return {
            "software": sheet.software,
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "operator": " ".join(part for part in (sheet.operator, sheet.contact and f"<{sheet.contact}>") if part),
            "http-header-user-agent": sheet.user_agent,
            "robots": sheet.robots,
            "description": sheet.description,
        }

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _beside(visit: Visit, form: Form) -> dict[str, str]:
    """What a metadata record says of a visit, by the names of section 6.6 where it has some; empty: nothing to say."""
    task, lines = visit.task, {}
    if task.source:
        lines["via"] = task.source
        lines["relation"] = task.relation
    if visit.trouble:
        lines["trouble"] = visit.trouble
    if visit.response.error:
        lines["error"] = visit.response.error
    if form is Form.HEAD_ONLY:
        lines["noarchive"] = visit.barred.get("store", "the page asks that no copy of it be kept")
    if lines:
        lines["fetchTimeMs"] = f"{visit.response.elapsed * 1000:.0f}"
    return lines


class NoArchive(Provider[NoSettings]):
    """Keeps nothing: `--no-warc`. Contract: `storing.Archive`, whose first promise it extends to every visit."""

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """No location for any visit."""
        return [None] * len(visits)

    def take_back(self) -> None:
        """There is nothing to drop."""

    def ends(self) -> Mapping[str, int]:
        """No file."""
        return {}
