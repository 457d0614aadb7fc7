"""Encodings after the WHATWG rules."""

import re
from pathlib import Path

import pytest

from gossamer.model.charset import sniff, to_utf8


@pytest.mark.parametrize("name", ["tests1.dat", "tests2.dat", "test-yahoo-jp.dat"])
def test_html5lib_cases(test_data: Path, name: str) -> None:
    text = (test_data / "charset-html5lib" / name).read_bytes()
    cases = [case.split(b"\n#encoding\n") for case in re.split(rb"(?m)^#data\n", text)[1:]]
    wrong = [
        (content[:80], expected, got)
        for content, expected in cases
        if (got := sniff(content, "")) != expected.split(b"\n")[0].strip().decode().lower()
    ]
    assert cases
    assert wrong == []


@pytest.mark.parametrize(
    ("content", "content_type", "charset"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=koi8-r", "utf-8"),
        (b"<meta charset=koi8-r>", 'text/html; Charset="Shift_JIS"', "shift_jis"),
        (b"<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r"),
        (b"<meta charset=utf-7>", "text/html; charset=utf-7", "windows-1252"),
        (b"<meta charset=utf-16>", "", "utf-8"),
        (b"<?xml version='1.0' encoding='koi8-r'?>", "application/xhtml+xml", "koi8-r"),
        ("größer".encode(), "text/html", "utf-8"),
        ("größer".encode("latin-1"), "text/html", "windows-1252"),
        (b"", "text/html; charset=" + "x" * (1 << 20), "windows-1252"),
        (b"<meta charset=" * 2000, "", "windows-1252"),
        (b"<!--" * 5000, "", "windows-1252"),
    ],
)
def test_order_of_evidence(content: bytes, content_type: str, charset: str) -> None:
    assert sniff(content, content_type) == charset


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        (b"\xef\xbb\xbfa", "utf-8", "a"),
        (b"\xff\xfea\x00", "utf-16le", "a"),
        ("ß".encode("latin-1"), "windows-1252", "ß"),
        (b"a\xffb\xc0\xaf", "utf-8", "a\ufffdb\ufffd\ufffd"),
        (b"\xd8\x00\x00a", "utf-16be", "\ufffda"),
        (b'\x1b$B$"\x1b(B', "iso-2022-jp", "あ"),
    ],
)
def test_text_is_well_formed_utf8(content: bytes, charset: str, text: str) -> None:
    assert to_utf8(content, charset).decode() == text
