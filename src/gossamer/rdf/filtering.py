"""Whether a page can hold structured data at all, and which of its triples its author did not mean as data.

Place in the flow: asked before anything is parsed, because most pages hold none, and once more when the triples of a page are
there.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import islice

import msgspec
import re2

from gossamer.documents import skim as signs
from gossamer.documents.document import Document
from gossamer.documents.markup import attributes
from gossamer.documents.skim import MAX_PECULIAR, MAX_REMEMBERED, Tag
from gossamer.rdf.terms import USES_VOCABULARY, XHV
from gossamer.values.visit import Triple

# JSON-LD stands in scripts and OpenGraph in `meta` elements, which the skim took one by one; the same tags stand on page after
# page of a site, and what they show is remembered. Attributes of RDFa and microdata may stand on any element: behind the head,
# the search by which the skim goes through the page finds the first of them or shows that there are none, at no cost of its own.
# It errs to the safe side: a page that writes *of* such attributes is looked at more closely, and nothing is found.

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
    """The kinds of data that a page can hold."""

    json_ld: list[Tag]
    """Its scripts of that type."""
    rdfa: bool
    microdata: bool
    head_only: bool
    """What there may be of RDFa and microdata stands before the body."""

    @property
    def is_nothing(self) -> bool:
        return not (self.json_ld or self.rdfa or self.microdata)


def everything(document: Document) -> Sign:
    """The sign that stands for none: the page may hold anything, anywhere."""
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
    """The signs of structured data in a page before it is parsed."""
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
    return (_RDFA if _OF_RDFA.search(raw) is not None else 0) | (_MICRODATA if _ITEM in raw.lower() else 0)


def _is_json_ld(raw: bytes) -> bool:
    """Whether a script has that type, which some frameworks write with a reference for the plus sign."""
    lowered = raw.lower()
    if _LD_JSON in lowered:
        return True
    return b"json" in lowered and b"&" in lowered and "ld+json" in attributes(raw).get("type", "").lower()


_known_shown = lru_cache(maxsize=4_096)(_shown)
_known_json_ld = lru_cache(maxsize=1_024)(_is_json_ld)

# Triples that no author meant as data: links that a page has for browsers, and that RDFa reads as statements about it.
#
# A *rule* is the IRI of a predicate, a link type as `rel` has it, such as `stylesheet`, or `meta:NAME` for a `meta` element. The
# link type stands for itself in the vocabulary of XHTML and in each default vocabulary of the page (`vocab`), where the object
# is a link. A triple to which a rule applies is dropped, and counted by the rule. The same rules say which `meta` and `link`
# elements are no items (:mod:`gossamer.rdf.names`).


#: `meta` elements that speak to browsers and to single services, and say nothing of the page.
_FOR_BROWSERS = """
apple-mobile-web-app-capable apple-mobile-web-app-status-bar-style apple-mobile-web-app-title color-scheme
csrf-param csrf-token facebook-domain-verification format-detection google google-site-verification googlebot
bingbot handheldfriendly mobile-web-app-capable mobileoptimized msapplication-config msapplication-tilecolor
msapplication-tileimage msvalidate.01 next-head-count p:domain_verify referrer robots theme-color viewport
yandex-verification
"""

#: Link types that serve browsers, feed readers and search engines, and those by which readers turn pages.
_LINK_TYPES = """
alternate amphtml apple-touch-icon apple-touch-icon-precomposed bookmark dns-prefetch external icon manifest
mask-icon modulepreload next nofollow noopener noreferrer p3pv1 pingback preconnect prefetch preload prerender prev
previous search shortcut sponsored stylesheet ugc
"""

#: What is dropped where nothing else is asked for: these, and RDFa's own note of a default vocabulary.
DROPPED = frozenset((*_LINK_TYPES.split(), USES_VOCABULARY, *(f"meta:{name}" for name in _FOR_BROWSERS.split())))


#: Default vocabularies of one page in which link types are looked for; pages have one or two.
MAX_VOCABULARIES = 50
#: Characters of the vocabularies of a page up to which it is remembered what they make of link types.
MAX_REMEMBERED_NAMES = 500


def dropping(triples: Iterable[Triple], rules: Collection[str], dropped: Counter[str]) -> list[Triple]:
    """The triples that no rule (an IRI of a predicate, or a link type) drops; `dropped` counts the others, by rule."""
    triples = list(triples)
    if not rules:
        return triples
    used = (value for _, predicate, value, _, _ in triples if predicate == USES_VOCABULARY)
    vocabularies = [XHV, *islice(used, MAX_VOCABULARIES)]
    is_usual = sum(map(len, vocabularies)) < MAX_REMEMBERED_NAMES
    of_links = (_remembered if is_usual else _link_types)(frozenset(rules), frozenset(vocabularies))
    kept: list[Triple] = []
    for triple in triples:
        predicate = triple[1]
        rule = predicate if predicate in rules else "" if triple[3] else of_links.get(predicate, "")
        if rule:
            dropped[rule] += 1
        else:
            kept.append(triple)
    return kept


def _link_types(rules: frozenset[str], vocabularies: frozenset[str]) -> dict[str, str]:
    types = [rule for rule in rules if ":" not in rule]
    return {vocabulary + link_type: link_type for vocabulary in vocabularies for link_type in types}


#: The pages of a site have the same vocabularies.
_remembered = lru_cache(maxsize=64)(_link_types)
