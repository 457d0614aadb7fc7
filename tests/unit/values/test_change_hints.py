"""What hosts say of changes: read where it can be read, and never more than it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.values.instants import ChangeHint, frequency_of, hint_of, kind_of, time_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2021-03-04", 1_614_816_000),
        ("2021-03-04T05:06:07Z", 1_614_834_367),
        ("2021-03-04T05:06:07.5+01:00", 1_614_830_767.5),
        ("Thu, 04 Mar 2021 05:06:07 GMT", 1_614_834_367),
        ("yesterday", 0),
        ("", 0),
        ("0001-01-01T00:00:00+23:00", 0),
        ("9" * 500, 0),
    ],
)
def test_times_are_read_as_hosts_write_them(text: str, seconds: float) -> None:
    assert time_of(text) == seconds


@given(st.text(max_size=80), st.text(max_size=10))
def test_no_text_of_a_sitemap_is_an_error(time: str, word: str) -> None:
    found = hint_of(time, word)
    assert found is None or found.changed_at >= 0


def test_what_a_sitemap_says_is_kept() -> None:
    assert hint_of("2021-03-04", " Daily ") == ChangeHint(1_614_816_000.0, "daily")
    assert hint_of("", "often") is None


def test_pages_are_of_the_kind_that_is_said_of_them() -> None:
    assert kind_of("/a", "max-age=60", "daily", is_html=True) == "said-daily"
    assert kind_of("/a", "public, MAX-AGE=60", "", is_html=True) == "age-hour"
    assert kind_of("/a", "max-age=99999999999999999999", "", is_html=True) == "leaf"
    assert kind_of("/a.pdf", "max-age=60", "", is_html=False) == "file"
    assert [kind_of(path, "", "", is_html=True) for path in ("/", "/news/", "/news/1")] == ["front", "list", "leaf"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("7 days", "weekly"),
        (" 1 Day ", "daily"),
        ("daily", "daily"),
        ("2 weeks", "monthly"),
        ("1 hour", "hourly"),
        ("month", "monthly"),
        ("3 months", "yearly"),
        ("soon", ""),
        ("0 days", ""),
        ("7", ""),
        ("", ""),
        ("9" * 99 + " days", ""),
    ],
)
def test_what_a_page_says_of_its_next_visit_is_a_word_of_sitemaps(text: str, word: str) -> None:
    assert frequency_of(text) == word
