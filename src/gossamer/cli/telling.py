"""Output that cannot stop a command: lines for people on standard error, and the end of standard output.

Place in the flow: every command speaks through here where its work must not depend on a reader. A terminal may close, a reader of a
pipe may go (`| head`), a disk behind a file may be full; the crawl and its exit status are the same in each case.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Protocol

# What commands share that say one line for each URL: where URLs come from, and what may stand in a line.


def given_urls(urls: tuple[str, ...]) -> Iterator[str]:
    """The URLs of a command line, in order; for `-`, and without any, those of standard input as they come in."""
    for url in urls or ("-",):
        if url == "-":
            yield from filter(None, (line.decode("utf-8", "replace").strip() for line in sys.stdin.buffer))
        else:
            yield url


def shown(text: str) -> str:
    """Without control characters: neither a URL nor a rule can forge a line, or speak to the terminal (fault 70)."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


#: Errors by which the reader of an output has gone for good: a closed pipe, a closed terminal.
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF})


def tell(text: str) -> bool:
    """Print lines on standard error, each with the program's name; False if the reader has gone.

    A line that cannot be written for another reason (a full disk) is dropped. Control characters are escaped: a message quotes
    questions, URLs and answers of servers.
    """
    return tell_plain("\n".join(f"gossamer: {shown(line)}" for line in text.splitlines()))


def tell_plain(text: str) -> bool:
    """As :func:`tell`, without the program's name."""
    try:
        if _panels:
            print(_panels[-1].above(text), end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
    except OSError as error:
        _abandon(sys.stderr.fileno())
        if has_gone(error):
            _left.append(error)
    except ValueError as error:  # the stream is closed
        _left.append(error)
    return not _left


class Beneath(Protocol):
    """Lines that stay beneath what is told."""

    def above(self, text: str) -> str:
        """What to write so that a text comes above them."""
        ...


#: What is shown beneath: one panel, or none.
_panels: list[Beneath] = []


@contextlib.contextmanager
def beneath(panel: Beneath) -> Iterator[None]:
    """Let all that is told come above a panel while the block runs."""
    _panels.append(panel)
    try:
        yield
    finally:
        _panels.remove(panel)


#: The error by which the reader of standard error was seen to be gone; later lines go nowhere without one.
_left: list[Exception] = []


def has_gone(error: OSError) -> bool:
    """Whether an error of writing says that nobody reads any more."""
    return error.errno in _GONE


def finish(code: int) -> int:
    """Write what standard output still holds; returns the exit status of the command.

    A status of 0 becomes 2 where the output could not be written: a program that reads it must not take an empty answer for one.
    A reader that has gone on its own wants nothing more, and changes no status.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        return unwritten(error, code)
    except ValueError:  # the stream is closed
        pass
    return code


def unwritten(error: OSError, code: int) -> int:
    """The exit status of a command whose standard output cannot be written; nothing more is printed there."""
    _abandon(sys.stdout.fileno())
    if has_gone(error):
        return code
    tell(f"standard output cannot be written: {error.strerror}")
    return code or 2


def _abandon(descriptor: int) -> None:
    """Let what is still buffered go nowhere: the interpreter writes it when it ends, and would fail once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def print_anything() -> None:
    """Let a stream of a poor locale show characters that it lacks as escapes instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
