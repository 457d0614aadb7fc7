"""Markdown of the main part of an HTML page: headings, lists, tables, code with its language, absolute links; no menus.

Place in the flow: :attr:`gossamer.documents.document.Document.markdown` asks for it; exports, chunks and the server for models
(:mod:`gossamer.words`) use that. :mod:`gossamer.documents.main_part` says which markup belongs to the page's content; the package
html-to-markdown (an extra, in Rust) converts it, once the little that it does not know is written as it expects: languages of code,
links that lead nowhere, marks behind headings.

Promises: a function of the page alone; linear; where a limit would lose words, the page comes as plain paragraphs, and says so.
"""

import re
from functools import cache
from typing import Any, NamedTuple

from gossamer.documents.main_part import MainPart
from gossamer.documents.text import main_text, prose
from gossamer.engine.errors import install_command
from gossamer.values.errors import UsageError

#: Elements within each other that are converted: each takes stack of the converter. Content of real pages stays below 100.
MAX_DEPTH = 400

#: Characters of the Markdown of one document that are kept; beyond are dumps.
MAX_MARKDOWN = 8_000_000

#: Share of the words of its text that the Markdown of a page has at least, or it is made of the text.
_WHOLE = 0.9

#: What stands around the id of a heading where anchors are asked for: private characters that no page means.
MARK_START, MARK_END = "\U00105ac0", "\U00105ac1"
_MARKS = {ord(MARK_START): None, ord(MARK_END): None}

#: Words of a class that stand before or behind the language of code.
_NO_LANGUAGES = frozenset(
    b"default none text plain plaintext notranslate highlight code pre source sourcecode prettyprint prettyprinted linenums "
    b"nohighlight "
    b"hljs brush literal-block doctest syntaxhighlighter prism wp-block-code verbatim screen programlisting".split()
)
_CLASS = re.compile(rb"""(?i)\s(?:class|data-lang(?:uage)?)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")
_LANGUAGE = re.compile(
    rb"(?i)(?:^|\s)(?:language-|lang-|brush:\s*|highlight-source-|highlight-text-|highlight-|sourceCode\s+)([a-z][a-z0-9+#._-]*)"
)
_CODE = re.compile(rb"(?is)<pre\b([^<>]*)>(\s*+<code\b[^<>]*>)?(.*?)(</pre\b|\Z)")
_LINK = re.compile(rb"(?i)</?a\b[^<>]*>")
# What stands right before code, within so many bytes: generators name the language there.
_AROUND = re.compile(rb"(?i)<div\b[^<>]*>\s*+(?:<div\b[^<>]*>\s*+)?\Z")
_BEFORE = 300
_MARK = re.compile(
    rb"""(?i)<a\b[^<>]*\bclass=["']?[^"'<>]*(?:headerlink|anchor|permalink|heading-link)[^<>]*>"""
    rb"""(?:\s|#|&#182;|&para;|\xc2\xb6|\xf0\x9f\x94\x97|\xc2\xa7){0,9}</a>"""
)
# What is looked for before the searches, which cost more.
_MARKS_OF_HEADINGS = (b"headerlink", b"anchor", b"permalink", b"heading-link")
_SCHEMES = (b"javascript:", b"data:", b"vbscript:")
_ID = rb"""\sid\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))"""
_HEADING = re.compile(
    rb"(?i)(?:<(?:section|div|article|a)\b(?:[^<>]*?%s)?[^<>]*>\s*+(?:</a>\s*+)?)?(<h[1-6]\b(?:[^<>]*?%s)?[^<>]*>)"
    % (_ID, _ID)
)
_LEADS_NOWHERE = re.compile(
    rb"""(?i)\shref\s*=\s*(?:"\s*(?:javascript|data|vbscript):[^"<>]*"|'\s*(?:javascript|data|vbscript):[^'<>]*'"""
    rb"""|(?:javascript|data|vbscript):[^\s<>]*)"""
)

# Links around images alone: without images, their alternative text is the text.
_PICTURED = re.compile(rb"(?i)(<a\b[^<>]*>)\s*+((?:<img\b[^<>]*>\s*+)++)</a>")
_ALT = re.compile(rb"""(?i)\salt\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")

_WORD = re.compile(r"\w+")
# Code, in its fence or its marks; and the two backslashes that the converter writes for one.
_CODE_OR_BACKSLASHES = re.compile(r"(^```.*?^```|`[^`\n]*`|\\\\)", re.DOTALL | re.MULTILINE)


class Markdown(NamedTuple):
    """The Markdown of a page."""

    text: str
    """It ends in a new line, unless it is empty."""
    is_plain: bool = False
    """A limit left paragraphs alone: the page has more blocks than are looked at, or elements too deep in each other."""


def as_markdown(markup: bytes, base: str, *, images: bool = False, anchors: bool = False) -> Markdown:
    """The main part of a page as Markdown.

    Args:
        base: what relative links are resolved against.
        images: whether images stay, as links to them.
        anchors: whether the id of a heading stands before it, between :data:`MARK_START` and :data:`MARK_END`.

    Raises:
        UsageError: html-to-markdown is not installed.
    """
    converter = _converter()
    main, found = MainPart(markup), ""
    if not main.is_cut:
        source = b"".join(main.fragments())
        lower = source.lower()
        if b"<pre" in lower:
            source = _CODE.sub(_code, source)
        if any(map(source.__contains__, _MARKS_OF_HEADINGS)):
            source = _MARK.sub(b"", source)
        if not images and b"<img" in source:
            source = _PICTURED.sub(_named, source)
        if any(map(lower.__contains__, _SCHEMES)):
            source = _LEADS_NOWHERE.sub(b"", source)
        decoded = source.decode("utf-8", "replace").replace("\0", "")
        if MARK_START in decoded or MARK_END in decoded:
            decoded = decoded.translate(_MARKS)
        if anchors:
            decoded = _HEADING.sub(_with_anchor, decoded.encode()).decode()
        try:
            found = _as_written(str(converter.convert(decoded, _options(images, base)).content).strip())
            is_whole = not _may_be_deep(source)
        except converter.ConversionError:  # it refuses what it takes for no text
            is_whole = False
        if is_whole:
            return Markdown(f"{found}\n" if found else "")
    text = prose(markup, MAX_MARKDOWN) if main.is_cut else main_text(markup, MAX_MARKDOWN)
    if found and len(_WORD.findall(found)) >= _WHOLE * len(_WORD.findall(text)):
        return Markdown(f"{found}\n")
    paragraphs = "\n\n".join(filter(None, text.split("\n")))
    return Markdown(f"{paragraphs}\n" if paragraphs else "", is_plain=True)


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


def _options(images: bool, base: str) -> Any:
    return _converter().ConversionOptions(
        autolinks=False,
        extract_metadata=False,
        skip_images=not images,
        max_depth=MAX_DEPTH,
        tier_strategy="tier1",  # half the time of the other, which also breaks code within lines
        base_url=base if base.startswith(("http://", "https://")) else None,
    )


def _named(match: "re.Match[bytes]") -> bytes:
    """A link around images with their alternative texts instead; nothing where they have none."""
    texts = b" ".join(b"".join(filter(None, found)) for found in _ALT.findall(match[2])).strip()
    return match[1] + texts + b"</a>" if texts else b""


def _with_anchor(match: "re.Match[bytes]") -> bytes:
    around = match[1] or match[2] or match[3]
    own = match[5] or match[6] or match[7]
    anchor = (own or around or b"").strip()
    return match[0] + (f"{MARK_START}{anchor.decode()}{MARK_END}".encode() if anchor else b"")


def _code(match: "re.Match[bytes]") -> bytes:
    """Code with its language as the converter knows it, and without links."""
    pre, code, inside, end = match.groups(default=b"")
    around = _AROUND.search(match.string, max(0, match.start() - _BEFORE), match.start())
    language = _language_of((code, pre, around[0] if around else b""))
    start = b'<code class="language-' + language + b'">' if language else code and b"<code>"
    return b"<pre>" + start + _LINK.sub(b"", inside) + (b"</code>" if language and not code else b"") + end


def _language_of(tags: "tuple[bytes, ...]") -> bytes:
    """The language that the first of some start tags names."""
    for tag in tags:
        for named in _CLASS.finditer(tag):
            value = named[1] or named[2] or named[3]
            if b"data-lang" in named[0].lower() and value.isalnum():
                return value.lower()
            for language in _LANGUAGE.findall(value):
                if language.lower() not in _NO_LANGUAGES:
                    return bytes(language.lower())
    return b""


def _as_written(found: str) -> str:
    """Backslashes outside of code as the page has them: mathematics is full of them."""
    if "\\\\" not in found:
        return found
    parts = _CODE_OR_BACKSLASHES.split(found)
    return "".join("\\" if part == "\\\\" else part for part in parts if part is not None)


def _may_be_deep(markup: bytes) -> bool:
    """More elements may be open at once than are converted; end tags that pages leave out count as well."""
    opened = deepest = 0
    for start in range(0, len(markup), 1 << 14):
        end = start + (1 << 14)
        opened += markup.count(b"<", start, end) - 2 * markup.count(b"</", start, end + 1)
        deepest = max(deepest, opened)
    return deepest > MAX_DEPTH
