"""Elements that call themselves advertisements, by their class or id (row S14).

Place in the flow: :mod:`gossamer.documents.blocks` asks for those of each part of a page, and leaves their text out. Ad
blockers hide elements by the same names. One search by automaton (RE2) finds candidates, 13 us for a part of 16 KB; names
that only speak of advertisements (`no-ads`, `ad-blocker`) are told from them by their other words.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

import re2

from gossamer.documents.markup import SPACE

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

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_CANDIDATE = re2.compile(
    rb"""(?i)<(%(e)s)[%(s)s](?:[^<>]*[%(s)s])?(?:class|id)[%(s)s]*=[%(s)s]*"""
    rb"""(?:"((?:[^"<>]*[^a-z"<>])?(?:%(w)s)(?:[^a-z"<>][^"<>]*)?)"|'((?:[^'<>]*[^a-z'<>])?(?:%(w)s)(?:[^a-z'<>][^'<>]*)?)'"""
    rb"""|((?:[^"'<>%(s)s]*[^a-z"'<>%(s)s])?(?:%(w)s)(?:[^a-z"'<>%(s)s][^"'<>%(s)s]*)?)[%(s)s/>])"""
    % {b"s": SPACE, b"e": _ELEMENTS.replace(" ", "|").encode(), b"w": _WORDS.replace(" ", "|").encode()},
    _BYTES,
)
_IS_WORD = re.compile(_WORDS.replace(" ", "|").encode()).fullmatch
_PARTS = re.compile(rb"[a-z]+")


def advertisements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The start of each start tag, and the name of its element in lower case."""
    for match in islice(_CANDIDATE.finditer(data), MOST):
        value = match[2] or match[3] or match[4]
        if any(map(_is_one, value.lower().split())):
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


def _is_one(name: bytes) -> bool:
    """Whether a name of a class or an id is that of an advertisement."""
    words = _PARTS.findall(name)
    return any(map(_IS_WORD, words)) and _OTHERS.isdisjoint(words)


@cache
def _tags(name: bytes) -> "re.Pattern[bytes]":
    """Start and end tags of an element; there are few names."""
    return re.compile(rb"(?i)<(/?)%s(?=[%s/>])" % (name, SPACE))
