"""A hostile case: one row of the table that server, test, command line and documentation read.

Place in the flow: the files of this folder write cases, `server` gathers and plays them.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final

import msgspec

from gossamer.values.outcome import Outcome


class HostileAct(Enum):
    """Steps of a script besides sending bytes and waiting."""

    STAY = "stay"
    """Say nothing more, and keep the connection open for as long as the server allows."""
    RESET = "reset"
    """Break the connection off with a reset instead of closing it."""


Step = bytes | float | HostileAct
"""One step of a script: bytes to send, seconds to wait, or an act that ends it."""

Script = Callable[[str], Iterable[Step]]
"""From the target that was asked for to what is done about it. When the steps end, the connection is closed."""

OK: Final = b"HTTP/1.1 200 OK\r\n"
HTML: Final = b"Content-Type: text/html; charset=utf-8\r\n"
PAGE: Final = b"<!doctype html><title>hostile</title><p>Here it ends.</p>\n"


class HostileCase(msgspec.Struct, frozen=True):
    """One thing that a server may do to a crawler."""

    number: str
    """Chapter and number in our list of faults, with a letter where one number has several: A1, B16c."""
    name: str
    """A few words, for people; with the number it makes the path."""
    outcome: Outcome
    """How a fetch of it has to end."""
    does: str
    """The behaviour of the server, in one sentence."""
    then: str
    """The other duties of a crawl, beyond the fetch: those to the links, the host, the archive."""
    script: Script
    tls: str = ""
    """How TLS goes wrong; such a case has a port of its own."""

    @property
    def path(self) -> str:
        """Where it is served, such as /A1/gzip-bomb."""
        return f"/{self.number}/{'-'.join(''.join(c if c.isalnum() else ' ' for c in self.name.lower()).split())}"


def table(
    words: str, scripts: Mapping[str, Script | bytes], tls: Mapping[str, str] | None = None
) -> tuple[HostileCase, ...]:
    """The cases of a table.

    Args:
        words: a line for each: number | name | outcome | what the server does | what else a crawl owes.
        scripts: what is done, by number; bytes are the whole answer.
        tls: how TLS goes wrong, by number.
    """
    found = []
    for line in words.strip().splitlines():
        number, name, outcome, does, then = [*(re.sub(" {3,}", " ", cell).strip() for cell in line.split("|")), ""][:5]
        script = scripts[number]
        played = always(script) if isinstance(script, bytes) else script
        found.append(HostileCase(number, name, Outcome(outcome), does, then, played, (tls or {}).get(number, "")))
    return tuple(found)


def always(*steps: Step) -> Script:
    """A script that does the same whatever is asked for."""
    return lambda target: steps


def endless(piece: bytes, fields: bytes = HTML) -> Script:
    """An answer whose body repeats this for ever."""
    return lambda target: itertools.chain([OK + fields + b"Connection: close\r\n\r\n"], itertools.repeat(piece))


def answer(body: bytes, fields: bytes = HTML, status: bytes = OK) -> Script:
    """A proper answer with this body, which says that nothing comes after it."""
    return always(status + fields + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def redirect(location: bytes, status: bytes = b"302 Found") -> Script:
    """A redirect, well formed whatever it leads to."""
    return always(b"HTTP/1.1 %b\r\nLocation: %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % (status, location))


def made(body: Callable[[bytes], bytes], fields: bytes = HTML) -> Script:
    """A proper answer whose body follows from the target that is asked for."""
    return lambda target: answer(body(target.encode("ascii", "replace")), fields)(target)
