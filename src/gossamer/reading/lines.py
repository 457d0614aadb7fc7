"""The blocks of a page as lines of text: references resolved, white space made single spaces.

Place in the flow: :mod:`gossamer.reading.text` hands on what :mod:`gossamer.reading.blocks` cut out of the markup. Pure; linear in
the bytes. Most pages have few references, and no white space beside that of ASCII: the rest is done where something else is found.
"""

import html
import re
from functools import lru_cache

#: References that are remembered: pages have a few, over and over.
REMEMBERED_REFERENCES = 1_024

#: A reference as `html.unescape` finds them: by a number of any length, or with a name of 32 characters at most.
_REFERENCE = re.compile(r"(&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?))")
#: Characters of the longest one with a name.
_LONGEST_NAMED = 34
#: Digits of the largest number of a character, and one more.
_MOST_DIGITS = 8

#: What `str.split` takes for white space and `bytes.split` does not. Where it has several bytes, the first is looked for first,
#: which is quick.
_SEPARATORS = (b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_WIDE_SPACES = tuple(
    (pattern[:1], re.compile(pattern))
    for pattern in (
        b"\xc2(?:\x85|\xa0)",
        b"\xe1(?:\x9a\x80)",
        b"\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)",
        b"\xe3(?:\x80\x80)",
    )
)


def lines(blocks: bytes) -> str:
    """One block a line, with references resolved and runs of white space made one space.

    Args:
        blocks: UTF-8, a NUL before each block; of the white space of ASCII they have single spaces alone.
    """
    text = blocks.decode("utf-8", "replace")
    if "&" in text:
        # Some references stand for white space, or for nothing between two spaces. White space of every script counts here.
        pieces = _REFERENCE.split(text)
        characters = pieces[1::2] = list(map(_character, pieces[1::2]))
        text = "".join(pieces)
        if any(map(_is_blank, set(characters))) or _has_other_space(blocks):
            text = " ".join(text.split())
    return "\n".join(map(str.strip, text.split("\0")[1:]))


def _character(reference: str) -> str:
    """The character of a reference, as the standard library has it; that library raises for thousands of digits."""
    if len(reference) > _LONGEST_NAMED:
        digits = 3 if reference[2] in "xX" else 2
        number = reference[digits:].rstrip(";").lstrip("0")
        if not 0 < len(number) <= _MOST_DIGITS:
            return "\ufffd"
        reference = f"{reference[:digits]}{number};"
    return _remembered(reference)


@lru_cache(REMEMBERED_REFERENCES)
def _remembered(reference: str) -> str:
    return html.unescape(reference)


def _is_blank(characters: str) -> bool:
    return not characters or any(map(str.isspace, characters))


def _has_other_space(blocks: bytes) -> bool:
    if any(map(blocks.__contains__, _SEPARATORS)):
        return True
    return not blocks.isascii() and any(first in blocks and whole.search(blocks) for first, whole in _WIDE_SPACES)
