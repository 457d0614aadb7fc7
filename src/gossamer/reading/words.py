"""The words of a page, as marks that pages are compared by: fast, whatever the markup, without a tree.

Place in the flow: whoever compares texts by what they say asks here. Pure; linear in the bytes.
"""

import re
from collections.abc import Iterable, Iterator, Set
from urllib.parse import unquote_to_bytes

from xxhash import xxh32_intdigest

#: Bytes of a page that are looked at: a page with more has said what it has to say, and its time is bounded.
LOOKED_AT = 131_072

# Letters and digits of ASCII are those of words; bytes above 127 are letters of some script. Everything else divides.
_DIVIDED = bytes(byte if byte > 127 or chr(byte).isalnum() else ord(" ") for byte in range(256))

#: Text behind a tag, up to the next: each byte is looked at once, and what begins like a tag and does not end is left out.
_TEXT = re.compile(rb">([^<]+)")

#: Elements whose content nobody reads. It may hold random numbers, and does where servers count their visitors.
_UNREAD = ((b"<script", b"</script"), (b"<style", b"</style"))


def words_of(content: bytes) -> set[bytes]:
    """The words of a page's text and title in lower case, without markup, scripts and styles."""
    text = without(content[:LOOKED_AT].lower(), _UNREAD)
    return set(texts_of(text).translate(_DIVIDED).split())


def runs_of(content: bytes, length: int, left_out: Set[bytes]) -> Iterator[bytes]:
    """Every so many words that follow each other in one piece of text, as :func:`words_of` finds them.

    No run goes across a tag: a list whose items only change places has the runs that it had. These words are left out, and numbers.
    """
    for piece in _TEXT.findall(b">" + without(content[:LOOKED_AT].lower(), _UNREAD)):
        words = [word for word in piece.translate(_DIVIDED).split() if word not in left_out and not word.isdigit()]
        for first in range(len(words) - length + 1):
            yield b" ".join(words[first : first + length])


def words_of_urls(urls: Iterable[str]) -> set[bytes]:
    """The words that URLs are made of."""
    text = "\n".join(urls).lower().encode("utf-8", "surrogatepass")
    found = set(text.translate(_DIVIDED).split())
    if b"%" in text:
        found.update(unquote_to_bytes(text).lower().translate(_DIVIDED).split())
    return found


def marks_of(words: Iterable[bytes]) -> set[int]:
    """Their checksums."""
    return set(map(xxh32_intdigest, words))


def texts_of(markup: bytes) -> bytes:
    """What stands between tags."""
    return b" ".join(_TEXT.findall(b">" + markup))


def without(text: bytes, elements: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Markup in lower case without elements, each given by how its start and its end begin. One that does not end is the rest."""
    for begin, end in elements:
        start = text.find(begin)
        if start < 0:
            continue
        kept, at = [], 0
        while start >= 0:
            kept.append(text[at:start])
            at = text.find(end, start)
            if at < 0:
                break
            start = text.find(begin, at)
        else:
            kept.append(text[at:])
        text = b" ".join(kept)
    return text
