"""The kind of a document, from its bytes, after the WHATWG MIME Sniffing standard (sections 5 to 7).

Place in the flow: the process stage asks once for each document and chooses its processors by the answer. What the server
claims stays in the response.

Two rules are ours. A server that says `application/octet-stream` says nothing, so its bytes are looked at as if it had been
silent. And a claim of HTML is believed only where the bytes do not begin as another format does (fault 65: a zip archive
that is called HTML must not reach the parser), or as a feed (section 8.3) or sitemap.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from gossamer.values.patterns import lazy_pattern

#: Bytes that are looked at (section 5.2, "resource header").
HEADER_BYTES = 1445

XHTML = "application/xhtml+xml"
#: Media types that are HTML documents (WHATWG HTML, and XHTML served under its own name).
HTML_TYPES = frozenset({"text/html", XHTML})
#: Media types of XML that says no more of itself; some of it is XHTML.
XML_TYPES = frozenset({"application/xml", "text/xml"})

#: Claims that leave it to the bytes what the document is (section 7); the last is ours.
UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream"})

#: `Content-Type` fields that old servers sent with everything (section 5.1, "check for Apache bug").
_APACHE = frozenset(
    {"text/plain", "text/plain; charset=ISO-8859-1", "text/plain; charset=iso-8859-1", "text/plain; charset=UTF-8"}
)

_BINARY = lazy_pattern(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_HTML_START = lazy_pattern(
    rb"[\t\n\f\r ]*+<(?:(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P)[ >]|!--)",
    re.IGNORECASE,
)
_XML_START = lazy_pattern(rb"[\t\n\f\r ]*+<\?xml")
_MARKS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")


def _formats(*rows: tuple[bytes, str]) -> tuple[re.Pattern[bytes], Sequence[str]]:
    """One pattern for all beginnings of some formats, and their types in the order of its groups."""
    return re.compile(b"|".join(b"(%b)" % begins for begins, _ in rows), re.DOTALL), [name for _, name in rows]


# Images first, then audio and video, then archives (sections 6.1 to 6.3): nothing here begins as text does.
_IMAGES = _formats(
    (rb"\x00\x00[\x01\x02]\x00", "image/x-icon"),
    (rb"BM", "image/bmp"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF.{4}WEBPVP", "image/webp"),
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
)
_MEDIA = _formats(
    (rb"FORM.{4}AIFF", "audio/aiff"),
    (rb"ID3", "audio/mpeg"),
    (rb"OggS\x00", "application/ogg"),
    (rb"MThd\x00\x00\x00\x06", "audio/midi"),
    (rb"RIFF.{4}AVI ", "video/avi"),
    (rb"RIFF.{4}WAVE", "audio/wave"),
    (rb"\x00.{3}ftyp(?:mp4|iso|avc1|M4V|qt  )", "video/mp4"),
    (rb"\x1a\x45\xdf\xa3", "video/webm"),
)
_ARCHIVES = _formats(
    (rb"\x1f\x8b\x08", "application/x-gzip"),
    (rb"PK\x03\x04", "application/zip"),
    (rb"Rar!\x1a\x07\x00", "application/x-rar-compressed"),
)
_DOCUMENTS = _formats((rb"%PDF-", "application/pdf"), (rb"%!PS-Adobe-", "application/postscript"))

#: Roots of feeds and sitemaps that are sent as HTML, behind comments, declarations and instructions (section 8.3).
_ROOT = lazy_pattern(
    rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->|<![^-][^>]*+>|<\?.*?\?>)*+<(rss|feed|rdf:RDF|(?:[\w.-]++:)?(?:urlset|sitemapindex))[\s>]",
    re.DOTALL,
)
_ROOT_TYPES = {b"rss": "application/rss+xml", b"feed": "application/atom+xml", b"rdf:RDF": "application/rss+xml"}
_SITEMAP = "application/xml"
_ROOT_STARTS = (b"<?x", b"<rs", b"<fe", b"<rd", b"<ur", b"<si")


def sniff_media_type(content: bytes, content_type: str, *, nosniff: bool = False) -> str:
    """The media type of a document, in lower case without parameters. Of its `content`, without content coding, the first
    :data:`HEADER_BYTES` are looked at; `content_type` is the field as sent, empty where there was none; with `nosniff`, the server
    asks to be believed (`X-Content-Type-Options: nosniff`)."""
    claim = essence(content_type)
    if claim in HTML_TYPES:
        if content[:1] == b"<" and content[:3] not in _ROOT_STARTS:
            return claim  # nearly every page, at the cost of a look at its first bytes
        # Text and white space do not contradict it.
        header = content[:HEADER_BYTES]
        text = header.removeprefix(b"\xef\xbb\xbf").lstrip(b"\t\n\f\r ")
        if text[:3] in _ROOT_STARTS and claim == "text/html":
            return _of_root(header) or claim
        if header.startswith(_MARKS) or _BINARY.search(header) is None:
            return _match(_DOCUMENTS, header) or claim
        return _binary(header) or claim
    if claim in UNKNOWN and not (nosniff and claim):
        return _unknown(content[:HEADER_BYTES])
    if nosniff:
        return claim
    if content_type in _APACHE:
        # Section 7.2, rules for distinguishing if a resource is text or binary: never HTML.
        header = content[:HEADER_BYTES]
        if header.startswith(_MARKS) or _BINARY.search(header) is None:
            return "text/plain"
        return _match(_DOCUMENTS, header) or _binary(header) or "application/octet-stream"
    if claim.startswith("image/") and not claim.endswith("+xml"):
        return _match(_IMAGES, content) or claim
    if claim.startswith(("audio/", "video/")) or claim == "application/ogg":
        return _match(_MEDIA, content) or claim
    return claim


def essence(content_type: str) -> str:
    """The media type that a `Content-Type` field names, in lower case without parameters."""
    return content_type.partition(";")[0].strip().lower()


#: Type, subtype and what follows them (MIME Sniffing, section 4.4, "parse a MIME type"): both are tokens.
_TYPE = lazy_pattern(r"[ \t\r\n]*([!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t\r\n]*(?:;|\Z)")

#: A value of a list: commas within quotes part nothing (Fetch, "get, decode, and split").
_VALUE = lazy_pattern(r'(?:[^",]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z))++', re.DOTALL)

#: A parameter: its name, and its value in quotes or as it is. Single quotes mean nothing, and a name ends at the sign of equality.
_PARAMETER = lazy_pattern(r';[ \t\r\n]*([^;=]*)(?:=(?:"((?:[^"\\]|\\.)*)[^;]*|([^;]*)))?', re.DOTALL)
_ESCAPED = lazy_pattern(r"\\(.)", re.DOTALL)

#: Characters of a field that is remembered; servers say the same of every page.
_REMEMBERED = 256


def of_fields(headers: Iterable[tuple[str, str]]) -> str:
    """The `Content-Type` of an answer with its parameters, by Fetch's "extract a MIME type": the last field or value of a list
    that is a media type, with the charset of an earlier one where it is the same type and names none itself. Empty where there
    is none. `headers`: fields in order, names in lower case."""
    return _read(headers)[0]


def is_odd(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether `Content-Type` stands there more than once, or holds no media type."""
    return _read(headers)[1]


def _read(headers: Iterable[tuple[str, str]]) -> tuple[str, bool]:
    text = ""
    for name, value in headers:
        if name == "content-type":
            text = f"{text}, {value}" if text else value
    return _extract_known(text) if len(text) <= _REMEMBERED else _extract(text)


def _extract(text: str) -> tuple[str, bool]:
    """The one value that the joined fields come to, and whether that took more than reading it."""
    chosen = name = charset = ""
    values = [value.strip() for value in _VALUE.findall(text)]
    for value in values:
        match = _TYPE.match(value)
        if match is None or match[1] == "*/*":
            continue
        named = charset_of(value)
        if match[1].lower() != name:
            name, charset = match[1].lower(), named
        elif named:
            charset = named
        chosen = value if named or not charset else f'{value};charset="{charset}"'
    return chosen, bool(text) and (len(values) > 1 or not chosen)


_extract_known = lru_cache(maxsize=1024)(_extract)


def charset_of(content_type: str) -> str:
    """The label of the encoding that a `Content-Type` field names; empty where it names none."""
    if "charset" in content_type or "charset" in content_type.lower():
        for match in _PARAMETER.finditer(content_type[:1024]):  # a field of 1 MiB says nothing more (fault 65)
            label = _ESCAPED.sub(r"\1", match[2]) if match[2] is not None else match[3]
            if label and match[1].lower() == "charset":
                return label.strip()
    return ""


def _of_root(header: bytes) -> str:
    """The type of a feed or sitemap; empty for anything else."""
    root = _ROOT.match(header)
    return _ROOT_TYPES.get(root[1], _SITEMAP) if root is not None else ""


def of_sitemap(content: bytes) -> str:
    """The media type of a document that is known for a sitemap, whatever its server says: most name a type for pages."""
    return _of_root(content[:HEADER_BYTES]) or _unknown(content[:HEADER_BYTES])


def _unknown(header: bytes) -> str:
    """Section 7.1, rules for identifying an unknown MIME type."""
    if _HTML_START.match(header):
        return "text/html"
    if _XML_START.match(header):
        return "text/xml"
    if header.startswith(_MARKS):
        return "text/plain"
    known = _match(_DOCUMENTS, header) or _binary(header)
    return known or ("application/octet-stream" if _BINARY.search(header) else "text/plain")


def _binary(header: bytes) -> str:
    return _match(_IMAGES, header) or _match(_MEDIA, header) or _match(_ARCHIVES, header)


def _match(table: tuple[re.Pattern[bytes], Sequence[str]], header: bytes) -> str:
    pattern, names = table
    match = pattern.match(header)
    return names[match.lastindex - 1] if match is not None and match.lastindex else ""
