"""Rows become tables exactly once, whatever is killed when."""

import pathlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import sampled

from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.engine import Error, ParquetWriter
from gossamer.storage.archive.contract import INDEX
from gossamer.storage.tables.manifest import damaged_index, damaged_tables, notes_of
from gossamer.storage.tables.places import (
    TableManifest,
    manifest,
    reading,
    run_file,
    segments,
    table_files,
    write_manifest,
)
from gossamer.values.visit import Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]


def asked(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    with Database(directory) as database:
        return list(database.ask(sql))


def counts(directory: Path) -> tuple[int, ...]:
    """Rows of pages, links, items; URLs of pages."""
    sql = "SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM links), (SELECT count(*) FROM items), "
    return tuple(asked(directory, sql + "(SELECT count(DISTINCT url) FROM pages)")[0])


def test_an_open_log_is_left_alone_and_read_all_the_same(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1), page(2))
    assert convert(crawl.directory).segments == 0
    assert counts(crawl.directory) == (2, 4, 2, 2)


def test_closed_logs_become_tables_and_go(kept: Open, page: Make) -> None:
    crawl = kept(segment_bytes=1)
    for number in range(4):
        crawl.commit(page(number))
    assert convert(crawl.directory).segments == 9
    assert len(segments(crawl.directory)) == 3
    assert len(table_files(crawl.directory, "links").current) == 3
    assert counts(crawl.directory) == (4, 8, 4, 4)
    crawl.commit(page(4))
    assert counts(crawl.directory) == (5, 10, 5, 5)


def test_at_the_end_everything_is_a_table_and_the_index_is_sorted(kept: Open, page: Make) -> None:
    crawl = kept(segment_bytes=1)
    for number in (3, 1, 2):
        crawl.commit(page(number))
    done = convert(crawl.directory, ended=True)
    assert (done.segments, done.captures) == (9, 3)
    assert segments(crawl.directory) == []
    lines = (crawl.directory / INDEX).read_bytes().splitlines()
    assert lines == sorted(lines)
    assert not list(crawl.directory.glob("state/*/index/*"))
    assert asked(crawl.directory, "SELECT host, pages FROM hosts") == [("a.test", 3)]
    assert (crawl.directory / "tables/hosts/hosts.parquet").exists()


def test_a_writer_gives_its_memory_back_and_goes_on(tmp_path: Path) -> None:
    with ParquetWriter() as writer:
        writer.view("numbers", "SELECT 1 AS number")
        writer.write("SELECT * FROM numbers", tmp_path / "one.parquet")
        writer.rest()
        with pytest.raises(Error):
            writer.write("SELECT * FROM numbers", tmp_path / "two.parquet")
        writer.write("SELECT 2 AS number", tmp_path / "two.parquet")
        writer.rest()
        writer.rest()
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["one.parquet", "two.parquet"]


def test_a_crawl_that_goes_on_adds_to_tables_and_index(kept: Open, page: Make) -> None:
    kept().commit(page(1))
    convert(kept().directory, ended=True)
    kept().commit(page(2))
    assert counts(kept().directory) == (2, 4, 2, 2)
    assert convert(kept().directory, ended=True).captures == 2
    assert counts(kept().directory) == (2, 4, 2, 2)


def test_agents_share_tables_and_index(kept: Open, page: Make) -> None:
    kept("agent-00").commit(page(1))
    kept("agent-01").commit(page(2))
    assert convert(kept().directory, ended=True).captures == 2
    assert counts(kept().directory) == (2, 4, 2, 2)


class Killed(BaseException):
    """What no `except Exception` may catch, as no process catches SIGKILL."""


#: Ways to change what a directory holds. Between two of them a kill changes nothing, so one before each is one anywhere.
CHANGES = ("replace", "unlink")

#: How many of them a conversion of three segments of each table makes.
STEPS = 57


def dying(patched: pytest.MonkeyPatch, step: int) -> list[int]:
    """Die right before the change of this number, from 1; returns how often anything was to be changed."""
    made = [0]

    def deadly(name: str) -> Any:
        real = getattr(Path, name)

        def change(path: Path, *arguments: Any, **named: Any) -> Any:
            made[0] += 1
            if made[0] == step:
                raise Killed
            return real(path, *arguments, **named)

        return change

    for name in CHANGES:
        patched.setattr(pathlib.Path, name, deadly(name))
    return made


def test_every_step_of_a_conversion_is_killed_at(kept: Open, page: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = kept(segment_bytes=1)
    for number in range(3):
        crawl.commit(page(number))
    made = dying(monkeypatch, 0)
    convert(crawl.directory, ended=True)
    assert made == [STEPS]


@pytest.mark.parametrize("step", sampled(range(1, STEPS + 1), 3))
def test_a_kill_at_any_step_loses_and_doubles_nothing(
    kept: Open, page: Make, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = kept(segment_bytes=1)
    for number in range(3):
        crawl.commit(page(number))
    with monkeypatch.context() as patched:
        dying(patched, step)
        with pytest.raises(Killed):
            convert(crawl.directory, ended=True)
    assert counts(crawl.directory) == (3, 6, 3, 3)
    assert damaged_tables(crawl.directory, notes_of(crawl.directory)) == []
    convert(crawl.directory, ended=True)
    assert counts(crawl.directory) == (3, 6, 3, 3)
    assert len((crawl.directory / INDEX).read_bytes().splitlines()) == 3
    notes = notes_of(crawl.directory)
    assert damaged_tables(crawl.directory, notes, deep=True) == []
    assert damaged_index(crawl.directory, notes) is None


def test_who_reads_keeps_the_logs_that_are_tables_now(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    with reading(crawl.directory):
        convert(crawl.directory, ended=True)
        assert len(segments(crawl.directory)) == 3
        assert counts(crawl.directory) == (1, 2, 1, 1)
    convert(crawl.directory)
    assert segments(crawl.directory) == []
    assert counts(crawl.directory) == (1, 2, 1, 1)


def test_only_one_process_converts(kept: Open, page: Make) -> None:
    crawl = kept(segment_bytes=1)
    for number in range(2):
        crawl.commit(page(number))
    from gossamer.storage.tables.places import converting as lock

    with lock(crawl.directory, wait=False) as held:
        assert held
        assert convert(crawl.directory).busy
    assert convert(crawl.directory).segments == 3


def test_replaced_files_count_no_more_and_go_when_nobody_reads(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    with reading(crawl.directory):
        convert(crawl.directory, ended=True)
        [old] = table_files(crawl.directory, "links").current
        write_manifest(crawl.directory, TableManifest(1, (f"links/{old.name}",)))
        assert counts(crawl.directory) == (1, 0, 1, 1)
        convert(crawl.directory)
        assert counts(crawl.directory) == (1, 0, 1, 1)
    convert(crawl.directory)
    assert not old.exists()
    assert manifest(crawl.directory) == TableManifest(1)
    assert counts(crawl.directory) == (1, 0, 1, 1)


def test_a_file_of_a_run_counts_when_the_manifest_says_so(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    convert(crawl.directory, ended=True)
    [old] = table_files(crawl.directory, "pages").current
    shutil.copy(old, run_file(crawl.directory, "pages", 1))
    assert counts(crawl.directory)[0] == 1
    write_manifest(crawl.directory, TableManifest(1))
    assert counts(crawl.directory)[0] == 2


def test_a_torn_line_is_not_read(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    for one in segments(crawl.directory):
        with one.path.open("ab") as file:
            file.write(b'{"url":"http://torn.test/')
    assert counts(crawl.directory) == (1, 2, 1, 1)


def test_what_strangers_wrote_stays_in_its_column(kept: Open) -> None:
    from gossamer.testing.storage import hostile_visits

    crawl = kept()
    visits = hostile_visits()
    crawl.commit(*visits)
    before = sorted(asked(crawl.directory, "SELECT coalesce(title, '') FROM pages"))
    assert before == sorted((one.title,) for one in visits)
    convert(crawl.directory, ended=True)
    assert sorted(asked(crawl.directory, "SELECT coalesce(title, '') FROM pages")) == before
