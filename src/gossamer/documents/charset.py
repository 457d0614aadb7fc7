"""The encoding of a document, its media type by its bytes, and query strings in its encoding.

Place in the flow: the process stage chooses processors by the media type. :class:`~gossamer.documents.document.Document` turns the
content into UTF-8 for the parser. The links stage calls :func:`in_charset` on the links of a page before it resolves them.

Order of evidence (HTML, 13.2.3.2): byte order mark, `Content-Type`, a `meta` or XML declaration near the beginning, then a
guess, by the detector that Firefox uses (chardetng). Labels are those of the Encoding standard (`webencodings`), so UTF-7 is
never an answer (fault 59).
"""

import re
from functools import lru_cache

from gossamer.documents.markup import TAG, attributes, end_of_other
from gossamer.values.body import beginning
from gossamer.values.media_type import XML_TYPES, charset_of, of_sitemap, sniff_media_type
from gossamer.values.patterns import lazy_pattern
from gossamer.values.task import SITEMAPS
from gossamer.values.url import MAX_TEXT
from gossamer.values.visit import Response

#: Bytes at the beginning of a document by which its type is told; its readers look at less (`HEADER_BYTES`, `ROOT_BYTES`).
_HEAD = 8_192


#: How gzip begins.
_GZIP = b"\x1f\x8b"


def media_type_of(response: Response, relation: str = "") -> str:
    """The media type that the bytes of an answer show, in lower case; the one that its server claims where they show none.
    `response`: with its document; `relation`: how it was found: what robots.txt or an index names as a sitemap is judged by its
    bytes alone."""
    nosniff = response.header("x-content-type-options").strip().lower() == "nosniff"
    head = beginning(response.document, _HEAD)  # of a large document, a page of it: the rest is read apart
    if relation in SITEMAPS:
        is_wide = b"\0" in head[:4] and not head.startswith(_GZIP)  # whose fourth byte may be 0
        mime = of_sitemap(sitemap_to_utf8(head, "") if is_wide else head)
    else:
        mime = sniff_media_type(head, response.content_type, nosniff=nosniff)
    if mime in XML_TYPES:
        from gossamer.documents.xhtml import type_of_xml  # its parser: most crawls meet no XML

        mime = type_of_xml(head, mime)
    return mime


#: How far a declaration is looked for. The standard's prescan ends at 1,024 bytes, but its parser obeys a later `meta`
#: too and starts again ("change the encoding"); looking further at once comes to the same.
PRESCAN_BYTES = 16_384

#: The encoding that Western browsers take where nothing is said (HTML, table of suggested defaults).
DEFAULT = "windows-1252"

#: Where the standard's prescan ends, and nearly all declarations stand.
_AT_ONCE = 1_024

#: Bytes that settle it where they are UTF-8 and more than letters by so many: looking at all of a long page takes 60 us.
_SAMPLE, _CERTAIN = 8_192, 32

#: Bytes that the detector is fed at most; it costs 10 us a kilobyte, and most pages are clear after a hundred bytes of text.
DETECTED_BYTES = 8_192
#: Bytes taken in front of a letter that is not ASCII, and in all from one stretch of text: words, and no more of the markup.
_BEFORE, _STRETCH = 64, 1_024

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
# Markup or a URL in UTF-16 that has no mark (XML 1.0, appendix F; HTML, "prescan a byte stream"), behind white space.
_UNITS = lazy_pattern(rb"(?:\0[\t\n\r ])*+\0[<hH]\0()[^\0]|(?:[\t\n\r ]\0)*+[<hH]\0[^\0]\0")
# A sitemap in UTF-32, with its mark or without (XML 1.0, appendix F): browsers read none, so no page is in it.
_WIDE = lazy_pattern(rb"(?:\xff\xfe\0\0|[<hH]\0\0\0)()|\0\0(?:\xfe\xff|\0[<hH])")
# The encoding in the `content` of a `meta` (HTML, "extracting a character encoding from a meta element"); a quote that is not
# closed ends the search.
_IN_META = lazy_pattern(
    r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)(?:"|\Z())|'([^']*)(?:'|\Z())|([^\t\n\f\r ;]*))""", re.IGNORECASE
)
_XML = lazy_pattern(rb"""<\?xml[^>]*?encoding\s*=\s*(?:"([^">]*)"|'([^'>]*)')""")
#: Encodings that the detector calls by another name than the standard does.
_PYTHON_NAMES = {"cp874": "windows-874"}
_HIGH = lazy_pattern(rb"[\x80-\xff]")


@lru_cache(maxsize=256)
def lookup(label: str) -> str:
    """The standard's name of the encoding with this label, in lower case; empty where there is none."""
    import webencodings  # with the first page

    encoding = webencodings.lookup(label)
    return encoding.name.lower() if encoding is not None else ""


def of_mark(content: bytes) -> str:
    """The encoding that a byte order mark tells; empty without one."""
    for mark, name in _MARKS:
        if content.startswith(mark):
            return name
    return ""


def of_units(content: bytes) -> str:
    """UTF-16 where the first characters are in it, though no mark says so; empty otherwise."""
    match = _UNITS.match(content) if b"\0" in content[:2] else None
    return ("utf-16be" if match[1] is not None else "utf-16le") if match else ""


def of_declaration(content: bytes) -> str:
    """The encoding that the document declares in its first bytes (HTML, "prescan a byte stream"); empty if none."""
    head = content[:PRESCAN_BYTES]
    # Behind the last place that could say something, nothing has to be looked at. Most pages say it at once.
    last = len(head) if b"charset" in head[:_AT_ONCE] else head.lower().rfind(b"charset")
    at = head.find(b"<")
    while 0 <= at < last:
        tag = TAG.match(head, at)
        if tag is None:
            at = end_of_other(head, at)
        else:
            closing, name, raw = tag.groups()
            if name.lower() == b"meta" and not closing and (named := _of_meta(raw)):
                return named
            at = tag.end()
        at = head.find(b"<", at)
    declared = _XML.match(head)
    if declared is not None:
        name = lookup((declared[1] or declared[2] or b"").decode("latin-1"))
        return "utf-8" if name.startswith("utf-16") else name
    return ""


@lru_cache(maxsize=64)  # the pages of a site say it in the same words
def _of_meta(raw: bytes) -> str:
    """The encoding that a `meta` with these attributes declares."""
    meta = attributes(raw)
    if "charset" in meta:
        name = lookup(meta["charset"])
    elif meta.get("http-equiv", "").lower() == "content-type":
        match = _IN_META.search(meta.get("content", ""))
        is_open = match is not None and (match[2] is not None or match[4] is not None)
        name = lookup(match[1] or match[3] or match[5] or "") if match and not is_open else ""
    else:
        return ""
    # A meta that can be read as ASCII is not in UTF-16; no page means x-user-defined (HTML, 13.2.3.2).
    return {"utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": DEFAULT}.get(name, name)


def sniff(content: bytes, content_type: str, domain: str = "") -> str:
    """The encoding of a document, by the standard's name in lower case.

    Where nothing is declared, bytes that are UTF-8 are UTF-8: its pattern hardly ever comes about by accident (the
    standard allows this guess); ASCII is :data:`DEFAULT`, and anything else what the detector takes it for.

    Args:
        content: the document, or its beginning.
        content_type: the `Content-Type` field as sent; empty where there was none.
        domain: the last label of the host that sent it, as `kr`; empty where there is none. Encodings that share most
            of their letters are told apart by it, as browsers do.
    """
    if told := of_mark(content) or of_units(content):
        return told
    told = lookup(charset_of(content_type))
    if told.startswith("utf-16") and content[:1] == b"<" and b"\0" not in content[:_AT_ONCE]:
        told = ""  # the bytes show that the server errs: markup in ASCII is no UTF-16
    if told := told or of_declaration(content):
        return told
    if content.isascii():
        return _detected(content[content.find(b"\x1b") :][:DETECTED_BYTES], domain) if b"\x1b" in content else DEFAULT
    sample = content[:_SAMPLE]
    letters = _letters_of_utf8(sample)
    if len(sample) - letters < _CERTAIN:
        letters = _letters_of_utf8(content)
    return "utf-8" if letters else _detected(_letters(content), domain)


def _letters_of_utf8(content: bytes) -> int:
    """How many letters this is in UTF-8, though it may be cut within one; 0 where it is no UTF-8."""
    try:
        return len(content.decode())
    except UnicodeDecodeError as error:
        # Behind nothing but ASCII, one half of a letter says nothing.
        is_cut = error.reason == "unexpected end of data" and not content[: error.start].isascii()
        return len(content[: error.start].decode()) if is_cut else 0


def _letters(content: bytes) -> bytes:
    """The texts of a document that are not ASCII: where such letters are rare, or far behind, they are what tells."""
    parts: list[bytes] = []
    room, at = DETECTED_BYTES, 0
    while room > 0 and (high := _HIGH.search(content, at)) is not None:
        first = high.start()
        begin = max(at, first - _BEFORE, *(content.rfind(mark, at, first) + 1 for mark in (b"<", b">")))
        end = content.find(b"<", first, first + min(room, _STRETCH))
        at = end + 1 if end >= 0 else first + min(room, _STRETCH)  # a `<` parts the texts
        parts.append(content[begin:at][:room])
        room -= len(parts[-1])
    return b"".join(parts)


def _detected(text: bytes, domain: str) -> str:
    from chardetng_py import EncodingDetector  # 1 ms, and most crawls meet no page that says nothing

    detector = EncodingDetector()
    detector.feed(text, last=False)
    is_label = domain.isascii() and domain.replace("-", "").isalnum()
    name = detector.guess(tld=domain.lower().encode() if is_label else None, allow_utf8=False)
    return lookup(name) or _PYTHON_NAMES.get(name, DEFAULT)


def to_utf8(content: bytes, charset: str) -> bytes:
    """The document in well-formed UTF-8 without a mark; what cannot be decoded becomes U+FFFD."""
    if charset == "utf-8":
        content = content.removeprefix(b"\xef\xbb\xbf")
        if content.isascii():
            return content
        try:
            content.decode()
        except UnicodeDecodeError:
            return content.decode("utf-8", "replace").encode()
        return content
    if content.isascii() and not charset.startswith(("utf-16", "iso-2022", "replacement")):
        return content
    from gossamer.documents import legacy_encodings  # most pages are in UTF-8

    return legacy_encodings.decode(content, charset).encode("utf-8", "replace")


def sitemap_to_utf8(content: bytes, content_type: str) -> bytes:
    """A sitemap, or its beginning, in UTF-8 without a mark. `content_type`: the field as sent, or nothing."""
    if (wide := _WIDE.match(content)) is None:
        return to_utf8(content, sniff(content, content_type))
    text = content.decode("utf-32-be" if wide[1] is None else "utf-32-le", "replace")
    return text.removeprefix("\ufeff").encode()


# -- query strings: links of a page in EUC-KR ask for `?q=%C7%D1%B1%DB`, not for UTF-8
# Sources: HTML, "encoding-parse a URL"; URL standard, "query state" and "percent-encode after encoding". Everything but HTML
# speaks UTF-8: style sheets (CSS Values 4, 4.5), feeds (RFC 3987, 3.1), sitemaps (sitemaps.org), header fields.

#: Encodings of documents whose URLs are in UTF-8 (Encoding standard, "get an output encoding"); empty where none is known.
UTF_8_QUERIES = frozenset(["", "utf-8", "utf-16be", "utf-16le", "replacement"])

#: The schemes of the URL standard's "special" URLs but those of web sockets: of any other, the query is in UTF-8.
_SPECIAL = frozenset(["http", "https", "ftp", "file"])
_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*+):")

#: Characters that the parser drops: white space and control characters at the ends, line ends and tabs anywhere.
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
    from gossamer.documents import legacy_encodings  # as above

    # As browsers send a character that the encoding lacks: `&#8364;`, escaped.
    encoded = legacy_encodings.encode(query, charset, lambda lacking: b"%%26%%23%d%%3B" % ord(lacking))
    return f"{place}?{''.join([_ESCAPED[byte] for byte in encoded])}"
