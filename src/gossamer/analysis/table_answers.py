"""Answers to questions about a crawl's tables, each in a process that can be killed.

Place in the flow: the dashboard (:mod:`gossamer.dashboard.questions`) has a worker answer each question of its console.
DuckDB sees the tables of this crawl and nothing else (:class:`gossamer.query.database.Database`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.analysis.reporting import REPORTS, Reporter
from gossamer.engine.sheet import nearest
from gossamer.engine.worker import Caller
from gossamer.query.database import Database
from gossamer.query.printing import json_line
from gossamer.query.reports import BarPlot
from gossamer.values.errors import UsageError

#: Characters of a text in a cell, and of a row as JSON, that are sent; a page may be a megabyte.
CELL, ROW = 2_000, 50_000

#: Characters of an answer: a browser shows some thousand rows.
ANSWER = 4_000_000

#: Rows of each section of a report.
SECTION = 200


class TableQuestion(msgspec.Struct, frozen=True):
    """A question: a statement, or a report."""

    directory: str
    """Of the crawl."""
    rows: int
    sql: str = ""
    report: str = ""


class TableAnswer(msgspec.Struct, frozen=True):
    """A table that is cut to the size that a browser shows."""

    title: str
    columns: list[str]
    types: list[str]
    """DuckDB's names of the columns' types."""
    rows: list[msgspec.Raw]
    """Each an array of cells; long texts are cut."""
    is_more: bool
    """There are rows behind these."""
    plot: BarPlot | None = None


def answer_tables(question: TableQuestion, caller: Caller) -> bytes:
    """The answer as JSON.

    Raises:
        GossamerError: it cannot be answered.
    """
    return msgspec.json.encode(_tables(Path(question.directory), question))


def _tables(directory: Path, question: TableQuestion) -> list[TableAnswer]:
    with Database(directory, threads=1) as database:
        if question.report:
            if question.report not in REPORTS:
                raise UsageError(f"there is no report {question.report!r}{nearest(question.report, REPORTS)}")
            made = Reporter(directory, database).make(question.report, SECTION)
            return [
                table_answer(one.title, one.columns, one.types, one.rows, SECTION, one.total > len(one.rows), one.plot)
                for one in made.sections
            ]
        found = database.ask(question.sql)
        return [table_answer("", found.columns, found.types, found, question.rows)]


def table_answer(
    title: str,
    columns: list[str],
    types: list[str],
    rows: Iterable[Sequence[Any]],
    most: int,
    is_more: bool = False,
    plot: BarPlot | None = None,
) -> TableAnswer:
    """At most so many rows of a table, with long cells cut; `is_more` says that others were left out before."""
    made: list[msgspec.Raw] = []
    size = 0
    for row in rows:
        text = json_line([cell[:CELL] if isinstance(cell, str) else cell for cell in row])
        size += len(text)
        if len(made) == most or size > ANSWER:
            is_more = True
            break
        made.append(msgspec.Raw(text if len(text) <= ROW else json_line([str(cell)[:CELL] for cell in row])))
    return TableAnswer(title, columns, types, made, is_more, plot)
