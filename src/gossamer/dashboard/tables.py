"""Questions about a crawl's tables from the browser, each answered in a process that is killed when it takes too long.

Place in the flow: :mod:`app` asks here. Saved questions lie in `$XDG_CONFIG_HOME/gossamer/reports.json`: they are the user's, and
hold for all crawls.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gossamer.dashboard.children import KilledChildren
from gossamer.dashboard.kept import config_folder, read_kept, write_kept
from gossamer.model.errors import UsageError
from gossamer.operations.reporting import REPORTS
from gossamer.operations.table_answers import TableQuestion

#: Seconds and bytes that an answer may take, and rows that are shown.
SECONDS, MEMORY, ROWS = 30.0, 2 << 30, 1_000

#: Questions that are answered at once; others wait. A console must not take the machine from the crawl beside it.
AT_ONCE = 2

#: Characters of a question, and saved questions, at most.
LONGEST, SAVED = 10_000, 200

#: The name of a column of an answer; SQL lets it be any text.
ColumnName = Annotated[str, msgspec.Meta(max_length=200)]


class SavedPlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plot that somebody chose for the answer to a question."""

    kind: Literal["line", "bars", "none"]
    x: ColumnName = ""
    """The column of times, numbers or names along which it is drawn; an answer that lacks it has no plot."""
    y: ColumnName = ""
    """The column of numbers that are drawn."""


class SavedQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question that somebody kept."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    sql: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    plot: SavedPlot | None = None
    """None where the form of the answer decides."""


class KeptQuestions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them."""

    saved: Annotated[list[SavedQuestion], msgspec.Meta(max_length=SAVED)] = []


class ReportName(msgspec.Struct, frozen=True):
    """A report that ships."""

    name: str
    doc: str


class ReportNames(msgspec.Struct, frozen=True):
    """What can be asked without writing SQL."""

    reports: list[ReportName]
    saved: list[SavedQuestion]
    trouble: str = ""
    """Why saved questions are not shown."""


class TableConsole:
    """The console of all browsers."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._children = KilledChildren("gossamer.operations.table_answers", seconds, AT_ONCE)

    def __repr__(self) -> str:
        return f"<TableConsole, {self._seconds} s each>"

    async def ask(self, directory: Path, sql: str = "", report: str = "") -> msgspec.Raw:
        """The tables that answer a question, as JSON.

        Raises:
            UsageError: it is no question, cannot be answered, or takes too long.
        """
        if bool(sql.strip()) == bool(report) or len(sql) > LONGEST:
            raise UsageError(f"give either sql, of {LONGEST} characters at most, or report")
        question = TableQuestion(self._memory, int(self._seconds) + 2, ROWS, sql, report)
        return msgspec.Raw(await self._children.ask(directory, msgspec.json.encode(question)))


def questions_file() -> Path:
    """Where saved questions lie: `$XDG_CONFIG_HOME/gossamer/reports.json`."""
    return config_folder() / "reports.json"


def names_of_reports(path: Path) -> ReportNames:
    """The reports that ship, and what was saved; where that cannot be read, why."""
    saved, trouble = [], ""
    try:
        saved = read_kept(path, KeptQuestions).saved
    except UsageError as error:
        trouble = str(error)
    return ReportNames([ReportName(name, spec.doc) for name, spec in REPORTS.items()], saved, trouble)


def save_questions(path: Path, body: bytes) -> ReportNames:
    """Keep these questions in the place of those that were kept.

    Raises:
        UsageError: they are none, those that were kept cannot be read, or these cannot be kept.
    """
    try:
        kept = msgspec.json.decode(body, type=KeptQuestions)
    except msgspec.MsgspecError as error:
        raise UsageError(f"saved: {error}") from None
    read_kept(path, KeptQuestions)  # what cannot be read may hold more than the browser knows
    write_kept(path, kept)
    return names_of_reports(path)
