"""The tag counter and the image statistics."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.documents.document import Document
from gossamer.parsing.statistics import ImageStatistics, TagCounter, TagCounterSheet, measure
from gossamer.testing.storage import visit


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + b"crc!"


def riff(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)


def webp(*chunks: bytes) -> bytes:
    return riff(b"RIFF", b"WEBP" + b"".join(chunks))


FRAME = b"\x2c" + b"\0" * 9 + b"\x02" + b"\x01x\x00"
GIF = b"GIF89a" + struct.pack("<HHB", 3, 5, 0x80) + b"\0\0" + b"\0" * 6
PNG = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">II", 7, 9) + b"\x08\x06\0\0\0")
JPEG = b"\xff\xd8\xff\xe0\0\x04xx\xff\xff\xc2\0\x0b\x08" + struct.pack(">HH", 11, 13) + b"\x01"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GIF + FRAME + b"\x21\xf9\x01x\0" + FRAME + b";", ("gif", 3, 5, 2)),
        (GIF.replace(b"89a", b"87a"), ("gif", 3, 5, 1)),
        (PNG + chunk(b"IDAT", b"x"), ("png", 7, 9, 1)),
        (PNG + chunk(b"tEXt", b"x") + chunk(b"acTL", struct.pack(">II", 4, 0)), ("png", 7, 9, 4)),
        (JPEG, ("jpeg", 13, 11, 1)),
        (webp(riff(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 17, 19))), ("webp", 17, 19, 1)),
        (webp(riff(b"VP8L", b"\x2f" + struct.pack("<I", 16 | 18 << 14))), ("webp", 17, 19, 1)),
        (
            webp(riff(b"VP8X", b"\0" * 4 + b"\x10\0\0\x12\0\0"), riff(b"ANMF", b"xyz"), riff(b"ANMF", b"")),
            ("webp", 17, 19, 2),
        ),
    ],
)
def test_images_are_measured(content: bytes, expected: tuple[str, int, int, int]) -> None:
    assert tuple(measure(content).values()) == expected


@pytest.mark.parametrize("content", [GIF, PNG, JPEG, webp(riff(b"VP8X", b"\0" * 10))])
def test_a_broken_image_is_no_image(content: bytes) -> None:
    for length in range(len(content)):
        measure(content[:length])
    assert measure(b"") == measure(b"<svg>") == measure(content[:10]) == {}


@given(st.sampled_from([GIF, PNG, JPEG, webp(riff(b"VP8X", b"\0" * 10)), b"RIFF\0\0\0\0WEBP"]), st.binary(max_size=200))
def test_any_bytes_behind_a_header_are_survived(start: bytes, rest: bytes) -> None:
    assert set(measure(start + rest)) in (set(), {"format", "width", "height", "frames"})


def test_an_endless_image_is_left_soon() -> None:
    assert measure(GIF + FRAME * 1_000_000)["frames"] == 20_000
    assert measure(PNG + chunk(b"tEXt", b"") * 1_000_000)["frames"] == 1


def test_an_image_gives_one_item_or_is_counted() -> None:
    statistics = ImageStatistics()
    [item] = statistics.process(Document(visit(body=PNG)))
    assert item.value == {"format": "png", "width": 7, "height": 9, "frames": 1, "bytes": len(PNG)}
    assert list(statistics.process(Document(visit(body=b"x")))) == []
    assert (statistics.metrics.counters["format:png"], statistics.metrics.counters["unread"]) == (1, 1)


def test_tags_are_counted_across_pages() -> None:
    counter = TagCounter(TagCounterSheet(items=True))
    page = Document(visit(body=b"<P><p a=b><br/></p>< p><p"))
    assert [item.value for item in (*counter.process(page), *counter.process(page))] == [{"p": 2, "br": 1}] * 2
    assert counter.metrics.counters["tag:p"] == 4


def test_invented_tags_share_a_counter() -> None:
    counter = TagCounter(TagCounterSheet(names=10))
    list(counter.process(Document(visit(body=b"".join(b"<x%d>" % n for n in range(1000))))))
    for start in range(0, 1000, 10):
        list(counter.process(Document(visit(body=b"".join(b"<y%d>" % n for n in range(start, start + 10))))))
    assert len(counter.metrics.counters) <= 11
