"""Processors that count, wired by choice: image statistics, and the tag counter.

Image statistics are format, size, dimensions and frames of GIF, PNG, JPEG and WebP, from their headers alone. Nothing is
decoded, so no picture can be a bomb; each reader looks at every byte at most once, and at a bounded number of blocks. Sources:
GIF89a; PNG (W3C, third edition) with APNG; ITU T.81 (JPEG); RFC 9649 (WebP).

The tag counter says which elements a crawl's pages use, and how often: one of Mercator's first processing modules. It keeps state
across pages, which the metrics show.
"""

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated

from gossamer.documents.document import Document
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.visit import Item

#: Blocks of one file that are looked at: the longest animations have some thousand frames.
MAX_BLOCKS = 20_000

Facts = dict[str, int | str]


class ImageStatistics(Provider[NoSettings]):
    """Makes one item of kind `image` for each picture. Contract: `Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Item]:
        """Format, bytes, width, height and frames; an image that is none of the four, or broken, yields nothing."""
        facts = measure(document.content)
        if not facts:
            self.metrics.count("unread")
            return
        self.metrics.count(f"format:{facts['format']}")
        yield Item("image", document.url, {**facts, "bytes": len(document.content)})


def measure(content: bytes) -> Facts:
    """`format`, `width`, `height` and `frames` of an image; empty where it cannot be read."""
    for start, name, reader in _READERS:
        if content.startswith(start):
            try:
                found = reader(content)
            except (struct.error, IndexError):
                return {}
            return {"format": name, **dict(zip(("width", "height", "frames"), found, strict=True))} if found else {}
    return {}


_Size = tuple[int, int, int] | None


def _gif(content: bytes) -> _Size:
    width, height, flags = struct.unpack_from("<HHB", content, 6)
    at = 13 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
    frames = blocks = 0
    while at < len(content) and blocks < MAX_BLOCKS:
        blocks += 1
        if content[at] == 0x2C:  # image descriptor, its colour table, the code size
            flags = content[at + 9]
            frames += 1
            at += 11 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
        elif content[at] == 0x21:  # extension
            at += 2
        else:
            break
        while at < len(content) and content[at]:  # data, in pieces of up to 255 bytes
            at += content[at] + 1
        at += 1
    return (width, height, max(1, frames))


def _png(content: bytes) -> _Size:
    if content[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", content, 16)
    at, frames = 8, 1
    for _ in range(MAX_BLOCKS):
        if at + 8 > len(content):
            break
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"acTL":
            (frames,) = struct.unpack_from(">I", content, at + 8)
        if kind in (b"acTL", b"IDAT", b"IEND"):
            break
        at += length + 12
    return (width, height, frames)


#: Start-of-frame markers; C4, C8 and CC among them mean something else.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
#: Markers without a length.
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})


def _jpeg(content: bytes) -> _Size:
    at = 2
    for _ in range(MAX_BLOCKS):
        while content[at] == 0xFF:  # fill bytes before a marker
            at += 1
        marker = content[at]
        at += 1
        if marker in _ALONE:
            continue
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 3)
            return (width, height, 1)
        (length,) = struct.unpack_from(">H", content, at)
        at += max(2, length)
        if content[at] != 0xFF:
            return None
    return None


def _webp(content: bytes) -> _Size:
    if content[8:12] != b"WEBP":
        return None
    kind = content[12:16]
    if kind == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", content, 26)
        return (width & 0x3FFF, height & 0x3FFF, 1)
    if kind == b"VP8L" and content[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", content, 21)
        return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, 1)
    if kind == b"VP8X":
        size = content[24:30]
        if len(size) < 6:
            return None
        width, height = (int.from_bytes(part, "little") + 1 for part in (size[:3], size[3:]))
        return (width, height, max(1, _webp_frames(content)))
    return None


def _webp_frames(content: bytes) -> int:
    at, frames = 12, 0
    for _ in range(MAX_BLOCKS):
        if at + 8 > len(content):
            break
        kind, length = struct.unpack_from("<4sI", content, at)
        frames += kind == b"ANMF"
        at += 8 + length + (length & 1)
    return frames


_READERS: tuple[tuple[bytes, str, Callable[[bytes], _Size]], ...] = (
    (b"GIF87a", "gif", _gif),
    (b"GIF89a", "gif", _gif),
    (b"\x89PNG\r\n\x1a\n", "png", _png),
    (b"\xff\xd8\xff", "jpeg", _jpeg),
    (b"RIFF", "webp", _webp),
)


_START = re.compile(rb"<([A-Za-z][A-Za-z0-9-]{0,31})(?=[\s/>])")


class TagCounterSheet(Sheet, frozen=True):
    items: Annotated[bool, setting("Also make an item for each page, with its counts.")] = False
    names: Annotated[
        int,
        setting(
            "Count at most this many tag names separately, because pages can make up any number of names.",
            unit="names",
            ge=0,
        ),
    ] = 200


class TagCounter(Provider[TagCounterSheet]):
    """Counts start tags in the bytes of a document. Contract: `Processor`. Keeps state."""

    def process(self, document: Document) -> Iterable[Item]:
        """Counts, in the metrics as `tag:NAME`; `tag:other` once there are too many names."""
        counts = Counter(name.lower().decode() for name in _START.findall(document.markup))
        counters = self.metrics.counters
        for name, count in counts.most_common(self.sheet.names):
            key = f"tag:{name}"
            counters[key if key in counters or len(counters) < self.sheet.names else "tag:other"] += count
        if self.sheet.items:
            yield Item("tags", document.url, dict(counts.most_common(self.sheet.names)))
