"""Families of URLs that are set aside, as a person reads them."""

import pytest

from gossamer.values.task import Family


@pytest.mark.parametrize(
    ("family", "text"),
    [
        (Family("www.a.test", "/calendar/#/#"), "www.a.test/calendar/#/#"),
        (Family("*.a.test", "**"), "*.a.test**"),
        (Family("www.a.test", "repeated-parameters"), "www.a.test (repeated-parameters)"),
    ],
)
def test_a_family_is_named_by_host_and_path_or_by_host_and_shape(family: Family, text: str) -> None:
    assert family.text == text
