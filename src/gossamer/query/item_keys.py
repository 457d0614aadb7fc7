"""The keys that the items of a file have, so that no two rows share one: a small database beside the file's note.

Place in the flow: :mod:`item_files` asks here which items of a batch are new. A key is kept with the place in the file where its
batch ends. Keys of a batch that was not finished, since the process was killed, lie behind the end that the note says, and are
dropped.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

#: Bytes of a key's digest: two different keys among a billion share one with a chance of 1 : 10^20.
_DIGEST = 16


class ItemKeys:
    """The keys of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"<ItemKeys {self._path}>"

    def drop_behind(self, end: int) -> None:
        """Forget the keys of batches that end behind this place of the file."""
        if self._path.exists():
            with closing(self._open()) as database, database:
                database.execute("DELETE FROM keys WHERE until > ?", (end,))

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of some keys that the file has."""
        with closing(self._open()) as database:
            return {key for key in keys if _has(database, key)}

    def add(self, keys: Iterable[bytes], end: int) -> None:
        """Keep the keys of a batch after which the file ends here: all of them, or none where the process is killed."""
        with closing(self._open()) as database, database:
            database.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", ((_digest(key), end) for key in keys))

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path)
        database.execute("CREATE TABLE IF NOT EXISTS keys (digest BLOB PRIMARY KEY, until INTEGER) WITHOUT ROWID")
        return database


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=_DIGEST).digest()


def _has(database: sqlite3.Connection, key: bytes) -> bool:
    return database.execute("SELECT 1 FROM keys WHERE digest = ?", (_digest(key),)).fetchone() is not None
