"""The archive: every answer as it came, in WARC/1.1 files that grow by whole groups of visits.

Place in the flow: the committing component calls `append` with the visits of a group *before* it commits them, so that
what the ledger points to is there (DESIGN 4.1). Bytes of records: :mod:`gossamer.stores.warc_records`.
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from gossamer._version import __version__
from gossamer.flow.sheet import NoSettings, Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.visit import Location, Visit
from gossamer.stores.files import AppendFile
from gossamer.stores.warc_records import Written, exchange, warcinfo

#: Directory of the WARC files inside the crawl directory (DESIGN 7).
WARC_DIRECTORY = "warc"

_IN_USE = "it is part of the file that is open"
_TOLD = "it is told in the first record of each file"


class WarcSheet(Sheet, frozen=True):
    """Settings of :class:`WarcArchive`."""

    directory: Annotated[str, setting("The crawl directory; records lie in `warc/` below it.", restart=_IN_USE)] = "."
    prefix: Annotated[
        str,
        setting(
            "How file names begin: `PREFIX-TIMESTAMP-SERIAL.warc.gz`.", restart=_IN_USE, pattern=r"^[A-Za-z0-9._-]+$"
        ),
    ] = "gossamer"
    rotate_bytes: Annotated[
        int, setting("A file that has reached this size is followed by a new one.", unit="bytes", ge=1)
    ] = 1_000_000_000
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written: survives a power cut.")
    ] = False
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
    """Writes `warcinfo`, `request`, `response` and `revisit` records, one gzip member each.

    Contract: `storing.Archive`. The first file is made at the first record: a refused crawl leaves nothing behind.
    """

    def __init__(self, sheet: WarcSheet | None = None) -> None:
        super().__init__(sheet)
        self._file: AppendFile | None = None
        self._serial = 0
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
        written = [self._records(visit) if visit.is_kept else None for visit in visits]
        if not any(written):
            return [None] * len(visits)
        file = self._open()
        data = b"".join([records.data for records in written if records])
        offset = file.append(data, sync=self.sheet.sync)
        name = f"{WARC_DIRECTORY}/{file.path.name}"
        locations: list[Location | None] = []
        for records in written:
            if records is None:
                locations.append(None)
                continue
            locations.append(Location(name, offset + records.start, records.length))
            offset += len(records.data)
        self.metrics.count("bytes", len(data))
        self.metrics.count("visits", len(visits) - locations.count(None))
        return locations

    def _records(self, visit: Visit) -> Written:
        at = visit.response.started or self.clock.now()
        if visit.digest and not visit.duplicate_of:
            self._remember(visit.digest, at)
        return exchange(visit, at, self._dates.get(visit.digest, 0.0))

    def _remember(self, digest: str, at: float) -> None:
        """Keep the date of a document's first record, the newest ones only: memory does not follow the crawl."""
        self._dates.setdefault(digest, at)
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
        while True:
            path = Path(self.sheet.directory, WARC_DIRECTORY, f"{self.sheet.prefix}-{stamp}-{self._serial:05d}.warc.gz")
            self._serial += 1
            try:
                file = AppendFile(path, fresh=True)
            except FileExistsError:
                continue
            break
        try:
            file.append(warcinfo(path.name, now, self._told()), sync=self.sheet.sync)
        except OSError:
            file.close()
            path.unlink()
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


class NoArchive(Provider[NoSettings]):
    """Keeps nothing: `--no-warc`. Contract: `storing.Archive`, whose first promise it extends to every visit."""

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        """No location for any visit."""
        return [None] * len(visits)
