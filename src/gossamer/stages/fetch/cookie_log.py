"""Cookies that a crawl keeps for its next run: a file for its owner alone, that only grows while the crawl runs.

Place in the flow: :mod:`who` writes what an answer sets before the answer goes on, so that a visit is never committed without the
cookies that it brought. A line holds one cookie; a later line of the same cookie counts, and a line that a kill tore is dropped.
"""

import os
from pathlib import Path

import msgspec

from gossamer.stages.fetch.cookies import Cookie, CookieJar
from gossamer.stores.files import AppendFile

#: Bytes at which the file is written anew with what is still held: the largest jar has 12 MB, and few have 12 KB.
_LARGEST = 16 << 20


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    domain: str
    cookie: Cookie


class CookieLog:
    """The file of one jar."""

    def __init__(self, path: Path, jar: CookieJar, now: float) -> None:
        """Fill a jar with what a file holds, and go on with that file.

        Raises:
            OSError: it cannot be read or written.
        """
        self._path = path
        self._jar = jar
        path.parent.mkdir(parents=True, exist_ok=True)
        for domain, cookie in read_cookies(path):
            jar.keep(domain, cookie, now)
        self._file = self._anew()

    def _anew(self) -> AppendFile:
        """The file with nothing in it but what the jar holds."""
        return AppendFile(write_cookies(self._path, self._jar.every()), fresh=False, mode=0o600)

    def add(self, changed: list[tuple[str, Cookie]]) -> None:
        """Write down what has changed.

        Raises:
            OSError: it cannot be written; nothing of it is.
        """
        if changed:
            self._file.append(b"".join(_line(domain, cookie) for domain, cookie in changed))
        if self._file.end > _LARGEST:
            self._file.close()
            self._file = self._anew()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_cookies(path: Path) -> list[tuple[str, Cookie]]:
    """What a file of kept cookies holds, oldest first; nothing where there is none. Lines that are none are passed over.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in content.split(b"\n"):
        try:
            kept = msgspec.json.decode(line, type=_Line)
        except msgspec.MsgspecError:
            continue
        found.append((kept.domain, kept.cookie))
    return found


def write_cookies(path: Path, cookies: list[tuple[str, Cookie]]) -> Path:
    """Put a file with these cookies in the place of the one before, for its owner alone; returns the path.

    Raises:
        OSError: it cannot be written; what stood there stands there.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(b"".join(_line(domain, cookie) for domain, cookie in cookies))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    return path


def _line(domain: str, cookie: Cookie) -> bytes:
    return msgspec.json.encode(_Line(domain, cookie)) + b"\n"
