"""An archive file with a damaged place made readable again from end to end, for every reader, with no other record moved.

Place in the flow: `--accept-loss` calls :func:`fill` for each gap of :mod:`gossamer.stores.warc_scanning`, and keeps the bytes that
were there in the quarantine; `gossamer delete` calls it for records that are to go. What takes their place is one gzip member of
exactly their length: its comment is as long as that takes, and it holds a metadata record that says what became of them.
"""

import os
import struct
import zlib
from pathlib import Path

from gossamer.stores.warc_records import record_id
from gossamer.stores.warc_scanning import Gap

#: RFC 1952: deflate, with a comment; no time; the fastest way, an unknown system.
_HEADER = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x04\xff"

#: What a record says of bytes that were damaged, and of bytes that somebody had deleted; the braces take their number.
LOST = "lost: {} bytes that could not be read any more"
DELETED = "deleted: {} bytes on request"

#: Bytes of the comment that are written at once.
_PIECE = 1 << 20


def fill(path: Path, gap: Gap, at: str, why: str = LOST) -> bool:
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


def _ending(gap: Gap, at: str, why: str) -> bytes:
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
