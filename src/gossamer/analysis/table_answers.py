"""Answers to questions about a crawl's tables: ready-made reports, and, each in a process that can be killed, those of the
dashboard.

Place in the flow: `gossamer report` asks :func:`report_of`, while the crawl runs and after. The tables answer most reports; what
was set aside as likely traps, the ledger knows. The dashboard (:mod:`gossamer.dashboard.questions`) has a worker answer each
question of its console. DuckDB sees the tables of this crawl and nothing else (:class:`gossamer.query.database.Database`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.trap_review import suspicions_of
from gossamer.engine.sheet import nearest
from gossamer.engine.worker import Caller
from gossamer.query.database import Database
from gossamer.query.printing import json_line
from gossamer.query.reports import SPECS, BarPlot, MadeReport, MadeSection, ReportSpec, make_report
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
    """A list of :class:`TableAnswer` as JSON. Raises GossamerError: it cannot be answered."""
    directory = Path(question.directory)
    with Database(directory, threads=1) as database:
        if question.report:
            if question.report not in REPORTS:
                raise UsageError(f"there is no report {question.report!r}{nearest(question.report, REPORTS)}")
            made = report_of(directory, database, question.report, SECTION)
            tables = [
                table_answer(one.title, one.columns, one.types, one.rows, SECTION, one.total > len(one.rows), one.plot)
                for one in made.sections
            ]
        else:
            found = database.ask(question.sql)
            tables = [table_answer("", found.columns, found.types, found, question.rows)]
    return msgspec.json.encode(tables)


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


TRAPS = ReportSpec(
    "traps", "families of URLs that were set aside as likely traps, and hosts with unusually many", (), (), True
)

#: Every report, by name, in the order in which they are told.
REPORTS = {**SPECS, TRAPS.name: TRAPS}

#: Reports whose first section lists troubles of the site.
TROUBLES = tuple(name for name, spec in REPORTS.items() if spec.is_trouble)

#: Every report at once.
ALL = "all"


def report_of(
    directory: Path, database: Database, name: str, most: int | None, sections: int | None = None
) -> MadeReport:
    """One report of :data:`REPORTS`; `most` and `sections` are as of :func:`~gossamer.query.reports.make_report`."""
    if name != TRAPS.name:
        return make_report(database, SPECS[name], most, sections)
    found = suspicions_of(directory)
    families = [
        (one.id, one.family, one.trap, one.state, one.set_aside, one.probes, one.evidence) for one in found.families
    ]
    hosts = [(one.host, one.urls, one.pages) for one in found.hosts]
    columns = ["id", "family", "trap", "state", "set_aside", "probes", "evidence"]
    made = [
        MadeSection("Likely traps", columns, families[:most], len(families), plot=BarPlot("family", "set_aside")),
        MadeSection("Hosts with unusually many URLs", ["host", "urls", "pages"], hosts[:most], len(hosts)),
    ]
    return MadeReport(TRAPS.name, TRAPS.doc, made)


def report_names(names: Sequence[str]) -> list[str]:
    """The reports that are meant, each once. Raises UsageError: there is none of that name."""
    for name in names:
        if name not in REPORTS and name != ALL:
            raise UsageError(f"there is no report {name!r}{nearest(name, [*REPORTS, ALL])}")
    return list(REPORTS) if ALL in names else list(dict.fromkeys(names))
