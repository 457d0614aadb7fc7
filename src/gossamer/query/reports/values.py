"""What a report is before it is asked, and what it is afterwards.

Place in the flow: :mod:`graph`, :mod:`content` and :mod:`health` declare reports, :mod:`asking` makes them of a crawl's tables,
:mod:`html` and the command line show them.
"""

from typing import Any

import msgspec


class BarPlot(msgspec.Struct, frozen=True):
    """Draw the first rows of a section as horizontal bars."""

    label: str
    """Column of the texts beside the bars."""
    value: str
    """Column of the numbers that the bars are as long as."""


class ReportSection(msgspec.Struct, frozen=True):
    """One table of a report, before it is asked."""

    title: str
    sql: str
    plot: BarPlot | None = None


class ReportSpec(msgspec.Struct, frozen=True):
    """A report, before it is asked."""

    name: str
    doc: str
    """One line: what it lists."""
    sections: tuple[ReportSection, ...]
    """The first is what CSV and JSON lines hold, and what `--fail-on` counts."""
    parts: tuple[tuple[str, str], ...] = ()
    """Names and SQL of answers that several sections ask: each is found once."""
    is_trouble: bool = False
    """Rows of the first section are something to mend."""


class MadeSection(msgspec.Struct, frozen=True):
    """One table of a report, with its rows."""

    title: str
    columns: list[str]
    rows: list[tuple[Any, ...]]
    total: int
    """Rows that there are; `rows` may be the first of them only."""
    types: list[str] = []
    """DuckDB's names of the columns' types."""
    plot: BarPlot | None = None


class MadeReport(msgspec.Struct, frozen=True):
    """A report with its rows."""

    name: str
    doc: str
    sections: list[MadeSection]
