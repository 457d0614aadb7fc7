"""What the attributes of one element say in RDFa, by the evaluation context around it."""

import re
from collections.abc import Mapping
from enum import StrEnum

from gossamer.rdf.elements import Content, XmlContent
from gossamer.rdf.names import Names, declared, is_name, resolved
from gossamer.rdf.terms import (
    HTML_LITERAL,
    MAX_IRI,
    PREFIXES,
    TERMS,
    USES_VOCABULARY,
    XHTML_TERMS,
    XML_LITERAL,
    XSD,
    Gathered,
    literal,
)

# Literals of RDFa: plain, typed, times of HTML, and markup.

#: Value, datatype and language of an object.
Value = tuple[str, str, str]

#: Datatypes whose value is the markup in the element.
MARKUP = frozenset([XML_LITERAL, HTML_LITERAL])

#: Characters of the longest time; nothing longer is looked at.
MAX_TIME = 100

_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
# HTML+RDFa 1.1, section 3.1: the first that matches is the datatype.
_TIMES = [
    (f"{XSD}{name}", re.compile(pattern))
    for name, pattern in (
        ("duration", r"-?P(?=.)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"),
        ("dateTime", rf"-?\d{{4,}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"),
        ("date", rf"-?\d{{4,}}-\d\d-\d\d{_ZONE}"),
        ("time", rf"\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"),
        ("gYearMonth", rf"-?\d{{4,}}-\d\d{_ZONE}"),
        ("gYear", rf"-?\d{{4,}}{_ZONE}"),
    )
]


def typed(text: str, datatype: str, language: str) -> Value:
    return (text, datatype, "") if datatype else literal(text, language)


def time(text: str, language: str) -> Value:
    """A literal of the first datatype of times whose form it has, or a plain one."""
    if len(text) <= MAX_TIME:
        for datatype, form in _TIMES:
            if form.fullmatch(text):
                return text, datatype, ""
    return literal(text, language)


def written(content: Content, datatype: str, namespaces: Mapping[str, str]) -> Value:
    markup = content.markup(namespaces) if isinstance(content, XmlContent) else content.inner_html
    return markup or "", datatype, ""


# What a reader of RDFa remembers while it is within an element: the evaluation context and local values of RDFa Core (7.5).


class HostLanguage(StrEnum):
    """The language in which RDFa stands."""

    HTML = "html"
    XHTML1 = "xhtml1"
    XHTML5 = "xhtml5"


#: What a page knows before it says anything; shared, so that what many pages say is looked up once.
INITIAL = {
    HostLanguage.HTML: Names(PREFIXES, TERMS),
    HostLanguage.XHTML1: Names(PREFIXES, XHTML_TERMS),
    HostLanguage.XHTML5: Names(PREFIXES, XHTML_TERMS),
}


class List:
    """Items of a property with `inlist`."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Value] = []


class Frame:
    """The evaluation context of what stands in one element."""

    __slots__ = ("depth", "incomplete", "language", "lists", "names", "object", "owns", "subject")

    def __init__(
        self, depth: int, names: Names, language: str, subject: str, current: str, lists: dict[str, List]
    ) -> None:
        self.depth = depth
        self.names = names
        self.language = language
        self.subject = subject
        self.object = current
        #: Lists of the object, by property.
        self.lists = lists
        #: Lists that end with the element, each with its subject; those of the subject stand before those of the object.
        self.owns: list[tuple[str, dict[str, List]]] = []
        #: Predicates that wait for what stands in the element: with a list, backwards, or forwards.
        self.incomplete: list[tuple[str, List | None, bool]] = []


#: Attributes of an element: name -> value, None where it has only a name.
Attributes = Mapping[str, str | None]


class Step:
    """One element on its way through the processing sequence: what stands in it, and the local values that its attributes name."""

    __slots__ = ("attributes", "content", "depth", "language", "names", "new", "resource", "skip", "tag", "typed")

    def __init__(
        self, depth: int, tag: str, attributes: Attributes, content: Content, names: Names, language: str
    ) -> None:
        self.depth, self.tag, self.attributes, self.content = depth, tag, attributes, content
        self.names, self.language = names, language
        self.new: str | None = None
        self.typed: str | None = None
        self.resource: str | None = None
        self.skip = False


# What the attributes of one element name, by the rules of RDFa Core (sections 5, 7.4 and 7.5) and of the language around it. The
# reader of a page (:mod:`rdfa`) asks here for each element that says something, and keeps what holds for the elements in it.
# Nothing is remembered here from one element to the next.


class AttributeReader:
    def __init__(self, base: str, host: HostLanguage, gathered: Gathered, *, has_namespaces: bool) -> None:
        """Nothing is read yet. `base` is the URL of the page, without a fragment; `has_namespaces` says that `xmlns:` declares
        prefixes."""
        self._base = base
        self._host = host
        self._gathered = gathered
        self._has_namespaces = has_namespaces

    def names(self, names: Names, attributes: Attributes) -> Names:
        """The names that hold in the element: steps 2 and 3, default vocabulary and prefixes."""
        vocabulary = attributes.get("vocab") if "vocab" in attributes else None
        if vocabulary is not None:
            iri = resolved(vocabulary, self._base) if vocabulary.strip() else ""
            if len(iri) > MAX_IRI:
                self._gathered.counts["iri_too_long"] += 1
                iri = ""
            if iri:
                self._gathered.add(self._base, USES_VOCABULARY, iri)
            names = names.speaking(iri)
        pairs: list[tuple[str, str]] = []
        if self._has_namespaces:
            pairs = [(name[6:], value or "") for name, value in attributes.items() if name.startswith("xmlns:")]
            pairs = [(name, value) for name, value in pairs if name != "_"]
        prefix = attributes.get("prefix")
        if prefix:
            more, stray = declared(prefix)
            pairs += more
            for word in stray:
                self._gathered.warn("UnresolvedCURIE", f"prefix {word}")
        return names.declaring(pairs, self._gathered, PREFIXES) if pairs else names

    def language(self, language: str, attributes: Attributes) -> str:
        """The language of text in the element, where `language` holds around it: step 4."""
        first, second = ("lang", "xml:lang") if self._host is HostLanguage.HTML else ("xml:lang", "lang")
        if first in attributes:
            return attributes[first] or ""
        return (attributes[second] or "") if second in attributes else language

    def relations(self, attributes: Attributes, names: Names) -> tuple[list[str] | None, list[str] | None]:
        """What `rel` and `rev` name, or that they do not count: in HTML, terms beside `property` are for browsers."""
        found = []
        for attribute in ("rel", "rev"):
            value = attributes.get(attribute) if attribute in attributes else None
            if attribute in attributes and value is None:
                value = ""
            if value is not None and "property" in attributes and self._host is not HostLanguage.XHTML1:
                value = " ".join(word for word in value.split() if is_name(word)) or None
            found.append(None if value is None else names.named(value, self._gathered))
        return found[0], found[1]

    def about(self, names: Names, attributes: Attributes) -> str | None:
        """The IRI or blank node that `about` names; None where it names none."""
        value = attributes.get("about")
        return (
            None
            if value is None and "about" not in attributes
            else names.resource(value or "", self._base, self._gathered)
        )

    def target(self, names: Names, attributes: Attributes) -> str | None:
        """What `resource`, `href` or `src` names, the first that counts."""
        if "resource" in attributes:
            found = names.resource(attributes["resource"] or "", self._base, self._gathered)
            if found is not None:
                return found
        for attribute in ("href", "src"):
            if attribute in attributes:
                return resolved(attributes[attribute] or "", self._base)
        return None

    def given(self, tag: str, attributes: Attributes) -> str | None:
        """The literal as an attribute gives it: `content`, or what HTML has for it."""
        if "content" in attributes:
            return attributes["content"] or ""
        if self._host is HostLanguage.XHTML1:
            return None
        if "datetime" in attributes:
            return attributes["datetime"] or ""
        if tag == "data" and "value" in attributes:
            return attributes["value"] or ""
        return None
