"""Conformance suites for tables and for consumers of feeds: run them over implementations of your own."""

import os
import signal
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import FrameType
from typing import Any

import msgspec

from gossamer.storage.tables.contract import VISIT, FeedBatch, FeedConsumer, FeedMark, FeedPlace, RowSource, Table
from gossamer.testing.storage import hostile_visits, unanswered, visit
from gossamer.values.visit import Item, Link, Raised, Visit

#: Rows of a batch, batches of a generation.
_ROWS, _BATCHES = 3, 2

#: Lines after which a consumer has to be done with a batch.
_MOST_LINES = 2_000

#: A kill within a line of Python's own library comes to the same as one after the consumer's line that called it.
_LIBRARIES = (sysconfig.get_path("stdlib"), "<frozen")


def check_table(table: Table, visits: Sequence[Visit] = ()) -> None:
    """Check that a table makes rows of its type, which JSON can hold and which name their visit.

    Args:
        table: a table that makes rows from visits.
        visits: visits from which it makes rows, besides those of this check.
    """
    assert table.rows is not None, "the table is not made of visits"
    encoder = msgspec.json.Encoder()
    plain = msgspec.structs.replace(
        visit(),
        links=(Link("http://a.test/x"),),
        items=(Item("k", "http://a.test/", 1),),
        triples=(("http://a.test/", "http://a.test/p", "_:b1", "", ""),),
        errors=(Raised("handler 'book'", "spider.py:12", "ValueError: no"),),
    )
    rows = 0
    for number, one in enumerate((plain, unanswered(), *hostile_visits(), *visits)):
        named = msgspec.structs.replace(one, id=f"check-{number}")
        for row in table.rows(RowSource(named, named.task, named.response)):
            rows += 1
            assert isinstance(row, table.row), f"a {type(row).__name__} where the table has {table.row.__name__}"
            told = msgspec.json.decode(encoder.encode(row))
            assert told[VISIT] == named.id, "a row does not name its visit"
            assert table.spec.page is not None and table.spec.page in told, "a row does not name the URL of its visit"
            assert set(told) - {"event"} <= set(table.spec.names), "a row has a field that is not a column"
    assert rows, "no visit made a row: give a visit that does"


def check_feed_consumer(
    make: Callable[[], FeedConsumer],
    kept: Callable[[], Sequence[Any]],
    columns: tuple[str, ...],
    row: Callable[[int], tuple[Any, ...]],
    *,
    step: int = 1,
) -> None:
    """Check that a consumer keeps its promises: killed anywhere, it misses no row and has none twice.

    It is killed in processes of their own, after each line of Python that it runs, libraries excepted. They are forks of
    the process that calls this, and have none of its threads. Where a library of the consumer keeps threads for the whole
    process, as RocksDB and tantivy do, call this in a process of its own, and let `make`, `mark` and `kept` start none there.

    Args:
        make: opens the consumer as a new process does; nothing is kept at first.
        kept: returns the kept values in order, one for each row, without the consumer in memory.
        columns: the columns of the rows.
        row: returns the row for a number; equal numbers give equal values in `kept`, and others do not.
        step: kill after each multiple of this many lines: 1 is anywhere; more is for a consumer that starts slowly.
    """
    actions = count()

    def until_done(work: Callable[[FeedConsumer], None], mark: FeedMark) -> None:
        """Run an action in a process that is killed after some lines, then again with `step` lines more, until it is done.

        Each action begins at another line, so that all lines are covered by several actions.
        """
        killed_at = next(actions) % step
        while make().mark() != mark:
            killed_at += step
            assert killed_at <= _MOST_LINES, f"it is not done after {_MOST_LINES} lines"
            killed_after(killed_at, lambda: work(make()))

    assert make().mark() == FeedMark(), "a consumer that has kept nothing names a position"
    wanted: list[Any] = []
    for generation in (0, 1):
        if generation:
            until_done(lambda consumer: consumer.rebuild(1), FeedMark(1))
            assert not kept(), "rows of an earlier generation are left after rebuild"
        for batch in _batches(generation, columns, row):
            before = list(kept())
            until_done(lambda consumer, batch=batch: consumer.take(batch), batch.mark)  # type: ignore[misc]
            wanted = list(kept())
            assert wanted[: len(before)] == before, "rows that were kept have changed"
            assert len(wanted) == len(before) + len(batch.rows), "rows are missing, or there twice"
            assert len({repr(one) for one in wanted}) == len(wanted), "a row is there twice"
        assert len(wanted) == _ROWS * _BATCHES, "rows are missed"
    # It takes batch after batch in one process, and continues after a restart.
    consumer = make()
    consumer.rebuild(2)
    for batch in _batches(2, columns, row):
        consumer.take(batch)
        assert consumer.mark() == batch.mark, "the mark is not that of the last batch"
        consumer = make()
        assert consumer.mark() == batch.mark, "a process that starts later finds another mark"
    assert len(kept()) == _ROWS * _BATCHES, "rows are missing, or there twice"


def _batches(generation: int, columns: tuple[str, ...], row: Callable[[int], tuple[Any, ...]]) -> Iterator[FeedBatch]:
    """Make batches with the rows of two agents in turn."""
    places: dict[str, FeedPlace] = {}
    for number in range(_BATCHES):
        rows = [row(1000 * generation + number * _ROWS + at) for at in range(_ROWS)]
        agent = f"agent-{number % 2:02d}"
        places = {**places, agent: FeedPlace("20260301120000-00000000", 1, _ROWS * (number // 2 + 1))}
        yield FeedBatch(columns, rows, FeedMark(generation, places))


def killed_after(lines: int, work: Callable[[], object]) -> None:
    """Run a function in a process that is killed after this many lines of Python (libraries excepted), or ends before."""
    with warnings.catch_warnings():
        # The child runs nothing but the consumer; threads of the test's process are not missed in it.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    left = lines

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        file = frame.f_code.co_filename
        if file.startswith(_LIBRARIES) and "site-packages" not in file:
            return None
        if event == "line":
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        os._exit(0)
