"""Markdown of the main part of an HTML page (headings, lists, tables, code with its language, absolute links; no menus), and
the facts that its author states for readers elsewhere: author, date, description, image, site.

Place in the flow: :attr:`gossamer.documents.document.Document.markdown` and `metadata` ask for them; exports, chunks and the
server for models (:mod:`gossamer.words`) use that. :mod:`gossamer.documents.main_part` says which markup belongs to the page's
content; the package html-to-markdown (an extra, in Rust) converts it, once the little that it does not know is written as it
expects: languages of code, links that lead nowhere, marks behind headings. Facts come from JSON-LD of an article, `meta`
elements of Open Graph and of HTML, and the first `time`, in this order. Full structured data is read elsewhere
(:mod:`gossamer.rdf`), at a cost that a text should not have.

Promises: functions of the page alone; linear; where a limit would lose words, the page comes as plain paragraphs, and says so;
each fact is one line of bounded length, and what cannot be read is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import msgspec

from gossamer.documents.main_part import MainPart
from gossamer.documents.markup import most_open, resolved
from gossamer.documents.skim import Skim
from gossamer.documents.text import main_text, prose
from gossamer.engine.errors import install_command
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.patterns import lazy_automaton
from gossamer.values.url import canonical

#: Elements within each other that are converted: each takes stack of the converter. Content of real pages stays below 100.
MAX_DEPTH = 400

#: Characters of the Markdown of one document that are kept; beyond are dumps.
MAX_MARKDOWN = 8_000_000

#: Share of the words of its text that the Markdown of a page has at least, or it is made of the text.
_WHOLE = 0.9

#: The marks around the id of a heading where anchors are asked for: private characters that no page means.
MARK_START, MARK_END = "\U00105ac0", "\U00105ac1"
_MARKS = {ord(MARK_START): None, ord(MARK_END): None}

#: Words of a class that stand before or behind the language of code.
_NO_LANGUAGES = frozenset(
    b"default none text plain plaintext notranslate highlight code pre source sourcecode prettyprint prettyprinted linenums "
    b"nohighlight "
    b"hljs brush literal-block doctest syntaxhighlighter prism wp-block-code verbatim screen programlisting".split()
)
_CLASS = re.compile(rb"""(?i)\s(?:class|(?:data-)?lang(?:uage)?)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")
_LANGUAGE = re.compile(
    rb"(?i)(?:^|\s)(?:language-|lang-|brush:\s*|highlight-source-|highlight-text-|highlight-|sourceCode\s+)([a-z][a-z0-9+#._-]*)"
)
# A `lang` of so many letters is a language that people speak.
_LANGUAGE_OF_PEOPLE = 2
_CODE = re.compile(rb"(?is)<pre\b([^<>]*)>(\s*+<code\b[^<>]*>)?(.*?)(</pre\b|\Z)")
_LINK = re.compile(rb"(?i)(</?a\b[^<>]*>)")
# Code in a line with links in it; and white space behind the break of a line.
_CODE_LINKED = re.compile(rb"(?i)<(code|tt|samp|kbd)\b[^<>]*>((?:[^<>]*+</?a\b[^<>]*+>)++[^<>]*+)</\1>")
_CODES = (b"<code", b"<tt", b"<samp", b"<kbd")
# Emphasis within emphasis: its marks would mean something else.
_EMPHASIS = rb"(?:em|i|var|cite|dfn)\b"
_NESTED = re.compile(
    rb"(?i)(<((?:%(e)s))[^<>]*+>)((?:[^<>]*+<(%(e)s)[^<>]*+>[^<>]*+</\4>)++)([^<>]*+</\2>)" % {b"e": _EMPHASIS}
)
# A page with such emphasis; one search for all costs a fifth of one for each.
_KIND_OF_EMPHASIS = lazy_automaton(rb"(?i)<(?:var|cite|dfn|em><i|i><em|em><em|i><i)")
_EMPHASIZED = re.compile(rb"(?i)</?%s[^<>]*+>" % _EMPHASIS)
# Asterisks beside marks of emphasis, or right within them, would be read as more of these; none is one in code, so a private
# character stands for it until code is told from text.
_STARS = re.compile(rb"\*++")
_MARKED = re.compile(rb"(?i)</?(?:em|i|var|cite|dfn|b|strong)\b[^<>]*+>")
_STAR = "\U00105ac2"
_BREAK = re.compile(rb"(?i)(<br\b[^<>]*>)\s+")
# Markup right before code, within so many bytes: generators name the language there.
_AROUND = re.compile(rb"(?i)<div\b[^<>]*>\s*+(?:<div\b[^<>]*>\s*+)?\Z")
_BEFORE = 300
_MARK = re.compile(
    rb"""(?i)<a\b[^<>]*\bclass=["']?[^"'<>]*(?:headerlink|anchor|permalink|heading-link|\bmark\b)[^<>]*>"""
    rb"""(?:\s|#|&#182;|&para;|\xc2\xb6|\xf0\x9f\x94\x97|\xc2\xa7){0,9}</a>"""
)
# Bytes that are looked for before the searches, which cost more.
_MARKS_OF_HEADINGS = (b"headerlink", b"anchor", b"permalink", b"heading-link", b'"mark"')
_SCHEMES = (b"javascript:", b"data:", b"vbscript:")
_ID = rb"""\sid\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))"""
# Bounded, since a tag may have thousands of ids and no end.
_HEADING = re.compile(
    rb"(?i)(?:<(?:section|div|article|a)\b(?:[^<>]{0,500}?%s)?[^<>]{0,4000}>\s*+(?:</a>\s*+)?)?(<h[1-6]\b(?:[^<>]{0,500}?%s)?[^<>]{0,4000}>)"
    % (_ID, _ID)
)
_LEADS_NOWHERE = re.compile(
    rb"""(?i)\shref\s*=\s*(?:"\s*(?:javascript|data|vbscript):[^"<>]*"|'\s*(?:javascript|data|vbscript):[^'<>]*'"""
    rb"""|(?:javascript|data|vbscript):[^\s<>]*)"""
)

# Links around nothing, as icons of a style sheet are.
_EMPTY = re.compile(rb"(?i)<a\b[^<>]*+>(?:\s|&nbsp;|&#160;|</?(?:i|b|em|strong)\b[^<>]*+>)*+</a>")
# Links around images alone: without images, their alternative text is the text.
_PICTURED = re.compile(rb"(?i)(<a\b[^<>]*>)\s*+((?:<img\b[^<>]*>\s*+)++)</a>")
_ALT = re.compile(rb"""(?i)\salt\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")

_WORD = re.compile(r"\w+")
# A line that begins or ends code.
_FENCE = re.compile(r"^(?:[ \t>]|[-*+] |\d{1,9}[.)] )*(`{3,})[^`\n]*$", re.MULTILINE)
# In text: code in its marks; the two backslashes that the converter writes for one; and a `<` at which HTML would begin.
_CODE_OR_ESCAPED = re.compile(
    r"(`[^`\n]+`|``[^\n]+?``|\\\\|<(?=/?[a-zA-Z][a-zA-Z0-9-]{0,100}(?:\s[^<>]{0,500})?/?>|!--|\?|![a-zA-Z]))"
)
_ESCAPED = {"\\\\": "\\", "<": "\\<"}


class Markdown(NamedTuple):
    """The Markdown of a page."""

    text: str
    """It ends in a new line, unless it is empty."""
    is_plain: bool = False
    """A limit left paragraphs alone: the page has more blocks than are looked at, or elements too deep in each other."""


def as_markdown(
    markup: bytes, base: str, main: MainPart | None = None, *, images: bool = False, anchors: bool = False
) -> Markdown:
    """The main part of a page as Markdown.

    Args:
        base: what relative links are resolved against.
        main: the main part, where it is known.
        images: whether images stay, as links to them.
        anchors: whether the id of a heading stands before it, between :data:`MARK_START` and :data:`MARK_END`.

    Raises:
        UsageError: html-to-markdown is not installed.
    """
    converter = _converter()
    main, found = main or MainPart(markup), ""
    if not main.is_cut:
        source = _source(main, images)
        decoded = source.decode("utf-8", "replace").replace("\0", "")
        if MARK_START in decoded or MARK_END in decoded:
            decoded = decoded.translate(_MARKS)
        if anchors:
            decoded = _HEADING.sub(_with_anchor, decoded.encode()).decode()
        try:
            choices = _choices(images, b"<table" in source.lower())
            options = replace(choices, base_url=base if base.startswith(("http://", "https://")) else None)
            found = _as_written(str(converter.convert(decoded, options).content).strip())
            is_whole = most_open(source) <= MAX_DEPTH
        except converter.ConversionError:  # it refuses what it takes for no text
            is_whole = False
        if is_whole:
            return Markdown(f"{found}\n" if found else "")
    text = prose(markup, MAX_MARKDOWN) if main.is_cut else main_text(markup, MAX_MARKDOWN, main)
    if found and len(_WORD.findall(found)) >= _WHOLE * len(_WORD.findall(text)):
        return Markdown(f"{found}\n")
    paragraphs = "\n\n".join(filter(None, text.split("\n")))
    return Markdown(f"{paragraphs}\n" if paragraphs else "", is_plain=True)


def _source(main: MainPart, images: bool) -> bytes:
    """The markup of a main part as the converter understands it."""
    source = b"".join(main.fragments())
    lower = source.lower()
    if b"<pre" in lower:
        source = _CODE.sub(_code, source)
    if b"</a>" in lower and any(map(lower.__contains__, _CODES)):
        source = _CODE_LINKED.sub(_links_around, source)
    if _KIND_OF_EMPHASIS.search(source):
        source = _NESTED.sub(lambda found: found[1] + _EMPHASIZED.sub(b"", found[3]) + found[5], source)
    if b"*" in source:
        source = _STARS.sub(_starred, source)
    if b"<br" in lower:
        source = _BREAK.sub(rb"\1", source)
    if any(map(source.__contains__, _MARKS_OF_HEADINGS)):
        source = _MARK.sub(b"", source)
    if not images and b"<img" in source:
        source = _PICTURED.sub(_named, source)
    source = _EMPTY.sub(lambda link: b"" if b"href" in link[0].lower() else link[0], source)
    if any(map(lower.__contains__, _SCHEMES)):
        source = _LEADS_NOWHERE.sub(b"", source)
    return source


def needs(extra: str, package: str, purpose: str) -> UsageError:
    """The error of a package that is not installed, with the command that installs it here.

    Args:
        extra: the extra of Gossamer that brings it.
        package: its name.
        purpose: the subject of the sentence, as `Markdown`.
    """
    return UsageError(f"{purpose} needs {package}; install it: {install_command(extra)}")


@cache
def _converter() -> Any:
    try:
        import html_to_markdown  # an extra: most crawls make no Markdown
    except ImportError:
        raise needs("words", "html-to-markdown", "Markdown") from None
    return html_to_markdown


#: Choices of the converter by name, of which it looks each up for each page, in Python: the tenth part of its time.
_CHOICES = (
    "code_block_style", "heading_style", "hidden_content", "highlight_style", "inline_data_media", "link_style", "list_indent_type",
    "newline_style", "output_format", "tier_strategy", "url_escape_style", "whitespace_mode",
)  # fmt: skip


@cache
def _choices(images: bool, tables: bool) -> Any:
    """Options of the converter, with the values of its choices instead of their names."""
    package = _converter()
    options = package.ConversionOptions(
        autolinks=False,
        extract_metadata=False,
        skip_images=not images,
        compact_tables=True,  # columns that are even for the eye cost a model ten times the words
        max_depth=MAX_DEPTH,
        # The first takes a third of the time, leaves pages that it does not understand to the other, and pads tables.
        tier_strategy="tier2" if tables else "tier1",
        hidden_content="all",  # the main part has no hidden elements but those that a reader opens
    )
    values = {}
    for name in _CHOICES:
        kind = getattr(package, name.title().replace("_", ""))
        values[name] = getattr(kind, getattr(options, name).upper())
    return replace(options, **values)


def _named(match: "re.Match[bytes]") -> bytes:
    """A link around images with their alternative texts instead; nothing where they have none."""
    texts = b" ".join(b"".join(filter(None, found)) for found in _ALT.findall(match[2])).strip()
    return match[1] + texts + b"</a>" if texts else b""


def _with_anchor(match: "re.Match[bytes]") -> bytes:
    around = match[1] or match[2] or match[3]
    own = match[5] or match[6] or match[7]
    anchor = (own or around or b"").strip()
    return match[0] + (f"{MARK_START}{anchor.decode()}{MARK_END}".encode() if anchor else b"")


def _starred(match: "re.Match[bytes]") -> bytes:
    """Asterisks that a mark of emphasis would stand beside, as :data:`_STAR`."""
    source, start, end = match.string, match.start(), match.end()
    tag = source.rfind(b"<", max(0, start - _BEFORE), start) if source[start - 1 : start] == b">" else -1
    is_beside = (tag >= 0 and _MARKED.fullmatch(source, tag, start)) or _MARKED.match(source, end)
    return _STAR.encode() * (end - start) if is_beside else match[0]


def _code(match: "re.Match[bytes]") -> bytes:
    """Code with its language as the converter knows it, and without links."""
    pre, code, inside, end = match.groups(default=b"")
    around = _AROUND.search(match.string, max(0, match.start() - _BEFORE), match.start())
    language = _language_of((code, pre, around[0] if around else b""))
    start = b'<code class="language-' + language + b'">' if language else code and b"<code>"
    return b"<pre>" + start + _LINK.sub(b"", inside) + (b"</code>" if language and not code else b"") + end


def _links_around(match: "re.Match[bytes]") -> bytes:
    """Code within links instead of links within code: Markdown has only that, and the fast way of the converter, too."""
    parts = _LINK.split(match[2])
    parts[::2] = [b"<code>" + text + b"</code>" if text.strip() else text for text in parts[::2]]
    return b"".join(parts)


def _language_of(tags: "tuple[bytes, ...]") -> bytes:
    """The language that the first of some start tags names."""
    for tag in tags:
        for named in _CLASS.finditer(tag):
            value = named[1] or named[2] or named[3]
            if b"lang" in named[0].lower().partition(b"=")[0]:
                if value.isalnum() and (b"data-" in named[0].lower() or len(value) > _LANGUAGE_OF_PEOPLE):
                    return value.lower()
                continue
            for language in _LANGUAGE.findall(value):
                if language.lower() not in _NO_LANGUAGES:
                    return bytes(language.lower())
    return b""


def _as_written(found: str) -> str:
    """Text outside of code as the page has it: with its backslashes, of which mathematics is full, and with `<` that begin no
    HTML, as in `List<T>`."""
    if "\\\\" not in found and "<" not in found and _STAR not in found:
        return found
    pieces, fence, at = [], "", 0
    for match in _FENCE.finditer(found):
        if not fence:
            pieces.append(_text_as_written(found[at : match.start()]))
            fence, at = match[1], match.start()
        elif match[1].startswith(fence):
            pieces.append(found[at : match.end()])
            fence, at = "", match.end()
    pieces.append(found[at:] if fence else _text_as_written(found[at:]))
    return "".join(pieces).replace(_STAR, "*")


def _text_as_written(text: str) -> str:
    parts = _CODE_OR_ESCAPED.split(text)
    parts[::2] = [part.replace(_STAR, "\\*") for part in parts[::2]]
    parts[1::2] = [_ESCAPED.get(part, part) for part in parts[1::2]]
    return "".join(parts)


#: Characters of a fact that are kept.
MAX_FACT = 1_000

#: Bytes of JSON-LD scripts of a page that are read, and values in them that are looked at.
_MAX_SCRIPTS, _MAX_VALUES = 256 << 10, 2_000

_ARTICLES = re.compile(r"Article$|Posting$|Report$|^WebPage$|^Recipe$|^Product$|^Book$")
_SCRIPT = re.compile(rb"""(?i)<script\b[^<>]*\btype\s*=\s*["']?application/ld\+json\b[^<>]*>""")
_TIME = re.compile(rb"""(?i)<time\b[^<>]*?\bdatetime\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")
#: The beginning of a date as ISO 8601 has it.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[^ ]*)?$")

#: Names of `meta` elements for each fact, the best first.
_NAMES = {
    "author": ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "twitter:creator"),
    "published": (
        "article:published_time", "datepublished", "date", "dc.date", "dcterms.created", "parsely-pub-date", "pubdate",
        "sailthru.date",
    ),
    "modified": ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified"),
    "description": ("og:description", "description", "twitter:description", "dc.description"),
    "image": ("og:image", "og:image:url", "twitter:image"),
    "site": ("og:site_name", "application-name"),
}  # fmt: skip


class PageMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts about a page; empty where the page does not state them."""

    author: str = ""
    """One, or several with `, ` between them."""
    published: str = ""
    """ISO 8601."""
    modified: str = ""
    """ISO 8601."""
    description: str = ""
    image: str = ""
    """Canonical URL."""
    site: str = ""


def page_metadata(skim: Skim, markup: bytes, base: str) -> PageMetadata:
    """The facts that a page states. `skim`: with its `meta` elements; `base`: what relative URLs are resolved against."""
    told: dict[str, str] = {}
    for meta in (tag.attributes for tag in skim.named(b"meta")):  # the first of each name counts
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        content = _line(meta.get("content", "")[: 4 * MAX_FACT])
        if name and content:
            told.setdefault(name.lower(), content)
    found = {name: next((told[key] for key in names if key in told), "") for name, names in _NAMES.items()}
    found |= {name: text for name, text in _of_scripts(markup).items() if text}
    for name in ("published", "modified"):
        found[name] = found[name] if _DATE.match(found[name]) else ""
    if not found["published"] and (match := _TIME.search(markup)):
        text = (match[1] or match[2] or match[3] or b"").decode("utf-8", "replace").strip()
        found["published"] = text if _DATE.match(text) else ""
    if found["author"].startswith(("http://", "https://", "@")):
        found["author"] = ""
    try:
        found["image"] = canonical(found["image"], base) if found["image"] else ""
    except UnreadableUrl:
        found["image"] = ""
    return PageMetadata(**found)


def _line(text: str) -> str:
    return " ".join(text.split())[:MAX_FACT]


def _of_scripts(markup: bytes) -> dict[str, str]:
    """The words of the first article in JSON-LD."""
    left = _MAX_SCRIPTS
    for match in _SCRIPT.finditer(markup):
        end = markup.find(b"</", match.end(), match.end() + left)
        if end < 0:
            break
        left -= end - match.end()
        try:
            data = msgspec.json.decode(markup[match.end() : end])
        except (ValueError, RecursionError):
            continue
        for thing in _things(data):
            kinds = thing.get("@type")
            if any(
                isinstance(kind, str) and _ARTICLES.search(kind)
                for kind in (kinds if isinstance(kinds, list) else [kinds])
            ):
                return {
                    "author": _line(", ".join(_names(thing.get("author")))),
                    "published": _text(thing.get("datePublished")),
                    "modified": _text(thing.get("dateModified")),
                    "description": _text(thing.get("description")),
                    "image": next(iter(_names(thing.get("image"), "url")), ""),
                }
    return {}


def _things(data: Any) -> Iterator[dict[str, Any]]:
    """Objects of JSON-LD, outer ones first."""
    waiting, seen = [data], 0
    while waiting and seen < _MAX_VALUES:
        one = waiting.pop(0)
        seen += 1
        if isinstance(one, dict):
            yield one
            waiting += [value for value in one.values() if isinstance(value, (dict, list))]
        elif isinstance(one, list):
            waiting += [value for value in one[:_MAX_VALUES] if isinstance(value, (dict, list))]


def _names(value: Any, key: str = "name") -> list[str]:
    """Names of persons, or URLs of images: texts, objects, or lists of them."""
    every = value if isinstance(value, list) else [value]
    return [text for one in every[:20] if (text := _text(one.get(key) if isinstance(one, dict) else one))]


def _text(value: Any) -> str:
    return _line(resolved(value[: 4 * MAX_FACT].encode())) if isinstance(value, str) else ""
