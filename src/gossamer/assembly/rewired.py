"""The changes of a crawl's graph that can be taken back, kept for its later runs.

Place in the flow: a crawl writes them before its wiring whenever one of both changes, and reads them when it goes on. Who edits
`crawl.toml` in between may make a change unfit to be taken back: then it is left out, with all that came before it.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.flow.difference import ChangedEntry, Difference
from gossamer.flow.errors import WiringError
from gossamer.flow.wiring import TABLES, Wiring

#: Where they stand inside a crawl directory. A plan may hold a password: the file is its owner's alone.
CHANGES = "state/rewired.json"

#: Changes that are kept, the last ones: some megabytes at most.
KEPT = 1_000


class _Entry(msgspec.Struct, frozen=True):
    table: str
    name: str
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")


def write_changes(directory: Path, changes: Sequence[Difference]) -> None:
    """Keep the changes, the first one first. Where there are none and never were, nothing is written.

    Raises:
        OSError: they cannot be written; what stood there stands there.
    """
    path = directory / CHANGES
    if not changes and not path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode([change.entries for change in changes[-KEPT:]]))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def read_changes(directory: Path, wiring: Wiring) -> list[Difference]:
    """The changes that led to this wiring and can be taken back one after the other, the first one first.

    A file that is no list of changes counts as none: nothing but the undo depends on it.
    """
    try:
        kept = msgspec.json.decode((directory / CHANGES).read_bytes(), type=list[list[_Entry]])
        changes = [Difference(tuple(map(_entry, entries))) for entries in kept]
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError, KeyError):
        return []
    fitting: list[Difference] = []
    for change in reversed(changes):
        try:
            before = change.opposite.applied(wiring)
        except WiringError:
            if fitting:
                break
            continue  # a kill came between this change and the wiring, or somebody has edited that one
        fitting.append(change)
        wiring = before
    return fitting[::-1]


def _entry(one: _Entry) -> ChangedEntry:
    kind: Any = TABLES[one.table] | None
    before, after = (msgspec.json.decode(side, type=kind) for side in (one.before, one.after))
    return ChangedEntry(one.table, one.name, before, after)
