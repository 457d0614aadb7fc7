"""How HTML and XML are written: tags, attributes, comments, raw text, and the text of a link. Nothing of trees.

Place in the flow: by these rules :mod:`gossamer.documents.skim` finds tags and :mod:`gossamer.documents.document` counts them;
:mod:`gossamer.parsing.html` asks for the texts of links where anchors are wanted, and feeds and sitemaps are read by
:func:`xml_tags`. HTML is read as the standard's tokenizer reads it.
Every search here is linear whatever the bytes (fault 56): quantifiers are possessive, and what begins to match does match,
if need be to the end of the page. Numbers of sections are those of the HTML standard.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, cast

from gossamer.values.patterns import lazy_pattern

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
TAG = lazy_pattern(
    rb"<(?P<closing>/?)(?P<name>[a-zA-Z][^%(s)s/>]*+)(?P<attributes>%(all)s)>" % {b"s": SPACE, b"all": ATTRIBUTES}
)
#: One attribute: name, and value in double, single or no quotes.
ATTRIBUTE = lazy_pattern(
    rb"([^%(s)s/>][^%(s)s/>=]*+)"
    rb"""(?:[%(s)s]*+=[%(s)s]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^%(s)s"'>][^%(s)s>]*+)|(?=>)|\Z))?+"""
    % {b"s": SPACE}
)

# Bytes of a tag whose attributes are all held at once: a fetched tag may be one of a million attributes.
_MOST_AT_ONCE = 16_384

#: Bytes that follow the `<` of a comment, doctype, instruction or bogus comment; of an end tag, too.
DECLARES = (b"!", b"?", b"/")
_HYPHEN = b"-"[0]
CDATA = b"<![CDATA["

#: HTML elements that have no content, and no end tag.
VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)

#: Elements whose content is text for the tokenizer, up to their end tag (13.2.5.1; `noscript` is not, scripts being off).
RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
# Steps of a script between its states (13.2.5.15 to 31): in a comment, a script begun must end before the script can. Outside
# of one only a `<` does: most scripts are passed by a search for that byte.
_SCRIPT_STEP = lazy_pattern(rb"<(?:!--(?:-*+>)?|(/)[sS][cC][rR][iI][pP][tT](?=[%s/>]))" % SPACE)
_COMMENT_STEP = lazy_pattern(rb"<!--(?:-*+>)?|-->|<(/?)[sS][cC][rR][iI][pP][tT](?=[%s/>])" % SPACE)
_COMMENT_END = lazy_pattern(rb"--!?>")

_REFERENCE = lazy_pattern(r"&(?:#([0-9]++);?|#[xX]([0-9a-fA-F]++);?|([A-Za-z][A-Za-z0-9]*+)(;?)(?=(=?)))")
#: Characters of the longest name of a character, without its semicolon.
_LONGEST_NAME = len("CounterClockwiseContourIntegral")
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


@cache  # at most one for each name of `RAW`
def _end_of(name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"</%s(?=[%s/>])" % (b"".join(b"[%c%c]" % (c, c - 32) for c in name), SPACE))


#: How much is counted at a time, so that closing tags at the end do not hide the depth before them: the count is off by
#: no more than a slice's tags.
SLICE = 16_384


def most_open(markup: bytes) -> int:
    """The largest surplus of opening over closing tags, from the beginning to the end of any slice: so many elements may be open
    at once, those whose end tags pages leave out among them."""
    surplus = most = 0
    for start in range(0, len(markup), SLICE):
        end = start + SLICE
        surplus += markup.count(b"<", start, end) - 2 * markup.count(b"</", start, end + 1)
        most = max(most, surplus)
    return most


def end_of_other(markup: bytes, at: int) -> int:
    """The end of what begins with the `<` at `at` and is no whole tag: a declaration; a tag that the page ends in; or nothing."""
    after = markup[at + 1 : at + 2]
    if after.isalpha() or (after == b"/" and markup[at + 2 : at + 3].isalpha()):
        return len(markup)
    return end_of_declaration(markup, at) if after in DECLARES else at + 1


def is_end_tag(markup: bytes, name: bytes, at: int) -> bool:
    """Whether the end tag of a raw text element of this name begins at `at`."""
    return _end_of(name).match(markup, at) is not None


def end_of_raw(markup: bytes, name: bytes, at: int) -> int:
    """The start of the end tag of a raw text element whose start tag ends at `at`; the length of the page if it has none."""
    if name != b"script":
        end = _end_of(name).search(markup, at)
        return end.start() if end else len(markup)
    in_comment = in_script = False
    while (step := (_COMMENT_STEP if in_comment else _SCRIPT_STEP).search(markup, at)) is not None:
        at = step.end()
        if step[1] is None:
            in_comment = markup[at - 1] == _HYPHEN
            in_script = in_script and in_comment
        elif not step[1]:
            in_script = True
        elif in_script:
            in_script = False
        else:
            return step.start()
    return len(markup)


def written(raw: bytes) -> Iterable[tuple[bytes, bytes, bytes, bytes]]:
    """The attributes of a tag as they are written: the name of each, and its value in double, single or no quotes."""
    if len(raw) <= _MOST_AT_ONCE:
        return ATTRIBUTE.findall(raw)
    return (cast(tuple[bytes, bytes, bytes, bytes], match.groups(b"")) for match in ATTRIBUTE.finditer(raw))


def attributes(raw: bytes) -> dict[str, str]:
    """The attributes of a tag, names in lower case, the first of each name, references resolved. `raw`: everything between the
    tag's name and its `>`, in UTF-8."""
    found: dict[str, str] = {}
    for name, double, single, bare in written(raw):
        key = name.lower().decode("utf-8", "replace")
        if key not in found:
            value = double or single or bare
            found[key] = resolved(value, in_attribute=True) if value else ""
            if len(found) >= MAX_ATTRIBUTES:
                break
    return found


def resolved(raw: bytes, *, in_attribute: bool = False) -> str:
    """Text as the tokenizer hands it on: references resolved, line ends and NUL replaced. `raw`: UTF-8; `in_attribute`: a name
    without semicolon stays as it is before `=` or a letter: `?a=1&copy=2` (13.2.5.73)."""
    text = raw.decode("utf-8", "replace")
    if b"&" not in raw and b"\r" not in raw and b"\0" not in raw:
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if text.count("&") == text.count("&amp;"):  # as most are written
        return text.replace("&amp;", "&")
    return _REFERENCE.sub(_of_attribute if in_attribute else _of_text, text)


@cache
def _characters() -> Mapping[str, str]:
    from html.entities import html5  # 2,231 names, with the first page

    return html5


def _of_attribute(match: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon, equals = match.groups()
    if name is None:
        return _numbered(decimal, hexadecimal)
    if semicolon:
        return _characters().get(f"{name};", match[0])
    return match[0] if equals else _characters().get(name, match[0])


def _of_text(match: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon, _ = match.groups()
    if name is None:
        return _numbered(decimal, hexadecimal)
    known = _characters()
    if semicolon and f"{name};" in known:
        return known[f"{name};"]
    for length in range(min(len(name), _LONGEST_NAME), 1, -1):
        if name[:length] in known:
            return known[name[:length]] + name[length:] + semicolon
    return match[0]


def _numbered(decimal: str | None, hexadecimal: str | None) -> str:
    """The character of a number; U+FFFD where there is none (13.2.5.80)."""
    digits = (decimal or hexadecimal or "").lstrip("0")
    # No code point has more digits, and converting millions of them would be quadratic.
    code = int(digits or "0", 10 if decimal else 16) if len(digits) <= len(str(0x10FFFF)) else -1
    if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\ufffd"
    return _WINDOWS.get(code) or chr(code)


# -- the text of a link: between its tag and its end, folded
# A link ends at its end tag, at the next link and at the border of a table's cell, where the parser would end it too; it keeps the
# paragraphs that it runs through. Scripts and style sheets in it are no text.

#: Characters of an anchor text that are kept: enough for an index, bounded whatever the page (fault 76).
MAX_ANCHOR = 500

#: Bytes behind a link that are looked at for its text, where it has to be looked for: inline graphics come before it.
MAX_LOOKED_AT = 64 * MAX_ANCHOR

#: Bytes of a text that are folded: every character may be a reference, with white space around.
MAX_FOLDED = 16 * MAX_ANCHOR

#: Tags at which a text ends, opening or closing.
ENDS = frozenset(b"a td th tr".split())

_PLAIN_TAG = lazy_pattern(rb"<[a-zA-Z/!?][^<>]*+>")
# The same, within one text of many.
_PLAIN_TAG_OF_ONE = lazy_pattern(rb"<[a-zA-Z/!?][^<>\x01]*+>")

#: Between the texts of many links. Any of them may hold it, too: then each is folded by itself.
_BETWEEN = "\x01"


def folded(text: bytes) -> str:
    """The text of a stretch in which every tag ends at its first `>`, with runs of white space made one space."""
    if b"<" in text:
        text = _PLAIN_TAG.sub(b"", text)
    if len(text) > MAX_FOLDED:
        text = text[:MAX_FOLDED]
    return " ".join(resolved(text).split())[:MAX_ANCHOR]


def all_folded(texts: Sequence[bytes]) -> list[str]:
    """:func:`folded` of each text. They are folded as one: a page has a hundred links."""
    longest = max(map(len, texts), default=0)
    joined = _BETWEEN.encode().join(texts)
    if b"<" in joined:
        joined = _PLAIN_TAG_OF_ONE.sub(b"", joined)
    anchors = list(map(str.strip, " ".join(resolved(joined).split()).split(_BETWEEN)))
    if longest > MAX_FOLDED or len(anchors) != len(texts):
        return [folded(text) for text in texts]
    return [anchor[:MAX_ANCHOR] for anchor in anchors] if longest > MAX_ANCHOR else anchors


def anchor_at(markup: bytes, at: int) -> str:
    """The text of the link whose tag ends at `at`, wherever that is. Looks no further than :data:`MAX_LOOKED_AT`."""
    texts = []
    stop = min(len(markup), at + MAX_LOOKED_AT)
    while at < stop:
        start = markup.find(b"<", at, stop)
        texts.append(markup[at : start if start >= 0 else stop])
        if start < 0:
            break
        tag = TAG.match(markup, start, stop)
        if tag is None:
            if markup[start + 1 : start + 2] in DECLARES:
                at = end_of_declaration(markup, start)
            else:
                texts.append(b"<")
                at = start + 1
            continue
        name, at = tag["name"].lower(), tag.end()
        if name in ENDS:
            break
        if name in RAW and not tag["closing"]:
            at = end_of_raw(markup, name, at)
    return folded(b"".join(texts).replace(b"<", b"&lt;"))


# -- XML without a parser
# Nothing is fetched. Of references only the five of XML, numbers, and short texts that the document itself declares are resolved;
# the rest of a DTD is skipped (fault 60). Markup that is not well-formed is read as far as it goes: half of the feeds are not.

_XML_TOKEN = lazy_pattern(
    rb"<!--.*?(?:-->|\Z)"
    rb"|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    rb"|(?P<doctype><!DOCTYPE[^\[>]*+(?:\[.*?(?:\]\s*+>|\Z)|>|\Z))"
    rb"|<\?.*?(?:\?>|\Z)"
    rb"|<(?P<closing>/?)(?P<name>[A-Za-z_][^\s/<>]*+)(?P<attributes>(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+)>"
    rb"|(?P<text>[^<]++|<)",
    re.DOTALL | re.IGNORECASE,
)
_XML_REFERENCE = lazy_pattern(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
# A name that the document declares, and what it stands for; no text where that lies elsewhere.
_ENTITY = lazy_pattern(
    rb"""<!--.*?(?:-->|\Z)|<!ENTITY\s++([^\s%&;<>"']++)\s++(?:"([^"]*+)"|'([^']*+)'|(?:SYSTEM|PUBLIC)\b)""", re.DOTALL
)
_NAMED = lazy_pattern(rb"&([^\s#%&;<>\"']++);")
_PREDEFINED = frozenset([b"amp", b"lt", b"gt", b"quot", b"apos"])
#: Names that a document declares; bytes of a text with such names, before and after; bytes that they come to in a document; how
#: often names lie in each other. They stand for addresses of sites and the like.
_MOST_ENTITIES, _LONGEST_WITH_ENTITIES, _MOST_OF_ENTITIES, _DEEPEST_ENTITY = 200, 8_192, 2_000_000, 5


class _Entities:
    """The names that a document declares for texts, resolved within bounds (fault 60)."""

    def __init__(self, doctype: bytes) -> None:
        self._left = _MOST_OF_ENTITIES
        self._texts: dict[bytes, bytes | None] = {}
        for match in _ENTITY.finditer(doctype):
            if match[1] and len(self._texts) < _MOST_ENTITIES:  # of two, the first counts (XML 1.0, 4.2)
                text = match[2] if match[2] is not None else match[3]
                self._texts.setdefault(match[1], None if text is None or b"<" in text else text)

    def resolved(self, raw: bytes) -> bytes:
        """Text or attributes with what the names stand for; nothing where that is no text, or too long."""
        for _ in range(_DEEPEST_ENTITY):
            names = {name for name in _NAMED.findall(raw) if name in self._texts and name not in _PREDEFINED}
            if not names:
                return raw
            texts = {name: text for name in names if (text := self._texts[name]) is not None}
            longest = len(raw) + raw.count(b"&") * max(map(len, texts.values()), default=0)
            self._left -= longest
            if len(texts) < len(names) or longest > _LONGEST_WITH_ENTITIES or self._left < 0:
                return b""
            raw = _filled(raw, texts)
        return b""


def _filled(raw: bytes, texts: Mapping[bytes, bytes]) -> bytes:
    return _NAMED.sub(lambda match: texts.get(match[1], match[0]), raw)


class XmlTag(NamedTuple):
    """A tag with the text right behind it."""

    name: str
    """Without its prefix, in lower case."""
    prefix: str
    closing: bool
    attributes: bytes
    text: str
    """References resolved, CDATA included, ends stripped."""

    def attribute(self, name: str) -> str:
        """An attribute's value; empty where there is none."""
        return attributes(self.attributes).get(name, "")


def xml_tags(content: bytes) -> Iterator[XmlTag]:
    """Every tag of a feed or sitemap, in order, by one linear scan. `content` is well-formed UTF-8; a text in which it ends
    may be half a text, and is left out."""
    tag: re.Match[bytes] | None = None
    texts: list[bytes] = []
    entities: _Entities | None = None
    for match in _XML_TOKEN.finditer(content):
        if match["name"] is not None:
            if tag is not None:
                yield _xml_tag(tag, texts, entities)
            tag, texts = match, []
        elif match["text"] is not None:
            texts.append(match["text"])
        elif match["cdata"] is not None:
            texts.append(match["cdata"].replace(b"&", b"&amp;"))
        elif match["doctype"] is not None and b"<!ENTITY" in match["doctype"]:
            entities = _Entities(match["doctype"])
    if tag is not None:
        yield _xml_tag(tag, [], entities)


def _xml_tag(tag: re.Match[bytes], texts: list[bytes], entities: _Entities | None) -> XmlTag:
    prefix, _, name = tag["name"].decode("utf-8", "replace").lower().rpartition(":")
    written, raw = b"".join(texts).strip(), tag["attributes"]
    if entities is not None:
        written = entities.resolved(written).strip() if b"&" in written else written
        raw = entities.resolved(raw) if b"&" in raw else raw
    text = written.decode("utf-8", "replace")
    if "&" in text:
        import html  # with the first page

        text = _XML_REFERENCE.sub(lambda reference: html.unescape(reference[0]), text)
    return XmlTag(name, prefix, bool(tag["closing"]), raw, text)
