"""The log of a crawl of several agents: their logs, merged in the order of time into `logs/crawl.jsonl`.

Place in the flow: the supervisor merges when a run ends. Each agent's log keeps its own order, in which a page stands before
its items; of two agents, the line goes first whose agent has come less far in time. A mark says how far each log is merged and
where the merged one ends, so that a kill repeats nothing and loses nothing.
"""

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gossamer.model.agents import member
from gossamer.stores.files import AppendFile
from gossamer.stores.rowlog import LOG_PATH, log_path

#: Where the mark stands, inside the crawl directory.
MARK = "state/supervisor/merged.json"

#: Bytes of merged lines that are written at once.
_CHUNK = 1 << 20

#: When a line's page was fetched: lines are our own, and the column stands in each row of a page.
_TIME = re.compile(rb'"fetched_at":"([^"]*)"')


class MergeMark(msgspec.Struct, frozen=True):
    """How far logs are merged."""

    ends: dict[str, int] = {}
    """File -> byte, for each agent's log."""
    end: int = 0
    """Of the merged log."""


def merge_logs(
    directory: Path, members: Sequence[str], ends: Mapping[str, int] | None = None, *, before: str = ""
) -> int:
    """Merge what agents have logged since the last time.

    Args:
        directory: of the crawl.
        members: its agents.
        ends: file -> byte up to which it is committed, while agents are at work; all whole lines, when they have ended.
        before: merge what was fetched before this time (as :func:`gossamer.model.dates.utc_text` writes it), so that an agent that
            commits a little later finds its place in the order; all of it unless told.

    Returns:
        The lines that were merged.

    Raises:
        OSError: the merged log cannot be written.
    """
    mark = read_mark(directory)
    if not (directory / LOG_PATH).exists() or (directory / LOG_PATH).stat().st_size < mark.end:
        mark = MergeMark()  # what was merged is gone: it is made again
    files = [log_path(member(text).agent) for text in members]
    files = [file for file in files if (directory / file).exists()]
    if not files:
        return 0
    to = {file: (directory / file).stat().st_size if ends is None else ends.get(file, 0) for file in files}
    reached = dict(mark.ends)
    count = 0
    merged = AppendFile(directory / LOG_PATH, fresh=False)
    try:
        merged.cut_back(min(mark.end, merged.end))
        chunk = bytearray()
        parts = [_lines(directory, file, mark.ends.get(file, 0), to[file]) for file in files]
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


def read_mark(directory: Path) -> MergeMark:
    """How far logs are merged; from the beginning where nothing says so."""
    try:
        return msgspec.json.decode((directory / MARK).read_bytes(), type=MergeMark)
    except (FileNotFoundError, msgspec.DecodeError):
        return MergeMark()


def write_mark(directory: Path, mark: MergeMark) -> None:
    """Note how far logs are merged. Raises OSError."""
    path = directory / MARK
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(msgspec.json.encode(mark))
    fresh.replace(path)


def _lines(directory: Path, file: str, start: int, end: int) -> Iterator[tuple[bytes, str, int, bytes]]:
    """The whole lines of a log between two bytes: how far its agent has come in time, the file, where the line ends, the line."""
    latest, place = b"", start
    with (directory / file).open("rb") as log:
        log.seek(start)
        for line in log:
            place += len(line)
            if place > end or not line.endswith(b"\n"):
                return
            latest = max(latest, _time_of(line))
            yield latest, file, place, line


def _time_of(line: bytes) -> bytes:
    """The time in a line; nothing where it has none. A text of the page that looks like the column has its quotes escaped."""
    found = _TIME.search(line)
    return found[1] if found else b""
