"""Query strings in the encoding of their document: links of a page in EUC-KR ask for `?q=%C7%D1%B1%DB`, not for UTF-8.

Place in the flow: the links stage calls :func:`in_charset` on the links of a page before it resolves them, and
:class:`~gossamer.reading.document.Document` on those that it resolves itself. Sources: HTML, "encoding-parse a URL"; URL standard,
"query state" and "percent-encode after encoding". Everything but HTML speaks UTF-8: style sheets (CSS Values 4, 4.5), feeds
(RFC 3987, 3.1), sitemaps (sitemaps.org: "must be UTF-8 encoded"), header fields.
"""

import re

from gossamer.model.url import MAX_TEXT
from gossamer.reading import legacy

#: Encodings of documents whose URLs are in UTF-8 (Encoding standard, "get an output encoding"); empty where none is known.
UTF_8_QUERIES = frozenset(["", "utf-8", "utf-16be", "utf-16le", "replacement"])

#: The schemes of the URL standard's "special" URLs but those of web sockets: of any other, the query is in UTF-8.
_SPECIAL = frozenset(["http", "https", "ftp", "file"])
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):")

#: What the parser drops: white space and control characters at the ends, line ends and tabs anywhere.
_AT_ENDS = "".join(map(chr, range(0x21)))
_ANYWHERE = str.maketrans("", "", "\t\n\r")

# The "special-query percent-encode set".
_ESCAPED = [f"%{n:02X}" if n <= 0x20 or n > 0x7E or n in b"\"#<>'" else chr(n) for n in range(0x100)]


def in_charset(href: str, base: str, charset: str) -> str:
    """The link with its query percent-encoded in the document's encoding; as it is where that makes no difference.

    Args:
        href: as the document wrote it.
        base: the canonical URL that it is resolved against.
        charset: the document's encoding, by the standard's name in lower case; empty where it has none.
    """
    if href.isascii() or charset in UTF_8_QUERIES or len(href) > MAX_TEXT:
        return href
    href = href.strip(_AT_ENDS).translate(_ANYWHERE)
    place, mark, query = href.partition("#")[0].partition("?")
    if not mark or query.isascii():
        return href
    scheme = _SCHEME.match(href) or _SCHEME.match(base)
    if scheme is None or scheme[1].lower() not in _SPECIAL:
        return href
    encoded = legacy.encode(query, charset, _reference)
    return f"{place}?{''.join([_ESCAPED[byte] for byte in encoded])}"


def _reference(character: str) -> bytes:
    """A character that the encoding lacks, as browsers send it: `&#8364;`, escaped."""
    return b"%%26%%23%d%%3B" % ord(character)
