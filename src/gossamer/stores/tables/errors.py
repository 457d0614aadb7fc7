"""`errors`: what processors and handlers of a user's own raised, each with the line of their code and its traceback."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gossamer.contracts.tables import RowSource, Table, column


class ErrorRow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="error"
):  # fmt: skip
    """One exception of a processor or handler."""

    url: Annotated[str, column("The page's URL.")]
    who: Annotated[str, column("The processor or handler that raised it.")]
    place: Annotated[str, column("File and line of the user's code.")] = ""
    error: Annotated[str, column("Class and text of the exception.")]
    traceback: Annotated[str, column("The calls that led to it, the innermost last.")] = ""
    visit: Annotated[str, column("The visit during which it was raised, as in `pages`.")] = ""


def _rows(told: RowSource) -> Iterable[ErrorRow]:
    return [
        ErrorRow(
            url=told.visit.url,
            who=one.who,
            place=one.place,
            error=one.error,
            traceback=one.traceback,
            visit=told.visit.id,
        )
        for one in told.visit.errors
    ]


ERRORS = Table(
    "errors",
    ErrorRow,
    "Errors that processors and handlers raised.",
    rows=_rows,
    is_made=True,
    is_logged=True,
)
