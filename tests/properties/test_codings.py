"""Content codings: whatever the pieces, what was coded comes out; whatever the bytes, decoding ends within its bounds."""

import gzip
import zlib
from collections.abc import Callable

import brotli
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.documents.content_coding import MAX_RATIO, RATIO_FROM, Keeping, Undoing, decode
from gossamer.values import body as bodies
from gossamer.values.body import zstandard

zstd = zstandard()

ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "br": lambda data: bytes(brotli.compress(data, quality=5)),
    "zstd": zstd.compress,
}
ROOM = 4 << 20
applied = st.lists(st.sampled_from(sorted(ENCODE)), min_size=1, max_size=2)
documents = st.one_of(
    st.binary(max_size=300), st.builds(lambda piece, times: piece * times, st.binary(min_size=1), st.integers(1, 3000))
)


def encoded(data: bytes, codings: list[str]) -> bytes:
    for coding in codings:
        data = ENCODE[coding](data)
    return data


@given(documents, applied, st.integers(1, 700), st.sampled_from([0, 100, ROOM]))
def test_what_was_coded_comes_out_whatever_the_pieces(data: bytes, codings: list[str], step: int, memory: int) -> None:
    sent, keeping = encoded(data, codings), Keeping(ROOM, memory)
    undoing = Undoing(codings, keeping)
    for start in range(0, len(sent), step):
        undoing.feed(sent[start : start + step])
    for came in (undoing.end(whole=True), decode(sent, codings, keeping)):
        assert (came.cut, came.error) == ("", "")
        assert b"".join(bodies.pieces(came.data)) == data


@given(documents, applied, st.data())
def test_a_body_cut_short_gives_its_beginning_and_says_so_only_where_it_was_to_be_whole(
    data: bytes, codings: list[str], draw: st.DataObject
) -> None:
    sent = encoded(data, codings)
    part = sent[: draw.draw(st.integers(0, len(sent) - 1))]
    came = decode(part, codings, Keeping(ROOM, ROOM), whole=False)
    assert data.startswith(bodies.beginning(came.data))
    if part and "gzip" in codings[-1:]:
        whole = decode(part, codings, Keeping(ROOM, ROOM))
        assert whole.error or (whole.is_odd and bodies.beginning(whole.data) == data)


@given(documents, applied, st.binary(max_size=50))
def test_bytes_behind_the_end_cost_nothing_of_a_document(data: bytes, codings: list[str], more: bytes) -> None:
    came = decode(encoded(data, codings) + b"\r" + more, codings, Keeping(ROOM, ROOM))
    assert (came.data, came.cut, came.error, came.is_odd) == (data, "", "", True)


@given(st.binary(max_size=2000), applied, st.booleans())
@settings(max_examples=200)
def test_any_bytes_at_all_end_within_the_bounds(data: bytes, codings: list[str], whole: bool) -> None:
    came = decode(data, codings, Keeping(3000, 1000), whole=whole)
    assert len(came.data) <= 3000
    assert not (came.cut and came.error)


@given(st.sampled_from(sorted(ENCODE)), st.integers(2, 9))
@settings(max_examples=20, deadline=None)
def test_a_bomb_stops_at_its_ratio(coding: str, megabytes: int) -> None:
    sent = encoded(bytes(megabytes << 20), [coding])
    came = decode(sent, [coding], Keeping(1 << 30, 1 << 20))
    assert len(came.data) <= max(RATIO_FROM, MAX_RATIO * len(sent)) + (1 << 17)
    assert bool(came.cut) == (len(came.data) < megabytes << 20)


@given(st.sampled_from(["gzip", "zstd"]), st.integers(1, 40), st.integers(1, 900))
@settings(deadline=None)
def test_members_may_begin_and_end_anywhere_in_what_is_fed(coding: str, size: int, members: int) -> None:
    member = encoded(bytes(range(size)), [coding])
    came = decode(member * members, [coding], Keeping(ROOM, ROOM))
    assert (came.cut, came.error) == ("", "")
    assert came.data == bytes(range(size)) * members


@given(st.sampled_from(sorted(ENCODE)))
@settings(max_examples=8, deadline=None)
def test_a_bomb_is_stopped_soon_after_its_ratio_shows_however_large_it_is(coding: str) -> None:
    sent = encoded(bytes(40 << 20), [coding])
    came = decode(sent + sent, [coding], Keeping(1 << 30, 1 << 20))
    assert came.cut
    assert len(came.data) <= RATIO_FROM + (1 << 17)
