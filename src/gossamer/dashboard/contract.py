"""The contract of a page that a subject adds to the dashboard (`Subject.pages`).

Place in the flow: a subject names, by the title of the page, a function that gets the directory of a crawl and returns a
:class:`DashboardPage`. Whenever a browser opens the page, a process of its own (:mod:`gossamer.dashboard.questions`)
calls the function, and the dashboard shows as text everything that it returns.

Promise of the dashboard: the function may print, raise, hang and eat memory; other pages and the crawl notice none of that.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec


class DashboardPage(msgspec.Struct, frozen=True):
    """The content of a page: a text, a table, or both."""

    title: str = ""
    """A heading; without one, the title under which the subject declares the page."""
    text: str = ""
    """Paragraphs, with an empty line between two."""
    columns: Sequence[str] = ()
    """The headings of a table."""
    rows: Sequence[Sequence[Any]] = ()
    """Cells in the order of the columns: texts, numbers, times, or anything that JSON can hold."""


#: The function that a subject names.
PageFunction = Callable[[Path], DashboardPage]
