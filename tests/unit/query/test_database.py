"""SQL over a crawl answers what the rows say, and reaches nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.schema import documented, tables_that_ship
from gossamer.storage.tables.row_tables import CopyRow, HostRow
from gossamer.testing.storage import unanswered
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task
from gossamer.values.visit import Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]


def test_every_documented_column_is_there_before_there_is_a_row(kept: Open) -> None:
    with Database(kept().directory) as database:
        for table in documented():
            answer = database.ask(f"SELECT * FROM {table.name}")
            assert answer.columns == list(table.names)
            assert list(answer) == []


@pytest.mark.parametrize("ended", [False, True])
def test_columns_hold_what_was_fetched(kept: Open, page: Make, ended: bool) -> None:
    crawl = kept()
    crawl.commit(page(7, title="Seven", charset="utf-8"), unanswered())
    if ended:
        convert(crawl.directory, ended=True)
    with Database(crawl.directory) as database:
        row = dict(zip(*_one(database, "SELECT * FROM pages WHERE status = 200"), strict=True))
        assert list(row) == list(tables_that_ship()["pages"].names)
        assert (row["url"], row["title"], row["charset"]) == ("http://a.test/7", "Seven", "utf-8")
        assert (row["bytes"], row["links"], row["new"], row["noarchive"]) == (9, 2, 0, False)
        assert row["fetched_at"].isoformat() == "2023-11-14T22:13:27"
        assert (crawl.directory / row["warc_file"]).exists()
        links = list(database.ask("SELECT * FROM links ORDER BY target"))
        assert links == [
            ("http://a.test/7", "http://a.test/7/x", "a href", "", False, None, "a.test", "a.test"),
            ("http://a.test/7", "http://a.test/7/y", "img src", "why", True, None, "a.test", "a.test"),
        ]
        assert list(database.ask("SELECT kind, CAST(data->>'$.n' AS INTEGER) FROM items")) == [("n", 7)]
        failed = list(database.ask("SELECT outcome, error, warc_file FROM pages WHERE status = 0"))
        assert failed == [(Outcome.CONNECT_FAILED.value, "refused", None)]


def _one(database: Database, sql: str) -> tuple[list[str], tuple[Any, ...]]:
    answer = database.ask(sql)
    [row] = answer
    return answer.columns, row


def test_hosts_join_what_pages_show_with_the_newest_note(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1), unanswered())
    early, late = "2026-03-01T12:00:00.000000Z", "2026-03-01T13:00:00.000000Z"
    crawl.add(
        "host_notes",
        [
            HostRow(host="a.test", domain="a.test", at=late, robots_state="read", delay=2.0),
            HostRow(host="a.test", domain="a.test", at=early, robots_state="asking", delay=1.0),
            HostRow(host="b.test", domain="b.test", at=early, robots_state="asking"),
        ],
    )
    with Database(crawl.directory) as database:
        sql = "SELECT host, robots_state, delay, pages, errors FROM hosts ORDER BY host"
        assert list(database.ask(sql)) == [("a.test", "read", 2.0, 1, 1), ("b.test", "asking", None, 0, 0)]


def test_a_question_sees_one_state_while_the_crawl_goes_on(kept: Open, page: Make) -> None:
    crawl = kept(segment_bytes=1)
    crawl.commit(page(1))
    with Database(crawl.directory) as database:
        crawl.commit(page(2))
        convert(crawl.directory)
        assert list(database.ask("SELECT count(*) FROM pages")) == [(1,)]


REFUSED = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')",
    "SELECT * FROM rows",
    "COPY (SELECT 1) TO '{folder}/x.csv'",
    "COPY pages TO '{folder}/x'",
    "ATTACH '{folder}/x.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "PRAGMA enable_external_access",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW pages",
    "INSERT INTO pages VALUES (1)",
    "EXPORT DATABASE '{folder}/x'",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO '{folder}/x'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/x'",
    "",
    "-- nothing",
    "no sql at all",
    "SELECT nothing FROM pages",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_no_question_to_the_tables_is_refused_in_one_line(
    kept: Open, page: Make, tmp_path: Path, sql: str
) -> None:
    rows = [1, 2, 3]
    crawl = kept()
    crawl.commit(page(1))
    convert(crawl.directory, ended=True)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    with Database(crawl.directory) as database, pytest.raises(UsageError) as told:
        list(database.ask(sql.replace("{folder}", str(tmp_path))))
    assert str(told.value).count("\n") == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    assert rows


def test_a_table_that_nobody_made_is_named_with_those_that_are_there(kept: Open) -> None:
    with Database(kept().directory) as database, pytest.raises(UsageError) as told:
        database.ask("SELECT * FROM page")
    assert str(told.value).startswith("there is no table 'page'; did you mean 'pages'? Known: ")


def test_a_parquet_answer_is_a_table_again(kept: Open, page: Make, tmp_path: Path) -> None:
    crawl = kept()
    crawl.commit(page(1), page(2))
    with Database(crawl.directory) as database:
        database.write_parquet("SELECT url FROM pages ORDER BY url -- with a comment", tmp_path / "out.parquet")
        with pytest.raises(UsageError):
            database.write_parquet("SELECT 1) TO '/nowhere' --", tmp_path / "x.parquet")
    import duckdb

    with duckdb.connect() as connection:
        found = connection.execute("SELECT url FROM read_parquet(?)", [str(tmp_path / "out.parquet")]).fetchall()
    assert found == [("http://a.test/1",), ("http://a.test/2",)]


def test_a_table_of_an_older_version_lacks_columns_and_is_read(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    convert(crawl.directory, ended=True)
    with Database(crawl.directory) as database:
        database.write_parquet("SELECT url, host FROM pages", crawl.directory / "tables/pages/old.parquet")
    with Database(crawl.directory) as database:
        assert list(database.ask("SELECT count(*), count(title), count(host) FROM pages_all")) == [(2, 0, 2)]


def test_a_table_that_others_made_is_asked_too(kept: Open) -> None:
    crawl = kept()
    with Database(crawl.directory) as database:
        database.write_parquet("SELECT 's' AS subject", crawl.directory / "tables/triples/1.parquet")
    with Database(crawl.directory) as database:
        assert list(database.ask("SELECT subject FROM triples")) == [("s",)]


@pytest.mark.parametrize("ended", [False, True])
def test_the_first_document_of_all_agents_is_named_where_the_rows_of_their_agents_name_others(
    kept: Open, page: Make, ended: bool
) -> None:
    one, other = kept(), kept("agent-01")
    same = page(0, b"<p>same")
    one.commit(page(5, b"<p>same"), page(7, b"<p>same", duplicate_of="http://a.test/5"), page(8), page(9, b"<p>cut"))
    other.commit(
        page(3, b"<p>same"),
        page(4, b"<p>same", duplicate_of="http://a.test/3"),
        page(6, b"<p>same", task=Task("http://a.test/6", "a.test", request=Requested("m", "POST"))),
    )
    for number, at in ((5, "2023-11-14 22:13:25"), (3, "2023-11-14 22:13:23"), (5, "2023-11-14 22:13:25")):
        one.add("copies", [CopyRow(digest=same.digest, url=f"http://a.test/{number}", met_at=at)])
    if ended:
        convert(one.directory, ended=True)
    with Database(one.directory) as database:
        rows = list(database.ask("SELECT url, duplicate_of FROM pages WHERE request IS NULL ORDER BY url"))
        first = "http://a.test/3"
        assert rows == [
            (first, None),
            ("http://a.test/4", first),
            ("http://a.test/5", first),
            ("http://a.test/7", first),
            ("http://a.test/8", None),
            ("http://a.test/9", None),
        ]
        assert list(database.ask("SELECT duplicate_of FROM pages WHERE request IS NOT NULL")) == [(None,)]
        found = database.ask("SELECT * FROM pages")
        assert found.columns == list(tables_that_ship()["pages"].names)
