"""Pages that subjects add to the dashboard, each made by a worker that can be killed.

Place in the flow: :mod:`app` lists the pages, and :mod:`questions` has a worker make one. Functions of packages run there alone, so
an endless loop, a crash or a page of a billion rows costs its browser an error, and nothing else notices.
"""

from pathlib import Path

import msgspec

from gossamer.analysis.table_answers import CELL, TableAnswer, table_answer
from gossamer.dashboard.contract import DashboardPage, PageFunction
from gossamer.engine.subjects import found_at, subjects
from gossamer.engine.worker import Caller
from gossamer.values.errors import GossamerError, UsageError

#: Rows and columns of a table, and characters of a text that are shown.
ROWS, COLUMNS, TEXT = 1_000, 100, 200_000


class PageName(msgspec.Struct, frozen=True):
    """A page that a subject adds."""

    title: str
    subject: str


class PageQuestion(msgspec.Struct, frozen=True):
    """Asks for one page."""

    directory: str
    """Of the crawl."""
    title: str


class ShownPage(msgspec.Struct, frozen=True):
    """A page as browsers get it."""

    text: str
    is_cut: bool
    """The text goes on."""
    table: TableAnswer


def page_names() -> list[PageName]:
    """The pages of all subjects.

    Raises:
        WiringError: a package offers something that is no subject, or a name that is taken.
    """
    return [PageName(title, one.name) for one in subjects() for title in one.pages]


def make_page(asked: PageQuestion, caller: Caller) -> bytes:
    """Call the function of a page; the answer is a :class:`ShownPage` as JSON.

    Raises:
        GossamerError: the page cannot be found, or its function raised or returned something else than a page.
    """
    title = asked.title
    one = next(one for one in subjects() if title in one.pages)
    function: PageFunction = found_at(one.pages[title])
    try:
        page = msgspec.convert(function(Path(asked.directory)), DashboardPage)
        columns = [name[:CELL] for name in page.columns[:COLUMNS]]
        rows = (list(row)[:COLUMNS] for row in page.rows)
        table = table_answer(page.title[:CELL] or title, columns, [], rows, ROWS)
        return msgspec.json.encode(ShownPage(page.text[:TEXT], len(page.text) > TEXT, table))
    except (GossamerError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # code of others: anything can come out of it
        raise UsageError(f"page {title!r} of subject {one.name!r} failed: {type(error).__name__}: {error}") from error
