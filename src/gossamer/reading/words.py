"""The words of a page, as marks that pages are compared by: fast, whatever the markup, without a tree.

Place in the flow: whoever compares texts by what they say asks here. Pure; linear in the bytes.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from xxhash import xxh32_intdigest

#: Bytes of a page that are looked at: a page with more has said what it has to say, and its time is bounded.
LOOKED_AT = 131_072

# Letters and digits of ASCII; bytes above 127 are letters of some script.
_WORD = re.compile(rb"[0-9a-z\x80-\xff]+")

#: Elements whose content nobody reads. It may hold random numbers, and does where servers count their visitors.
_UNREAD = ((b"script", b"</script"), (b"style", b"</style"))


def words_of(content: bytes) -> set[bytes]:
    """The words of a page's text and title in lower case, without markup, scripts and styles."""
    text = _without_unread(content[:LOOKED_AT].lower())
    pieces = text.split(b"<")
    return set(_WORD.findall(b" ".join([pieces[0], *(piece.partition(b">")[2] for piece in pieces[1:])])))


def words_of_urls(urls: Iterable[str]) -> set[bytes]:
    """The words that URLs are made of."""
    text = "\n".join(urls).lower().encode("utf-8", "surrogatepass")
    found = set(_WORD.findall(text))
    if b"%" in text:
        found.update(_WORD.findall(unquote_to_bytes(text).lower()))
    return found


def marks_of(words: Iterable[bytes]) -> set[int]:
    """Their checksums."""
    return set(map(xxh32_intdigest, words))


def _without_unread(text: bytes) -> bytes:
    for name, end in _UNREAD:
        if b"<" + name not in text:
            continue
        kept, at = [], 0
        while (start := text.find(b"<" + name, at)) >= 0:
            kept.append(text[at:start])
            at = text.find(end, start)
            if at < 0:
                break
        else:
            kept.append(text[at:])
        text = b" ".join(kept)
    return text
