"""A feed gives every committed row of a table once and in order, wherever the rows lie."""

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from gossamer.query.convert import convert
from gossamer.query.feeds import Feed
from gossamer.storage.tables.contract import FeedBatch, FeedMark
from gossamer.storage.tables.places import TableManifest as Replaced
from gossamer.storage.tables.places import committed, reading, run_file, segments, table_files, write_manifest
from gossamer.values.visit import Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]


class Taken:
    """A consumer that keeps rows in memory."""

    def __init__(self, table: str = "items", columns: tuple[str, ...] = (), rows_at_once: int = 1_000) -> None:
        self.table = table
        self.columns = columns
        self.rows_at_once = rows_at_once
        self.rows: list[tuple[Any, ...]] = []
        self.rebuilt: list[int] = []
        self._mark = FeedMark()

    def mark(self) -> FeedMark:
        return self._mark

    def rebuild(self, generation: int) -> None:
        self.rebuilt.append(generation)
        self.rows.clear()
        self._mark = FeedMark(generation)

    def take(self, batch: FeedBatch) -> None:
        self.rows += batch.rows
        self._mark = batch.mark

    @property
    def urls(self) -> list[str]:
        return [row[1] for row in self.rows]


def commit(crawl: Any, *visits: Visit) -> None:
    """One group, and the word that it is kept."""
    crawl.commit(*visits)
    crawl.rows.committed(crawl.rows.ends())


def urls(numbers: Iterable[int]) -> list[str]:
    return [f"http://a.test/{number}" for number in numbers]


def test_rows_that_are_not_committed_are_not_given(kept: Open, page: Make) -> None:
    crawl, taken = kept(), Taken()
    feed = Feed(crawl.directory, "items")
    commit(crawl, page(1))
    crawl.commit(page(2))
    assert feed.give(taken) == 1
    assert taken.urls == urls([1])
    crawl.rows.take_back()
    commit(crawl, page(3))
    assert feed.give(taken) == 1
    assert feed.give(taken) == 0
    assert taken.urls == urls([1, 3])


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
@pytest.mark.parametrize("table", ["items", "links", "pages"])
def test_a_feed_goes_on_where_a_segment_becomes_parquet(kept: Open, page: Make, table: str, segment_bytes: int) -> None:
    crawl, taken = kept(segment_bytes=segment_bytes), Taken(table)
    feed = Feed(crawl.directory, table)
    for number, ended in zip(range(8), itertools.cycle([False, False, True]), strict=False):
        commit(crawl, page(number))
        if number % 2:
            Feed(crawl.directory, table).give(taken)
        if ended:
            convert(crawl.directory)
        feed.give(taken)
    convert(crawl.directory, ended=True)
    feed.give(taken)
    each = 2 if table == "links" else 1
    place = 0 if table in ("links", "pages") else 1
    assert [row[place] for row in taken.rows] == urls(number for number in range(8) for _ in range(each))


def test_a_consumer_keeps_one_mark_for_each_agent(kept: Open, page: Make) -> None:
    first, second, taken = kept("agent-00"), kept("agent-01"), Taken()
    feed = Feed(first.directory, "items")
    for number in range(3):
        commit(first, page(2 * number))
        commit(second, page(2 * number + 1))
        feed.give(taken)
    assert sorted(taken.urls) == urls(range(6))
    assert set(taken.mark().places) == {"agent-00", "agent-01"}
    convert(first.directory, ended=True)
    assert feed.give(taken) == 0


def test_a_clock_that_was_set_back_hides_no_row(kept: Open, page: Make) -> None:
    taken = Taken()
    for now, number in ((2e9, 1), (1.9e9, 2), (1.8e9, 3)):
        crawl = kept()
        crawl.rows.clock = Stopped(now)
        commit(crawl, page(number))
        Feed(crawl.directory, "items").give(taken)
        if number == 2:
            convert(crawl.directory, ended=True)
    assert taken.urls == urls([1, 2, 3])


class Stopped:
    """A clock that stands."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now


def test_a_reprocess_begins_a_new_generation_and_consumers_rebuild(kept: Open, page: Make) -> None:
    crawl, taken = kept(), Taken()
    feed = Feed(crawl.directory, "items")
    commit(crawl, page(1), page(2))
    convert(crawl.directory, ended=True)
    feed.give(taken)
    [old] = table_files(crawl.directory, "items").current
    with reading(crawl.directory):
        # What `replace` does: another file, then the manifest.
        run_file(crawl.directory, "items", 1).write_bytes(old.read_bytes())
        write_manifest(crawl.directory, Replaced(1, (f"items/{old.name}",)))
    crawl = kept()
    commit(crawl, page(3))
    assert feed.give(taken) == 3
    assert taken.rebuilt == [1]
    assert taken.urls == urls([1, 2, 3])
    assert Feed(crawl.directory, "items").give(taken) == 0


def test_a_line_of_committed_ends_that_is_half_written_says_nothing(kept: Open, page: Make) -> None:
    crawl, taken = kept(), Taken()
    commit(crawl, page(1))
    path = crawl.directory / "state/agent-00/rows/committed"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"items", b"itemz"))
    assert committed(crawl.directory, "agent-00").ends == {}
    assert Feed(crawl.directory, "items").give(taken) == 0
    path.write_bytes(whole)
    assert Feed(crawl.directory, "items").give(taken) == 1


def test_a_crawl_of_an_older_program_is_given_when_its_segments_are_closed(kept: Open, page: Make) -> None:
    crawl, taken = kept(), Taken()
    commit(crawl, page(1))
    for name in ("committed", "items.table", "last"):
        Path(crawl.directory, "state/agent-00/rows", name).unlink()
    assert Feed(crawl.directory, "items").give(taken) == 0
    convert(crawl.directory, ended=True)
    assert segments(crawl.directory) == []
    assert Feed(crawl.directory, "items").give(taken) == 1
