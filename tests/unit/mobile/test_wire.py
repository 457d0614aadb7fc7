"""Bytes of a crawler: what goes in comes out, and whatever strangers make of them is refused by name, within bounds."""

import contextlib
import struct
import tracemalloc
from io import BytesIO

import msgspec
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.mobile.contract import MAX_FRAME
from gossamer.mobile.crawler import (
    VERSIONS,
    BroughtElement,
    BroughtItem,
    BroughtLink,
    BroughtPage,
    CrawlerBatch,
    CrawlerFacts,
    JourneySummary,
    MobileCrawler,
    MobileProgram,
    TravelLimits,
)
from gossamer.mobile.reading import parse_crawler
from gossamer.mobile.wire import (
    MAGIC,
    MAX_UNPACKED,
    BytesRefused,
    agreed_version,
    from_bytes,
    packed,
    read_from,
    to_bytes,
    unpacked,
)
from gossamer.values.body import zstandard

zstd = zstandard()

PROGRAM = MobileProgram(seeds=("http://a.test/",), store="keywords($list) >= 2")
CRAWLER = MobileCrawler(PROGRAM, CrawlerFacts(keywords={"list": ("a", "b")}), id="7")
HEAD = struct.Struct("!cI")

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
urls = st.integers(0, 10**9).map(lambda number: f"http://a.test/{number}")
pages = st.builds(
    BroughtPage,
    url=urls,
    depth=st.integers(0, 65_535),
    title=words,
    headers=st.lists(st.tuples(words, words), max_size=3).map(tuple),
    whole=st.none() | st.binary(max_size=200),
    text=st.none() | words,
    simhash=st.integers(0, 2**64 - 1),
    links=st.lists(st.builds(BroughtLink, urls, words, words, st.booleans()), max_size=3).map(tuple),
    elements=st.lists(st.builds(BroughtElement, words, words, words), max_size=3).map(tuple),
    items=st.lists(st.builds(BroughtItem, words, urls, words), max_size=3).map(tuple),
)
crawlers = st.builds(
    MobileCrawler,
    program=st.builds(
        MobileProgram,
        seeds=st.lists(urls, min_size=1, max_size=3).map(tuple),
        scope=st.sampled_from(["page", "prefix", "host", "domain"]),
        limits=st.builds(TravelLimits, pages=st.integers(1, 1000), seconds=st.floats(0.1, 1000)),
        expand=st.sampled_from(["", "links >= 2", "text(health)"]),
    ),
    facts=st.builds(
        CrawlerFacts,
        known=st.lists(urls, max_size=3).map(tuple),
        parameters=st.dictionaries(st.from_regex(r"\A[a-z]{1,8}\Z"), words | st.integers(0, 99), max_size=3),
    ),
    id=st.text("abc-", max_size=10),
)


@given(crawlers, st.lists(st.lists(pages, max_size=3), max_size=3))
@settings(deadline=None)
def test_a_crawler_comes_out_of_its_bytes_as_it_went_in(
    crawler: MobileCrawler, batches: list[list[BroughtPage]]
) -> None:
    digest = crawler.program.digest
    results = tuple(CrawlerBatch(digest, at, crawler.id, tuple(some)) for at, some in enumerate(batches))
    crawler = msgspec.structs.replace(crawler, results=results)
    assert from_bytes(to_bytes(crawler)) == crawler
    assert from_bytes(to_bytes(crawler)).program.digest == digest


@given(crawlers)
@settings(deadline=None)
def test_a_crawler_comes_out_of_a_file_as_it_went_in(crawler: MobileCrawler) -> None:
    plain = msgspec.to_builtins(crawler.program) | {"facts": msgspec.to_builtins(crawler.facts)}
    read = parse_crawler(tomli_w.dumps(plain))
    assert (read.program, read.facts) == (crawler.program, crawler.facts)
    assert read.program.digest == crawler.program.digest


def batch(sequence: int = 0, **fields: object) -> CrawlerBatch:
    return msgspec.structs.replace(CrawlerBatch(PROGRAM.digest, sequence, "7"), **fields)


def reason(data: bytes) -> str:
    with pytest.raises(BytesRefused) as raised:
        from_bytes(data)
    return raised.value.reason


def in_frame(plain: bytes, kind: bytes = b"B") -> bytes:
    frame = zstd.compress(plain)
    return HEAD.pack(kind, len(frame)) + frame


PREAMBLE = MAGIC + bytes(VERSIONS[-1:])
START = to_bytes(CRAWLER)


def test_bytes_that_are_no_crawler_are_refused_by_name() -> None:
    assert reason(b"") == "not_a_crawler"
    assert reason(b"GSM") == "not_a_crawler"
    assert reason(b"PK\3\4" + bytes(100)) == "not_a_crawler"
    assert reason(PREAMBLE) == "cut"
    assert reason(PREAMBLE + packed(batch())) == "damaged"
    assert reason(MAGIC + b"\x63" + START[len(PREAMBLE) :]) == "version"


@given(st.data())
@settings(deadline=None)
def test_bytes_that_were_cut_or_changed_are_refused_and_never_raise_anything_else(data: st.DataObject) -> None:
    whole = START + packed(batch(pages=(BroughtPage("http://a.test/", whole=b"x" * 300),)))
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[place] ^= data.draw(st.integers(1, 255))
    for some in (whole[:place], bytes(changed)):
        with contextlib.suppress(BytesRefused):
            assert from_bytes(some) in (CRAWLER, from_bytes(whole))


def test_a_frame_that_claims_more_than_a_frame_may_have_is_not_read() -> None:
    class Unread(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None and size <= MAX_FRAME
            return super().read(size)

    with pytest.raises(BytesRefused, match="claims 4294967295 bytes"):
        read_from(Unread(PREAMBLE + HEAD.pack(b"C", 2**32 - 1) + b"x"))
    assert reason(PREAMBLE + HEAD.pack(b"C", 1000) + b"x") == "cut"


def test_a_frame_that_unpacks_to_more_than_it_may_costs_no_more_memory_than_the_bound() -> None:
    bomb = zstd.compress(bytes(3 * MAX_UNPACKED))
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(BytesRefused) as raised:
            unpacked(bomb, CrawlerBatch)
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_UNPACKED
    finally:
        tracemalloc.stop()
    assert raised.value.reason == "too_large"


def test_a_frame_may_not_ask_for_a_larger_window_than_a_decoder_has() -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    with pytest.raises(BytesRefused, match="too much memory"):
        unpacked(packer.compress(b"x" * 100) + packer.flush(), CrawlerBatch)


def test_a_frame_with_something_behind_its_end_is_refused() -> None:
    frame = packed(batch())[HEAD.size :]
    for data in (frame + b"x", frame + frame):
        with pytest.raises(BytesRefused, match="does not end where"):
            unpacked(data, CrawlerBatch)


@pytest.mark.parametrize("deep", [b"\x91", b"\x81\xa5pages", b"\x81\xa7strange"])
def test_values_within_each_other_without_end_are_refused(deep: bytes) -> None:
    plain = msgspec.msgpack.encode(batch())
    assert reason(START + in_frame(plain + deep * 200_000)) == "invalid"
    assert reason(START + in_frame(deep * 200_000)) == "invalid"


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": []},
        {"seeds": ["http://a.test/" + "a" * 5000]},
        {"seeds": ["javascript:alert(1)"]},
        {"seeds": ["http://a.test/"], "store": "keywords($nothing)"},
        {"seeds": ["http://a.test/"], "store": "x" * 20_000},
        {"seeds": ["http://a.test/"], "version": 99},
        {"seeds": ["http://a.test/"], "scope": "any"},
        {"seeds": ["http://a.test/"], "code": "import os"},
        {"seeds": ["http://a.test/"], "limits": {"pages": 10**12}},
        {"seeds": ["http://a.test/"], "processors": [{"name": "../os", "version": "1"}], "bring": {"parts": ["items"]}},
    ],
)
def test_a_program_out_of_bounds_is_refused_however_it_comes(change: dict[str, object]) -> None:
    plain = msgspec.msgpack.encode({"program": change})
    assert reason(PREAMBLE + in_frame(plain, b"C")) == "invalid"


def test_batches_come_in_their_order_and_belong_to_their_crawler() -> None:
    last = batch(1, summary=JourneySummary())
    assert len(from_bytes(START + packed(batch()) + packed(last)).results) == 2
    other = MobileProgram(seeds=("http://b.test/",)).digest
    assert reason(START + packed(batch(1))) == "invalid"
    assert reason(START + packed(batch()) * 2) == "invalid"
    assert reason(START + packed(msgspec.structs.replace(batch(), program=other))) == "invalid"
    assert reason(START + packed(msgspec.structs.replace(batch(), crawler="8"))) == "invalid"
    assert reason(START + packed(batch(summary=JourneySummary())) + packed(batch(1))) == "damaged"


def test_both_sides_take_the_newest_version_that_they_share() -> None:
    assert agreed_version([1, 2, 77]) == max({1, 2, 77} & set(VERSIONS))
    with pytest.raises(BytesRefused, match=r"here 1, 2, there 3, 4"):
        agreed_version([4, 3])


def test_a_crawler_is_written_in_the_version_of_its_program() -> None:
    newer = msgspec.structs.replace(CRAWLER, program=msgspec.structs.replace(PROGRAM, version=2))
    assert (START[len(MAGIC)], to_bytes(newer)[len(MAGIC)]) == (1, 2)
    assert from_bytes(to_bytes(newer)).program.version == 2


def test_a_value_that_is_larger_than_a_frame_is_not_sent() -> None:
    page = BroughtPage("http://a.test/", whole=bytes(16 << 20))
    with pytest.raises(BytesRefused, match="more than a frame may hold"):
        packed(batch(pages=(page,) * 7))
