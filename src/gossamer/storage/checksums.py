"""Sums of files that are written once: they tell that a disk, or a person, has changed a byte since.

Place in the flow: :mod:`gossamer.storage.tables.manifest` keeps those of tables and of the index with what else it knows of
them. Folders of other files have theirs in a file beside them: code that writes there does it within :func:`changing`, and
`gossamer verify --deep` asks :func:`changed_files`. While a process writes, or after it was killed at it, there are no sums,
and nothing is said.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from xxhash import xxh3_128

from gossamer.engine.files import replace_file

#: The sums of a folder, inside it.
SUMS = "sums.json"

_PIECE = 1 << 20


class Noted(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was made."""

    bytes: int
    changed: int
    """Nanoseconds since the epoch, by the file system. While they are the same, its digest is not asked for."""
    digest: str
    """XXH3 of 128 bits, hexadecimal: it tells what a disk or a person changed, not who meant to hide it."""


def noted(path: Path) -> Noted:
    digest = xxh3_128()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
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
    except msgspec.DecodeError:
        return [f"{SUMS} is damaged; remove it"]
