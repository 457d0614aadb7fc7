"""The files of an archive: their names, the disks that they lie on, the settings of both, and how bytes in them are replaced.

Place in the flow: :mod:`gossamer.storage.archive.warc` writes records into the files that are opened here. `--accept-loss` calls
:func:`fill` for each gap that :mod:`gossamer.storage.archive.reading` finds, and keeps the bytes that were there in the quarantine;
`gossamer delete` calls it for records that are to go. Their place is taken by one gzip member of exactly their length, so that no
other record moves and every reader can read the file to its end: the member's comment is as long as that takes, and it holds a
metadata record that tells what became of the bytes.
"""

import contextlib
import errno
import os
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gossamer._version import __version__
from gossamer.engine.files import AppendFile
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Unit
from gossamer.storage.archive.records import record_id, warcinfo

if TYPE_CHECKING:
    from gossamer.storage.archive.reading import Gap

#: Directory of the WARC files inside the crawl directory (docs/kept.md).
WARC_DIRECTORY = "warc"

#: The words of the archive where servers' certificates were not verified, of the crawl and of each answer (fault 98).
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

    def close(self) -> None:
        """Begin a new file with the next record."""
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


#: RFC 1952: deflate, with a comment; no time; the fastest way, an unknown system.
_HEADER = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x04\xff"

#: The words of a record in the place of bytes that were damaged, or deleted by a person; the braces take their number.
LOST = "lost: {} bytes that could not be read any more"
DELETED = "deleted: {} bytes on request"

#: Bytes of the comment that are written at once.
_PIECE = 1 << 20


def fill(path: Path, gap: "Gap", at: str, why: str = LOST) -> bool:
    """Put a record in the place of a gap; False, and nothing is changed, where it is too short for one.

    Args:
        path: the archive file.
        gap: bytes of it that are no record.
        at: the date of the record, as in the archive.
        why: says what became of the bytes: :data:`LOST` or :data:`DELETED`.

    Raises:
        OSError: it cannot be written. The gap is still one.
    """
    end = _ending(gap, at, why)
    room = gap.length - len(_HEADER) - 1 - len(end)
    if room < 0:
        return False
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path.resolve(), flags), "r+b") as file:
        file.seek(gap.offset)
        file.write(_HEADER)
        while room:
            file.write(b" " * min(room, _PIECE))
            room -= min(room, _PIECE)
        file.write(b"\x00" + end)
        file.flush()
        os.fsync(file.fileno())
    return True


def _ending(gap: "Gap", at: str, why: str) -> bytes:
    """The member behind its comment: a record, its checksum and its length."""
    block = f"{why.format(gap.length)}\r\n".encode()
    fields = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {record_id()}\r\nWARC-Date: {at}\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    record = fields.encode() + block + b"\r\n\r\n"
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(record) + packer.flush()
    return packed + struct.pack("<II", zlib.crc32(record), len(record))
