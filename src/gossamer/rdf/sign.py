"""Whether a page can hold structured data, and where: asked before anything is parsed, because most pages hold none.

JSON-LD stands in scripts and OpenGraph in `meta` elements, which the skim took one by one; the same tags stand on page after page
of a site, and what they show is remembered. Attributes of RDFa and microdata may stand on any element: behind the head, the search
by which the skim goes through the page finds the first of them or shows that there are none, at no cost of its own. It errs to the
safe side: a page that writes *of* such attributes is looked at more closely, and nothing is found.
"""

from functools import lru_cache

import msgspec
import re2

from gossamer.reading import signs
from gossamer.reading.document import Document
from gossamer.reading.markup import attributes
from gossamer.reading.skim import MAX_PECULIAR, MAX_REMEMBERED, Tag

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.never_capture = True
_BYTES.case_sensitive = False
# What stands before the name of an attribute: `data-property` and `xmlns:rev` are others, and documentation is full of them.
_OF_RDFA = re2.compile(rb"[\t\n\f\r /\"'](?:" + signs.RDFA + b")", _BYTES)
_ITEM = b"itemscope"
_OF_MICRODATA = re2.compile(_ITEM, _BYTES)
_LD_JSON = b"ld+json"

# What one tag, or several, may show.
_RDFA, _MICRODATA = 1, 2


class Sign(msgspec.Struct, frozen=True):
    """What a page can hold."""

    json_ld: list[Tag]
    """Its scripts of that type."""
    rdfa: bool
    microdata: bool
    head_only: bool
    """What there may be of RDFa and microdata stands before the body."""

    @property
    def is_nothing(self) -> bool:
        """There is nothing to read."""
        return not (self.json_ld or self.rdfa or self.microdata)


def everything(document: Document) -> Sign:
    """What stands for no sign at all: the page may hold anything, anywhere."""
    return Sign(_scripts(document), rdfa=True, microdata=True, head_only=False)


def _scripts(document: Document) -> list[Tag]:
    return [
        tag
        for tag in document.skim.tags
        if tag.name == b"script"
        and tag.raw
        and (_known_json_ld if len(tag.raw) <= MAX_REMEMBERED else _is_json_ld)(tag.raw)
    ]


def sign_of(document: Document) -> Sign:
    """What a page shows of structured data before it is parsed."""
    markup, skim = document.markup, document.skim
    scripts = _scripts(document)
    if skim.has_sign:
        rdfa, microdata = _OF_RDFA.search(markup) is not None, _OF_MICRODATA.search(markup) is not None
        return Sign(scripts, rdfa=rdfa, microdata=microdata, head_only=False)
    if len(skim.in_head) < MAX_PECULIAR:
        tags = skim.in_head
    else:
        tags = [markup[: skim.head_end]]  # hostile, or very odd: one search is cheaper than one for each tag
    shown = 0
    for raw in tags:
        shown |= _known_shown(raw) if len(raw) <= MAX_REMEMBERED else _shown(raw)
    return Sign(scripts, rdfa=bool(shown & _RDFA), microdata=bool(shown & _MICRODATA), head_only=True)


def _shown(raw: bytes) -> int:
    """What the attributes of a tag show."""
    return (_RDFA if _OF_RDFA.search(raw) is not None else 0) | (_MICRODATA if _ITEM in raw.lower() else 0)


def _is_json_ld(raw: bytes) -> bool:
    """Whether a script has that type, which some frameworks write with a reference for the plus sign."""
    lowered = raw.lower()
    if _LD_JSON in lowered:
        return True
    return b"json" in lowered and b"&" in lowered and "ld+json" in attributes(raw).get("type", "").lower()


_known_shown = lru_cache(maxsize=4_096)(_shown)
_known_json_ld = lru_cache(maxsize=1_024)(_is_json_ld)
