"""A page as processors see it: bytes, the tags that a crawler asks for, and a tree that is built on first use.

The parser is quadratic on nesting and on attributes of one tag (faults 54, 55; measured with lexbor: 5,000 open
elements 50 ms, 20,000 765 ms; 5,000 attributes 57 ms, 20,000 906 ms; a million `<br>` are 50 times their bytes in
memory). :func:`suspicion` is asked before it, and for the flag that a page carries (`trouble`); for ordinary pages it
costs one count. Its answer errs to the safe side. It knows the tokenizer's rules but not the tree builder's, so markup that is
written against this very code can still cost a second or two; processes that can be killed are the answer to that.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from gossamer.documents import charset, language, statements, terms
from gossamer.documents.charset import in_charset
from gossamer.documents.markup import RAW, SLICE, SPACE, TAG, end_of_other, end_of_raw, most_open, resolved
from gossamer.documents.skim import Skim
from gossamer.documents.statements import FieldLink, field_links
from gossamer.documents.text import GIST, MAX_TEXT, TEXT_CUT, TextChoice, all_text, main_text, prose
from gossamer.values.errors import ParseSkipped, UnreadableUrl
from gossamer.values.instants import frequency_of
from gossamer.values.media_type import HTML_TYPES, XHTML
from gossamer.values.patterns import lazy_automaton, lazy_pattern
from gossamer.values.url import canonical, host_of, scheme_of
from gossamer.values.visit import Visit

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from gossamer.documents.main_part import MainPart
    from gossamer.documents.markdown import PageMetadata


#: More `<` than this is a tree of over 100 MB (16 MB of `<br>`: 746 MB), whatever its shape.
MAX_TAGS = 150_000

#: A page with more `<` is dear, parsed or not: finding its links takes 3 us a tag at the worst, and everything else waits.
MAX_HERE = 100_000

#: References (`&amp;`) that cost as much as a tag.
REFERENCES = 8

#: Up to this many `<` cost the parser 0.13 s at the very worst, so nothing more is looked at.
TRUSTED_TAGS = 8_000

#: Up to this many, opening and closing tags are only counted against each other: a page that hides closing tags from
#: the parser (in comments, as `</x>`) gains 0.4 s. Beyond it they are counted by name, and where that is not plain,
#: looked at one by one.
COUNTED_TAGS = 30_000

#: Open elements at once: 50 ms. Real pages stay far below 500.
MAX_DEPTH = 5_000

_NAME = lazy_pattern(rb"<(/?[a-zA-Z][^%(s)s/>]*+)" % {b"s": SPACE})
#: Elements that never stay open, or that the next of their kind closes.
_NOT_NESTED = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd option td th tr".split()
)


def tags_of(markup: bytes) -> int:
    """How many `<` a page has; 0 for a small page, since no tag is shorter than three bytes."""
    return markup.count(b"<") if len(markup) > 3 * TRUSTED_TAGS else 0


def suspicion(markup: bytes, skim: Skim | None = None, count: int | None = None) -> str:
    """Why a page must not be parsed in this process; empty if it may.

    The reasons: `too_many_tags`, `too_deep`, `too_many_attributes`. `skim`: the page, skimmed, if it is already; `count`: what
    :func:`tags_of` says of it, if that is known."""
    count = tags_of(markup) if count is None else count
    if count > MAX_TAGS:
        return "too_many_tags"
    skim = skim or Skim(markup)
    if skim.is_crowded:
        return "too_many_attributes"
    if (
        count <= TRUSTED_TAGS
        or (count <= COUNTED_TAGS and most_open(markup) <= MAX_DEPTH)
        or _is_plainly_flat(skim, count)
    ):
        return ""
    return _shape(markup)


def _is_plainly_flat(skim: Skim, count: int) -> bool:
    """Whether tags counted by name, 0.1 us each, already show that little is open at once; :func:`_shape` costs 1.5 us each.

    Counting is right in spans, where every `<name` and `</name` is a tag to the tokenizer as well. A page with more `<`, of its
    `count`, outside of them than may be open is not judged here.
    """
    markup = skim.markup
    if count - sum(markup.count(b"<", begin, end) for begin, end in skim.spans) > MAX_DEPTH:
        return False
    surplus: Counter[bytes] = Counter()
    # A tag that the end of a slice cuts in two may count by another name: one a slice.
    slices = ((at, min(at + SLICE, end)) for begin, end in skim.spans for at in range(begin, end, SLICE))
    for start, end in slices:
        for name, count in Counter(_NAME.findall(markup, start, end)).items():
            if name[:1] == b"/":
                surplus[name[1:].lower()] -= count
            else:
                surplus[name.lower()] += count
        for name, count in list(surplus.items()):
            if count <= 0 or name in _NOT_NESTED:
                del surplus[name]
        if surplus.total() > MAX_DEPTH:
            return False
    return True


def _shape(markup: bytes) -> str:
    """The same answer from every tag: how many elements are open at once, at the most."""
    depth = at = 0
    opened: Counter[bytes] = Counter()
    while (at := markup.find(b"<", at)) >= 0:
        tag = TAG.match(markup, at)
        if tag is None:
            at = end_of_other(markup, at)
            continue
        closing, name, at = tag[1], tag[2].lower(), tag.end()
        if name in _NOT_NESTED:
            continue
        if not closing and name in RAW:
            at = end_of_raw(markup, name, at)
        elif not closing:
            opened[name] += 1
            depth += 1
            if depth > MAX_DEPTH:
                return "too_deep"
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return ""


#: Characters of the longest title that is kept: no index shows more, and a page can send megabytes (fault 76).
MAX_TITLE = 1_000
#: Bytes of markup that are looked at for it: every character may be a reference, with white space around.
MAX_RAW_TITLE = 50 * MAX_TITLE

#: `html` tags that are asked for the page's language; a page has one.
MAX_ROOTS = 10

#: Schemes that a `base` must not have (HTML, 4.2.3, "frozen base URL").
_NO_BASE = frozenset({"data", "javascript"})


# Where the head ends at the latest; and what states something of the page, and may stand behind it, or end a graphic there.
_BODY = lazy_automaton(rb"(?i)<body[%s/>]" % SPACE)
_STATES = lazy_automaton(rb"(?i)<(?:base|meta|title|link|frameset)[%s/>]" % SPACE)

# Tags that may say it, perhaps with references: the others need not be read.
_CANONICAL = lazy_pattern(rb"(?i)canonical|&")


class Document:
    """The document of one visit. It exists only inside the process stage: findings leave the stage, documents do not."""

    def __init__(
        self,
        visit: Visit,
        agent: str = "Gossamer",
        *,
        trouble: str | None = None,
        choice: TextChoice = "main",
        holds_up: bool = False,
    ) -> None:
        """Nothing is parsed yet.

        Args:
            visit: the visit that fetched it.
            agent: the product token that the page may speak to (design question 15).
            trouble: what is known of the page already; `""` where the tree may be built whatever the page looks like.
            choice: what of the page is its text.
            holds_up: everything else waits while it is read, so nothing in it may take long.
        """
        self.holds_up = holds_up
        self.visit = visit
        self.url = visit.task.url
        """The canonical URL that was fetched."""
        self.response = visit.response
        """The answer, with status and header fields."""
        self.mime = visit.media_type
        """The media type that its bytes show (:mod:`gossamer.values.media_type`); the response has the type that the server
        claims."""
        self.agent = agent
        self.choice = choice
        self.missed = trouble or ""
        """The trouble that cost this page something: known before, or the reason why a processor got no tree; otherwise empty."""
        self.left_out: dict[str, int] = {}
        """Links that a limit kept from being found, and tags that it kept from being read, by rule."""
        if trouble is not None:
            self.__dict__["trouble"] = trouble

    def __repr__(self) -> str:
        return f"<Document {self.url} {self.mime} {len(self.content)} bytes>"

    def leave_out(self, rule: str, number: int) -> None:
        """Count what a limit cuts; the summary of the crawl tells it."""
        if number:
            self.left_out[rule] = self.left_out.get(rule, 0) + number

    @property
    def is_rendered(self) -> bool:
        """Whether it is the page as a browser shows it, and not its answer."""
        return self.visit.rendered is not None and bool(self.visit.rendered.dom)

    @cached_property
    def content(self) -> bytes:
        """The bytes without content coding, from byte 0; for a document on disk only the first 16 MiB, as much as parsers get."""
        rendered = self.visit.rendered
        return rendered.dom if rendered is not None and rendered.dom else self.response.content

    def open(self) -> BinaryIO:
        """Return a new stream over the whole document from byte 0, without content coding, for any size."""
        return self.response.open()

    @cached_property
    def charset(self) -> str:
        """The encoding of `content`, by the Encoding standard's name in lower case."""
        if self.is_rendered:
            return "utf-8"
        return charset.sniff(self.content, self.response.content_type, host_of(self.url).rpartition(".")[2])

    @cached_property
    def markup(self) -> bytes:
        """The content from which the tree is parsed: HTML in UTF-8, XHTML rewritten by :mod:`gossamer.documents.xhtml`."""
        text = charset.to_utf8(self.content, self.charset)
        if self.mime != XHTML:
            return text
        from gossamer.documents.xhtml import as_html  # most crawls meet none

        return as_html(text)

    @cached_property
    def skim(self) -> Skim:
        """The tags of the page that a crawler needs, found without a tree (:mod:`gossamer.documents.skim`)."""
        return Skim(self.markup)

    @cached_property
    def _stating(self) -> Skim:
        """A skim with all tags that state something of the page: that of the head alone, for a third of the price, where a skim of
        all was not made yet and the rest has none of them."""
        body = None if "skim" in self.__dict__ else _BODY.search(self.markup)
        if body is None or _STATES.search(self.markup, body.start()):
            return self.skim
        return Skim(self.markup[: body.start()])

    @cached_property
    def _tags(self) -> int:
        return tags_of(self.markup)

    @property
    def is_dear(self) -> bool:
        """Reading it would hold up everything else, by the number of its tags and references."""
        markup = self.markup
        return self._tags > MAX_HERE or (
            len(markup) > REFERENCES * MAX_HERE and self._tags + markup.count(b"&") // REFERENCES > MAX_HERE
        )

    @cached_property
    def trouble(self) -> str:
        """The reason why there is no tree: `parse_skipped` if the tree would cost too much (faults 54, 55); else empty."""
        is_skipped = self._tags > MAX_TAGS or suspicion(self.markup, self.skim, self._tags)
        return "parse_skipped" if is_skipped else ""

    @cached_property
    def tree(self) -> "LexborHTMLParser":
        """The parsed HTML tree, built on first use and shared by all processors of the page. Raises ParseSkipped: the page is
        in :attr:`trouble`; MemoryError: there is not enough memory for the tree."""
        if self.trouble:
            self.missed = self.trouble
            raise ParseSkipped(f"{suspicion(self.markup, self.skim) or self.trouble}: {self.url}")
        from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # 5 ms, and most crawls never build a tree

        try:
            return LexborHTMLParser(self.markup)
        except SelectolaxError as error:  # any bytes make a tree: it is memory that was refused
            raise MemoryError(f"no memory for the tree of {self.url}") from error

    @cached_property
    def title(self) -> str:
        """The text of the first `<title>`, with runs of white space folded."""
        titles = self._stating.named(b"title")
        if not titles:
            return ""
        tag = titles[0]
        text = self.markup[tag.end : min(tag.text_end, tag.end + MAX_RAW_TITLE)]
        return " ".join(resolved(text).split())[:MAX_TITLE]

    @cached_property
    def field_directives(self) -> tuple[str, ...]:
        """The directives of `X-Robots-Tag` fields for all robots and for :attr:`agent`, in lower case, sorted."""
        fields = self.response.fields("x-robots-tag")
        return tuple(sorted(statements.directives(fields, self.agent))) if fields else ()

    @cached_property
    def directives(self) -> tuple[str, ...]:
        """The directives of the page for robots, from header fields and meta tags."""
        if not self._metas:
            return self.field_directives
        told = [
            meta.get("content", "") for meta in self._metas if statements.concerns(meta.get("name", ""), self.agent)
        ]
        return tuple(sorted({*self.field_directives, *statements.directives(told, self.agent)}))

    @cached_property
    def frequency(self) -> str:
        """The announced frequency of changes (`revisit-after`), as a word of sitemaps.org; empty if there is none."""
        for meta in self._metas:
            if meta.get("name", "").lower() == "revisit-after":
                return frequency_of(meta.get("content", ""))
        return ""

    @cached_property
    def _metas(self) -> list[Mapping[str, str]]:
        """The `meta` elements that may speak to robots: a page has twenty others."""
        names = (b"robots", b"revisit-after", b"&", self.agent.lower().encode())
        found = []
        for tag in self.skim.named(b"meta"):
            raw = tag.raw.lower()
            for name in names:
                if name in raw:
                    found.append(tag.attributes)
                    break
        return found

    @cached_property
    def canonical(self) -> str:
        """The canonical URL that the document names (RFC 6596), in its head or a `Link` field; empty if it names none."""
        href: str | None = None
        if self.mime in HTML_TYPES:
            # In the head alone, as search engines have it: in a body, anyone may have written it.
            head_end = self._stating.head_end
            for tag in self._stating.named(b"link"):
                if tag.start >= head_end:
                    break
                attributes = tag.attributes if _CANONICAL.search(tag.raw) else {}
                if "canonical" in attributes.get("rel", "").lower().split() and "href" in attributes:
                    href = attributes["href"]
                    break
        if not href:
            for link in self.field_links:
                if "canonical" in link.relations:
                    return link.url
            return ""
        try:
            return self._resolved(href, self.base)
        except UnreadableUrl:
            return ""

    @cached_property
    def field_links(self) -> tuple[FieldLink, ...]:
        """Links of this document in `Link` fields of the header."""
        return tuple(field_links(self.response.headers, self.url)) if self.response.fields("link") else ()

    def _resolved(self, href: str, base: str) -> str:
        """The canonical URL of what the page wrote. Raises UnreadableUrl: it is none."""
        return canonical(in_charset(href, base, self.charset), base)

    @cached_property
    def base(self) -> str:
        """The base for relative links: the first `<base href>` if there is one, otherwise the URL."""
        bases = self._stating.named(b"base")
        href = next((tag.attributes["href"] for tag in bases if "href" in tag.attributes), None) if bases else None
        if href is None:
            return self.url
        try:
            base = self._resolved(href, self.url)
        except UnreadableUrl:
            return self.url
        scheme = scheme_of(base)
        # A page on the web does not get to speak of this machine's files by calling one of them its base.
        foreign = scheme == "file" and scheme_of(self.url) != "file"
        return self.url if foreign or scheme in _NO_BASE else base

    @cached_property
    def main_part(self) -> "MainPart":
        """The main part of the page, which its text and its Markdown are made of."""
        from gossamer.documents.main_part import MainPart  # a plain crawl makes none

        return MainPart(self.markup)

    @cached_property
    def text(self) -> str:
        """The text of the page, one block a line (:mod:`gossamer.documents.text`): its prose, or all of it by choice."""
        is_main = self.choice == "main"
        text = main_text(self.markup, MAX_TEXT + 1, self.main_part) if is_main else all_text(self.markup, MAX_TEXT + 1)
        if len(text) > MAX_TEXT:
            self.missed = self.missed or TEXT_CUT
        return text[:MAX_TEXT]

    @cached_property
    def markdown(self) -> str:
        """The main part of the page as Markdown (:mod:`gossamer.documents.markdown`), without images. Raises UsageError: the
        package that makes it is not installed (`gossamer[words]`)."""
        from gossamer.documents.markdown import as_markdown

        made = as_markdown(self.markup, self.base, self.main_part)
        if made.is_plain:
            self.missed = self.missed or TEXT_CUT
        return made.text

    @cached_property
    def metadata(self) -> "PageMetadata":
        """Author, date and other facts that the page states of itself (:mod:`gossamer.documents.markdown`)."""
        from gossamer.documents.markdown import page_metadata

        return page_metadata(self._stating, self.markup, self.base)

    @cached_property
    def gist(self) -> str:
        """The beginning of its prose, as far as language and fingerprint need it (:data:`gossamer.documents.text.GIST`)."""
        return (prose if self.choice == "main" else all_text)(self.markup, GIST)

    @cached_property
    def declared_language(self) -> str:
        """The language tag that the page names: `lang` of the root element, or `Content-Language`."""
        # An `html` tag that comes again adds what the first lacks (HTML, 13.2.6.4.7).
        said: dict[str, str] = {}
        for tag in self.skim.named(b"html")[:MAX_ROOTS]:
            said = {**tag.attributes, **said}
        return said.get("lang") or said.get("xml:lang") or self.response.header("content-language").partition(",")[0]

    @cached_property
    def language(self) -> str:
        """The language of the text as an ISO 639-1 code; empty if it is unknown."""
        return language.detect(self.gist, self.declared_language)

    @cached_property
    def fingerprint(self) -> int:
        """A 64-bit fingerprint of the gist, similar for near-duplicates (:mod:`gossamer.documents.terms`); 0 for short texts."""
        return terms.fingerprint(self.gist)

    def css(self, selector: str) -> "list[LexborNode]":
        """Return the nodes that match a CSS selector. Raises ParseSkipped: the page is in :attr:`trouble`."""
        return self.tree.css(selector)
