"""Microdata to RDF (the W3C's note of that name, second edition), over the elements of one page.

A first pass keeps the elements that say something, with where each of them ends; items are then read from those. An item's
properties stand in it, or in elements that it refers to (`itemref`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gossamer.rdf.elements import Content, Element, Value, time, typed
from gossamer.rdf.names import resolved
from gossamer.rdf.rdfa import MAX_NESTED_TEXTS
from gossamer.rdf.terms import MAX_IRI, TYPE, XSD, Full, Gathered, clean_iri

#: Steps from one element to the next, in all items of a page: an element may be referred to by all of them.
MAX_STEPS = 500_000
#: Names in one attribute.
MAX_NAMES = 100

_LINKS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
}
#: Vocabularies that the W3C's registry knows: their names stand right behind this, however deep the name of a type is.
_REGISTERED = {
    "http://schema.org/": "http://schema.org/",
    "https://schema.org/": "https://schema.org/",
    "http://microformats.org/profile/hcard": "http://microformats.org/profile/hcard#",
}
#: Properties that the registry calls a kind of `rdf:type`.
_TYPES = frozenset({"http://schema.org/additionalType", "https://schema.org/additionalType"})
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_DOUBLE = re.compile(r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,9})?")


class _Kept(NamedTuple):
    tag: str
    attributes: dict[str, str]
    content: Content
    language: str
    nested: int
    """Elements with a property around it."""


class Items:
    def __init__(self, base: str, gathered: Gathered) -> None:
        """Nothing is read yet; `base` is what links are resolved against."""
        self._base = base.partition("#")[0]
        self._gathered = gathered
        self._kept: list[_Kept] = []
        self._ends: list[int] = []
        """Of each element kept, where those behind it begin."""
        self._places: dict[str, int] = {}
        """Of each `id`, its first element."""
        self._subjects: dict[int, str] = {}
        self._texts: dict[int, str] = {}
        """Of elements that were asked for it: many items may refer to one."""
        self._steps = 0

    def read(self, elements: Iterable[Element]) -> None:
        """Gather what all items say. Raises Full: the page has given as much as is taken of one."""
        self._keep(elements)
        waiting: list[tuple[int, str]] = []
        for place in range(len(self._kept)):
            attributes = self._kept[place].attributes
            if "itemscope" not in attributes or "itemprop" in attributes:
                continue
            self._subject(place)
            waiting.append((place, ""))
            while waiting:
                self._read_item(*waiting.pop(), waiting)

    def _keep(self, elements: Iterable[Element]) -> None:
        around: list[tuple[int, int, bool]] = []
        languages: list[tuple[int, str]] = [(-1, "")]
        nested = 0
        for depth, tag, attributes, content in elements:
            while around and around[-1][0] >= depth:
                _, place, is_property = around.pop()
                self._ends[place] = len(self._kept)
                nested -= is_property
            while languages[-1][0] >= depth:
                languages.pop()
            language = attributes.get("lang")
            if language is not None:
                languages.append((depth, language))
            if not ("itemprop" in attributes or "itemscope" in attributes or "id" in attributes):
                continue
            name = attributes.get("id")
            if name:
                self._places.setdefault(name, len(self._kept))
            is_property = "itemprop" in attributes
            around.append((depth, len(self._kept), is_property))
            given = {key: value or "" for key, value in attributes.items()}
            self._kept.append(_Kept(tag, given, content, languages[-1][1], nested))
            self._ends.append(0)
            nested += is_property
        for _, place, _ in around:
            self._ends[place] = len(self._kept)

    def _subject(self, place: int) -> str:
        subject = self._subjects.get(place)
        if subject is None:
            name = self._kept[place].attributes.get("itemid", "").strip()
            subject = resolved(name, self._base) if name else self._gathered.blank()
            self._subjects[place] = subject
        return subject

    def _read_item(self, place: int, vocabulary: str, waiting: list[tuple[int, str]]) -> None:
        """One item, which stands in another one with this vocabulary; the items in it are read later."""
        gathered, attributes = self._gathered, self._kept[place].attributes
        subject = self._subjects[place]
        types = [word for word in attributes.get("itemtype", "").split()[:MAX_NAMES] if _ABSOLUTE.match(word)]
        for kind in types:
            gathered.add(subject, TYPE, clean_iri(kind))
        if types and len(types[0]) <= MAX_IRI:
            of_type = types[0][: max(types[0].rfind("#"), types[0].rfind("/")) + 1]
            registered = (prefix for begin, prefix in _REGISTERED.items() if types[0].startswith(begin))
            vocabulary = next(registered, of_type)
        for at in self._properties(place):
            kept = self._kept[at]
            if "itemscope" in kept.attributes:
                if at not in self._subjects:
                    waiting.append((at, vocabulary))
                value: Value | None = (self._subject(at), "", "")
            else:
                value = self._value(at, kept)
            if value is not None:
                for name in kept.attributes["itemprop"].split()[:MAX_NAMES]:
                    is_whole = _ABSOLUTE.match(name) is not None
                    predicate = clean_iri(name if is_whole else (vocabulary or f"{self._base}#") + name)
                    gathered.add(subject, predicate, *value)
                    if predicate in _TYPES and not value[1]:
                        gathered.add(subject, TYPE, value[0])

    def _properties(self, place: int) -> Iterator[int]:
        """Where the properties of an item stand: in it, then in what it refers to."""
        yield from self._within(place + 1, self._ends[place])
        done = {place}
        for name in self._kept[place].attributes.get("itemref", "").split()[:MAX_NAMES]:
            at = self._places.get(name)
            if at is not None and at not in done:
                done.add(at)
                yield from self._within(at, self._ends[at])

    def _within(self, begin: int, end: int) -> Iterator[int]:
        """Elements with a property, and not those in items among them."""
        at = begin
        while at < end:
            self._steps += 1
            if self._steps > MAX_STEPS:
                self._gathered.counts["too_many_references"] += 1
                raise Full
            attributes = self._kept[at].attributes
            if "itemprop" in attributes:
                yield at
            at = self._ends[at] if "itemscope" in attributes else at + 1

    def _value(self, at: int, kept: _Kept) -> Value | None:
        attributes = kept.attributes
        if "content" in attributes:
            return typed(attributes["content"], "", kept.language)
        link = _LINKS.get(kept.tag)
        if link is not None and link in attributes:
            return resolved(attributes[link], self._base), "", ""
        if kept.tag in ("data", "meter") and "value" in attributes:
            number = attributes["value"]
            kind = "integer" if _INTEGER.fullmatch(number) else "double" if _DOUBLE.fullmatch(number) else ""
            return typed(number, f"{XSD}{kind}" if kind else "", kept.language)
        if kept.tag == "time" and "datetime" in attributes:
            return time(attributes["datetime"], kept.language)
        if kept.nested >= MAX_NESTED_TEXTS:
            self._gathered.counts["too_many_nested_texts"] += 1
            return None
        text = self._texts.get(at)
        if text is None:
            text = self._texts[at] = kept.content.text()
        return time(text, kept.language) if kept.tag == "time" else typed(text, "", kept.language)
