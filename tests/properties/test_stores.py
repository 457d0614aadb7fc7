"""Archive and log under arbitrary input."""

import io
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from gossamer.storage.archive.records import exchange, form_of, http_head, text_field, warcinfo
from gossamer.storage.logs import lines
from gossamer.storage.tables.contract import RowSource
from gossamer.storage.tables.pages import PAGES
from gossamer.storage.tables.row_tables import ITEMS
from gossamer.testing.storage import visit
from gossamer.values.body import sha1_base32
from gossamer.values.visit import Item

TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
HEADS = st.one_of(
    st.binary(min_size=1, max_size=200),
    st.lists(
        st.sampled_from([b"A: b", b"\r", b"\n", b"\r\n", b"\x00", b" ", b"Transfer-Encoding: chunked"]), min_size=1
    ).map(b"".join),
)


@given(url=TEXT, address=TEXT, cut=TEXT, original=TEXT, head=HEADS, body=st.binary(max_size=300), request=HEADS)
def test_any_exchange_comes_back_from_the_archive(
    url: str, address: str, cut: str, original: str, head: bytes, body: bytes, request: bytes
) -> None:
    one = visit("http://a.test/" + url, body, head=head, duplicate_of=original, cut=cut)
    one = msgspec.structs.replace(
        one, response=msgspec.structs.replace(one.response, address=address, request_head=request)
    )
    written = exchange(one, 1e9, form_of(one), lines={"via": original, "trouble": cut, "error": address})
    records: list[Any] = [
        (record.rec_type, record.rec_headers, record.raw_stream.read())
        for record in ArchiveIterator(io.BytesIO(written.data), no_record_parse=True)
    ]
    for record in ArchiveIterator(io.BytesIO(written.data), check_digests="raise"):
        record.content_stream().read()
    kind, fields, block = records[-1]
    told = sum(bool(text_field(text)) for text in (original, cut, address))
    assert len(records) == 1 + bool(request) + bool(told)
    if told:
        assert records[-2][0] == "metadata"
        assert records[-2][2].count(b"\r\n") == told
    assert kind == ("revisit" if original else "response" if head else "resource")
    assert block == (http_head(head) if head else b"") + (b"" if original else body)
    assert fields.get_header("WARC-Payload-Digest") == f"sha1:{sha1_base32(body)}"
    answer = written.data[written.start :]
    assert [record.rec_type for record in ArchiveIterator(io.BytesIO(answer))] == [kind]
    names = [name for name, _ in fields.headers]
    assert len(names) == len(set(names))
    assert all(name.startswith(("WARC-", "Content-")) for name in names)


@given(head=HEADS)
def test_a_header_block_ends_once_and_cleaning_is_idempotent(head: bytes) -> None:
    clean = http_head(head)
    assert clean.find(b"\r\n\r\n") == len(clean) - 4
    assert http_head(clean) == clean


@given(lines=st.dictionaries(st.sampled_from(["operator", "description"]), TEXT))
def test_a_warcinfo_has_one_line_for_each_thing_told(lines: dict[str, str]) -> None:
    [record] = ArchiveIterator(io.BytesIO(warcinfo("a.warc.gz", 1e9, lines)), check_digests="raise")
    told = record.content_stream().read().decode().split("\r\n")
    assert len([one for one in told if one]) <= 1 + len(lines)


def page_line(told: RowSource, encoder: msgspec.json.Encoder) -> bytes:
    [text] = lines(PAGES, told, encoder, [])
    return text


def item_line(told: RowSource, encoder: msgspec.json.Encoder) -> bytes:
    [text] = lines(ITEMS, told, encoder, [])
    return text


@given(
    title=TEXT,
    error=TEXT,
    rule=TEXT,
    value=st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)),
)
def test_any_text_is_one_printable_line(title: str, error: str, rule: str, value: object) -> None:
    one = msgspec.structs.replace(
        visit(), title=title, trouble=error, rejected={rule: 1}, items=(Item("k", "u", value),)
    )
    encoder = msgspec.json.Encoder()
    told = RowSource(one, one.task, one.response)
    for text in (table_line(told, encoder).decode() for table_line in (page_line, item_line)):
        assert text.endswith("\n")
        assert text[:-1].isprintable()
        assert isinstance(msgspec.json.decode(text), dict)
    kept = msgspec.json.decode(page_line(told, encoder)).get("title", "")
    assert kept == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in title)
