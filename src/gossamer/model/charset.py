"""Which encoding a document is in, after the WHATWG rules, and its text as UTF-8 for the HTML parser.

Order (HTML standard, section 13.2.3.2): byte order mark, `Content-Type`, a `meta` or XML declaration near the
beginning, then a guess. Labels are those of the Encoding standard (`webencodings`), so UTF-7 is never an answer
(FAULTS 59).
"""

import re
from collections.abc import Mapping

import webencodings

#: How far a declaration is looked for. The standard's prescan ends at 1,024 bytes, but its parser obeys a later `meta`
#: too and starts again ("change the encoding"); looking further at once comes to the same.
PRESCAN_BYTES = 16_384

#: What Western browsers take where nothing is said (HTML, table of suggested defaults).
DEFAULT = "windows-1252"

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_PARAMETER = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*(?:"([^">]*)"|'([^'>]*)')""")
# One attribute with what stands before it. Possessive, so no byte is read twice.
_ATTRIBUTE = re.compile(
    rb"""[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"'][^\s>]*+)?))?""", re.DOTALL
)
_COMMENT_END = re.compile(rb"--!?>")
_NAME_START = re.compile(rb"/?[A-Za-z]")


def lookup(label: str) -> str:
    """The standard's name of the encoding with this label, in lower case; empty where there is none."""
    encoding = webencodings.lookup(label)
    return encoding.name.lower() if encoding is not None else ""


def of_content_type(value: str) -> str:
    """The encoding that a `Content-Type` field names; empty where it names none that is known."""
    if "charset" not in value and "charset" not in value.lower():
        return ""
    match = _PARAMETER.search(value[:1024])  # a field of 1 MiB says nothing more (FAULTS 65)
    return lookup(match[1] or match[2] or match[3] or "") if match else ""


def of_mark(content: bytes) -> str:
    """The encoding that a byte order mark tells; empty without one."""
    return next((name for mark, name in _MARKS if content.startswith(mark)), "")


def of_declaration(content: bytes) -> str:
    """The encoding that the document declares in its first bytes (HTML, "prescan a byte stream"); empty if none."""
    head = content[:PRESCAN_BYTES]
    at = head.find(b"<")
    while at >= 0:
        after = head[at + 1 : at + 8].lower()
        if after.startswith(b"!--"):
            end = _COMMENT_END.search(head, at + 2)  # from there: `<!-->` is a whole comment
            at = end.end() if end else -1
        elif after.startswith(b"meta") and after[4:5] in (b"\t", b"\n", b"\f", b"\r", b" ", b"/"):
            attributes, at = _attributes(head, at + 5)
            if at >= 0 and (name := _of_meta(attributes)):
                return name
        elif _NAME_START.match(after):
            start = at + 1
            while start < len(head) and head[start] not in b"\t\n\f\r >":
                start += 1
            _, at = _attributes(head, start)
        elif after[:1] in (b"!", b"/", b"?"):
            at = head.find(b">", at)
        else:
            at += 1
        at = head.find(b"<", at) if at >= 0 else -1
    declared = _XML.match(head)
    if declared is not None:
        name = lookup((declared[1] or declared[2] or b"").decode("latin-1"))
        return "utf-8" if name.startswith("utf-16") else name
    return ""


def _attributes(head: bytes, at: int) -> tuple[Mapping[bytes, bytes], int]:
    """The attributes of a tag whose name ends at `at`, first of each name, and where they end (-1: they do not)."""
    found: dict[bytes, bytes] = {}
    while (match := _ATTRIBUTE.match(head, at)) is not None:
        found.setdefault(match[1].lower(), match[2] or match[3] or match[4] or b"")
        at = match.end()
    return found, head.find(b">", at)


def _of_meta(attributes: Mapping[bytes, bytes]) -> str:
    """The encoding that one `meta` declares."""
    if b"charset" in attributes:
        name = lookup(attributes[b"charset"].decode("latin-1"))
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        match = _PARAMETER.search(attributes.get(b"content", b"").decode("latin-1"))
        name = lookup(match[1] or match[2] or match[3] or "") if match else ""
    else:
        return ""
    # A meta that can be read as ASCII is not in UTF-16; nobody means x-user-defined (HTML, 13.2.3.2).
    return {"utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": DEFAULT}.get(name, name)


def sniff(content: bytes, content_type: str) -> str:
    """The encoding of a document, by the standard's name in lower case.

    Where nothing is declared, bytes that are UTF-8 and not ASCII are UTF-8: its pattern hardly ever comes about by
    accident (the standard allows this guess); anything else is :data:`DEFAULT`.
    """
    return of_mark(content) or of_content_type(content_type) or of_declaration(content) or _guess(content)


def _guess(content: bytes) -> str:
    if content.isascii():
        return DEFAULT
    try:
        content.decode()
    except UnicodeDecodeError:
        return DEFAULT
    return "utf-8"


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
    if content.isascii() and not charset.startswith(("utf-16", "iso-2022")):
        return content
    encoding = webencodings.lookup(charset) or webencodings.UTF8
    text: str
    text, _ = webencodings.decode(content, encoding, "replace")
    return text.encode("utf-8", "replace")
