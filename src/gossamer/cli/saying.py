"""How commands speak and end: no reader stops a command, and no bytes of strangers command the terminal that shows them.

Place in the flow: every command writes through here. JSON is printable wherever it goes. Lines are escaped one by one, so nothing
in them forges another line. On a terminal, everything else on standard output is escaped as well (:func:`guard_terminal`):
control characters, marks that turn the direction of writing, and whatever cannot be seen. A file or a pipe gets bytes as they
are.

A terminal may close, a reader of a pipe may go (`| head`), a disk behind a file may be full; the crawl and its exit status are the
same in each case (:func:`tell`, :func:`finish`).

:mod:`gossamer.__main__` takes Ctrl-C while modules are loaded, and each command is called :func:`interruptible`: the process ends
at once, with a status that is documented and without a traceback. `crawl` and `resume` enter :class:`Leaving` before they import
the crawler; while the crawl is at work its event loop has the signals (:mod:`gossamer.cli.crawl`). Before that nothing was made,
and after it everything is kept, so there is nothing to finish, and nothing waits for an output without a reader.
"""

import codecs
import contextlib
import errno
import io
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, Self

#: Escapes that set colours, and nothing else: commands show their findings by them, and people's own code may, too.
_COLOURS = re.compile("(\x1b\\[[0-9;]*m)")

#: The escape that empties a terminal.
_EMPTY = "\x1b[2J\x1b[H"

#: Characters with an escape of four digits.
_SHORT = 0x10000

#: The program in a command that a text for people gives.
_COMMAND = re.compile("(?<![\\w./-])gossamer (?=[a-z\\[]|--)")

#: Folders that stand for what people have named otherwise, as the cache of a store that is read: path -> name.
_named: dict[str, str] = {}


def name_as(path: str, name: str) -> None:
    """From now on say this name wherever a command would say the path."""
    _named[path] = name


def _told(text: str, form: Callable[[str], str] = str) -> str:
    """A text with these names, and its commands :func:`as_called`; `form` writes paths and names as they stand in it."""
    for path, name in _named.items():
        text = text.replace(form(path), form(name))
    return as_called(text)


def as_called(text: str) -> str:
    """A text whose commands begin with the launcher of a checkout, as it was typed, if that was called: it hands its name on."""
    called = sys._xoptions.get("called")
    if isinstance(called, str) and "gossamer " in text:
        text = _COMMAND.sub(lambda _: f"{shlex.quote(called)} ", text)
    return text


def say_json(value: object) -> None:
    """Print a value as one line of printable JSON."""
    import msgspec

    from gossamer.storage.logs import printable

    def written(value: object) -> str:
        return printable(msgspec.json.encode(value)).decode()

    print(_told(written(value), lambda text: written(text)[1:-1]), flush=True)


def say_lines(lines: Iterable[str]) -> None:
    print("\n".join(shown(_told(line)) for line in lines), flush=True)


def say_bytes(pieces: Iterable[bytes]) -> None:
    """Write bytes as they are; on a terminal, as text in which everything that cannot be seen is escaped."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    # Several pieces: a character, or a line end of two, may be cut.
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("backslashreplace"), translate=True)
    for piece in pieces:
        sys.stdout.write(seen(decoder.decode(piece)))
    sys.stdout.write(seen(decoder.decode(b"", final=True)))
    sys.stdout.flush()


def seen(text: str) -> str:
    """A text, perhaps of several lines, in which everything that cannot be seen is an escape of JSON, Turtle and Python."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < _SHORT else f"\\U{code:08x}"


class _Terminal(io.TextIOWrapper):
    def write(self, text: str) -> int:
        """Write a text with its colours, and with everything else that cannot be seen as an escape."""
        if not text.isprintable():
            pieces = _COLOURS.split(text)
            pieces[::2] = map(seen, pieces[::2])
            super().write("".join(pieces))
        else:
            super().write(text)
        return len(text)

    def empty(self) -> None:
        """Let what is written next begin at the top of an empty screen."""
        super().write(_EMPTY)


def guard_terminal() -> None:
    """Let nothing through to a terminal that could command it; a file or a pipe is left alone."""
    stream = sys.stdout
    if stream is None or not stream.isatty():
        return
    # The stream that was there stays as `sys.__stdout__`, and with it the buffer that both write to.
    sys.stdout = _Terminal(stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def leave_terminal() -> None:
    """Give the terminal to people's own code, which may do with it as it likes."""
    stream = sys.stdout
    if isinstance(stream, _Terminal) and sys.__stdout__ is not None:
        sys.stdout = sys.__stdout__
        stream.detach()  # it would close the buffer of both when it goes


def empty_terminal() -> None:
    """Begin at the top of an empty screen, if standard output is one."""
    stream: Any = sys.stdout
    if isinstance(stream, _Terminal):
        stream.empty()


# Functions that commands share which say one line for each URL: where URLs come from, and what may stand in a line.


def given_urls(urls: tuple[str, ...]) -> Iterator[str]:
    """The URLs of a command line, in order; for `-`, and without any, those of standard input as they come in."""
    for url in urls or ("-",):
        if url == "-":
            yield from filter(None, (line.decode("utf-8", "replace").strip() for line in sys.stdin.buffer))
        else:
            yield url


def canonical_base(text: str) -> str:
    """The value of `--base` in canonical form. Raises UsageError: it is no URL."""
    from gossamer.values.errors import UnreadableUrl, UsageError
    from gossamer.values.url import canonical

    try:
        return canonical(text)
    except UnreadableUrl as error:
        raise UsageError(f"--base: {error}") from None


def given_bytes(name: str, called: str = "", most: int = -1) -> bytes:
    """The content of a file that a person named, or of standard input for `-`.
    Raises UsageError: it cannot be read; the message calls it `called`."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(most)
        with open(name, "rb") as file:  # noqa: PTH123  # no command waits for pathlib
            return file.read(most)
    except OSError as error:
        from gossamer.values.errors import UsageError

        told = called or name or "a file without a name"
        raise UsageError(f"{told} cannot be read: {error.strerror or error}") from None


def given_text(name: str, called: str = "") -> str:
    """The same as text. Raises UsageError: it cannot be read, or is no text."""
    from gossamer.engine.sheet import written

    try:
        return written(given_bytes(name, called))
    except ValueError as error:
        from gossamer.values.errors import UsageError

        raise UsageError(f"{called or name}: {error}") from None


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
    return tell_plain("\n".join(f"gossamer: {shown(line)}" for line in _told(text).splitlines()))


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

    def above(self, text: str) -> str: ...


#: Panels that are shown beneath: one, or none.
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
    """Whether an error of writing says that the reader has gone."""
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
    tell(f"standard output cannot be written: {error.strerror or error}")
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


#: Signals that stop a crawl gracefully. One that is ignored from the start stays ignored, as `nohup` wants SIGHUP.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Exit status of a crawl that a person stops.
STOPPED = 3

#: Whether this process is one command's alone: then how it takes signals holds until the interpreter is gone.
_process = {"is_own": False}


def own_process() -> None:
    """This process is one command's alone. A standard stream that it was given closed is one from which nothing comes, or to which
    writing fails: else the next file or socket would get its number, and what is meant for people would go there.
    """
    _process["is_own"] = True
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` while a command is at work, as commands and their libraries expect it.

    Before and after, it does what it was found to do. A command that has taken the signal for good (:class:`Leaving`) keeps it.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


class Leaving:
    """The effect of a signal while no crawl is at work: end the process with :attr:`status`."""

    def __init__(self) -> None:
        self.status = STOPPED
        self.handled = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.getsignal(number) for number in self.handled}

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        if not _process["is_own"]:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def take(self) -> None:
        """Take the signals: at the beginning, and when the event loop has given them back."""
        for number in self.handled:
            signal.signal(number, self._leave)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        os._exit(self.status)
