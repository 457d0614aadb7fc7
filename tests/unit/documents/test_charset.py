"""Encodings after the WHATWG rules."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costs import is_linear

from gossamer.documents import legacy_encodings
from gossamer.documents.charset import DETECTED_BYTES, _letters, sniff, to_utf8


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


def test_jsdom_cases(test_data: Path) -> None:
    """Files that are named after what they are in; a page that declares UTF-16 in ASCII is read as UTF-8."""
    pages = sorted((test_data / "charset-jsdom").rglob("*.html"))
    expected = {path: path.stem.rpartition("_")[2].lower() for path in pages if path.parent.name != "utf"}
    expected |= {path: "utf-8" for path in pages if path.parent.name == "utf"}
    assert {path: sniff(path.read_bytes(), "") for path in pages} == expected
    assert pages


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
        (b"<meta charset=koi8-r>", "text/html; charset =gbk", "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html; charset='gbk'", "koi8-r"),
        (b"<meta charset=koi8-r>", 'text/html; charset= "gbk"', "koi8-r"),
        (b"<meta charset=koi8-r>", 'text/html; charset=gbk"', "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html; charset=();charset=gbk", "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html; charset= gbk ;x", "gbk"),
        (b"<meta charset=koi8-r>", 'text/html; x="; charset=big5"; CHARSET="g\\bk', "gbk"),
        (b"<meta charset=koi8-r>", "text/html; charset; charset=; charset=gbk", "gbk"),
        (b"<meta charset =koi8-r>", "", "koi8-r"),
        (b"<meta http-equiv=Content-Type content=\"text/html; charset ='koi8-r' x\">", "", "koi8-r"),
        (b"<meta http-equiv=Content-Type content='charset x; charset = koi8-r'>", "", "koi8-r"),
        (b'<meta http-equiv=Content-Type content="text/html; charset=\'koi8-r">', "", "windows-1252"),
        (b"<meta http-equiv=Content-Type content='charset=koi8-r;x charset=gbk'>", "", "koi8-r"),
        (b"<meta http-equiv=Content-Type content='charset=\xa0koi8-r'>", "", "windows-1252"),
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


PANGRAMS = [
    ("shift_jis", "ja", "人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"),
    ("euc-jp", "ja", "人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"),
    ("iso-2022-jp", "ja", "人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"),
    ("euc-kr", "ko", "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다"),
    ("gbk", "zh", "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心"),
    ("big5", "zh", "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心"),
    ("windows-1251", "ru", "Съешь же ещё этих мягких французских булок, да выпей чаю"),
    ("koi8-r", "ru", "Съешь же ещё этих мягких французских булок, да выпей чаю"),
    ("ibm866", "ru", "Съешь же ещё этих мягких французских булок, да выпей чаю"),
    ("windows-1253", "el", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, όπως όλοι οι άνθρωποι"),
    ("windows-1255", "he", "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה איך הקליטה"),
    ("windows-1256", "ar", "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق"),
    ("windows-874", "th", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"),
    (
        "iso-8859-2",
        "pl",
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności; świadomość, zażółć gęślą jaźń",
    ),
    ("windows-1250", "cs", "Příliš žluťoučký kůň úpěl ďábelské ódy, všichni lidé rodí se svobodní a sobě rovní"),
    ("windows-1254", "tr", "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar; şişli ığdır"),
    ("windows-1257", "lt", "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis, įlinkdama fechtuotojo špaga"),
    ("windows-1252", "fr", "Portez ce vieux whisky au juge blond qui fume, été où l'œuvre naît"),
]


@pytest.mark.parametrize(("name", "language", "text"), PANGRAMS, ids=[name for name, _, _ in PANGRAMS])
@pytest.mark.parametrize("far", [0, 30_000])
def test_a_page_that_declares_nothing_is_read_by_its_letters_wherever_they_stand(
    name: str, language: str, text: str, far: int
) -> None:
    page = b"<!doctype html><head><title>x</title></head>" + b"<p class=a>b</p>" * (far // 16) + b"<p>"
    page += legacy_encodings.encode(text, name, lambda character: b"?") + b"</p>"
    assert to_utf8(page, sniff(page, "text/html")).decode().endswith(f"<p>{text}</p>")


def test_the_domain_tells_encodings_apart_that_share_their_letters() -> None:
    text = "sz\xf5l\xf5".encode("latin-1")
    assert sniff(text, "", "hu") == "iso-8859-2"
    assert sniff(text, "", "ee") == "windows-1252"


@pytest.mark.parametrize("domain", ["", "KR", "1", "a.b", "\uac00", "x" * 300, "-"])
def test_no_name_of_a_host_breaks_the_guess(domain: str) -> None:
    assert sniff("안녕하세요 세상".encode("euc-kr"), "", domain) == "euc-kr"


def test_a_page_that_was_cut_within_a_letter_is_utf8_and_a_word_that_ends_in_one_is_not() -> None:
    assert sniff("größe ü".encode()[:-1], "") == "utf-8"
    assert sniff(b"caf\xe9", "") == "windows-1252"


def test_the_detector_gets_no_more_than_its_share_of_a_page() -> None:
    page = "<p>Съешь же ещё".encode("windows-1251") * 20_000
    assert len(_letters(page)) == DETECTED_BYTES
    assert _letters(b"<p>" * 1000 + b"<i>a\xe4</i><b>" + b"b" * 70 + b"\xf6" * 3) == b"a\xe4<" + b"b" * 64 + b"\xf6" * 3


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        (b"\xad\xa1\xa4\xa2\x8f\xb0\xa1\xff", "euc-jp", "①あ丂\ufffd"),
        (b"\x80\x81\xdf\xd2", "windows-1253", "€\x81ί\ufffd"),
        (b"\xca\xd9", "windows-1255", "\u05ba\ufffd"),
        (b"\xae", "koi8-u", "ў"),
        (b"\xa2\xe3\x81\x30\x81\x30", "gbk", "€\x80"),
        (b"\x8c\x63", "euc-kr", "똠"),
        (b"\xa1\xfe\xa2\x40\xa2\x41\xa2\x42\xa4\xa2A", "big5", "\uff0f\uff3c\u2215\ufe68丐A"),
        (b"\xa2\xb7~\x8f\xa2\xb7\x8f\xa2<\xa4\x8f\xa2\xb7", "euc-jp", "\ufffd~\uff5e\ufffd<\ufffd\ufffd"),
    ],
)
def test_bytes_are_read_as_the_standard_says_where_the_codec_of_python_does_not(
    content: bytes, charset: str, text: str
) -> None:
    assert to_utf8(content, charset).decode() == text


# Behind a lead byte, a byte that is ASCII is read again, so that no tag and no quote is lost; any other goes with it.
BAD_LEADS = [
    ("big5", b"\x81<a>\xfe\xff\xa4\xe9", "\ufffd<a>\ufffd日"),
    ("euc-kr", b'\xc9"\xc9\xc9\xb0\xa1\x80\xff', '\ufffd"\ufffd가\ufffd\ufffd'),
    ("shift_jis", b"\x81<\x81\xad\xa0\xfd\x93\xfa\xf0\x40", "\ufffd<\ufffd\ufffd\ufffd日\ue000"),
    ("euc-jp", b"\x8e<\x8f<\x8f\xa1<\x8f\xa1\xa1\x8e\xff\xc6\xfc\x80", "\ufffd<\ufffd<\ufffd<\ufffd\ufffd日\ufffd"),
    ("gbk", b"\x81<\xff\x80\xfe\xff\xc8\xd5", "\ufffd<\ufffd€\ufffd日"),
    ("gb18030", b"\x810<\x810\x81<\xfe9\xfe9\xc8\xd5\x810\x81", "\ufffd0<\ufffd0\ufffd<\ufffd日\ufffd"),
    ("gb18030", b"\xa6\xd9\xa6\xf3\xfe\x59\xfe\xa0\xa8\xbc\xa3\xa0\x81\x35\xf4\x37", "︐︙龴龻ḿ\u3000\ue7c7"),
    (
        "iso-2022-jp",
        b"\x1b(I1\x1b(J\\~\x1b$BF|<\x1b(B<\xff\x0e\x1b(Z\x1b(B\x1b(B",
        "ｱ¥‾日\ufffd<\ufffd\ufffd\ufffd(Z\ufffd",
    ),
    ("big5", b"\x87\x7a\x87\xdf\x8e\x69\xfe\xdd", "㡵鿋箸砉"),
    ("replacement", b"<a href=x>\xff", "\ufffd"),
]


@pytest.mark.parametrize(("charset", "content", "text"), BAD_LEADS)
def test_what_is_no_letter_is_read_as_the_standard_says_and_swallows_no_ascii(
    charset: str, content: bytes, text: str
) -> None:
    assert to_utf8(content, charset).decode() == text


@given(st.sampled_from(["big5", "euc-kr", "shift_jis", "euc-jp", "gbk", "gb18030"]), st.binary(max_size=40))
def test_a_tag_behind_any_bytes_is_found(charset: str, before: bytes) -> None:
    assert to_utf8(before + b"<a href='x'>", charset).decode().endswith("<a href='x'>")


def test_bytes_that_are_no_letters_cost_linear_time() -> None:
    for charset in ("big5", "euc-kr", "shift_jis", "euc-jp", "gb18030", "iso-2022-jp"):
        for bad in (b"\xff", b"\x81<", b"\x810\x81<", b"\x8f\xa1", b"\x1b", b"\x1b$B!"):
            assert is_linear(lambda size, bad=bad, charset=charset: to_utf8(bad * size, charset), 4_000), (charset, bad)
