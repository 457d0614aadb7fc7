"""The request log: one line for each request, written by the server, read by the auditor.

Place in the flow: `protocol` adds a line when it hands the last bytes of an answer to the socket (or gives it up),
`audit` reads them back. The first line carries the spec, so a log explains itself. Lines gather for
a moment and go out in one append; since the server writes them, a killed crawler loses none, and
since each batch is one `write` to a file opened for appending, several server processes share it.

Fields, separated by tabs: start and duration in microseconds of the monotonic clock (the first line
has both clocks at one moment), status, body bytes sent, flags, host, address served on, target, user agent.
Flags: G or H for the method (O for any other), c for a conditional request, a for an answer that
the crawler did not wait for.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from gossamer.simweb.spec import WebSpec, spec_from_dict

MAGIC: Final = "#gossamer-simweb-log 2 "

BATCH_LINES: Final = 512
BATCH_SECONDS: Final = 0.2
"""A batch goes out when it has so many lines, or is so old."""


class LogError(ValueError):
    """A file is no request log, or one of another version: said in one line."""


class LogEntry(NamedTuple):
    """One line of the log."""

    start: int
    duration: int
    status: int
    size: int
    flags: str
    host: str
    address: str
    target: str
    agent: str


Line = tuple[int, int, int, int, bytes, bytes, bytes]
"""The parts of a line: start and end (nanoseconds of the monotonic clock), status, size; then the words before
the target (flags, host, address), the target, and the words behind it (the user agent), as `before` and `behind` write
them: a crawler's requests to one host share these. Lines are put into words by the batch, when they are written."""


def clean(value: str) -> str:
    """Return text that came from a request with nothing in it that could break a line."""
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() else f"%{ord(c) & 255:02X}" for c in value)


def before(flags: str, host: str, address: str) -> bytes:
    return f"\t{flags}\t{clean(host)}\t{address}\t".encode("utf-8", "replace")


def behind(agent: str) -> bytes:
    return f"\t{clean(agent)}\n".encode("utf-8", "replace")


class RequestLog:
    """Appends lines to a file in batches, inside a running event loop, until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[Line] = []
        self._file = -1
        self._timer: asyncio.TimerHandle | None = None

    def open(self, spec: WebSpec, started: float, join: bool = False) -> None:
        """Create the file with its first line, or `join` one that another process has created.

        `started` is the reading of the monotonic clock at which the web's own time began. Raises
        LogError if the file to be created holds something already.
        """
        if not join and self.path.exists() and self.path.stat().st_size:
            raise LogError(f"{self.path} exists and is not empty: name a new file for the log")
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        offset = time.time() - time.monotonic()
        if not join:
            clocks = {"wall": started + offset, "monotonic": started}
            header = msgspec.json.encode({"spec": spec, **clocks})
            os.write(self._file, MAGIC.encode() + header + b"\n")

    def add(self, line: Line) -> None:
        """Take one line; it is in the file `BATCH_SECONDS` later at the latest."""
        self._lines.append(line)
        if len(self._lines) >= BATCH_LINES:
            self.flush()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(BATCH_SECONDS, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lines:
            text = [
                b"%d\t%d\t%d\t%d%b%b%b" % (start // 1000, (end - start) // 1000, status, size, head, target, tail)
                for start, end, status, size, head, target, tail in self._lines
            ]
            data = memoryview(b"".join(text))
            self._lines.clear()
            while data:
                data = data[os.write(self._file, data) :]

    def close(self) -> None:
        if self._file >= 0:
            self.flush()
            os.close(self._file)
            self._file = -1


def read_header(path: Path) -> tuple[WebSpec, float]:
    """Return the spec of a log, and the monotonic clock (seconds) when its web's time began.

    Raises LogError with one line if the file is no log, OSError if it cannot be read.
    """
    with path.open("rb") as file:
        line = file.readline(65_536)
    if not line.startswith(MAGIC.encode()):
        raise LogError(f"{path} is not a request log of a simulated web")
    try:
        header: dict[str, Any] = msgspec.json.decode(line[len(MAGIC) :])
        return spec_from_dict(header["spec"]), float(header["monotonic"])
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{path} has a damaged first line: {error}") from error


def read_lines(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a log as their nine fields, in the order of the file.

    Lines that are not whole (the last one of a server that was killed) are left out.
    """
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            parts = line.split("\t")
            if len(parts) == len(LogEntry._fields) and line[-1] == "\n":
                parts[-1] = parts[-1][:-1]
                yield parts


def read_entries(path: Path) -> Iterator[LogEntry]:
    """Yield the entries of a log in the order of the file; a torn last line is left out."""
    for start, duration, status, size, *rest in read_lines(path):
        yield LogEntry(int(start), int(duration), int(status), int(size), *rest)
