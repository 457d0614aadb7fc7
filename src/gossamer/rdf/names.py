"""Names in a page: RDFa's terms, CURIEs, safe CURIEs and IRIs (RDFa Core 1.1, section 7.4), and those of `meta` and `link`.

The latter say items of a page: OpenGraph, Twitter cards, Dublin Core, and plain names and links. They are read from the tags that
the skim took one by one; no tree is needed.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from urllib.parse import urljoin

import msgspec

from gossamer.documents.skim import MAX_REMEMBERED, Tag
from gossamer.rdf.terms import MAX_IRI, XHV, Gathered, clean_iri

#: Prefixes that one element knows, ours included: beyond it, each element that declares one would copy a long list.
MAX_PREFIXES = 300
#: Names in one attribute; `rel` and `rev` of a hostile page multiply.
MAX_NAMES = 100

#: Attributes, and vocabularies, that are remembered; pages use some tens. Also the characters of the longest.
_MOST_KNOWN = 200

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TERM = re.compile(r"[^\W\d][\w./-]*")
_PREFIX = re.compile(r"[^\W\d][\w.-]*")


def resolved(reference: str, base: str) -> str:
    """An IRI reference against a base without fragment (RFC 3986, 5.2); one that cannot be resolved stays as it is."""
    return (_resolved_before if len(reference) < _MOST_KNOWN else _resolved)(reference, base)


def _resolved(reference: str, base: str) -> str:
    reference = reference.strip("\t\n\f\r ")
    if not reference:
        return base
    if reference[0] == "#":
        return base + clean_iri(reference)
    if _ABSOLUTE.match(reference):
        return clean_iri(reference)
    reference, mark, fragment = reference.partition("#")  # urljoin drops an empty fragment
    try:
        return clean_iri(urljoin(base, reference) + mark + fragment)
    except ValueError:
        return clean_iri(reference + mark + fragment)


_resolved_before = lru_cache(maxsize=4_096)(_resolved)


class Names:
    """The names that hold at one element: prefixes, terms and default vocabulary. Never changed once made."""

    __slots__ = ("_known", "_spoken", "declared", "prefixes", "terms", "vocabulary")

    def __init__(
        self,
        prefixes: Mapping[str, str],
        terms: Mapping[str, str],
        vocabulary: str = "",
        declared: Mapping[str, str] | None = None,
    ) -> None:
        """All keys of `prefixes` in lower case; `declared` are those that the page itself has, as it writes them."""
        self.prefixes = prefixes
        self.declared = declared or {}
        #: Attributes whose words were all understood: elements that say the same things follow each other.
        self._known: dict[str, list[str]] = {}
        #: The same with other vocabularies; all of them share it.
        self._spoken: dict[str, Names] = {}
        self.terms = terms
        self.vocabulary = vocabulary

    def of_page(self) -> "Names":
        """The same for one more page: what it declares is its own, what was looked up before stays known."""
        names = Names(self.prefixes, self.terms, self.vocabulary)
        names._known = self._known
        return names

    def declaring(self, pairs: list[tuple[str, str]], gathered: Gathered, known: Mapping[str, str]) -> "Names":
        """These, with prefixes that an element declares; a page should not use those that are `known` for something else."""
        prefixes, own = dict(self.prefixes), dict(self.declared)
        for name, iri in pairs:
            prefix = name.lower()
            if not _PREFIX.fullmatch(prefix):
                gathered.warn("UnresolvedCURIE", f"prefix {name}")
                continue
            if len(iri) > MAX_IRI:
                gathered.counts["iri_too_long"] += 1
                continue
            if len(prefixes) >= MAX_PREFIXES and prefix not in prefixes:
                gathered.counts["too_many_prefixes"] += 1
                continue
            if known.get(prefix, iri) != iri:
                gathered.warn("PrefixRedefinition", prefix)
            prefixes[prefix] = own[name] = iri
            if len(own) > MAX_PREFIXES:
                own.clear()  # the same in many spellings: no literal needs them
        return Names(prefixes, self.terms, self.vocabulary, own)

    def speaking(self, vocabulary: str) -> "Names":
        names = self._spoken.get(vocabulary)
        if names is None:
            names = Names(self.prefixes, self.terms, vocabulary, self.declared)
            names._spoken = self._spoken
            if len(self._spoken) < _MOST_KNOWN:
                self._spoken[vocabulary] = names
        return names

    def _of_curie(self, text: str, gathered: Gathered) -> str | None:
        """The resource that a CURIE stands for, if its prefix is known."""
        prefix, colon, reference = text.partition(":")
        if not colon or reference.startswith("//"):
            return None
        if prefix == "_":
            return gathered.blank_of(reference)
        if not prefix:
            return clean_iri(XHV + reference)
        iri = self.prefixes.get(prefix.lower())
        return None if iri is None else clean_iri(iri + reference)

    def resource(self, text: str, base: str, gathered: Gathered) -> str | None:
        """The resource in `about` or `resource`: a safe CURIE, a CURIE or an IRI; none where it is ignored."""
        text = text.strip()
        if text.startswith("[") and text.endswith("]"):
            found = self._of_curie(text[1:-1].strip(), gathered)
            if found is None and text[1:-1].strip():
                gathered.warn("UnresolvedCURIE", text)
            return found
        return self._of_curie(text, gathered) or resolved(text, base)

    def named(self, text: str, gathered: Gathered, *, blank: bool = False) -> list[str]:
        """The names in `property`, `rel`, `rev`, `typeof` and `datatype`: terms, CURIEs and absolute IRIs; each once."""
        known = self._known.get(text)
        if known is not None:
            return known
        found: dict[str, None] = {}
        words = text.split(maxsplit=MAX_NAMES)
        if len(words) > MAX_NAMES:
            gathered.counts["too_many_names"] += 1
        is_plain = True
        for word in words[:MAX_NAMES]:
            name = self._name(word, gathered)
            is_plain = is_plain and name is not None and not name.startswith("_:")
            if name is not None and (blank or not name.startswith("_:")):
                found[name] = None
        names = list(found)
        if is_plain and len(text) < _MOST_KNOWN and len(self._known) < _MOST_KNOWN:
            self._known[text] = names
        return names

    def _name(self, word: str, gathered: Gathered) -> str | None:
        if ":" in word:
            found = self._of_curie(word, gathered)
            if found is None and _ABSOLUTE.match(word):
                found = clean_iri(word)
            if found is None:
                gathered.warn("UnresolvedCURIE", word)
            return found
        if not _TERM.fullmatch(word):
            gathered.warn("UnresolvedTerm", word)
            return None
        if self.vocabulary:
            return clean_iri(self.vocabulary + word)
        found = self.terms.get(word) or self.terms.get(word.lower())
        if found is None:
            gathered.warn("UnresolvedTerm", word)
        return found


def declared(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs of a `prefix` attribute, and words in it that are none."""
    pairs: list[tuple[str, str]] = []
    stray: list[str] = []
    words = iter(text.split(maxsplit=2 * MAX_PREFIXES)[: 2 * MAX_PREFIXES])
    for word in words:
        if not word.endswith(":"):
            stray.append(word)
            continue
        iri = next(words, None)
        if iri is not None:
            pairs.append((word[:-1], iri))
    return pairs, stray


#: Values of one page that are kept.
MAX_VALUES = 1_000
#: Characters of one value, name or link type.
MAX_VALUE = 10_000

#: The beginning of a name, in lower case -> the kind of item that it belongs to.
KINDS = {
    "og": "opengraph",
    "article": "opengraph",
    "book": "opengraph",
    "fb": "opengraph",
    "music": "opengraph",
    "product": "opengraph",
    "profile": "opengraph",
    "video": "opengraph",
    "twitter": "twitter",
    "dc": "dublin-core",
    "dcterms": "dublin-core",
}


class MetaItem(msgspec.Struct, frozen=True):
    """The words of a page about itself in one such vocabulary."""

    kind: str
    """`opengraph`, `twitter`, `dublin-core`, `meta` or `link`."""
    values: dict[str, list[str]]
    """By name as the page writes it, such as `og:title`, `DC.creator`, `description`; links by link type, such as `canonical`."""


def meta_items(tags: Iterable[Tag], base: str, rules: Collection[str]) -> list[MetaItem]:
    """The items of a page, in the order in which they begin: of its `meta` and `link` elements, but for what the rules leave
    out (:mod:`gossamer.rdf.page`). Links are resolved against `base`."""
    found: dict[str, dict[str, list[str]]] = {}
    count = 0
    folder = base[: base.partition("?")[0].rfind("/") + 1]
    for tag in tags:
        if tag.name != b"meta" and tag.name != b"link":
            continue
        said = _remembered(tag.name, tag.raw) if len(tag.raw) <= MAX_REMEMBERED else _said(tag)
        for kind, name, rule, value in said:
            if rule in rules:
                continue
            if count >= MAX_VALUES:
                return [MetaItem(*item) for item in found.items()]
            count += 1
            if kind == "link":
                # Pages of one folder have most of their links in common, so these are resolved once.
                value = resolved(value, base if value[0] in "?#" else folder)[:MAX_VALUE]  # noqa: PLW2901
            found.setdefault(kind, {}).setdefault(name, []).append(value)
    return [MetaItem(*item) for item in found.items()]


#: Kind of item, name in it, the rule that leaves it out, and the value.
_Said = tuple[tuple[str, str, str, str], ...]


def _said(tag: Tag) -> _Said:
    """The statements of one element. A link may have several types."""
    attributes = tag.attributes
    if tag.name == b"link":
        # A link without an address is none; one with `property` or `itemprop` belongs to RDFa and microdata.
        href = attributes.get("href", "").strip("\t\n\f\r ")[:MAX_VALUE]
        if not href:
            return ()
        types = dict.fromkeys(attributes.get("rel", "")[:MAX_VALUE].lower().split())
        return tuple(("link", one, one, href) for one in types)
    name = (attributes.get("property") or attributes.get("name") or "").strip()[:MAX_VALUE]
    if not name or "content" not in attributes:
        return ()
    known = KINDS.get(name.replace(".", ":").partition(":")[0].lower()) if (":" in name or "." in name) else None
    if known is None and "name" not in attributes:
        return ()  # a property of a vocabulary that only RDFa tells apart
    return ((known or "meta", name, f"meta:{name.lower()}", attributes["content"][:MAX_VALUE]),)


@lru_cache(maxsize=4_096)
def _remembered(name: bytes, raw: bytes) -> _Said:
    return _said(Tag(name, raw, 0, 0, 0))
