"""How HTML is written: tags, attributes, comments and raw text as the standard's tokenizer reads them. Nothing of trees.

Place in the flow: the rules by which :mod:`gossamer.documents.skim` finds tags and :mod:`gossamer.documents.document` counts them.
Every search here is linear whatever the bytes (fault 56): quantifiers are possessive, and what begins to match does match,
if need be to the end of the page. Numbers of sections are those of the HTML standard.
"""

import re
from html.entities import html5

#: Attributes of one tag that are read: 9 ms for the parser, which is quadratic in them (5,000: 57 ms, 20,000: 906 ms). Real
#: ones stay below 100; inline graphics have long values, not many (fault 55).
MAX_ATTRIBUTES = 2_000

#: White space as the tokenizer knows it, for character classes; `\s` would take the vertical tab for it, too.
SPACE = rb"\t\n\f\r "

# One attribute (13.2.5.32 to 39). A quote counts only where a value begins, as in the tokenizer; otherwise tags could be
# hidden from a scan that the parser sees. Possessive throughout: no byte is read twice.
_ONE = (
    rb"[^%(s)s/>][^%(s)s/>=]*+"
    rb"""(?:[%(s)s]*+=[%(s)s]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^%(s)s"'>][^%(s)s>]*+|(?=>)|\Z))?+"""
) % {b"s": SPACE}
#: Everything in a tag behind its name.
ATTRIBUTES = rb"(?:[%(s)s/]++|%(one)s)*+" % {b"s": SPACE, b"one": _ONE}

#: A tag: `closing`, `name` and `attributes`, from its `<` to its `>`. One that the page ends in is none.
TAG = re.compile(
    rb"<(?P<closing>/?)(?P<name>[a-zA-Z][^%(s)s/>]*+)(?P<attributes>%(all)s)>" % {b"s": SPACE, b"all": ATTRIBUTES}
)
#: One attribute: name, and value in double, single or no quotes.
ATTRIBUTE = re.compile(
    rb"([^%(s)s/>][^%(s)s/>=]*+)"
    rb"""(?:[%(s)s]*+=[%(s)s]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^%(s)s"'>][^%(s)s>]*+)|(?=>)|\Z))?+"""
    % {b"s": SPACE}
)

#: What follows the `<` of a comment, doctype, instruction or bogus comment; of an end tag, too.
DECLARES = (b"!", b"?", b"/")
CDATA = b"<![CDATA["

#: Elements whose content is text for the tokenizer, up to their end tag (13.2.5.1; `noscript` is not, scripts being off).
RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
_RAW_ENDS = {
    name: re.compile(rb"</%s(?=[%s/>])" % (b"".join(b"[%c%c]" % (c, c - 32) for c in name), SPACE)) for name in RAW
}
# What moves a script between its states (13.2.5.15 to 31): in a comment, a script begun must end before the script can.
_SCRIPT_STEP = re.compile(rb"<!--(?:-*+>)?|-->|<(/?)[sS][cC][rR][iI][pP][tT](?=[%s/>])" % SPACE)
_COMMENT_END = re.compile(rb"--!?>")

_REFERENCE = re.compile(r"&(?:#([0-9]++);?|#[xX]([0-9a-fA-F]++);?|([A-Za-z][A-Za-z0-9]*+)(;?)(?=(=?)))")
#: Characters of the longest name of a character, without its semicolon.
_LONGEST_NAME = max(map(len, html5)) - 1
# Numbers that stand for what Windows has there, not for control characters (13.2.5.80).
_WINDOWS = {
    code: bytes([code]).decode("cp1252") for code in range(0x80, 0xA0) if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


def end_of_declaration(markup: bytes, at: int) -> int:
    """The end of a comment, doctype, instruction or bogus comment that begins at `at`; the length of the page if it has none."""
    if not markup.startswith(b"<!--", at):
        return markup.find(b">", at) + 1 or len(markup)
    if markup.startswith((b">", b"->"), at + 4):
        return markup.index(b">", at) + 1
    end = _COMMENT_END.search(markup, at + 4)
    return end.end() if end else len(markup)


def is_end_tag(markup: bytes, name: bytes, at: int) -> bool:
    """Whether the end tag of a raw text element of this name begins at `at`."""
    return _RAW_ENDS[name].match(markup, at) is not None


def end_of_raw(markup: bytes, name: bytes, at: int) -> int:
    """The start of the end tag of a raw text element whose start tag ends at `at`; the length of the page if it has none."""
    if name != b"script":
        end = _RAW_ENDS[name].search(markup, at)
        return end.start() if end else len(markup)
    in_comment = in_script = False
    for step in _SCRIPT_STEP.finditer(markup, at):
        if step[1] is None:
            in_comment = not step[0].endswith(b">")
            in_script = in_script and in_comment
        elif not step[1]:
            in_script = in_comment
        elif in_script:
            in_script = False
        else:
            return step.start()
    return len(markup)


def attributes(raw: bytes) -> dict[str, str]:
    """The attributes of a tag, names in lower case, the first of each name, references resolved.

    Args:
        raw: everything between the tag's name and its `>`, in UTF-8.
    """
    found: dict[str, str] = {}
    for match in ATTRIBUTE.finditer(raw):
        name, double, single, bare = match.groups()
        key = name.lower().decode("utf-8", "replace")
        if key not in found:
            value = double or single or bare
            found[key] = resolved(value, in_attribute=True) if value else ""
            if len(found) >= MAX_ATTRIBUTES:
                break
    return found


def resolved(raw: bytes, *, in_attribute: bool = False) -> str:
    """Text as the tokenizer hands it on: references resolved, line ends and NUL replaced.

    Args:
        raw: UTF-8.
        in_attribute: a name without semicolon stays as it is before `=` or a letter: `?a=1&copy=2` (13.2.5.73).
    """
    text = raw.decode("utf-8", "replace")
    if b"&" not in raw and b"\r" not in raw and b"\0" not in raw:
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if "&" in text:
        text = _REFERENCE.sub(_of_attribute if in_attribute else _of_text, text)
    return text


def _of_attribute(match: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon, equals = match.groups()
    if name is None:
        return _numbered(decimal, hexadecimal)
    if semicolon:
        return html5.get(f"{name};", match[0])
    return match[0] if equals else html5.get(name, match[0])


def _of_text(match: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon, _ = match.groups()
    if name is None:
        return _numbered(decimal, hexadecimal)
    if semicolon and f"{name};" in html5:
        return html5[f"{name};"]
    for length in range(min(len(name), _LONGEST_NAME), 1, -1):
        if name[:length] in html5:
            return html5[name[:length]] + name[length:] + semicolon
    return match[0]


def _numbered(decimal: str | None, hexadecimal: str | None) -> str:
    """The character of a number; U+FFFD where there is none (13.2.5.80)."""
    digits = (decimal or hexadecimal or "").lstrip("0")
    # No code point has more digits, and converting millions of them would be quadratic.
    code = int(digits or "0", 10 if decimal else 16) if len(digits) <= len(str(0x10FFFF)) else -1
    if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\ufffd"
    return _WINDOWS.get(code) or chr(code)
