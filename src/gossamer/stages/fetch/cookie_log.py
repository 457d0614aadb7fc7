"""Cookies that a crawl keeps for its next run: a file for its owner alone, that only grows while the crawl runs.

Place in the flow: :mod:`who` writes what an answer sets before the answer goes on, so that a visit is never committed without the
cookies that it brought. A line holds one cookie; a later line of the same cookie counts, and a line that a kill tore is dropped.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.stages.fetch.cookies import Cookie, CookieJar
from gossamer.stores.files import AppendFile

#: Where kept cookies lie in the crawl directory.
COOKIES = "state/cookies"

#: Bytes at which the file is written anew with what is still held: the largest jar has 12 MB, and few have 12 KB.
_LARGEST = 16 << 20


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    domain: str = ""
    cookie: Cookie | None = None
    entered: str = ""
    """A log-in that was run."""
    session: str = ""
    """Whose it is, where a spider keeps sessions."""
    is_renewed: bool = False
    """The session begins anew: what it had until here is gone."""


class CookieLog:
    """The file of the jars of a crawl, one for each session."""

    def __init__(self, path: Path, jars: dict[str, CookieJar], now: float) -> None:
        """Fill jars with what a file holds, and go on with that file.

        Args:
            path: of the file.
            jars: by session; the one without a name is there. Those of sessions that the file has are added.
            now: seconds since the epoch.

        Raises:
            OSError: it cannot be read or written.
        """
        self._path = path
        self._jars = jars
        path.parent.mkdir(parents=True, exist_ok=True)
        self.entered: set[tuple[str, str]] = set()
        """Log-ins that were run: session and name."""
        for line in _lines(path):
            if line.is_renewed:
                jars.pop(line.session, None)
                self._leave(line.session)
            elif line.cookie is not None:
                jars.setdefault(line.session, CookieJar()).keep(line.domain, line.cookie, now)
            elif line.entered:
                self.entered.add((line.session, line.entered))
        self._file = self._anew()

    def _anew(self) -> AppendFile:
        """The file with nothing in it but what is held."""
        lines = [
            _Line(domain, cookie, session=session)
            for session, jar in self._jars.items()
            for domain, cookie in jar.every()
        ]
        lines += [_Line(entered=name, session=session) for session, name in sorted(self.entered)]
        _write(self._path, lines)
        return AppendFile(self._path, fresh=False, mode=0o600)

    def _leave(self, session: str) -> None:
        self.entered = {one for one in self.entered if one[0] != session}

    def enter(self, name: str, session: str = "") -> None:
        """Write down that a session has run a log-in. Raises as :meth:`add`."""
        if (session, name) not in self.entered:
            self._file.append(_packed(_Line(entered=name, session=session)))
            self.entered.add((session, name))

    def renew(self, session: str) -> None:
        """Write down that a session begins anew. Raises as :meth:`add`."""
        self._file.append(_packed(_Line(session=session, is_renewed=True)))
        self._leave(session)

    def add(self, changed: list[tuple[str, Cookie]], session: str = "") -> None:
        """Write down what has changed in the jar of a session.

        Raises:
            OSError: it cannot be written; nothing of it is.
        """
        if changed:
            self._file.append(b"".join(_packed(_Line(domain, cookie, session=session)) for domain, cookie in changed))
        if self._file.end > _LARGEST:
            self._file.close()
            self._file = self._anew()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def forget_cookies(path: Path, is_gone: Callable[[str], bool]) -> int:
    """Take the cookies of some hosts out of a file that nobody is at work on; returns how many went.

    A cookie of a domain stays while the domain does: any host below it may have set it.

    Args:
        path: the file; one that is not there holds none.
        is_gone: whether a host or domain goes.

    Raises:
        OSError: it cannot be read or written; what stood there stands there.
    """
    path.with_name(f"{path.name}.new").unlink(missing_ok=True)  # a kill may have left a copy of all
    lines = _lines(path)
    kept = [line for line in lines if not is_gone(line.domain)]
    if len(kept) < len(lines):
        _write(path, kept)
    return len(lines) - len(kept)


def _lines(path: Path) -> list[_Line]:
    """The lines of a file, nothing where there is none. What is no line is passed over.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in content.split(b"\n"):
        with suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(line, type=_Line))
    return found


def _write(path: Path, lines: list[_Line]) -> None:
    """Put a file with these lines in the place of the one before, for its owner alone.

    Raises:
        OSError: it cannot be written; what stood there stands there.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(b"".join(map(_packed, lines)))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _packed(line: _Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"
