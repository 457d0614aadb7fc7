"""What kind of document some bytes are, whatever their server says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.values.media_type import is_odd, of_fields, sniff_media_type

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
ZIP = b"PK\x03\x04\x14\x00\x00\x00"
PAGE = b"<!doctype html><title>t</title>"


@pytest.mark.parametrize("claim", ["", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*"])
@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (PAGE, "text/html"),
        (b" \n<HTML>", "text/html"),
        (b"<!-- c -->", "text/html"),
        (b"<p >", "text/html"),
        (b"<pre>", "text/plain"),
        (b"<?xml version='1.0'?>", "text/xml"),
        (b"%PDF-1.7\n\x00", "application/pdf"),
        (PNG, "image/png"),
        (b"GIF89a\x01\x00", "image/gif"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"\x00\x00\x00\x18ftypmp42", "video/mp4"),
        (ZIP, "application/zip"),
        (b"\x1f\x8b\x08\x00", "application/x-gzip"),
        (b"words", "text/plain"),
        (b"", "text/plain"),
        (b"\xff\xfew\x00", "text/plain"),
        (b"\x00\x01\x02", "application/octet-stream"),
    ],
)
def test_a_server_that_says_nothing_is_helped(claim: str, content: bytes, mime: str) -> None:
    assert sniff_media_type(content, claim) == mime


@pytest.mark.parametrize(
    ("content", "claim", "mime"),
    [
        (PAGE, "text/html", "text/html"),
        (PAGE, "Text/HTML; charset=utf-8", "text/html"),
        (PAGE, "text/plain", "text/plain"),
        (PAGE, "text/plain; charset=x", "text/plain"),
        (PNG, "text/plain", "image/png"),
        (PNG, "text/plain; charset=x", "text/plain"),
        (b"\x00\x01", "text/plain; charset=UTF-8", "application/octet-stream"),
        (PAGE, "image/png", "image/png"),
        (PNG, "image/gif", "image/png"),
        (PNG, "image/svg+xml", "image/svg+xml"),
        (b"OggS\x00\x02", "audio/mpeg", "application/ogg"),
        (ZIP, "application/pdf", "application/pdf"),
        (PAGE, "application/json", "application/json"),
    ],
)
def test_a_server_that_says_something_is_believed_as_far_as_the_standard_goes(
    content: bytes, claim: str, mime: str
) -> None:
    assert sniff_media_type(content, claim) == mime


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (ZIP, "application/zip"),
        (PNG, "image/png"),
        (b"%PDF-1.4", "application/pdf"),
        (b"\x00\x01\x02", "text/html"),
        (b"only words", "text/html"),
        (b"\xef\xbb\xbf  <p>", "text/html"),
        (b"\xff\xfe<\x00p\x00", "text/html"),
        (b"", "text/html"),
        (b"<?xml version='1.0'?><html>", "text/html"),
        (b"<?xml version='1.0'?><!-- c --><rss version='2.0'>", "application/rss+xml"),
        (b"\n<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"),
    ],
)
def test_html_is_what_does_not_begin_as_something_else(content: bytes, mime: str) -> None:
    assert sniff_media_type(content, "text/html") == mime


def test_a_server_that_asks_to_be_believed_is_believed_where_it_says_something() -> None:
    assert sniff_media_type(PAGE, "application/octet-stream", nosniff=True) == "application/octet-stream"
    assert sniff_media_type(PNG, "text/plain", nosniff=True) == "text/plain"
    assert sniff_media_type(PAGE, "", nosniff=True) == "text/html"


@given(st.binary(max_size=2000), st.sampled_from(["", "text/html", "text/plain", "image/png", "video/mp4", "x/y"]))
def test_any_bytes_have_a_type(content: bytes, claim: str) -> None:
    mime = sniff_media_type(content, claim)
    assert mime and mime == mime.lower() and "/" in mime


@pytest.mark.parametrize(
    ("values", "claim"),
    [
        (["text/html"], "text/html"),
        (["text/html; charset=utf-8"], "text/html; charset=utf-8"),
        (["text/html, text/html"], "text/html"),
        (["text/html", "text/plain"], "text/plain"),
        (["text/html;charset=gbk", "text/html"], 'text/html;charset="gbk"'),
        (["text/html;charset=gbk, text/plain, text/html"], "text/html"),
        (["text/html;charset=gbk", "Text/HTML;charset=windows-1254"], "Text/HTML;charset=windows-1254"),
        (["text/html;charset=gbk", "text/html;x=y"], 'text/html;x=y;charset="gbk"'),
        (["text/html", "*/*"], "text/html"),
        (["*/*"], ""),
        (["text/html", "html"], "text/html"),
        (["text/html", ""], "text/html"),
        (['text/html;charset="a,b"'], 'text/html;charset="a,b"'),
        (['text/html;x="a, text/plain;charset=gbk'], 'text/html;x="a, text/plain;charset=gbk'),
        ([], ""),
        ([""], ""),
        (["html"], ""),
        (["text/"], ""),
        (["/html"], ""),
        (['"text/html"'], ""),
        (["text/html charset=utf-8"], ""),
        (["text /html"], ""),
        (["text/html;"], "text/html;"),
    ],
)
def test_the_last_media_type_that_is_one_counts(values: list[str], claim: str) -> None:
    """Fetch, "extract a MIME type", with the examples that stand there."""
    fields = [("server", "x"), *(("content-type", value) for value in values)]
    assert of_fields(fields) == claim


@pytest.mark.parametrize("claim", ["html", "text/", '"text/html"', "text/html, text/html", "text/html charset=utf-8"])
def test_a_page_under_a_type_that_is_none_is_a_page(claim: str) -> None:
    fields = [("content-type", claim)]
    assert is_odd(fields)
    assert sniff_media_type(PAGE, of_fields(fields)) == "text/html"


def test_a_type_that_is_written_once_is_not_odd() -> None:
    assert not is_odd([("content-type", "text/html; charset=utf-8")])
    assert not is_odd([("server", "x")])


@given(st.text(alphabet='ab/;=, "\\charset*'))
def test_any_content_type_is_read(text: str) -> None:
    claim = of_fields([("content-type", text)])
    assert claim == "" or "/" in claim
