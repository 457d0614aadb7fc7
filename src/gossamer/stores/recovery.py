"""After a kill: archive and row logs are brought back to exactly what was committed (DESIGN 4.1, FAULTS 68).

Place in the flow: whoever opens an agent's ledger for a crawl that goes on calls :func:`restore` with the ends that the
ledger committed, before any store opens a file. Nothing is read but names and lengths, so it costs the same for any crawl.

What is taken away was never committed: the ledger knows nothing of it, and its URLs are fetched again. It goes to
`quarantine/`, which keeps the newest :data:`QUARANTINE_BYTES` for who wants to see what a kill tore.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from gossamer.model.errors import CrawlDirectoryError

#: Where what was cut off goes, inside the crawl directory.
QUARANTINE = "quarantine"

#: Bytes that the quarantine keeps: a thousand kills must not fill the disk.
QUARANTINE_BYTES = 64 << 20

#: Bytes of a tail that are copied at once.
_CHUNK = 1 << 20


class Restored(msgspec.Struct, frozen=True):
    """What :func:`restore` did; paths inside the crawl directory."""

    cut: dict[str, int]
    """File -> bytes that were taken off its end."""
    removed: tuple[str, ...]
    """Files of which nothing was committed."""
    lost: tuple[str, ...] = ()
    """Archive files on a disk that is not there: their documents cannot be read, and the crawl goes on."""


def files_of(directory: Path, agent: str) -> Iterator[Path]:
    """The files that grow with an agent's commits: its archive files, its row logs, and the log of the crawl."""
    yield from sorted(directory.glob(f"warc/*-{agent}-*.warc.gz"))
    yield from sorted(directory.glob(f"state/{agent}/rows/*.jsonl"))
    log = directory / "logs" / "crawl.jsonl"
    if log.exists():
        yield log


def restore(
    directory: Path,
    committed_ends: Mapping[str, int],
    agent: str = "agent-00",
    disks: Sequence[Path] = (),
    further: Sequence[str] = (),
) -> Restored:
    """Cut every file of `agent` back to its committed end, and take away files of which nothing was committed.

    Can be killed at any point and called again. Other agents' files are left alone.

    Args:
        directory: the crawl directory.
        committed_ends: file, as a path inside the directory -> byte; as `contracts.ledger.Ledger.committed_ends` has it.
        agent: whose ledger it is.
        disks: further directories that archive files lie in; links to anywhere else are refused (FAULTS 69).
        further: patterns of files that keepers write besides, as `glob` takes them inside the directory.

    Raises:
        CrawlDirectoryError: a file is shorter than what was committed: committed bytes are lost, and no resume mends that.
    """
    cut: dict[str, int] = {}
    removed: list[str] = []
    lost: list[str] = []
    roots = {disk.resolve() for disk in disks}
    others = (path for pattern in further for path in sorted(directory.glob(pattern)))
    for path in dict.fromkeys([*files_of(directory, agent), *others]):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink():
            target = path.resolve()
            if target.parent not in roots or target.name != path.name:
                raise CrawlDirectoryError(
                    f"{path} is a link to {target}, where no archive file of this crawl lies; remove it"
                )
            if not target.exists():
                lost.append(name)
                continue
        end, size = committed_ends.get(name, 0), path.stat().st_size
        if size < end:
            raise CrawlDirectoryError(
                f"{path} has {size} bytes, and {end} were committed: it is damaged; "
                "bring it back from a copy, or begin anew with --overwrite"
            )
        if size == end and end:
            continue
        _set_aside(directory, path, end)
        if end:
            cut[name] = size - end
        else:
            removed.append(name)
    _bound(directory / QUARANTINE)
    return Restored(cut, tuple(removed), tuple(lost))


def _set_aside(directory: Path, path: Path, end: int) -> None:
    """Move a file, or copy what stands behind `end` and cut it off. The copy is whole before anything is cut."""
    aside = directory / QUARANTINE
    aside.mkdir(exist_ok=True)
    target = _free_name(aside, f"{path.name}.{end}")
    if not end:
        if path.is_symlink():
            path.resolve().unlink()
            path.unlink()
        else:
            path.rename(target)
        return
    with _opened(path.resolve()) as source, target.open("xb") as copy:
        source.seek(end)
        left = min(os.fstat(source.fileno()).st_size - end, QUARANTINE_BYTES)
        while left > 0 and (chunk := source.read(min(_CHUNK, left))):
            copy.write(chunk)
            left -= len(chunk)
        source.truncate(end)


def _opened(path: Path) -> BinaryIO:
    """The file itself, never what a planted link points to (FAULTS 69)."""
    return os.fdopen(os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "r+b")


def _free_name(aside: Path, name: str) -> Path:
    """A name in the quarantine that nobody has."""
    number = 0
    while (target := aside / f"{name}.{number}").exists():
        number += 1
    return target


def _bound(aside: Path) -> None:
    """Let go of the oldest until the rest fits."""
    if not aside.is_dir():
        return
    left = QUARANTINE_BYTES
    for path in sorted(aside.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
        left -= path.stat().st_size
        if left < 0:
            path.unlink()
