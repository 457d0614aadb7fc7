"""Quantities are read as people write them, and shown so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.engine import sheet
from gossamer.engine.sheet import written


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("90", "s", 90),
        ("250ms", "s", 0.25),
        ("10m", "s", 600),
        ("10 min", "s", 600),
        ("1.5h", "s", 5400),
        ("1h30m", "s", 5400),
        ("1 h 05 min", "s", 3900),
        ("2d", "s", 172_800),
        ("-3s", "s", -3),
        ("16MB", "bytes", 16_000_000),
        ("512KiB", "bytes", 524_288),
        ("1g", "bytes", 10**9),
        ("1_000", "bytes", 1000),
        ("7 B", "bytes", 7),
        ("2MB/s", "bytes/s", 2_000_000),
        ("500KiB", "bytes/s", 512_000),
        ("0.5", "requests", 0.5),
        ("9007199254740993", "pages", 9_007_199_254_740_993),
    ],
)
def test_a_quantity_counts_in_the_base_unit(text: str, unit: str, number: float) -> None:
    assert sheet.parse(text, unit) == number


@pytest.mark.parametrize(
    ("text", "unit", "advice"),
    [
        ("10 parsecs", "s", "10m, 90s, 250ms, 1.5h or 1h30m"),
        ("10m/s", "s", "10m, 90s, 250ms, 1.5h or 1h30m"),
        ("1h30", "s", "10m, 90s, 250ms, 1.5h or 1h30m"),
        ("", "s", "10m, 90s, 250ms, 1.5h or 1h30m"),
        ("16 bananas", "bytes", "16MB, 512KiB or 1GB"),
        ("16MB/s", "bytes", "16MB, 512KiB or 1GB"),
        ("3k", "requests", "a plain number, as 3 or 0.5"),
        ("nan", "requests", "a plain number, as 3 or 0.5"),
        ("9" * 400, "requests", "a plain number, as 3 or 0.5"),
        ("9" * 400 + "h", "s", "10m, 90s, 250ms, 1.5h or 1h30m"),
    ],
)
def test_what_is_no_quantity_is_refused_with_an_example(text: str, unit: str, advice: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity; write") as caught:
        sheet.parse(text, unit)
    assert str(caught.value) == f"{text!r} is not a quantity; write {advice}"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (999_990, "1.0 MB"), (2.5e9, "2.5 GB"), (7e12, "7.0 TB")],
)
def test_sizes_are_shown_short(count: float, shown: str) -> None:
    assert sheet.show_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (4.24, "4.2 s"),
        (59.97, "1 min 00 s"),
        (123, "2 min 03 s"),
        (3599.99, "59 min 59 s"),
        (3900, "1 h 05 min"),
    ],
)
def test_durations_are_shown_short(seconds: float, shown: str) -> None:
    assert sheet.show_seconds(seconds) == shown


@given(st.floats(0, 1e15))
def test_a_size_that_is_shown_reads_back_as_nearly_the_same(count: float) -> None:
    shown = sheet.show_bytes(count)
    assert sheet.parse(shown, "bytes") == pytest.approx(count, rel=0.06, abs=0.5)


@given(st.floats(0, 1e7))
def test_a_duration_that_is_shown_reads_back_as_nearly_the_same(seconds: float) -> None:
    shown = sheet.show_seconds(seconds)
    assert sheet.parse(shown, "s") == pytest.approx(seconds, rel=0.02, abs=0.06)


@given(st.text(max_size=20), st.sampled_from(["s", "bytes", "bytes/s", "requests", ""]))
def test_any_text_is_a_number_or_is_refused_with_advice(text: str, unit: str) -> None:
    try:
        assert isinstance(sheet.parse(text, unit), int | float)
    except ValueError as error:
        assert "write" in str(error)  # noqa: PT017  # either is right, but nothing else


@pytest.mark.parametrize("data", [b"a\nb\xc3\xa4", b"\xef\xbb\xbfa\nb\xc3\xa4"])
def test_a_file_may_have_a_byte_order_mark(data: bytes) -> None:
    assert written(data) == "a\nb\u00e4"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"a\nb\xe4\n", "line 2: byte 0xE4"),
        (b"\xef\xbb\xbf\xff", "line 1: byte 0xFF"),
        ("a".encode("utf-16"), "UTF-16"),
    ],
)
def test_a_byte_that_is_not_utf_8_is_named_by_its_line(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        written(data)
