"""Lines: how a row of a table becomes one line of JSON. Pure; the same line serves table and log.

Place in the flow: :mod:`gossamer.stores.tablelog` and :mod:`gossamer.stores.rowlog` write these lines; which rows a visit gives
is said by its tables (:mod:`gossamer.stores.tables`).

Everything in a row was written by a stranger (fault 70). JSON escapes C0 controls; :func:`line` also escapes every
other character that is not printable: DEL, C1 controls, line separators, bidirectional and other format controls, which
a terminal or a pager would obey. Lone surrogates become U+FFFD, since no strict JSON reader takes them (fault 58).
"""

import re

import msgspec

from gossamer.contracts.tables import RowSource, Table
from gossamer.stores.printable import printable

#: Bytes of a line. Whoever reads rows holds a line in memory, and one page must not fill the log (fault 74).
MAX_LINE_BYTES = 4 << 20

_SURROGATE = re.compile("[\ud800-\udfff]")


def line(row: msgspec.Struct, encoder: msgspec.json.Encoder) -> bytes:
    """One row as one line of JSON, its newline included.

    Raises:
        TypeError: a value is nothing that JSON can hold.
    """
    try:
        text = encoder.encode(row)
    except UnicodeEncodeError:  # lone surrogates, which a processor can have put into an item
        text = encoder.encode(_without_surrogates(msgspec.to_builtins(row)))
    return printable(text) + b"\n"


def lines(table: Table, told: RowSource, encoder: msgspec.json.Encoder, troubles: list[str]) -> list[bytes]:
    """The lines of a visit's rows in a table.

    A row that JSON cannot hold, or that is too large, is mended by its table or left out: no processor stops a log.

    Args:
        table: whose rows they are; it makes rows of visits.
        told: the visit.
        encoder: of JSON.
        troubles: takes a word for each row that was mended or left out: `TABLE_without_json`, `TABLE_too_large`.
    """
    found = []
    for row in table.rows(told) if table.rows else ():
        text = None
        try:
            text = line(row, encoder)
        except (TypeError, ValueError, RecursionError):
            troubles.append(f"{table.name}_without_json")
            if table.mend is not None:
                row = table.mend(row, 0)  # noqa: PLW2901  # the mended row takes its place
                text = line(row, encoder)
        if text is not None and len(text) > MAX_LINE_BYTES:
            troubles.append(f"{table.name}_too_large")
            text = None if table.mend is None else line(table.mend(row, len(text)), encoder)
        if text is not None:
            found.append(text)
    return found


def _without_surrogates(value: object) -> object:
    """A copy of plain values in which lone surrogates are U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(inner) for inner in value]
    return value
