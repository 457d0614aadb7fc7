"""The structured data of one page: whether it can hold any at all, its triples and items, and triples that no author meant as data.

Place in the flow: :class:`StructuredDataProcessor` is one of the processors that the process stage asks, where `--rdf` or the
wiring names it; `gossamer rdf` and `gossamer inspect` call :func:`structured_data` on a document. Most pages hold no structured
data, so :func:`sign_of` is asked before anything is parsed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Annotated

import msgspec
import re2

from gossamer.documents import charset
from gossamer.documents import skim as signs
from gossamer.documents.document import Document
from gossamer.documents.markup import attributes
from gossamer.documents.skim import MAX_PECULIAR, MAX_REMEMBERED, Tag
from gossamer.documents.xhtml import NotXhtml, numbered
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.rdf.elements import Element, NotXml, head_elements, html_elements, xml_elements
from gossamer.rdf.jsonld import read_json_ld
from gossamer.rdf.microdata import Items
from gossamer.rdf.names import MetaItem, meta_items
from gossamer.rdf.rdfa import HostLanguage, Reader
from gossamer.rdf.terms import (
    MAX_IRI,
    TYPE,
    USES_VOCABULARY,
    VOCABULARIES,
    XHV,
    Full,
    Gathered,
    Warned,
    copy_patterns,
    expand,
)
from gossamer.values.errors import ParseSkipped
from gossamer.values.media_type import XHTML
from gossamer.values.visit import Item, Statements, Triple

# JSON-LD stands in scripts and OpenGraph in `meta` elements, which the skim took one by one; the same tags stand on page after
# page of a site, and what they show is remembered. Attributes of RDFa and microdata may stand on any element: behind the head,
# the search by which the skim goes through the page finds the first of them or shows that there are none, at no cost of its own.
# It errs to the safe side: a page that writes *of* such attributes is looked at more closely, and nothing is found.

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.never_capture = True
_BYTES.case_sensitive = False
# The characters before the name of an attribute: `data-property` and `xmlns:rev` are others, and documentation is full of them.
_OF_RDFA = re2.compile(rb"[\t\n\f\r /\"'](?:" + signs.RDFA + b")", _BYTES)
_ITEM = b"itemscope"
_OF_MICRODATA = re2.compile(_ITEM, _BYTES)
_LD_JSON = b"ld+json"

# The kinds of data that one tag, or several, may show.
_RDFA, _MICRODATA = 1, 2


class Sign(msgspec.Struct, frozen=True):
    """The kinds of data that a page can hold."""

    json_ld: list[Tag]
    """Its scripts of that type."""
    rdfa: bool
    microdata: bool
    head_only: bool
    """All RDFa and microdata that the page may have stands before the body."""

    @property
    def is_nothing(self) -> bool:
        return not (self.json_ld or self.rdfa or self.microdata)


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
    may_refer = b"json" in lowered and b"&" in lowered
    return _LD_JSON in lowered or (may_refer and "ld+json" in attributes(raw).get("type", "").lower())


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

#: Names of links and fields that are dropped where nothing else is asked for: these, and RDFa's own note of a default vocabulary.
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

# All that a page says, by the readers of each notation.

_XHTML1 = re.compile(rb"<!DOCTYPE[^>]*-//W3C//DTD XHTML")
#: Bytes in which a DOCTYPE is looked for.
_DOCTYPE_BYTES = 4_096


class StructuredData(msgspec.Struct, frozen=True):
    """The triples and items of a page, and everything that was not understood or left out."""

    triples: list[Triple]
    items: list[MetaItem]
    warnings: list[Warned]
    """The first of them, with words."""
    counts: Counter[str]
    """All warnings, and what was left out by a limit, by kind."""
    dropped: Counter[str]
    """Triples that the filter dropped, by rule."""


def structured_data(
    document: Document, *, rules: Collection[str] = DROPPED, expanding: bool = False, searching: bool = True
) -> StructuredData:
    """The triples and items of a page, without those that `rules` drop (:func:`dropping`). A page that would cost the parser too
    much is counted as `parse_skipped`; its JSON-LD is read all the same. `expanding` adds what bundled vocabularies say of the
    names that the page uses. Without `searching` for a sign first, a page is read whatever it looks like, at the price of a tree.
    Raises ReadApart: its JSON-LD may cost more than may be spent here, where everything else waits."""
    if searching:
        sign = sign_of(document)
    else:
        sign = Sign(_scripts(document), rdfa=True, microdata=True, head_only=False)
    if sign.is_nothing:
        # Most pages end here, and making a counter costs as much as looking for a sign.
        none: Counter[str] = Counter()
        return StructuredData([], _items(document, rules), [], none, none)
    gathered = Gathered(holds_up=document.holds_up)
    try:
        _gather(document, sign, gathered)
    except Full:
        pass  # counted; what was gathered before stays
    except ParseSkipped:
        gathered.counts["parse_skipped"] += 1
    if gathered.counts["parse_skipped"]:
        document.missed = document.missed or "parse_skipped"
    copy_patterns(gathered)
    if expanding:
        expand(gathered, VOCABULARIES)
    dropped: Counter[str] = Counter()
    triples = dropping(gathered.triples, rules, dropped)
    return StructuredData(triples, _items(document, rules), gathered.warnings, gathered.counts, dropped)


def _items(document: Document, rules: Collection[str]) -> list[MetaItem]:
    return meta_items(document.skim.tags, document.base, rules)


def _gather(document: Document, sign: Sign, gathered: Gathered) -> None:
    """Read all that a page can hold: scripts first, which need no tree.
    Raises Full: the page has given as much as is taken of one. Raises ParseSkipped: the page would cost the parser too much."""
    base = document.base if len(document.base) <= MAX_IRI else document.url
    for script in sign.json_ld:
        read_json_ld(document.markup[script.end : script.text_end], base, gathered)
    if not (sign.rdfa or sign.microdata):
        return
    host, elements = _elements_of(document, sign, gathered)
    if sign.rdfa and sign.microdata:
        elements = list(elements)
    if sign.rdfa:
        place = document.markup[: document.skim.head_end] if sign.head_only else document.markup
        language = document.response.header("content-language")
        Reader(
            base,
            host,
            gathered,
            language=language if "," not in language else "",
            has_namespaces=host is not HostLanguage.HTML or b"xmlns:" in place,
        ).read(elements)
    if sign.microdata:
        Items(base, gathered).read(elements)


def _elements_of(document: Document, sign: Sign, gathered: Gathered) -> tuple[HostLanguage, Iterable[Element]]:
    """The elements of a page and the language they are in: XML where it is well-formed XHTML, HTML otherwise.
    Raises ParseSkipped: the page would cost the HTML parser too much."""
    if document.mime == XHTML:
        text = charset.to_utf8(document.content, document.charset)
        try:
            host = HostLanguage.XHTML1 if _XHTML1.search(text[:_DOCTYPE_BYTES]) else HostLanguage.XHTML5
            return host, xml_elements(numbered(text))
        except (NotXml, NotXhtml) as error:
            gathered.warn("DocumentError", f"no XML, read as HTML: {error}")
    plain = head_elements(document) if sign.head_only else None
    if plain is not None:
        return HostLanguage.HTML, plain
    return HostLanguage.HTML, html_elements(document.tree)


class StructuredDataSheet(Sheet, frozen=True):
    drop: Annotated[
        tuple[str, ...],
        setting(
            "Drop triples with these predicates or link types, and items that come from these link types and "
            "`meta:NAME` elements."
        ),
    ] = tuple(sorted(DROPPED))
    expand: Annotated[
        bool, setting("Add the triples that bundled vocabularies state about the names that a page uses.")
    ] = False
    items: Annotated[
        bool,
        setting(
            "Also keep the content of `meta` and `link` elements as items: OpenGraph, Twitter cards, Dublin Core and "
            "others."
        ),
    ] = True


class StructuredDataProcessor(Provider[StructuredDataSheet]):
    """Yields the triples of a page, and its items. Contract: `parsing.contract.Processor`."""

    divisible = True

    def __init__(self, sheet: StructuredDataSheet | None = None) -> None:
        super().__init__(sheet)
        self._rules = frozenset(self.sheet.drop)

    def changed(self, before: StructuredDataSheet) -> None:
        self._rules = frozenset(self.sheet.drop)

    def process(self, document: Document) -> Iterator[Statements | Item]:
        data = structured_data(document, rules=self._rules, expanding=self.sheet.expand)
        counts = {kind: count for kind, count in data.counts.items() if count}
        if data.dropped:
            counts["dropped"] = data.dropped.total()
        if data.triples or counts:
            yield Statements(tuple(data.triples), counts)
        if self.sheet.items:
            for item in data.items:
                yield Item(item.kind, document.url, msgspec.to_builtins(item.values))


# The structured data of a page by subject, as `gossamer inspect` shows it.


class Thing(msgspec.Struct, frozen=True):
    """All that a page says of one subject."""

    kind: str
    """Always `triples`."""
    subject: str
    """An IRI, or a blank node, which begins with `_:`."""
    types: list[str]
    properties: dict[str, list[str]]
    """IRIs and texts, by IRI of the property."""


def told(data: StructuredData) -> list[MetaItem | Thing]:
    """The items of a page, then its subjects in the order in which they come."""
    things: dict[str, Thing] = {}
    for subject, predicate, value, _, _ in data.triples:
        thing = things.get(subject)
        if thing is None:
            thing = things[subject] = Thing("triples", subject, [], {})
        if predicate == TYPE:
            thing.types.append(value)
        else:
            thing.properties.setdefault(predicate, []).append(value)
    return [*data.items, *things.values()]
