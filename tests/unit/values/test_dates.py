"""Instants are written as the standard library writes them, and read as servers write them."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.values.instants import read_date, utc_text


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_an_instant_is_written_to_the_microsecond(second: int, microsecond: int) -> None:
    expected = datetime.fromtimestamp(second, UTC).replace(microsecond=microsecond)
    assert utc_text(second + microsecond / 1_000_000) == expected.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (59.9999999, "1970-01-01T00:01:00.000000Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_what_rounds_to_a_whole_second_is_written_as_that(seconds: float, text: str) -> None:
    assert utc_text(seconds) == text


#: The cases of the IETF's http-state working group: what a cookie's date says, by its own zone alone, which is UTC.
COOKIE_DATES = {
    "2007-12-10 17:02:24": ("Mon, 10-Dec-2007 17:02:24 GMT",),
    "2009-12-09 16:27:23": ("Wed, 09 Dec 2009 16:27:23 GMT",),
    "1970-01-01 00:00:00": ("Thursday, 01-Jan-1970 00:00:00 GMT",),
    "2007-12-10 16:32:30": ("Mon Dec 10 16:32:30 2007 GMT",),
    "2010-01-01 00:00:00": (
        "Wednesday, 01-Jan-10 00:00:00 GMT",
        "Wednesday, 01-Jan-10 0:0:00 GMT",
    ),
    "2007-12-10 20:35:03": ("Mon, 10-Dec-07 20:35:03 GMT",),
    "2020-01-01 00:00:00": ("Wed, 1 Jan 2020 00:00:00 GMT",),
    "2012-12-08 21:24:09": ("Saturday, 8-Dec-2012 21:24:09 GMT",),
    "2037-12-31 23:55:55": ("Thu, 31 Dec 23:55:55 2037 GMT",),
    "2012-12-09 13:42:05": ("Sun,  9 Dec 2012 13:42:05 GMT",),
    "2007-12-12 08:44:07": ("Wed Dec 12 2007 08:44:07 GMT-0500 (EST)",),
    "2011-01-01 00:00:00": ("Mon, 01-Jan-2011 00: 00:00 GMT",),
    "1995-01-01 00:00:00": ("Sun, 1-Jan-1995 00:00:00 GMT",),
    "2009-12-10 13:57:02": ("Thu, 10 Dec 2009 13:57:2 GMT",),
    "2017-04-15 21:01:22": (
        "Sat, 15-Apr-17 21:01:22 GMT",
        '"Sat, 15-Apr-17\\"21:01:22\\"GMT"',
        "Sat, 15-Apr-17 21:01:22",
        "Sat, 15-Apr-17 21:01:22 GMT-2",
        "Sat, 15-Apr-17 21:01:22 GMT BLAH",
        "Sat, 15-Apr-17 21:01:22 GMT-0400",
        "Sat, 15-Apr-17 21:01:22 GMT-0400 (EDT)",
        "Sat, 15-Apr-17 21:01:22 DST",
        "Sat, 15-Apr-17 21:01:22 -0400",
        "Sat, 15-Apr-17 21:01:22 (hello there)",
        "Sat, 15-Apr-17 21:01:22 11:22:33",
        "Sat, 15-Apr-17 ::00 21:01:22",
        "Sat, 15-Apr-17 boink:z 21:01:22",
        "15-Sat, Apr-17 21:01:22 GMT",
        "15-Sat, Apr 21:01:22 GMT 17",
        "15-Sat, Apr 21:01:22 GMT 2017",
        "15 Apr 21:01:22 2017",
        "15 17 Apr 21:01:22",
        "Apr 15 17 21:01:22",
        "Apr 15 21:01:22 17",
        "2017 April 15 21:01:22",
        "15 April 2017 21:01:22",
    ),
    "2007-04-19 16:00:00": (
        "Thu, 19-Apr-2007 16:00:00 GMT",
        "Thu, 19/Apr\\2007 16:00:00 GMT",
    ),
    "2007-04-25 21:02:13": ("Wed, 25 Apr 2007 21:02:13 GMT",),
    "2010-01-01 01:01:50": ("Fri, 1 Jan 2010 01:01:50 GMT",),
    "2003-01-01 00:00:00": (
        "Wednesday, 1-Jan-2003 00:00:00 GMT",
        ", 1-Jan-2003 00:00:00 GMT",
        " 1-Jan-2003 00:00:00 GMT",
        "1-Jan-2003 00:00:00 GMT",
        "Wednes, 1-Januar-2003 00:00:00 GMT",
    ),
    "2007-04-18 22:50:12": (
        "Wed,18-Apr-07 22:50:12 GMT",
        "WillyWonka  , 18-Apr-07 22:50:12 GMT",
        "WillyWonka  , 18-Apr-07 22:50:12",
        "WillyWonka  ,  18-apr-07   22:50:12",
        "Partyday, 18- April-07 22:50:12",
        "Partyday, 18 - Apri-07 22:50:12",
        "Thu Apr 18 22:50:12 2007 GMT",
        "22:50:12 Thu Apr 18 2007 GMT",
        "Thu 22:50:12 Apr 18 2007 GMT",
        "Thu Apr 22:50:12 18 2007 GMT",
        "Thu Apr 18 2007 22:50:12 GMT",
        "Thu Apr 18 2007 GMT 22:50:12",
    ),
    "1977-04-18 22:50:13": (
        "Mon, 18-Apr-1977 22:50:13 GMT",
        "Mon, 18-Apr-77 22:50:13 GMT",
    ),
}
NO_DATES = (
    "Sat, 15-Apr-17 91:22:33 21:01:22",
    "98 April 17 21:01:22",
    "Thu, 012-Aug-2008 20:49:07 GMT",
    "Thu, 12-Aug-31841 20:49:07 GMT",
    "Thu, 12-Aug-9999999999 20:49:07 GMT",
    "Thu, 999999999999-Aug-2007 20:49:07 GMT",
    "Thu, 12-Aug-2007 20:61:99999999999 GMT",
    "IAintNoDateFool",
)


@pytest.mark.parametrize(("meant", "text"), [(meant, text) for meant, texts in COOKIE_DATES.items() for text in texts])
def test_a_cookie_ends_when_the_standard_says(meant: str, text: str) -> None:
    assert read_date(text, zones=False) == datetime.fromisoformat(f"{meant}+00:00").timestamp()


@pytest.mark.parametrize(
    "text", [*NO_DATES, "", "Fri, 30 Feb 2024 00:00:00 GMT", "Fri, 01 Jan 1600 00:00:00 GMT", "\u0663"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_date(text) is None


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Sun, 06 Nov 1994 08:49:37", 784_111_777),
        ("Sun, 06 Nov 1994 09:49:37 +0100", 784_111_777),
        ("Sun, 06 Nov 1994 03:19:37 GMT-05:30", 784_111_777),
        ("Sun, 06 Nov 1994 03:49:37 EST", 784_111_777),
        ("08:49:37 06-Nov-1994", 784_111_777),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_date_is_the_same_instant_on_every_machine(
    monkeypatch: pytest.MonkeyPatch, zone: str, text: str, second: int
) -> None:
    with monkeypatch.context() as machine:
        machine.setenv("TZ", zone)
        time.tzset()
        assert read_date(text) == second
    time.tzset()


@given(st.text(max_size=80))
def test_no_date_raises(text: str) -> None:
    assert (read_date(text) or 0.0) < 253_402_400_000
