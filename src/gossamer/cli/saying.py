"""Standard output: answers in JSON and in lines, and bytes of strangers, none of which can command the terminal that shows them.

Place in the flow: commands write through here what pages, servers and files of others said. JSON is printable wherever it goes.
Lines are escaped one by one, so nothing in them forges another line. On a terminal, everything else on standard output is escaped
as well (:func:`guard_terminal`): control characters, marks that turn the direction of writing, and whatever cannot be seen. A file
or a pipe gets bytes as they are.
"""

import codecs
import io
import re
import sys
from collections.abc import Iterable
from typing import Any

from gossamer.cli.telling import shown

#: What sets colours, and nothing else: commands show by it what was found, and people's own code may, too.
_COLOURS = re.compile("(\x1b\\[[0-9;]*m)")

#: What empties a terminal.
_EMPTY = "\x1b[2J\x1b[H"

#: Characters with an escape of four digits.
_SHORT = 0x10000


def say_json(value: object) -> None:
    """Print a value as one line of printable JSON."""
    import msgspec

    from gossamer.storage.json_lines import printable

    print(printable(msgspec.json.encode(value)).decode(), flush=True)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines for people, each of them one line whatever it quotes."""
    print("\n".join(map(shown, lines)), flush=True)


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
    """Standard output on a terminal."""

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
