"""The list of hosts: searched, sorted, page by page, and the same for everybody who pages through it."""

from collections.abc import Callable
from typing import Any

import pytest

from gossamer.model.errors import UsageError
from gossamer.query.host_list import COLUMNS, MOST, HostList, read_hosts
from gossamer.stores.tables.host_notes import HostRow


def hosts(number: int) -> HostList:
    columns: dict[str, list[Any]] = {name: [None] * number for name in COLUMNS}
    columns["host"] = [f"h{n:07d}.test" for n in range(number)]
    columns["pages"] = [n % 100 for n in range(number)]
    columns["errors"] = [0] * number
    columns["delay"] = [None if n % 2 else float(n) for n in range(number)]
    return HostList(columns, 0.0)


def names(found: Any) -> list[str]:
    return [row["host"] for row in found.rows]


def test_every_host_is_on_one_page() -> None:
    listed = hosts(1_050)
    found = [name for offset in range(0, 1_050, 100) for name in names(listed.page(sort="pages", offset=offset))]
    assert len(found) == 1_050
    assert len(set(found)) == 1_050


def test_hosts_are_sorted_both_ways_and_those_that_have_nothing_come_last() -> None:
    listed = hosts(6)
    assert names(listed.page(sort="delay"))[:4] == [f"h000000{n}.test" for n in (0, 2, 4, 1)]
    assert names(listed.page(sort="delay", descending=True))[:4] == [f"h000000{n}.test" for n in (4, 2, 0, 1)]
    assert names(listed.page(descending=True))[0] == "h0000005.test"


def test_a_search_finds_parts_of_names_and_keeps_the_order() -> None:
    found = hosts(1_000).page(search="99.TEST", sort="pages", descending=True, limit=3)
    assert found.total == 10
    assert names(found) == ["h0000099.test", "h0000199.test", "h0000299.test"]


@pytest.mark.parametrize("asked", [{"sort": "x"}, {"offset": -1}, {"limit": 0}, {"limit": MOST + 1}])
def test_what_cannot_be_shown_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        hosts(1).page(**asked)


def test_the_list_is_that_of_the_table_while_the_crawl_runs(kept: Callable[..., Any], page: Callable[..., Any]) -> None:
    crawl = kept()
    crawl.commit(page(1), page(2))
    at = "2026-03-01T12:00:00.000000Z"
    crawl.rows.add("host_notes", [HostRow(host="b.test", domain="b.test", at=at, robots_state="read", delay=2.0)])
    found = read_hosts(crawl.directory).page()
    assert [(row["host"], row["pages"], row["delay"], row["robots_state"]) for row in found.rows] == [
        ("a.test", 2, None, None),
        ("b.test", 0, 2.0, "read"),
    ]
