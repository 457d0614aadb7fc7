"""Lines of JSON that a terminal or a pager can show, and the logs that consist of them: `logs/crawl.jsonl`, notes, and items that a
component could not handle (`logs/skipped.jsonl`).

Place in the flow: :mod:`gossamer.storage.tables.log` writes rows of tables as such lines, into row logs and into the log of the
crawl: one event a line, for people with `grep` and `jq`, in the order of the commits. :mod:`gossamer.storage.archive.cdxj` makes
the lines of its index so.

Everything in a row was written by a stranger (fault 70), and nothing in a line may hide, reorder or command. JSON escapes C0
controls; :func:`line` also escapes every other character that is not printable: DEL, C1 controls, line separators,
bidirectional and other format controls, which a terminal or a pager would obey. Lone surrogates become U+FFFD, since no strict
JSON reader takes them (fault 58). The last member of a line is its sum, which tells that a byte has changed since. It stays with
the line wherever merges and deletions take it.

An item whose component raised under `on_error = "skip"` is left out, and :func:`setting_aside` writes it with its error.

Agents among several write a log each, and the supervisor merges these in the order of time when a run ends. Each agent's log keeps
its own order, in which a page stands before its items; of two agents, the line goes first whose agent has come less far in time. A
mark says how far each log is merged and where the merged one ends, so that a kill repeats nothing and loses nothing.
"""

import contextlib
import heapq
import os
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.engine.files import AppendFile
from gossamer.engine.unit import SystemClock
from gossamer.storage.members import write_kept
from gossamer.storage.tables.contract import RowSource, Table
from gossamer.values.agents import member
from gossamer.values.instants import utc_text
from gossamer.values.patterns import lazy_pattern

#: The log of the whole crawl: its name, and its place inside the crawl directory (docs/kept.md).
CRAWL_LOG = "crawl"
LOG_FOLDER = "logs/"
LOG_PATH = f"{LOG_FOLDER}{CRAWL_LOG}.jsonl"


def log_path(name: str) -> str:
    """The place of a log inside the crawl directory: of the crawl's, or of the one that an agent among several writes."""
    return f"{LOG_FOLDER}{name}.jsonl"


#: DEL and all beyond ASCII; said by what it is not, which takes `re` microseconds instead of 4 ms to compile.
_NOT_ASCII = lazy_pattern("[^\x00-\x7e]")


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

#: The words of a line of the log of a crawl that `gossamer delete` took.
DELETED = b'{"event":"deleted"}'

#: The name of the sum of a line.
SUM = "line_sum"
_SUM, _SUM_END = f',"{SUM}":"'.encode(), 11
_SUM_BYTES = len(_SUM) + _SUM_END

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def summed(text: bytes) -> bytes:
    """A line of a log: the JSON of an object that has members, its sum as the last of them, and a newline."""
    return b'%b%b%08x"}\n' % (text[:-1], _SUM, xxh3_64_intdigest(text) & 0xFFFFFFFF)


def _as_written(line: bytes) -> bytes:
    return summed(line[:-_SUM_BYTES] + b"}")


def is_summed(line: bytes) -> bool:
    """Whether a line has a sum, be its name damaged: those of older programs and those that were taken have none."""
    return line[-_SUM_BYTES:].startswith(_SUM) or line[-_SUM_END:] == _as_written(line)[-_SUM_END:]


def is_whole(line: bytes) -> bool:
    """Whether a line is JSON of an object, and, where it has a sum, what was written."""
    if is_summed(line):
        return line == _as_written(line)
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except ValueError:
        return False
    return True


def line(row: msgspec.Struct, encoder: msgspec.json.Encoder) -> bytes:
    """One row as one line of JSON, its sum and its newline included. Raises TypeError: a value is nothing that JSON can hold."""
    try:
        text = encoder.encode(row)
    except UnicodeEncodeError:  # lone surrogates, which a processor can have put into an item
        text = encoder.encode(_without_surrogates(msgspec.to_builtins(row)))
    return summed(printable(text))


def lines(table: Table, told: RowSource, encoder: msgspec.json.Encoder, troubles: list[str]) -> list[bytes]:
    """The lines of a visit's rows in a table, which makes rows of visits. A row that JSON cannot hold, or that is too large, is
    mended by its table or left out: no processor stops a log. `troubles` takes a word for each: `TABLE_without_json`,
    `TABLE_too_large`."""
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

#: Where it stands who changed what, inside the crawl directory: one change a line.
STEERING_LOG = "logs/steering.jsonl"


def note_line(directory: Path, line: str) -> None:
    with contextlib.suppress(OSError):
        add_entry(directory / NOTES_LOG, {"event": "note", "at": utc_text(SystemClock().now()), "text": line})


def add_entry(path: Path, entry: Mapping[str, Any], mode: int = 0o666) -> None:
    """Add a line to a log of notes, which is made with this mode where it is not there. Raises OSError."""
    path.parent.mkdir(exist_ok=True)
    with open(path, "ab", opener=lambda name, flags: os.open(name, flags, mode)) as log:
        log.write(printable(msgspec.json.encode(entry)) + b"\n")


# Items that a component could not handle, for a person to look at.

#: Bytes of an item that are written whole: a visit with a page of the usual size. Of a larger one its beginning is shown.
WHOLE_ITEM = 256_000
SHOWN = 2_000

#: Characters of a traceback: the innermost frames, which say where it happened.
TRACEBACK = 8_000


def setting_aside(directory: Path, process: str = "") -> Callable[[str, Any, Exception], None]:
    """The part that keeps such items of one process of the crawl in a directory; without a name, of its own process."""
    name = f"skipped-{process}" if process else "skipped"

    def aside(unit: str, item: Any, error: Exception) -> None:
        try:
            text = msgspec.json.encode(item, enc_hook=repr)
        except (TypeError, ValueError):
            text = b""
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "unit": unit,
            "error": f"{type(error).__name__}: {error}",
            "traceback": "".join(traceback.format_exception(error))[-TRACEBACK:],
            "item": msgspec.Raw(text) if 0 < len(text) <= WHOLE_ITEM else f"{item!r:.{SHOWN}}",
        }
        # It is for the owner alone: an item may hold a request, and what that sends opens pages.
        add_entry(directory / log_path(name), entry, mode=0o600)

    return aside


# Merging the logs of several agents.

#: Where the mark stands, inside the crawl directory.
MARK = "state/supervisor/merged.json"

#: Bytes of merged lines that are written at once.
_CHUNK = 1 << 20

#: One merge at a time: the last look at a crawl goes on in its thread when the crawl ends, and would cut off lines that the end has
#: merged.
_MERGING = threading.Lock()

#: When a line's page was fetched. Lines are our own, and the column stands in each row of a page; a text of the page that looks
#: like it has its quotes escaped.
_TIME = lazy_pattern(rb'"fetched_at":"([^"]*)"')


class MergeMark(msgspec.Struct, frozen=True):
    """How far logs are merged."""

    ends: dict[str, int] = {}
    """File -> byte, for each agent's log."""
    end: int = 0
    """Of the merged log."""


def merge_logs(
    directory: Path, members: Sequence[str], ends: Mapping[str, int] | None = None, *, before: str = ""
) -> int:
    """Merge what the agents of a crawl have logged since the last time; returns how many lines.

    `ends` says up to which byte each file is committed, while agents are at work; without it, they have ended, and all whole
    lines count. Visits `before` a time (as :func:`gossamer.values.instants.utc_text` writes it) are merged, so that an
    agent that commits a little later finds its place in the order; all of it unless told. Raises OSError: the merged log cannot
    be written.
    """
    with _MERGING:
        mark = read_mark(directory)
        if not (directory / LOG_PATH).exists() or (directory / LOG_PATH).stat().st_size < mark.end:
            mark = MergeMark()  # what was merged is gone: it is made again
        logs = [log_path(member(text).agent) for text in members]
        files = [file for file in logs if (directory / file).exists()]
        if not files:
            return 0
        to = {file: (directory / file).stat().st_size if ends is None else ends.get(file, 0) for file in files}
        reached = dict(mark.ends)
        count = 0
        merged = AppendFile(directory / LOG_PATH, fresh=False)
        try:
            merged.cut_back(min(mark.end, merged.end))
            chunk = bytearray()
            parts = [_whole_lines(directory, file, mark.ends.get(file, 0), to[file]) for file in files]
            for time, file, end, line in heapq.merge(*parts):
                if before and time >= before.encode():
                    break
                chunk += line
                reached[file] = end
                count += 1
                if len(chunk) >= _CHUNK:
                    merged.append(bytes(chunk), sync=False)
                    chunk.clear()
            if chunk:
                merged.append(bytes(chunk), sync=False)
            write_mark(directory, MergeMark(reached, merged.end))
        finally:
            merged.close()
        return count


def forget_merged(directory: Path) -> None:
    """Let the log of the crawl be made again of all that the agents' logs have. Raises OSError."""
    with _MERGING:
        (directory / MARK).unlink(missing_ok=True)
        (directory / LOG_PATH).unlink(missing_ok=True)


def read_mark(directory: Path) -> MergeMark:
    """How far logs are merged; from the beginning where nothing says so."""
    try:
        return msgspec.json.decode((directory / MARK).read_bytes(), type=MergeMark)
    except (FileNotFoundError, ValueError):
        return MergeMark()


def write_mark(directory: Path, mark: MergeMark) -> None:
    write_kept(directory / MARK, mark)


def _whole_lines(directory: Path, file: str, start: int, end: int) -> Iterator[tuple[bytes, str, int, bytes]]:
    """The whole lines of a log between two bytes: how far its agent has come in time, the file, where the line ends, the line."""
    latest, place = b"", start
    with (directory / file).open("rb") as log:
        log.seek(start)
        for line in log:
            place += len(line)
            if place > end or not line.endswith(b"\n"):
                return
            if found := _TIME.search(line):
                latest = max(latest, found[1])
            yield latest, file, place, line
