"""The index made again from the archive, where it is lost or cut: committed records alone, and none that cannot be read.

Place in the flow: :mod:`gossamer.query.convert` calls :func:`runs_of` when what it noted of the index (:mod:`gossamer.query.noted`)
and what is there differ. It reads all of the archive, and holds the lines of one part of it at a time.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from gossamer.model.mime import essence
from gossamer.model.outcome import Outcome
from gossamer.reading.robots_tags import NO_COPY
from gossamer.stores.cdxj import Capture, index_line
from gossamer.stores.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.stores.warc import WARC_DIRECTORY
from gossamer.stores.warc_scanning import CAPTURES, Gap, Span, scan

#: Lines that are sorted at once: 30 MB of them.
_LINES = 100_000


def archive_ends(directory: Path) -> dict[str, int]:
    """The archive files of a crawl, inside its directory, and how far each is committed by its ledgers.

    Raises:
        CrawlDirectoryError: a ledger cannot be read.
    """
    ends: dict[str, int] = {}
    for path in sorted((directory / STATE_DIRECTORY).glob("*/ledger")):
        ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=path.parent.name))
        with ledger.looking():
            ends.update(ledger.committed_ends())
    return {file: end for file, end in sorted(ends.items()) if file.startswith(f"{WARC_DIRECTORY}/")}


def runs_of(directory: Path, workspace: Path, damaged: Callable[[str, Gap], None]) -> list[Path]:
    """Sorted runs in `workspace` with a line for every capture of the archive that was committed and can be shown.

    Args:
        directory: the crawl directory.
        workspace: where they are written.
        damaged: is told of each gap, with the name of its file.
    """
    lines = (
        line
        for file, end in archive_ends(directory).items()
        if (directory / file).exists()
        for capture in captures(directory, file, end, damaged)
        if (line := index_line(capture)) is not None
    )
    runs: list[Path] = []
    while part := sorted(islice(lines, _LINES)):
        runs.append(workspace / f"again-{len(runs)}")
        runs[-1].write_bytes(b"".join(part))
    return runs


def captures(directory: Path, file: str, end: int, damaged: Callable[[str, Gap], None]) -> Iterator[Capture]:
    """The captures of one archive file."""
    beside = b""
    for found in scan(directory / file, end):
        if isinstance(found, Gap):
            damaged(file, found)
            continue
        if found.kind == "metadata":
            beside = found.told
            continue
        if found.kind in CAPTURES:
            yield capture_of(found, file, is_kept=_is_kept(found, beside), request=_told(beside, b"request"))
        beside = b""


def _is_kept(span: Span, beside: bytes) -> bool:
    """Whether a page let a copy be kept: of one that did not there is a record cut behind its header block, which says so."""
    if span.size or span.kind == "revisit" or "warc-truncated" not in span.fields:
        return True
    told = _told(beside, b"noarchive")
    return bool(told) and NO_COPY not in told


def _told(beside: bytes, name: bytes) -> str:
    """What the record beside an answer says under a name; empty where it says nothing."""
    lines = (line for line in beside.split(b"\r\n") if line.startswith(name + b":"))
    return next(lines, b"").partition(b":")[2].strip().decode("utf-8", "replace")


def capture_of(span: Span, file: str, *, is_kept: bool, request: str = "") -> Capture:
    """What an index line is made from, read out of a record of the archive that holds an answer.

    Args:
        span: the record.
        file: the archive file, inside the crawl directory.
        is_kept: False where the record beside it says that no copy was to be kept.
        request: what the record beside it says was asked for beside the URL.
    """
    fields = span.fields
    lines = span.head.split(b"\r\n")
    words = lines[0].split(None, 2)
    kinds = (line.partition(b":")[2] for line in lines[1:] if line.lower().startswith(b"content-type:"))
    mime = next(kinds, b"").decode("latin-1") if span.head else fields.get("content-type", "")
    is_not_modified = fields.get("warc-profile", "").endswith("/server-not-modified")
    return Capture(
        url=fields.get("warc-target-uri", ""),
        fetched_at=fields.get("warc-date", ""),
        outcome=Outcome.NOT_MODIFIED if is_not_modified else Outcome.OK,
        status=int(words[1]) if len(words) > 1 and words[1].isdigit() else 0,
        mime=essence(mime),
        digest=fields.get("warc-payload-digest", "").removeprefix("sha1:"),
        duplicate_of=fields.get("warc-refers-to-target-uri", "") if span.kind == "revisit" else "",
        noarchive=not is_kept,
        request=request,
        warc_file=file,
        warc_offset=span.offset,
        warc_length=span.length,
    )
