"""How a row of a table becomes one line of JSON that a terminal or a pager can show, and the notes of a crawl in such lines.

Place in the flow: :mod:`gossamer.storage.tables.log` and :mod:`gossamer.storage.logs` write these lines,
:mod:`gossamer.storage.archive.cdxj` those of the index.

Everything in a row was written by a stranger (fault 70), and nothing in a line may hide, reorder or command. JSON escapes C0
controls; :func:`line` also escapes every other character that is not printable: DEL, C1 controls, line separators,
bidirectional and other format controls, which a terminal or a pager would obey. Lone surrogates become U+FFFD, since no strict
JSON reader takes them (fault 58).
"""

import contextlib
import re
from pathlib import Path

import msgspec

from gossamer.engine.clock import SystemClock
from gossamer.storage.tables.contract import RowSource, Table
from gossamer.values.instants import utc_text

#: DEL and all beyond ASCII; said by what it is not, which takes `re` microseconds instead of 4 ms to compile.
_NOT_ASCII = re.compile("[^\x00-\x7e]")


def printable(text: bytes) -> bytes:
    if text.isascii() and b"\x7f" not in text:
        return text
    shown = text.decode()
    return text if shown.isprintable() else _NOT_ASCII.sub(_escape, shown).encode()


def _escape(match: re.Match[str]) -> str:
    """One character, as a JSON escape where it cannot be seen or does something to its surroundings."""
    import json  # for the rare line that needs it

    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


#: Bytes of a line. A reader of rows holds a line in memory, and one page must not fill the log (fault 74).
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
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(inner) for inner in value]
    return value


# `logs/notes.jsonl`: lines that a command which runs a crawl has printed on its terminal, with their time, for `gossamer log`. A
# note is a courtesy: if it cannot be written, the crawl goes on.

#: Where it lies, inside the crawl directory.
NOTES_LOG = "logs/notes.jsonl"


def note_line(directory: Path, line: str) -> None:
    """Add a line that the crawl has told."""
    entry = {"event": "note", "at": utc_text(SystemClock().now()), "text": line}
    path = directory / NOTES_LOG
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as log:
            log.write(printable(msgspec.json.encode(entry)) + b"\n")
