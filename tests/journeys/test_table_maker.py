"""Tables beside a crawl: made when rows are closed, by a process that may fail, or by the crawl itself where they are few."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.companions import FEW_ROWS, INTERVAL, TableMaker
from gossamer.engine.unit import meanwhile
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.storage.tables.manifest import failure_of
from gossamer.storage.tables.places import converting, segments
from gossamer.testing.clock import FakeClock
from gossamer.testing.storage import visit

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Witness(TableMaker):
    """Notes when it is to make tables, and makes none."""

    def __init__(self, directory: Path, clock: FakeClock) -> None:
        super().__init__(directory, print, clock)
        self.made: list[bool] = []

    async def make(self, *, ended: bool = False) -> str:
        self.made.append(ended)
        return ""


def test_closed_rows_become_tables_while_the_crawl_runs(tmp_path: Path, run: Run) -> None:
    rows = TableLog(TableLogSheet(directory=str(tmp_path), segment_bytes=1))
    clock = FakeClock()
    maker = Witness(tmp_path, clock)
    made = maker.made

    async def crawl() -> None:
        async with meanwhile(maker.watch()):
            rows.append([visit()], [None])
            await clock.advance(INTERVAL)
            assert made == [], "what may still be written is left alone"
            rows.append([visit()], [None])
            await clock.advance(INTERVAL)
            assert made == [False]
        await clock.advance(INTERVAL)
        assert made == [False], "nobody watches any more"

    run(crawl())


ELSEWHERE_AND_HERE = pytest.mark.parametrize("few", [0, FEW_ROWS], ids=["process", "thread"])


@ELSEWHERE_AND_HERE
def test_tables_are_made_of_everything_at_the_end(few: int, tmp_path: Path, run: Run) -> None:
    said: list[str] = []
    TableLog(TableLogSheet(directory=str(tmp_path))).append([visit()], [None])
    maker = TableMaker(tmp_path, said.append, few=few)
    run(maker.finish())
    assert (maker._worker is None) == (few > 0), "few rows need no process"
    assert said == []
    assert segments(tmp_path) == []
    assert len(list(tmp_path.glob("tables/pages/*.parquet"))) == 1


@ELSEWHERE_AND_HERE
def test_a_failure_is_told_in_one_line_and_loses_nothing(few: int, tmp_path: Path, run: Run) -> None:
    said: list[str] = []
    TableLog(TableLogSheet(directory=str(tmp_path))).append([visit()], [None])
    (tmp_path / "tables").write_text("a file stands in the way")
    why = run(TableMaker(tmp_path, said.append, few=few).finish())
    [line] = said
    assert line.startswith(f"tables and index could not be made ({why})")
    assert failure_of(tmp_path) == why != ""
    assert "\n" not in line
    assert len(segments(tmp_path)) == 1
    (tmp_path / "tables").unlink()
    assert run(TableMaker(tmp_path, said.append).finish()) == ""
    assert failure_of(tmp_path) == ""


def test_without_rows_no_process_is_started(tmp_path: Path, run: Run) -> None:
    maker = Witness(tmp_path, FakeClock())
    run(maker.finish())
    assert maker.made == []


def test_a_thread_waits_for_no_other_process_that_makes_tables(tmp_path: Path, run: Run) -> None:
    maker = TableMaker(tmp_path, print)
    TableLog(TableLogSheet(directory=str(tmp_path))).append([visit()], [None])

    async def impatient() -> None:
        with converting(tmp_path, wait=False):
            making = asyncio.create_task(maker.finish())
            while maker._worker is None:
                await asyncio.sleep(0)
            maker.abort()
            await making

    run(impatient())
    assert len(segments(tmp_path)) == 1


def test_who_insists_on_the_end_does_not_wait_for_tables(tmp_path: Path, run: Run) -> None:
    said: list[str] = []
    maker = TableMaker(tmp_path, said.append, few=0)
    TableLog(TableLogSheet(directory=str(tmp_path))).append([visit()], [None])

    async def impatient() -> None:
        making = asyncio.create_task(maker.finish())
        while maker._worker is None:
            await asyncio.sleep(0)
        maker.abort()
        await making
        await maker.finish()

    run(impatient())
    assert said == ["tables and index are not complete; the next run, and `gossamer query`, go on with them"]
    run(TableMaker(tmp_path, said.append).finish())
    assert segments(tmp_path) == []
    assert len(list(tmp_path.glob("tables/pages/*.parquet"))) == 1
