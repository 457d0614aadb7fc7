"""What elements say of themselves by their class, id, role or style: that they are an article's body, or no part of any.

Place in the flow: :mod:`gossamer.documents.main_part` weighs the elements of a page by it. Sites take these names from the same
few systems, so a few words decide most pages. A start tag is looked at once; those of one site come again and again.
"""

import re
from functools import lru_cache
from typing import NamedTuple

#: Bytes of a start tag that are looked at; names stand in front.
TAG_BYTES = 500

#: Start tags that are remembered, 500 bytes each at most.
_REMEMBERED = 4_096

_ATTRIBUTE = re.compile(
    rb"""(?i)[\s"'](class|id|role|itemprop|style|hidden|aria-hidden)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']*)))?"""
)


def _words(text: str) -> "re.Pattern[bytes]":
    """A pattern of the alternatives of a text, wherever they stand."""
    return re.compile(b"(?i)" + "|".join(text.split()).encode())


# SaidNames of what stands beside an article, unless a name of the second list stands there too: `content-with-sidebar`.
_BESIDE = _words(
    r"ai2html banner breadcrumb combx comment community cookie consent disqus ^extra foot(?!note) gdpr legends (?:^|\s)menu "
    r"(?:main|nav|site|top|mobile|primary|dropdown|side|user|mega|footer|more|hamburger)[-_]?menu "
    r"(?:^|\s)nav(?:bar|foot|head|igation|menu|set|[-_]|\s|$) -navbar(?:\s|$) newsletter subscri related remark replies "
    r"respond rss shar(?:e|ing) shoutbox sidebar skyscraper social sponsor supplemental pagination pager popup promo "
    r"outbrain tags widget masthead toolbar recirc teaser more-?(?:stories|news|from|on) most-?(?:read|pop) trending signup "
    r"byline author dateline toc$ table-of-contents paywall advert print-?only hidden sr-only screen-?reader visually "
    r"caption"
)
_CONTENT = _words(
    "article body content main shadow entry post story text column page wrap container layout has- with- no- single type- "
    "category status"
)
# SaidNames of what stands beside an article, whatever else stands there: `related-posts`, `entry-footer`.
_ALWAYS_BESIDE = re.compile(
    rb"(?i)(?:^|\s)(?:jp-related|related|comments?(?:$|\s|[-_]+(?:list|section|area|wrap|box|form|count|thread|container))"
    rb"|commentlist|disqus|respond(?:$|\s)|sharedaddy|shar(?:e|ing)|social|newsletter|sidebar|breadcrumb"
    rb"|(?:author|about-author|post-author)[-_]?(?:bio|box|info|card|s?$)"
    rb"|(?:post|entry|article)[-_]+(?:meta|footer|tags?|share|sharing|social|nav|navigation|related|author|utility|byline|info"
    rb"|comments?)(?:$|\s)|tags?[-_]?(?:links|list|cloud)|recommend|read-?more|more-(?:stories|news|posts|articles)"
    rb"|most-(?:read|pop)|cookie|promo|subscri|signup|wp-block-(?:comments|post-(?:terms|author|navigation)|latest)|nav-?links"
    rb"|printfooter|catlinks|mw-editsection|noprint|post-?profile|vote(?:cell|-?count)|js-vot|user-(?:info|card|details|signature))"
)
_ARTICLE = _words("article body content hentry h-entry entry main page post text blog story")
#: SaidNames of the very body of an article.
_BODY = re.compile(
    rb"(?i)(?:article|entry|post|story|news|blog)s?[-_]*(?:body|content|text|copy)|articlebody|mw-parser-output|markdown-body"
)
#: What holds the content of a page that may be no article: a reference, an index.
_LANDMARK = re.compile(
    rb"""(?i)role=["']?main\b|class=["']?(?:main|main-content|content)["'\s>]"""
    rb"""|id=["']?(?:main|content|main[-_]?content|page-content|bodycontent|mw-content-text|contents?[-_]?main)["'\s]"""
)
# An element that documentation puts around a heading and its text, and hyphens that an id made of a heading has at least.
_SECTION = re.compile(rb"""(?i)^<section\b|\bclass=["']?section\b""")
_SLUG = 2
_HIDING = re.compile(rb"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_ROLES_BESIDE = frozenset(
    b"menu menubar complementary navigation alert alertdialog dialog banner contentinfo search".split()
)

#: Points of a name, beside which a paragraph has 1 to some 10 (:mod:`gossamer.documents.main_part`).
_NAMED, _NAMED_BODY, _SAID_BODY = 25.0, 15.0, 50.0


class SaidNames(NamedTuple):
    """What the names of an element say."""

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


@lru_cache(_REMEMBERED)
def names_of(tag: bytes) -> SaidNames:
    """What a start tag says, by its first :data:`TAG_BYTES`."""
    weight, beside, names = 0.0, False, []
    for match in _ATTRIBUTE.finditer(tag):
        name, value = match[1].lower(), match[2] or match[3] or match[4] or b""
        if name == b"hidden" or (name == b"style" and _HIDING.search(value)):
            return SaidNames(-_NAMED, is_beside=True, is_hidden=True)
        if name == b"aria-hidden":
            beside |= value == b"true"
        elif name == b"role":
            beside |= value in _ROLES_BESIDE
            weight += _NAMED * (value == b"main")
        elif name == b"itemprop":
            weight += _SAID_BODY * (value.lower() == b"articlebody")
        elif name != b"style":
            names.append(value)
            weight += _NAMED * (bool(_ARTICLE.search(value)) - bool(_BESIDE.search(value)))
            weight += _NAMED_BODY * bool(_BODY.search(value))
    every = b" ".join(names)
    if _SECTION.search(tag):  # its id says what it is about: `location-of-translator-comments`
        every = b" ".join(value for value in names if value.count(b"-") < _SLUG)
    beside |= bool(_BESIDE.search(every)) and not _CONTENT.search(every)
    if _ALWAYS_BESIDE.search(every):
        beside, weight = True, weight - _NAMED
    return SaidNames(weight, beside, False, bool(_BODY.search(tag)), bool(_LANDMARK.search(tag)))
