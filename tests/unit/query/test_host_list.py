"""The list of hosts: searched, sorted, page by page, the same for everybody, and kept up to date by new rows."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gossamer.query import host_list
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.engine import ParquetWriter
from gossamer.query.host_list import COLUMNS, MOST, HostList
from gossamer.storage.tables.places import TableManifest, run_file, write_manifest
from gossamer.storage.tables.row_tables import HostRow
from gossamer.values.errors import UsageError

AT = "2026-03-01T12:00:00.000000Z"


def hosts(directory: Path, sql: str) -> HostList:
    """The list of a crawl whose notes are the answer to a question: host, pages, errors, delay of `n`."""
    directory.mkdir()
    with ParquetWriter() as writer:
        rows = f"SELECT *, TIMESTAMP '2026-03-01 12:00:00' AS \"at\" FROM ({sql})"
        writer.write(rows, directory / "tables" / "host_notes" / "agent-00-20260301120000-00000001-000001.parquet")
    made = HostList(directory)
    made.refresh()
    return made


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostList]:
    """Three thousand hosts, of which every second one has a delay: more than are found without an order of all."""
    sql = """SELECT format('h{:07d}.test', n) AS host, n % 100 AS pages, 0 AS errors,
             CASE WHEN n % 2 = 0 THEN n END::DOUBLE AS delay FROM range(3000) t(n)"""
    made = hosts(tmp_path_factory.mktemp("many") / "crawl", sql)
    yield made
    made.close()


def names(found: Any) -> list[str]:
    return [row["host"] for row in found.rows]


def test_every_host_is_on_one_page(many: HostList) -> None:
    found = [name for offset in range(0, 3_000, 100) for name in names(many.page(sort="pages", offset=offset))]
    assert len(found) == 3_000
    assert len(set(found)) == 3_000


@pytest.mark.parametrize("spread", [5, 10**13, 2**62])
def test_equal_hosts_come_as_they_were_met_however_far_numbers_lie_apart(spread: int) -> None:
    drawn = np.random.default_rng(1).integers(-spread, spread, 1_000)
    for keys in (drawn, drawn + 10**15 % spread, drawn[:1], drawn[:0]):
        assert host_list._places(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_pages_far_behind_go_on_where_those_near_the_beginning_end(many: HostList) -> None:
    near = names(many.page(sort="pages", descending=True, offset=host_list.NEAR - 10, limit=10))
    far = names(many.page(sort="pages", descending=True, offset=host_list.NEAR - 10, limit=20))
    assert far[:10] == near
    assert names(many.page(sort="delay", offset=2_990, limit=10, search="9.test")) == []
    for sort in ("host", "delay", "last_seen", "ip", "errors"):
        for descending in (False, True):
            far = names(many.page(sort=sort, descending=descending, offset=host_list.NEAR - 1, limit=2))
            near = names(many.page(sort=sort, descending=descending, offset=host_list.NEAR - 1, limit=1))
            assert far[:1] == near, (sort, descending)


def test_hosts_are_sorted_both_ways_and_those_that_have_nothing_come_last(many: HostList) -> None:
    assert names(many.page(sort="delay", limit=3)) == [f"h000000{n}.test" for n in (0, 2, 4)]
    assert names(many.page(sort="delay", offset=1_499, limit=2)) == ["h0002998.test", "h0000001.test"]
    assert names(many.page(sort="delay", descending=True, limit=2)) == ["h0002998.test", "h0002996.test"]
    assert names(many.page(descending=True, limit=1)) == ["h0002999.test"]


def test_a_search_finds_parts_of_names_and_keeps_the_order(many: HostList) -> None:
    found = many.page(search="99.TEST", sort="pages", descending=True, limit=3)
    assert found.total == 30
    assert names(found) == ["h0000099.test", "h0000199.test", "h0000299.test"]
    assert many.page(search="%' OR 1=1 --").total == 0


@pytest.mark.parametrize("asked", [{"sort": "x"}, {"offset": -1}, {"limit": 0}, {"limit": MOST + 1}])
def test_what_cannot_be_shown_is_refused(many: HostList, asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        many.page(**asked)


def table(directory: Path) -> list[tuple[Any, ...]]:
    """What the table `hosts` says."""
    columns = ", ".join(f"{name}::VARCHAR" if name == "last_seen" else name for name in COLUMNS)
    with Database(directory) as database:
        return list(database.ask(f"SELECT {columns} FROM hosts ORDER BY host"))


def listed(made: HostList) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in COLUMNS) for row in made.page(limit=MOST).rows]


def commit(crawl: Any, *visits: Any, notes: list[HostRow] | None = None) -> None:
    """One group, and the word that it is kept."""
    crawl.commit(*visits)
    crawl.add("host_notes", notes or [])
    crawl.rows.committed(crawl.rows.ends())


def test_the_list_says_what_the_table_says_however_the_rows_come(
    kept: Callable[..., Any], page: Callable[..., Any]
) -> None:
    crawl = kept()
    note: dict[str, Any] = {"domain": "b.test", "robots_state": "read", "delay": 2.0}
    with contextlib.closing(HostList(crawl.directory)) as made:
        assert made.page().made_at == ""
        commit(crawl, page(1), page(2), notes=[HostRow(host="b.test", at=AT, **note)])
        made.refresh()
        assert listed(made) == table(crawl.directory)
        assert [row[:4] for row in listed(made)] == [("a.test", 2, 0, None), ("b.test", 0, 0, 2.0)]
        failed = msgspec.structs.replace(page(3).response, outcome="server_error", status=500)
        later = HostRow(host="b.test", at="2026-03-02T12:00:00Z", **{**note, "delay": 3.0})
        of_a = HostRow(host="a.test", domain="a.test", at=AT, errors=9, ip="192.0.2.1")
        commit(crawl, page(3, response=failed), page(4), notes=[later, of_a])
        made.refresh()
        assert listed(made) == table(crawl.directory)
        assert [row[:4] for row in listed(made)] == [("a.test", 3, 9, None), ("b.test", 0, 0, 3.0)]


def test_rows_that_became_tables_are_counted_once(kept: Callable[..., Any], page: Callable[..., Any]) -> None:
    crawl = kept()
    commit(crawl, page(1), page(2))
    with contextlib.closing(HostList(crawl.directory)) as made:
        made.refresh()
        convert(crawl.directory, ended=True)
        made.refresh()
        made.refresh()
        assert [row[:2] for row in listed(made)] == [("a.test", 2)]


def test_a_file_that_cannot_be_read_is_left_out_and_counted(tmp_path: Path) -> None:
    with contextlib.closing(hosts(tmp_path / "crawl", "SELECT 'a.test' AS host")) as made:
        (tmp_path / "crawl/tables/host_notes/agent-00-20260301120000-00000001-000002.parquet").write_bytes(b"PAR1")
        made.refresh()
        assert (names(made.page()), made.page().left_out) == (["a.test"], 1)


def test_tables_made_anew_are_counted_anew(tmp_path: Path) -> None:
    with contextlib.closing(hosts(tmp_path / "crawl", "SELECT 'a.test' AS host")) as made:
        folder = tmp_path / "crawl/tables/host_notes"
        [old] = folder.iterdir()
        with ParquetWriter() as writer:
            rows = "SELECT 'b.test' AS host, TIMESTAMP '2026-03-01 12:00:00' AS \"at\""
            writer.write(rows, run_file(tmp_path / "crawl", "host_notes", 1))
        write_manifest(tmp_path / "crawl", TableManifest(1, (f"host_notes/{old.name}",)))
        made.refresh()
        assert names(made.page()) == ["b.test"]
