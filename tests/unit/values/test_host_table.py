"""Values for some hosts."""

import pytest

from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable, Remembered, forget_remembered


def test_a_name_wins_then_the_longest_pattern() -> None:
    table = HostTable({"a.test": 1, "*.a.test": 2, "*.b.a.test": 3, "*.test": 4})
    assert [table.get(host) for host in ("a.test", "x.a.test", "b.a.test", "y.b.a.test", "c.test", "test", "a.org")] == [
        1, 2, 2, 3, 4, None, None,
    ]  # fmt: skip


def test_names_are_compared_in_their_canonical_form() -> None:
    assert HostTable({"B\u00dcCHER.test": 1}).get("xn--bcher-kva.test") == 1
    assert HostTable({"[::1]": 1}).get("::1") == HostTable({"0:0::1": 1}).get("::1") == 1


URLS = ["http://a.test", "a.test:80", "a.test/x", "u@a.test", "[::1]:80"]
IMPOSSIBLE = ["", "a..test", "a" * 64, "a." * 130 + "b", "a%41"]


@pytest.mark.parametrize("text", ["*", "a*.test", "*.*.test", *URLS, *IMPOSSIBLE])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a host"):
        HostTable({text: 1})


def test_tables_that_remember_are_emptied_when_memory_is_short_and_find_again() -> None:
    asked: list[str] = []

    def length(host: str) -> int:
        asked.append(host)
        return len(host)

    table = Remembered(length, 2)
    assert (table["a.test"], table["a.test"]) == (6, 6)
    forget_remembered()
    assert (len(table), table["a.test"], asked) == (0, 6, ["a.test", "a.test"])
