"""What strangers wrote, made harmless for a terminal and legal in XML on its way out, bit by bit. It means the same afterwards."""

import codecs
import json
import re
from typing import IO, TextIO, cast

_LAYOUT = {ord(character): " " for character in "\n\r\t"}
_HIDDEN = re.compile("[^\n\r\t\x20-\x7e]")

# What XML 1.0 cannot hold, not even by its number.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class CleanText:
    """Takes the bytes of one of the forms, and writes them as printable text."""

    def __init__(self, out: TextIO, form: str) -> None:
        self._out = out
        self._is_line_ended = True
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._escape = {"json": _json, "jsonld": _json, "xml": _xml, "rdfxml": _xml}.get(form, _turtle)

    @property
    def stream(self) -> IO[bytes]:
        """It as pyoxigraph wants it, which calls nothing but :meth:`write` and :meth:`flush`."""
        return cast(IO[bytes], self)

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        self._write(self._decode(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back but what is half of a character."""

    def finish(self) -> None:
        """End with the end of a line."""
        self._write(self._decode(b"", final=True))
        if not self._is_line_ended:
            self._out.write("\n")

    def _write(self, text: str) -> None:
        if not (text.isascii() and text.translate(_LAYOUT).isprintable()):
            text = _HIDDEN.sub(self._escaped, text)
        self._out.write(text)
        if text:
            self._is_line_ended = text.endswith("\n")

    def _escaped(self, match: re.Match[str]) -> str:
        return match[0] if match[0].isprintable() else self._escape(match[0])


# What names with a prefix may have in Turtle, where no escape may stand. None of it reorders or commands anything.
_IN_NAMES = re.compile(
    "[\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff]"
)


def _turtle(character: str) -> str:
    return character if _IN_NAMES.match(character) else f"\\U{ord(character):08X}"


def _json(character: str) -> str:
    return json.dumps(character)[1:-1]


def _xml(character: str) -> str:
    return "\ufffd" if _NOT_XML.match(character) else f"&#x{ord(character):X};"
