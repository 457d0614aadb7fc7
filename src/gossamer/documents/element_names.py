"""Names of elements, by their tags and their attributes: what a tag does to the text around it, and which
elements are advertisements, an article's body, or no part of any.

Place in the flow: :mod:`gossamer.documents.blocks` finds the blocks of a page by tags, and leaves the text of advertisements
out (row S14); :mod:`gossamer.documents.main_element` weighs elements. Sites take class and id from the same few systems, so a few
words decide most pages.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gossamer.documents.markup import SPACE
from gossamer.values.patterns import lazy_automaton

# The effect of a tag on the text around it. Kinds from HIDES on are elements whose content is no prose, one kind for each name.
ENDS, INLINE, CODE, LINK, COMMENT, HIDES = range(6)

#: Every tag that is not named here ends a block.
_INLINE_TAGS = (
    "abbr acronym b bdi bdo big cite data del dfn em font i ins mark nobr q rp rt ruby s small span strike strong sub sup "
    "time u var wbr"
)

#: Words in these count as words in links do, where a part alone is judged.
_CODE_TAGS = "code samp kbd tt"

# Elements without prose, to the next end tag of their name: an element that nests in itself shows its end, which does not
# matter, and one that is never closed is kept, which is the safer error, but for scripts and styles, which go to the end then.
# `form` is not here: it holds whole pages.
_HIDDEN_TAGS = (
    "script style textarea title xmp iframe noembed noframes noscript template svg math object video audio canvas pre nav "
    "footer aside button select menu dialog"
)
HIDDEN_NAMES = tuple(_HIDDEN_TAGS.split())

#: Those of them that hold words for readers all the same: menus, footers, code.
WORDED = frozenset(
    HIDES + HIDDEN_NAMES.index(name) for name in ["pre", "nav", "footer", "aside", "button", "select", "menu", "dialog"]
)

#: The kind of preformatted text, which is code or an author's.
PRE = HIDES + HIDDEN_NAMES.index("pre")

#: Bytes of a name that are looked at, as one number: longer names stand for themselves by these.
NAME_BYTES = 8

#: The first multiplier of a table that is tried, and the bits of a place in it.
_SPREAD, _SLOT_BITS = 0x612E7696A6CECC1B, 11
_HIGH = np.array(64 - _SLOT_BITS, np.uint64)


def as_number(name: str) -> int:
    """A name as tags of a part have it: its first eight letters."""
    return int.from_bytes(name.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0"), "little")


def as_numbers(names: str) -> frozenset[int]:
    """Names with spaces between them, each as :func:`as_number` has it."""
    return frozenset(map(as_number, names.split()))


class NameTable:
    """A small number for each of some names, which a column of names gets by one look-up each; 0 for all others."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        names = np.array(list(numbers), np.uint64)
        self._spread = np.array(_SPREAD, np.uint64)
        while len(set(self._slots(names).tolist())) < len(names):  # two names share a place
            self._spread = self._spread + np.uint64(2)
        self._names, self._numbers = np.zeros(1 << _SLOT_BITS, np.uint64), np.zeros(1 << _SLOT_BITS, np.uint8)
        slots = self._slots(names)
        self._names[slots], self._numbers[slots] = names, list(numbers.values())

    def _slots(self, names: Any) -> Any:
        """Places of names: the high bits of a product (D. Knuth, TAOCP 3, section 6.4)."""
        return (np.asarray(names, np.uint64) * self._spread >> _HIGH).view(np.int64)

    def of(self, names: Any) -> Any:
        """The numbers of a column of names."""
        slots = self._slots(names)
        return self._numbers.take(slots) * (self._names.take(slots) == names)


class NameSet:
    """Some names, and which of a column of names are among them."""

    def __init__(self, names: str, *more: int) -> None:
        self._table = NameTable(dict.fromkeys([*map(as_number, names.split()), *more], 1))

    def has(self, names: Any) -> Any:
        return self._table.of(names).view(bool)


#: The kind of each tag; 0 is :data:`ENDS`.
KINDS = NameTable(
    dict.fromkeys(map(as_number, _INLINE_TAGS.split()), INLINE)
    | dict.fromkeys(map(as_number, _CODE_TAGS.split()), CODE)
    | {as_number("a"): LINK}
    | {as_number(name): HIDES + place for place, name in enumerate(HIDDEN_NAMES)}
)

#: Inline tags that no form of a text shows: highlighted code is full of them.
BARE = NameSet("span font big small nobr time wbr bdi bdo acronym")


#: Bytes of markup that one has at most. A longer one is a frame around the content, or was never closed; its text is kept.
MAX_LENGTH = 64 << 10

#: Candidates of one part of a page that are looked at, 7 us each; pages with much advertising have ten. Others keep their text.
MOST = 200

#: Elements that hold them. An `article` may be called so by a site of classified advertisements, whose content they are.
_ELEMENTS = "div section p ins span li ul ol dl td tr table center figure"

#: Words of which a name has one. Networks call their elements by their own names.
_WORDS = (
    "ads? advert(?:s|isements?|ising|orials?)? "
    "ad(?:box|slot|unit|banner|wrap|wrapper|container|space|zone|frame|holder|block|area|content|label)s? "
    "(?:banner|text|google|sidebar|side|top)ads? adsbygoogle adsense sponsored taboola outbrain"
)

#: Words beside them that make a name say something else: that there are some, that there are none, or where to buy one.
_OTHERS = frozenset(
    b"no not non has have with without is free blocker blocked enabled disabled off hide show before after between ops by my post "
    b"job jobs policy manager menu classified classifieds detail details search create edit".split()
)

_CANDIDATE = lazy_automaton(
    rb"""(?i)<(%(e)s)[%(s)s](?:[^<>]*[%(s)s])?(?:class|id)[%(s)s]*=[%(s)s]*"""
    rb"""(?:"((?:[^"<>]*[^a-z"<>])?(?:%(w)s)(?:[^a-z"<>][^"<>]*)?)"|'((?:[^'<>]*[^a-z'<>])?(?:%(w)s)(?:[^a-z'<>][^'<>]*)?)'"""
    rb"""|((?:[^"'<>%(s)s]*[^a-z"'<>%(s)s])?(?:%(w)s)(?:[^a-z"'<>%(s)s][^"'<>%(s)s]*)?)[%(s)s/>])"""
    % {b"s": SPACE, b"e": _ELEMENTS.replace(" ", "|").encode(), b"w": _WORDS.replace(" ", "|").encode()},
)
_IS_WORD = re.compile(_WORDS.replace(" ", "|").encode()).fullmatch
_PARTS = re.compile(rb"[a-z]+")


def advertisements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The start of each start tag, and the name of its element in lower case."""
    for match in islice(_CANDIDATE.finditer(data), MOST):
        value = match[2] or match[3] or match[4]
        names = map(_PARTS.findall, value.lower().split())
        if any(any(map(_IS_WORD, words)) and _OTHERS.isdisjoint(words) for words in names):
            yield match.start(), match[1].lower()


def end_of_advertisement(markup: bytes, start: int, name: bytes) -> int:
    """The start of the end tag that belongs to a start tag at `start`; -1 if it is not within :data:`MAX_LENGTH`."""
    depth = 0
    for tag in _tags(name).finditer(markup, start, start + MAX_LENGTH):
        # A paragraph holds no other, and its end tag may be missing.
        depth += -1 if tag[1] or (depth and name == b"p") else 1
        if not depth:
            return tag.start()
    return -1


@cache
def _tags(name: bytes) -> "re.Pattern[bytes]":
    """Start and end tags of an element; there are few names."""
    return re.compile(rb"(?i)<(/?)%s(?=[%s/>])" % (name, SPACE))


#: Bytes of a start tag that are looked at; names stand in front.
TAG_BYTES = 500

#: Start tags that are remembered, 500 bytes each at most.
_REMEMBERED = 4_096

_ATTRIBUTE = re.compile(
    rb"""(?i)[\s"'](class|id|role|itemprop|style|hidden|aria-hidden)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']*)))?"""
)


def _words(text: str) -> Any:
    """A pattern of the alternatives of a text, wherever they stand: by the automaton, which tries them all at once."""
    return lazy_automaton(b"(?i)" + "|".join(text.split()).encode())


# Names of what stands beside an article, unless a name of the second list stands there too: `content-with-sidebar`.
_BESIDE = _words(
    r"ai2html banner combx comment community cookie consent disqus ^extra gdpr legends "
    r"newsletter subscri related remark replies "
    r"respond rss shar(?:e|ing) shoutbox sidebar skyscraper social sponsor supplemental popup promo "
    r"outbrain masthead toolbar recirc teaser more-?(?:stories|news|from|on) "
    r"most-?(?:read|pop) trending signup byline author dateline paywall advert print-?only "
    r"sr-only screen-?reader visually "
    r"(?:image|img|photo|video|wp|media|figure)[-_]*caption caption[-_]"
)
# Those of them that depend on their neighbours.
_BESIDE_BUT = re.compile(
    rb"(?i)foot(?!note|ball)|(?<!elementor-)(?<![a-z])widget(?!-sow|_sow)"
    rb"|(?:^|\s)(?:is-)?hidden(?:\s|$)(?!.*:(?:block|flex|grid|inline|table))"
)
# The same of lists of links; what has such a name and no links is the menu of a restaurant.
_MENU = _words(
    r"(?:^|\s)menu (?:main|nav|site|top|mobile|primary|dropdown|side|user|mega|footer|more|hamburger)[-_]?menu "
    r"(?:^|\s)nav(?:bar|foot|head|igation|menu|set|[-_]|\s|$) -navbar(?:\s|$) breadcrumb pagination pager tags "
    r"toc$ table-of-contents"
)
_CONTENTS = re.compile(rb"(?i)toc$|table-of-contents")
_CONTENT = _words(
    "article body content main shadow entry post story text column page wrap container layout has- with- no- single type- "
    "category status hero"
)
# Names of what stands beside an article, whatever else stands there: `related-posts`, `entry-footer`.
_ALWAYS_BESIDE = lazy_automaton(
    rb"(?i)(?:^|\s)(?:jp-related|related|comments?(?:$|\s|[-_]+(?:list|section|area|wrap|box|form|count|thread|container))"
    rb"|commentlist|disqus|respond(?:$|\s)|sharedaddy|shar(?:e|ing)|social|newsletter|sidebar|breadcrumb"
    rb"|(?:author|about-author|post-author)[-_]?(?:bio|box|info|card|s?$)"
    rb"|(?:message|crawler-post)-(?:meta|attribution|lastedit|footer)|post-likes|bottom-notice|topic-poster"
    rb"|(?:post|entry|article)[-_]+(?:meta|footer|tags?|share|sharing|social|nav|navigation|related|author|utility|byline|info"
    rb"|comments?)(?:$|\s)|tags?[-_]?(?:links|list|cloud)|recommend|read-?more|more-(?:stories|news|posts|articles)|similar(?:-|it)|(?:recently-)?viewed|up-?sells?|cross-?sells?|up-next|also-(?:like|bought|viewed)|(?:who-?is-?)?online-list"
    rb"|most-(?:read|pop)|cookie|promo|subscri|signup|wp-block-(?:comments|post-(?:terms|author|navigation)|latest)|nav-?links"
    rb"|printfooter|catlinks|sitesub|contentsub|mw-editsection|noprint|post-?profile|vote(?:cell|-?count)|js-vot|(?:user|poster)[-_]?(?:info|card|details|extras?|signature)|post-?profile|message-user(?:$|\s)|(?:post-|message-)?signature(?:$|\s))",
)
# Names of a question for consent, which may have more words than the page behind it.
_CONSENT = lazy_automaton(
    rb"(?i)cookie-?(?:consent|banner|notice|bar|law|modal|popup|dialog|message|bot)|onetrust|gdpr|(?:^|[^a-z])cmp(?:-|box|$)"
    rb"|consent[-_]?(?:banner|dialog|modal|popup|manager|root|overlay|layer|box|bar)",
)
# Those of them that stand for one of many, which may be all that a page has; and those of replies, but not of what is around them.
_EQUALS = _words("comment remark repl(?:y|ies) respond teaser promo widget card banner extra related caption tags")
_TALK = re.compile(rb"(?i)(?:^|[^a-z])comment(?!s?[-_]*(?:form|respond|meta|author|count|reply|metadata|nav))")
# Elements that a browser shows when a reader opens them: an answer, a tab.
_OPENS = _words("accordion collaps faq toggle tab-?(?:pane|content) tabpanel")
_ARTICLE = _words("article body content hentry h-entry entry main page post text blog story")
#: Names of the very body of an article.
_BODY = _words(
    "(?:article|entry|post|story|news|blog)s?[-_]*(?:body|content|text|copy) articlebody mw-parser-output markdown-body"
)
#: Elements that hold the content of a page that may be no article: a reference, an index.
_LANDMARK = re.compile(
    rb"""(?i)role=["']?main\b|class=["']?(?:main|main-content|content)["'\s>]"""
    rb"""|id=["']?(?:main|content|main[-_]?content|page-content|bodycontent|mw-content-text|contents?[-_]?main)["'\s]"""
)
# An element that documentation puts around a heading and its text, and hyphens that an id made of a heading has at least.
SECTION = re.compile(rb"""(?i)^<section\b|\bclass=["']?section\b""")
_SLUG = 2
_HIDING = re.compile(rb"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
# Blocks that are not shown: elements have their names looked at, paragraphs and headings are found by this.
HIDES_BLOCK = lazy_automaton(rb"display\s*:\s*none|visibility\s*:\s*hidden| hidden[=\s>]")
#: Words of which a page has one that this finds something in; to look for them takes a tenth of the time.
HIDING = (b"hidden", b"display")
# A cell with the numbers of the lines of code, as highlighters and forges of code call it.
LINE_NUMBERS = re.compile(
    rb"""(?i)class\s*=\s*["']?(?:[^"'<>]*[\s])?(?:linenos?|line-?numbers?|gutter|blob-num|hljs-ln-numbers)\b"""
)
_ROLES_BESIDE = frozenset(
    b"menu menubar complementary navigation alert alertdialog dialog banner contentinfo search".split()
)

#: Points of a name, beside which a paragraph has 1 to some 10 (:mod:`gossamer.documents.main_element`).
_NAMED, _NAMED_BODY, _SAID_BODY = 25.0, 15.0, 50.0


class SaidNames(NamedTuple):
    """The meaning of the names of an element."""

    weight: float = 0.0
    """Points for being an article, or against it."""
    is_beside: bool = False
    """It stands beside the article."""
    is_hidden: bool = False
    """A browser does not show it."""
    is_body: bool = False
    """It calls itself the body of an article."""
    is_landmark: bool = False
    """It calls itself the content of the page."""
    is_equal: bool = False
    """It may be one of many that are the content together, though one alone stands beside."""
    is_talk: bool = False
    """It holds what readers wrote."""
    is_menu: bool = False
    """It stands beside the article if it consists of links."""
    is_contents: bool = False
    """It calls itself a table of contents, and nothing else that stands beside."""


#: The meaning of names that mean nothing.
NOTHING_SAID = SaidNames()


def _is_beside(names: bytes) -> bool:
    return bool(_BESIDE.search(names) or _BESIDE_BUT.search(names))


@lru_cache(_REMEMBERED)
def names_of(tag: bytes) -> SaidNames:
    """The statements of a start tag, in its first :data:`TAG_BYTES`."""
    weight, beside, names = 0.0, False, []
    for match in _ATTRIBUTE.finditer(tag):
        name, value = match[1].lower(), match[2] or match[3] or match[4] or b""
        if (name == b"hidden" or (name == b"style" and _HIDING.search(value))) and not _OPENS.search(tag):
            return SaidNames(-_NAMED, is_beside=True, is_hidden=True)
        if name == b"aria-hidden":
            beside |= value == b"true" and not _OPENS.search(tag)
        elif name == b"role":
            beside |= value in _ROLES_BESIDE
            weight += _NAMED * (value == b"main")
        elif name == b"itemprop":
            weight += _SAID_BODY * (value.lower() == b"articlebody")
        elif name != b"style":
            names.append(value)
            weight += _NAMED * (bool(_ARTICLE.search(value)) - bool(_is_beside(value) or _MENU.search(value)))
            weight += _NAMED_BODY * bool(_BODY.search(value))
    every = b" ".join(names)
    if SECTION.search(tag):  # its id says what it is about: `location-of-translator-comments`
        every = b" ".join(value for value in names if value.count(b"-") < _SLUG)
    if _CONSENT.search(every):
        return SaidNames(-_NAMED, is_beside=True, is_hidden=True)
    is_equal, is_menu = not beside and bool(_EQUALS.search(every)), False
    if not beside and not _CONTENT.search(every):
        beside = _is_beside(every)
        is_menu = not beside and bool(_MENU.search(every))
    if _ALWAYS_BESIDE.search(every):
        beside, weight = True, weight - _NAMED
    is_talk = is_equal and bool(_TALK.search(every))
    return SaidNames(
        weight, beside, False, bool(_BODY.search(tag)), bool(_LANDMARK.search(tag)), is_equal, is_talk, is_menu,
        is_menu and bool(_CONTENTS.search(every)),
    )  # fmt: skip
