"""After a kill: archive and row logs are brought back to exactly what was committed (design promise 1, fault 68).

Place in the flow: a crawl that goes on calls :func:`restore` with the ends that an agent's ledger committed, before any store
opens a file. Nothing is read but names and lengths, so it costs the same for any crawl. First every end is held against its
file, so that missing bytes are noticed, and not only bytes that are too many.

Bytes that are taken away were never committed: the ledger knows nothing of them, and their URLs are fetched again. They go to
`quarantine/`, which keeps the newest :data:`QUARANTINE_BYTES` for people who want to see what a kill tore.

Files that are written once have *sums*, which tell that a disk, or a person, has changed a byte since. Those of tables and of the
index are kept by :mod:`gossamer.storage.tables.manifest` with what else it knows of them. Folders of other files have theirs in a
file beside them: code that writes there does it within :func:`changing`, and `gossamer verify --deep` asks :func:`changed_files`.
While a process writes, or after it was killed at it, there are no sums, and nothing is said.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from xxhash import xxh3_128

from gossamer.engine.files import AppendFile, pieces_of, replace_file
from gossamer.storage.logs import DELETED, is_summed, is_whole
from gossamer.storage.members import AGENTS
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.patterns import lazy_pattern

#: Where what was cut off goes, inside the crawl directory.
QUARANTINE = "quarantine"

#: Bytes that the quarantine keeps: a thousand kills must not fill the disk.
QUARANTINE_BYTES = 64 << 20

#: Losses that a refusal names; a lost disk would fill pages.
_NAMED = 10

#: The log of the crawl: its one agent's, or made of those of several.
_LOG = "logs/crawl.jsonl"


#: Says which of some missing files are row logs that became tables.
AreTables = Callable[[Iterable[str]], Collection[str]]


class Restored(msgspec.Struct, frozen=True):
    """The result of :func:`restore`; paths inside the crawl directory."""

    cut: dict[str, int]
    """File -> bytes that were taken off its end."""
    removed: tuple[str, ...]
    """Files of which nothing was committed."""
    lost: tuple[str, ...] = ()
    """Archive files on a disk that is not there: their documents cannot be read, and the crawl goes on."""


class Loss(msgspec.Struct, frozen=True):
    """A file that does not hold what was committed of it."""

    file: str
    """Inside the crawl directory."""
    committed: int
    """Bytes."""
    size: int | None
    """Bytes that are there; None where the file is missing."""

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.file} is missing, and {self.committed} bytes of it were committed"
        return f"{self.file} has {self.size} bytes, and {self.committed} were committed"


def files_of(directory: Path, agent: str) -> Iterator[Path]:
    """The files that grow with an agent's commits: its archive files, its row logs, and its log."""
    name = re.compile(rf".*-{re.escape(agent)}-\d{{14}}-\d{{5,}}\.warc\.gz")
    yield from sorted(path for path in directory.glob("warc/*.warc.gz") if name.fullmatch(path.name))
    yield from sorted(directory.glob(f"state/{agent}/rows/*.jsonl"))
    log = directory / (f"logs/{agent}.jsonl" if (directory / AGENTS).exists() else _LOG)
    if log.exists():
        yield log


#: The part that the name of every row log has, inside the crawl directory.
ROW_LOG = "/rows/"

#: Logs that their owner takes away once they are merged: sieve, trie and filter say themselves, where they are opened, which of
#: them is missing.
_PASSING = lazy_pattern(r"state/[^/]+/(sieve|trie|bloom)/")


def find_losses(directory: Path, committed_ends: Mapping[str, int], are_tables: AreTables | None = None) -> list[Loss]:
    """Files that do not hold what was committed of them. Nothing is read but names and lengths. `are_tables` says which of some
    missing files are row logs that became tables, and may be: it is asked after they were looked for, since another process may
    be making tables of them meanwhile."""
    missing: dict[str, int] = {}
    found: list[Loss] = []
    for file, end in sorted(committed_ends.items()):
        path = directory / file
        try:
            size = path.stat().st_size
        except OSError as error:
            if (far := in_store(path)) is None:
                if is_away(path) or _PASSING.match(file):
                    continue
                if not isinstance(error, FileNotFoundError | NotADirectoryError):
                    raise
                missing[file] = end
                continue
            size = far.size
        if size < end:
            found.append(Loss(file, end, size))
    tables = are_tables(missing) if missing and are_tables else ()
    return found + [Loss(file, end, None) for file, end in missing.items() if file not in tables]


#: How the link begins that stands in the place of an archive file that is in a store alone.
_IN_STORE = "in-store/"


class InStore(NamedTuple):
    """Where an archive file is that has left the disk."""

    agent: str
    """The agent that published it."""
    size: int
    """Bytes."""
    store: str
    """Its name, as `--store` has it."""

    @property
    def target(self) -> str:
        """The text of the link that stands in its place."""
        return f"{_IN_STORE}{self.agent}/{self.size}/{self.store}"


def in_store(path: Path) -> InStore | None:
    """Where an archive file is that is in a store alone; None where it is here, or nowhere. The link is text, and leads nowhere."""
    try:
        target = os.readlink(path)  # noqa: PTH115  # a Path folds the slashes of a URL
    except OSError:
        return None
    agent, _, rest = target.removeprefix(_IN_STORE).partition("/")
    size, _, store = rest.partition("/")
    return InStore(agent, int(size), store) if target.startswith(_IN_STORE) and size.isdecimal() and store else None


def is_away(path: Path) -> bool:
    """Whether an archive file lies on a disk that is not there, or fails: the folder that its link leads to is missing too."""
    try:
        return path.is_symlink() and in_store(path) is None and not (path.parent / path.readlink()).parent.is_dir()
    except OSError:
        return True


def refusal(directory: Path, losses: Sequence[object], without: str = "") -> CrawlDirectoryError:
    """The error for a crawl that is not whole, in one line: the losses, and the command that goes on `without` them."""
    named = ", ".join(str(loss) for loss in losses[:_NAMED])
    more = f", and {len(losses) - _NAMED} more" if len(losses) > _NAMED else ""
    return CrawlDirectoryError(
        f"{directory} is damaged: {named}{more}; bring it back from a copy, or go on without: "
        f"{without or f'gossamer resume {directory} --accept-loss'}"
    )


def restore(
    directory: Path,
    committed_ends: Mapping[str, int],
    agent: str = "agent-00",
    disks: Sequence[Path] = (),
    further: Sequence[str] = (),
    *,
    others: Mapping[str, int] | None = None,
    are_tables: AreTables | None = None,
) -> Restored:
    """Cut every file of `agent` back to its committed end, and take away files of which nothing was committed. Can be killed at
    any point and called again. Files that `others`, ledgers of other agents, have committed are left alone.

    Archive files may lie in `disks` besides; links to anywhere else are refused (fault 69). `further` are patterns of files that
    keepers write besides, as `glob` takes them inside the directory. Raises CrawlDirectoryError: a file is missing, or shorter
    than what was committed: no resume mends that.
    """
    if losses := find_losses(directory, committed_ends, are_tables):
        raise refusal(directory, losses)
    cut: dict[str, int] = {}
    removed: list[str] = []
    lost: list[str] = []
    roots = {disk.resolve() for disk in disks}
    elsewhere = others or {}
    kept = (path for pattern in further for path in sorted(directory.glob(pattern)))
    for path in dict.fromkeys([*files_of(directory, agent), *kept]):
        name = path.relative_to(directory).as_posix()
        if in_store(path) is not None:
            continue
        if path.is_symlink():
            target = path.resolve()
            if target.parent not in roots or target.name != path.name:
                raise CrawlDirectoryError(
                    f"{path} is a link to {target}, where no archive file of this crawl lies; remove it"
                )
            if is_away(path) or not target.exists():
                lost.append(name)
                continue
        end, size = max(committed_ends.get(name, 0), elsewhere.get(name, 0)), path.stat().st_size
        if (size == end and end) or (name in elsewhere and name not in committed_ends):
            continue
        _set_aside(directory, path, end)
        if end:
            cut[name] = size - end
        else:
            removed.append(name)
    _bound(directory / QUARANTINE)
    return Restored(cut, tuple(removed), tuple(lost))


def keep_aside(directory: Path, path: Path, start: int = 0, length: int = QUARANTINE_BYTES) -> None:
    """Copy some bytes of a file into the quarantine, as many as that may hold."""
    with path.open("rb") as source, _free_name(directory, f"{path.name}.{start}").open("xb") as copy:
        source.seek(start)
        copy.writelines(pieces_of(source, min(length, QUARANTINE_BYTES)))
    _bound(directory / QUARANTINE)


def unreadable_lines(path: Path, end: int) -> Iterator[tuple[int, int, int]]:
    """Lines of a log up to byte `end` that are no JSON of an object, or not what was written: number, first byte, and length. Blank
    lines and those that were deleted are none of them. Behind a line that has a sum, each has one. Raises FileNotFoundError."""
    position, have_sums = 0, False
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if position + len(line) > end:
                return
            has_sum = is_summed(line)
            is_right = is_whole(line) and (has_sum or not have_sums)
            if not is_right and line.strip() not in (b"", b"{}", DELETED):
                yield number, position, len(line)
            have_sums |= has_sum
            position += len(line)


def blank(directory: Path, path: Path, start: int, length: int) -> None:
    """Put blanks in the place of a line of a log that cannot be read; the quarantine gets what was there."""
    keep_aside(directory, path, start, length)
    with _opened(path) as file:
        file.seek(start)
        file.write(b" " * (length - 1) + b"\n")


def opened_log(path: Path, end: int | None = None) -> AppendFile:
    """A log without what was never committed, which ends at byte `end`, or, without it, at its last whole line. Raises
    CrawlDirectoryError: some of what was committed is not there."""
    log = AppendFile(path, fresh=False)
    end = log.end_of_lines() if end is None else end
    if log.end < end:
        log.close()
        text = f"{path} has {log.end} bytes, and {end} were committed: it is damaged; go back to a checkpoint"
        raise CrawlDirectoryError(text)
    if log.end > end:
        log.cut_back(end)
    return log


def take_away(directory: Path, path: Path) -> None:
    """Move a file into the quarantine; nothing happens where it is not there."""
    if path.exists():
        _set_aside(directory, path, 0)
        _bound(directory / QUARANTINE)


def _set_aside(directory: Path, path: Path, end: int) -> None:
    """Move a file, or copy what stands behind `end` and cut it off. The copy is whole before anything is cut."""
    target = _free_name(directory, f"{path.name}.{end}")
    if not end:
        if path.is_symlink():
            path.resolve().unlink()
            path.unlink()
        else:
            path.rename(target)
        return
    with _opened(path.resolve()) as source, target.open("xb") as copy:
        source.seek(end)
        copy.writelines(pieces_of(source, QUARANTINE_BYTES))
        source.truncate(end)


def _opened(path: Path) -> BinaryIO:
    """The file itself, never what a planted link points to (fault 69)."""
    return os.fdopen(os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "r+b")


def _free_name(directory: Path, name: str) -> Path:
    aside, number = directory / QUARANTINE, 0
    aside.mkdir(exist_ok=True)
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


# -- sums

#: The sums of a folder, inside it.
SUMS = "sums.json"


class Noted(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was made."""

    bytes: int
    changed: int
    """Nanoseconds since the epoch, by the file system. While they are the same, its digest is not asked for."""
    digest: str
    """XXH3 of 128 bits, hexadecimal: it tells what a disk or a person changed, not who meant to hide it."""


def noted(path: Path) -> Noted:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, xxh3_128)
    seen = path.stat()
    return Noted(seen.st_size, seen.st_mtime_ns, digest.hexdigest())


def damage_of(path: Path, known: Noted, *, deep: bool = False) -> str:
    """The damage of a file in words; empty for none. Its bytes are read where its time has changed, or `deep` says so."""
    try:
        seen = path.stat()
    except FileNotFoundError:
        return "is missing"
    if seen.st_size != known.bytes:
        return f"has {seen.st_size} bytes instead of {known.bytes}"
    if (deep or seen.st_mtime_ns != known.changed) and noted(path).digest != known.digest:
        return "has other bytes than were written"
    return ""


@contextmanager
def changing(folder: Path, patterns: Sequence[str] = ("*",)) -> Iterator[None]:
    """Change files of a folder within, and sum up those that match afterwards. The folder may be made within; one that does not
    exist afterwards gets no sums. `patterns` are of the names of files that are written once; the others are left out."""
    drop_sums(folder)
    yield
    if folder.is_dir():
        sum_up(folder, patterns)


def drop_sums(folder: Path) -> None:
    """Forget the sums before files of a folder are changed: nothing is known of them until :func:`sum_up`."""
    (folder / SUMS).unlink(missing_ok=True)


def sum_up(folder: Path, patterns: Sequence[str] = ("*",)) -> None:
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file() and path.name != SUMS}
    replace_file(folder / SUMS, msgspec.json.encode({path.name: noted(path) for path in sorted(found)}))


def changed_files(folder: Path) -> list[str]:
    """The damage of files of a folder, each in words that begin with its name; empty where nothing is known of them."""
    sums = folder / SUMS
    try:
        data = sums.read_bytes()
        known = msgspec.json.decode(data, type=dict[str, Noted])
        found = [f"{name} {what}" for name, one in known.items() if (what := damage_of(folder / name, one, deep=True))]
        # A process that has begun to write in the folder meanwhile has taken the sums away, or made new ones.
        return found if sums.read_bytes() == data else []
    except FileNotFoundError:
        return []
    except ValueError:
        return [f"{SUMS} is damaged; remove it"]
