"""The files of an archive: their names, the disks that they lie on, and the settings of both.

Place in the flow: :mod:`gossamer.stores.warc` writes records into what is opened here.
"""

import contextlib
import errno
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from gossamer._version import __version__
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Unit
from gossamer.stores.files import AppendFile
from gossamer.stores.warc_records import warcinfo

#: Directory of the WARC files inside the crawl directory (docs/kept.md).
WARC_DIRECTORY = "warc"

#: What the archive says where nobody judged servers' certificates, of the crawl and of each answer (fault 98).
UNVERIFIED = "certificates not verified"

#: What says that a disk is full or broken, and another may not be.
_DISK_TROUBLE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENODEV, errno.ENOENT, errno.EACCES}
)

_IN_USE = "it is part of the file that is open"
_TOLD = "it is told in the first record of each file"


class WarcSheet(Sheet, frozen=True):
    """Settings of :class:`WarcArchive`."""

    directory: Annotated[
        str, setting("Use this crawl directory; records lie in `warc/` below it.", restart=_IN_USE, names="a folder")
    ] = "."
    prefix: Annotated[
        str,
        setting(
            "Begin file names with this: `PREFIX-AGENT-TIMESTAMP-SERIAL.warc.gz`.",
            restart=_IN_USE,
            pattern=r"^[A-Za-z0-9._-]+$",
        ),
    ] = "gossamer"
    agent: Annotated[
        str, setting("Name files after this agent; agents share a directory.", restart=_IN_USE, pattern=r"^[a-z0-9-]+$")
    ] = "agent-00"
    disks: Annotated[
        tuple[str, ...],
        setting(
            "Also write archive files to these directories on other disks, in turn with the crawl directory; `warc/` "
            "holds links to them. A disk that fails is left out, and the next one takes its group.",
            restart=_IN_USE,
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
    operator: Annotated[str, setting("Name this operator of the crawl in the archive.", restart=_TOLD)] = ""
    contact: Annotated[str, setting("Name this contact of the operator in the archive.", restart=_TOLD)] = ""
    user_agent: Annotated[
        str, setting("Name this User-Agent field in the archive, as the one that was sent.", restart=_TOLD)
    ] = ""
    description: Annotated[str, setting("Describe the purpose of the crawl in the archive.", restart=_TOLD)] = ""
    robots: Annotated[
        str, setting("Note in the archive whether the crawl obeyed robots.txt: `obey` or `ignore`.", restart=_TOLD)
    ] = ""
    tls: Annotated[
        str,
        setting(
            "Note this about the servers' certificates in the archive; empty if they were verified.", restart=_TOLD
        ),
    ] = ""
    software: Annotated[str, setting("Name this program and version in the archive.", restart=_TOLD)] = (
        f"Gossamer/{__version__}"
    )


class WarcLane:
    """A file that grows, and the directory that it lies in."""

    __slots__ = ("file", "place")

    def __init__(self) -> None:
        self.file: AppendFile | None = None
        self.place = Path()

    def __repr__(self) -> str:
        return f"<Lane in {self.place}>"

    def close(self) -> None:
        """Whatever follows gets a new file."""
        if self.file is not None:
            self.file.close()
            self.file = None


class WarcFiles:
    """Opens files for an archive, on its disks in turn."""

    def __init__(self, archive: Unit[WarcSheet]) -> None:
        self._archive = archive
        self._serial = 0
        self._places = [Path(archive.sheet.directory, WARC_DIRECTORY), *map(Path, archive.sheet.disks)]

    def __repr__(self) -> str:
        return f"<WarcFiles on {len(self._places)} disks>"

    def open(self, lane: WarcLane) -> AppendFile:
        """The file that takes what follows in a lane.

        Raises:
            OSError: it cannot be made; nothing of it is there.
        """
        if lane.file is not None and lane.file.end >= self._archive.sheet.rotate_bytes:
            lane.close()
        if lane.file is None:
            lane.file = self._create(lane)
        return lane.file

    def leave(self, lane: WarcLane, error: OSError) -> bool:
        """Whether a disk has failed and another is left: what is committed on it stays, nothing more goes there."""
        if len(self._places) == 1 or error.errno not in _DISK_TROUBLE:
            return False
        self._archive.metrics.count("disks_left")
        if lane.place in self._places:
            self._places.remove(lane.place)
        lane.close()
        return True

    def _create(self, lane: WarcLane) -> AppendFile:
        """A new file under a name that nobody has, with its warcinfo record."""
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
            file.append(warcinfo(path.name, now, _told(sheet)), sync=sheet.sync)
        except OSError:
            file.close()
            with contextlib.suppress(OSError):  # a disk that takes nothing may not let go either
                link.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            raise
        self._archive.metrics.count("files")
        return file


def _told(sheet: WarcSheet) -> dict[str, str]:
    """The lines of the warcinfo record, by the names that ISO 28500 recommends (section 6.2)."""
    return {
        "software": sheet.software,
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "operator": " ".join(part for part in (sheet.operator, sheet.contact and f"<{sheet.contact}>") if part),
        "http-header-user-agent": sheet.user_agent,
        "robots": sheet.robots,
        "tls": sheet.tls,
        "description": sheet.description,
    }
