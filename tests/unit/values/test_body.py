"""The rewindable body: any number of readers, each from byte 0; small in memory, large on disk."""

import gc
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.documents.document import Document
from gossamer.engine.connector import class_of
from gossamer.engine.errors import BrokenFrame
from gossamer.engine.remote.frames import Codec
from gossamer.values import body as bodies
from gossamer.values.body import BodyWriter, StoredBody, sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit


def written(data: bytes, threshold: int, *, step: int = 1000, directory: str = "") -> bodies.Body:
    writer = BodyWriter(threshold, directory, digest=True)
    for start in range(0, len(data), step):
        writer.write(data[start : start + step])
    return writer.take()


@given(st.binary(max_size=5000), st.integers(0, 6000), st.integers(1, 2000))
def test_both_kinds_say_the_same_of_the_same_bytes(data: bytes, threshold: int, step: int) -> None:
    body = written(data, threshold, step=step)
    assert isinstance(body, bytes) == (len(data) <= threshold)
    assert (len(body), bool(body)) == (len(data), bool(data))
    assert b"".join(bodies.pieces(body)) == data
    assert bodies.sha1_base32(body) == sha1_base32(data)
    assert bodies.sha256(body) == hashlib.sha256(data).hexdigest()
    assert bodies.beginning(body, 7)[:7] == data[:7]


def test_each_reader_begins_at_byte_0_whatever_the_others_have_read() -> None:
    body = written(bytes(range(256)) * 40, 100)
    first, second = bodies.reader(body), bodies.reader(body)
    assert first.read(5000) == (bytes(range(256)) * 40)[:5000]
    assert second.read() == bytes(range(256)) * 40
    assert first.read(1) == (bytes(range(256)) * 40)[5000:5001]
    first.seek(-1, os.SEEK_END)
    assert first.read() == b"\xff"
    assert bodies.reader(body).read(2) == b"\0\1"


def test_a_stored_body_leaves_no_name_behind_and_lasts_as_long_as_a_reader(tmp_path: Path) -> None:
    body = written(b"x" * 5000, 100, directory=str(tmp_path))
    assert isinstance(body, StoredBody)
    assert list(tmp_path.iterdir()) == []
    reader = bodies.reader(body)
    del body
    gc.collect()
    assert reader.read() == b"x" * 5000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_a_thousand_stored_bodies_leave_no_file_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(1000):
        written(b"x" * 2000, 100, directory=str(tmp_path))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_place_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        written(b"x" * 2000, 100, directory=str(tmp_path / "missing"))


def visit(body: bodies.Body, decoded: bodies.Body | None = None) -> Visit:
    return Visit(Task("http://a.test/", "a.test"), Response(Outcome.OK, status=200, body=body, decoded=decoded))


@pytest.mark.parametrize("threshold", [100, 10_000])
def test_a_visit_crosses_with_its_body_whichever_kind_it_is(threshold: int) -> None:
    codec = Codec("visits", Visit, class_of(Visit), 1 << 20)
    sent = visit(written(b"x" * 2000, threshold), written(b"y" * 3000, threshold))
    _, [received] = codec.unpack(codec.pack(1, codec.encode([sent])))
    assert type(received.response.body) is type(sent.response.body)
    assert b"".join(bodies.pieces(received.response.body)) == b"x" * 2000
    assert sha1_base32(received.response.body) == sha1_base32(b"x" * 2000)
    assert received.response.open().read() == b"y" * 3000


def test_a_parcel_that_is_no_body_is_a_broken_frame() -> None:
    codec = Codec("visits", Visit, class_of(Visit), 1 << 20)
    payload = codec.pack(1, codec.encode([visit(written(b"x" * 2000, 100))]))
    forged = payload.replace(b"\xa4file\xc5\x07\xd0", b"\xa4file\xda\x07\xd0")
    assert forged != payload
    with pytest.raises(BrokenFrame, match="crosses as bytes"):
        codec.unpack(forged)


def test_processors_get_the_beginning_of_a_stored_document_and_may_open_all_of_it() -> None:
    whole = b"x" * (bodies.MAX_READ + 5000)
    document = Document(visit(written(whole, 100)))
    assert document.content == whole[: bodies.MAX_READ]
    assert document.open().read() == whole
    assert document.open().read(10) == b"x" * 10
