"""Bytes of a crawler: a preamble, then independent zstd frames (decision 80).

Place in the flow: home sends a crawler as bytes, and a runtime sends its results as frames that it made while the crawler ran. The
reader believes nothing that the bytes say of themselves: a length is compared with its bound before anything is read, a frame is
unpacked within a bound whatever its head claims, and types, bounds and version are checked before a value is used. ::

    bytes   = preamble crawler { batch }
    preamble= "GSMC" version            one byte, that of the program
    crawler = "C" length frame          program, facts, identity: msgpack in zstd
    batch   = "B" length frame          one CrawlerBatch; sequences count from 0
    length  = bytes of the frame, 4 bytes, big end first
"""

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import BinaryIO, Literal, TypeVar

import msgspec

from gossamer.mobile.contract import IDENTITY_PATTERN, MAX_CRAWLER, MAX_FRAME, RefusalReason, RuntimeRefused
from gossamer.mobile.crawler import VERSIONS, CrawlerBatch, CrawlerRefused, MobileCrawler, check_crawler
from gossamer.mobile.judging import Installed
from gossamer.values.body import zstandard

zstd = zstandard()

#: The beginning of the bytes of a crawler.
MAGIC = b"GSMC"

#: Bytes that a batch holds before it is sent, uncompressed: large enough that pages of a site are compressed by each other.
BATCH = 8 << 20
#: Logarithm of the window: a reader needs 8 MiB for it, the most that a decoder has to have (RFC 8878, section 3.1.1.1.2).
WINDOW_LOG = 23
#: The least that zstd takes.
_SMALLEST_WINDOW_LOG = 10
#: Bytes of a frame, unpacked: a batch that is nearly full when the largest page comes, which has text and elements, too.
MAX_UNPACKED = 96 << 20
#: Compression levels of parts and of whole pages. Of PostgreSQL's documentation, level 8 sends 11 % less main text than level 3.
#: Of Python's, level 7 sends 3 % less of whole pages than level 6, and level 8 another 1.5 %. Prose of which no two pages are alike
#: pays most: level 7 takes 110 us more for 34 kB of it than level 6, and level 8 another 190 us.
LEVEL, WHOLE_LEVEL = 8, 7

_HEAD = struct.Struct("!cI")
_CRAWLER, _BATCH = b"C", b"B"

Reason = Literal["not_a_crawler", "version", "cut", "too_large", "damaged", "invalid"]

Sent = TypeVar("Sent", MobileCrawler, CrawlerBatch)


class BytesRefused(Exception):
    """Bytes that are no crawler, or none that is let in. Its reason is the name that it is counted by."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


def agreed_version(theirs: Sequence[int]) -> int:
    """The newest version that both sides know. Raises BytesRefused: there is none; says what each side knows."""
    both = set(theirs) & set(VERSIONS)
    if not both:
        ours, other = (", ".join(map(str, sorted(some))) for some in (VERSIONS, theirs))
        raise BytesRefused("version", f"no version of crawlers in common: here {ours}, there {other or 'none'}")
    return max(both)


def packed(value: MobileCrawler | CrawlerBatch) -> bytes:
    """One independent frame with its head. Raises BytesRefused: the value is larger than a frame may be."""
    frame = frame_of(value)
    return _HEAD.pack(_BATCH if isinstance(value, CrawlerBatch) else _CRAWLER, len(frame)) + frame


def frame_of(value: MobileCrawler | CrawlerBatch) -> bytes:
    """One independent frame, without a head. Raises BytesRefused: the value is larger than a frame may be."""
    plain = msgspec.msgpack.encode(value)
    if len(plain) > MAX_UNPACKED:
        raise BytesRefused("too_large", f"{len(plain)} bytes are more than a frame may hold ({MAX_UNPACKED})")
    is_whole = isinstance(value, CrawlerBatch) and any(page.whole is not None for page in value.pages)
    parameter = zstd.CompressionParameter
    # No larger than the frame: a window costs its size in memory on both sides.
    window = min(WINDOW_LOG, max(_SMALLEST_WINDOW_LOG, len(plain).bit_length()))
    level, window_log, checksum = parameter.compression_level, parameter.window_log, parameter.checksum_flag
    frame: bytes = zstd.compress(
        plain, options={level: WHOLE_LEVEL if is_whole else LEVEL, window_log: window, checksum: 1}
    )
    return frame


def unpacked(frame: bytes, kind: type[Sent]) -> Sent:
    """The value in a frame without its head. Needs :data:`MAX_UNPACKED` bytes at most, whatever the frame claims.
    Raises BytesRefused: it is damaged, too large, or no such value."""
    try:
        unpacker = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})
        plain = unpacker.decompress(frame, max_length=MAX_UNPACKED + 1)
    except zstd.ZstdError as error:
        raise BytesRefused("damaged", f"a frame cannot be unpacked: {error}") from None
    if len(plain) > MAX_UNPACKED:
        raise BytesRefused("too_large", f"a frame holds more than {MAX_UNPACKED} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise BytesRefused("damaged", "a frame does not end where its length says")
    try:
        return msgspec.msgpack.decode(plain, type=kind)
    except (ValueError, RecursionError) as error:
        raise BytesRefused("invalid", f"a frame holds no {kind.__name__}: {error}"[:300]) from None


def to_bytes(crawler: MobileCrawler) -> bytes:
    """The crawler with its results. Raises BytesRefused: a part of it is larger than a frame may be."""
    return b"".join(frames_of(crawler, crawler.results))


def frames_of(crawler: MobileCrawler, batches: Iterable[CrawlerBatch]) -> Iterator[bytes]:
    """The preamble, then a frame for the crawler and one for each batch, as they come: a writer holds one at a time."""
    yield MAGIC + bytes([crawler.program.version])
    yield packed(msgspec.structs.replace(crawler, results=()))
    yield from map(packed, batches)


def from_bytes(data: bytes) -> MobileCrawler:
    """The crawler that bytes hold, with its results, checked. Raises BytesRefused: they hold none."""
    crawler, batches = read_from(BytesIO(data))
    return msgspec.structs.replace(crawler, results=tuple(batches))


def read_from(stream: BinaryIO) -> tuple[MobileCrawler, Iterator[CrawlerBatch]]:
    """The crawler of a stream, and its batches as they are asked for: one is in memory at a time.
    Raises BytesRefused: here or while batches are read."""
    preamble = stream.read(len(MAGIC) + 1)
    if preamble[: len(MAGIC)] != MAGIC or len(preamble) <= len(MAGIC):
        raise BytesRefused("not_a_crawler", "these bytes do not begin as a crawler does")
    agreed_version(preamble[len(MAGIC) :])
    read = _read_frame(stream)
    if read is None or read[0] != _CRAWLER:
        raise BytesRefused("cut" if read is None else "damaged", "the bytes hold no program")
    crawler = unpacked(read[1], MobileCrawler)
    if crawler.results:
        raise BytesRefused("invalid", "results stand in the frame of the program")
    try:
        check_crawler(crawler)
    except CrawlerRefused as refusal:
        raise BytesRefused("invalid", str(refusal)) from None
    return crawler, _batches(stream, crawler)


def _batches(stream: BinaryIO, crawler: MobileCrawler) -> Iterator[CrawlerBatch]:
    expected, digest, ended = 0, crawler.program.digest, False
    while (read := _read_frame(stream)) is not None:
        if read[0] != _BATCH or ended:
            raise BytesRefused("damaged", "a frame stands where none belongs")
        batch = unpacked(read[1], CrawlerBatch)
        if (batch.program, batch.crawler, batch.sequence) != (digest, crawler.id, expected):
            raise BytesRefused(
                "invalid", f"batch {batch.sequence} belongs to another crawler or place; {expected} is next"
            )
        expected, ended = expected + 1, batch.summary is not None
        yield batch


def _read_frame(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    head = stream.read(_HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise BytesRefused("cut", "the bytes end within the head of a frame")
    kind, length = _HEAD.unpack(head)
    if kind not in (_CRAWLER, _BATCH):
        raise BytesRefused("damaged", f"a frame of kind {kind!r} is unknown")
    if length > MAX_FRAME:
        raise BytesRefused("too_large", f"a frame claims {length} bytes; {MAX_FRAME} are the most")
    frame = stream.read(length)
    if len(frame) < length:
        raise BytesRefused("cut", "the bytes end within a frame")
    return kind, frame


# Crawlers that are received: a value that may run, or a refusal by the names of the contract. Every runtime asks here first.

_IDENTITY = re.compile(IDENTITY_PATTERN)

#: Refusals by the reader of bytes that keep their names; all others mean to a sender that the crawler is invalid.
_NAMED: dict[str, RefusalReason] = {"version": "version", "too_large": "too_large"}


def checked_identity(identity: str) -> str:
    """The identity of a journey. Raises RuntimeRefused: it is none."""
    if _IDENTITY.match(identity) is None:
        raise RuntimeRefused("invalid", f"{identity[:80]!r} is not the identity of a crawler")
    return identity


def received(data: bytes, installed: Installed) -> MobileCrawler:
    """The crawler that bytes hold, checked, without results; its program names processors that are installed. Raises
    RuntimeRefused: it cannot run here."""
    if len(data) > MAX_CRAWLER:
        raise RuntimeRefused("too_large", f"a crawler of {len(data)} bytes; {MAX_CRAWLER} are the most")
    stream = BytesIO(data)
    try:
        crawler, _ = read_from(stream)
    except BytesRefused as refused:
        raise RuntimeRefused(_NAMED.get(refused.reason, "invalid"), str(refused)) from None
    if stream.read(1):
        raise RuntimeRefused("invalid", "results follow the crawler; send it without them")
    for one in crawler.program.processors:
        if one not in installed:
            raise RuntimeRefused("processors", f"processor {one.name!r} {one.version} is not installed here")
    return crawler
