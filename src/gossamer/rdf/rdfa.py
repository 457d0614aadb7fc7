"""RDFa 1.1: the processing sequence of RDFa Core (section 7.5) with the rules of HTML+RDFa and XHTML+RDFa, in one pass.

The elements come in document order (:mod:`gossamer.rdf.elements`). An element that says something becomes a *frame*, the
evaluation context of what stands in it. One that has nothing but a link (`href`, `src`) says something only to elements in
it, so it waits until one comes.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from gossamer.rdf.elements import MARKUP, Content, Element, Value, time, typed, written
from gossamer.rdf.names import Names, declared, resolved
from gossamer.rdf.terms import (
    FIRST,
    MAX_IRI,
    NIL,
    PREFIXES,
    REST,
    TERMS,
    TYPE,
    USES_VOCABULARY,
    XHTML_TERMS,
    Full,
    Gathered,
    literal,
)

#: Literals made of the text of elements that lie in each other: each reads the text of all within it again.
MAX_NESTED_TEXTS = 32

XHTML = "http://www.w3.org/1999/xhtml"

_SAYS_MORE = frozenset(
    ["about", "inlist", "lang", "prefix", "property", "rel", "resource", "rev", "typeof", "vocab", "xml:lang"]
)
#: With any of these, `property` means more than :meth:`Reader._say_shortly` knows.
_SAYS_OTHERWISE = (_SAYS_MORE - {"property"}) | {"datatype", "datetime"}
_READ_OTHERWISE = frozenset(["head", "body", "time", "data"])
_SAYS = _SAYS_MORE | {"href", "src"}
#: Elements of HTML whose subject is that of the element around them, where they name none.
_SECTIONS = frozenset(["head", "body"])
_T = TypeVar("_T")


# The memory of a reader while it is within an element: the evaluation context and local values of RDFa Core (7.5).


class HostLanguage(StrEnum):
    """The language in which RDFa stands."""

    HTML = "html"
    XHTML1 = "xhtml1"
    XHTML5 = "xhtml5"


#: The names that a page knows before it says anything; shared, so that names that many pages use are looked up once.
INITIAL = {
    HostLanguage.HTML: Names(PREFIXES, TERMS),
    HostLanguage.XHTML1: Names(PREFIXES, XHTML_TERMS),
    HostLanguage.XHTML5: Names(PREFIXES, XHTML_TERMS),
}

#: Lists of a subject, by property: the items of one with `inlist`.
Lists = dict[str, list[Value]]

#: A predicate that waits for an object: with the list that it is for, or backwards.
Incomplete = tuple[str, list[Value] | None, bool]


class Frame(msgspec.Struct):
    """The evaluation context of what stands in one element."""

    depth: int
    names: Names
    language: str
    subject: str
    object: str
    lists: Lists
    """Of the object."""
    owns: list[tuple[str, Lists]] = []
    """Those that end with the element, each with its subject; those of the subject stand before those of the object."""
    incomplete: list[Incomplete] = []
    """The triples that wait for a resource in the element."""


#: Attributes of an element: name -> value, None where it has only a name.
Attributes = Mapping[str, str | None]


class Step(msgspec.Struct):
    """One element on its way through the processing sequence: what stands in it, and the local values that its attributes name."""

    depth: int
    tag: str
    attributes: Attributes
    content: Content
    names: Names
    language: str
    new: str | None = None
    typed: str | None = None
    resource: str | None = None
    skip: bool = False


class Reader:
    def __init__(
        self, base: str, host: HostLanguage, gathered: Gathered, *, language: str = "", has_namespaces: bool = True
    ) -> None:
        """Nothing is read yet. `base` is the URL of the page, or what its `base` element says; `language` is that of its
        server, where it says one; `has_namespaces` says that `xmlns:` occurs in the page, and declares prefixes."""
        base = base.partition("#")[0]
        self._base = base
        self._host = host
        self._gathered = gathered
        self._has_namespaces = has_namespaces
        lists: Lists = {}
        self._frames = [Frame(-1, INITIAL[host].of_page(), language, base, base, lists, [(base, lists)])]
        self._waiting: list[tuple[int, str, Attributes, Content]] = []
        self._texts: list[int] = []

    def read(self, elements: Iterable[Element]) -> None:
        """Gather what all elements say; what is over a limit is left out and counted."""
        deepest = -1  # what was met last, and is open as far as is known
        try:
            for depth, tag, attributes, content in elements:
                if (
                    not _SAYS.isdisjoint(attributes)
                    or (self._has_namespaces and any(name.startswith("xmlns:") for name in attributes))
                    or tag in _SECTIONS
                    or depth == 0
                ):
                    self._meet(depth, tag, attributes, content)
                    deepest = depth
                elif depth <= deepest:
                    # It says nothing, but what stands in it is no part of what has ended before it.
                    self._leave(depth)
                    deepest = depth - 1
            self._leave(-1)
        except Full:
            pass  # counted; what was gathered before stays

    def _meet(self, depth: int, tag: str, attributes: Attributes, content: Content) -> None:
        self._leave(depth)
        is_link = _SAYS_MORE.isdisjoint(attributes) and tag not in _SECTIONS and depth > 0
        if is_link and not self._frames[-1].incomplete and not self._has_namespaces:
            self._waiting.append((depth, tag, attributes, content))
            return
        if self._waiting:
            for waiting in self._waiting:
                self._enter(*waiting)
            self._waiting.clear()
        is_short = _SAYS_OTHERWISE.isdisjoint(attributes) and tag not in _READ_OTHERWISE and depth > 0
        if is_short and "content" in attributes and ("href" in attributes or "src" in attributes):
            is_short = False  # the link is the subject then
        if is_short and not self._frames[-1].incomplete and not self._has_namespaces:
            self._say_shortly(depth, attributes, content)
        else:
            self._enter(depth, tag, attributes, content)

    def _say_shortly(self, depth: int, attributes: Attributes, content: Content) -> None:
        """The processing sequence for most elements: `property`, with a link or text. Its subject is the object of the frame, and
        so is that of elements in it: they need no frame of their own."""
        frame = self._frames[-1]
        value: Value | None
        if "href" in attributes or "src" in attributes:
            value = resolved(attributes["href" if "href" in attributes else "src"] or "", self._base), "", ""
        elif "content" in attributes:
            value = literal(attributes["content"] or "", frame.language)
        else:
            text = self._within(depth, content.text)
            value = None if text is None else literal(text, frame.language)
        if value is not None:
            for predicate in frame.names.named(attributes["property"] or "", self._gathered):
                self._gathered.add(frame.object, predicate, *value)

    def _leave(self, depth: int) -> None:
        """All elements have ended that are not around one at this depth."""
        while self._waiting and self._waiting[-1][0] >= depth:
            self._waiting.pop()
        while self._texts and self._texts[-1] >= depth:
            self._texts.pop()
        while self._frames and self._frames[-1].depth >= depth:
            frame = self._frames.pop()
            for subject, lists in frame.owns:
                self._write_lists(subject, lists)

    def _write_lists(self, subject: str, lists: Lists) -> None:
        add = self._gathered.add
        for predicate, items in lists.items():
            node = self._gathered.blank() if items else NIL
            add(subject, predicate, node)
            for place, item in enumerate(items, 1):
                add(node, FIRST, *item)
                following = NIL if place == len(items) else self._gathered.blank()
                add(node, REST, following)
                node = following

    def _enter(self, depth: int, tag: str, attributes: Attributes, content: Content) -> None:
        frame, gathered = self._frames[-1], self._gathered
        names = self._names(frame.names, attributes)
        language = self._language(frame.language, attributes)
        step = Step(depth, tag, attributes, content, names, language)
        forward, backward = self._relations(attributes, names)
        if forward is None and backward is None:
            self._place(step, frame)
        else:
            self._place_related(step, frame)
        if step.typed is not None:
            for kind in names.named(attributes.get("typeof") or "", gathered, blank=True):
                gathered.add(step.typed, TYPE, kind)
        lists = frame.lists
        owns: list[tuple[str, Lists]] = []
        if step.new is not None and step.new != frame.object:
            lists = {}
            owns.append((step.new, lists))
        incomplete = self._relate(step, frame, forward or [], backward or [], lists)
        if "property" in attributes:
            self._say(step, lists, is_related=forward is not None or backward is not None)
        if not step.skip and step.new is not None:
            self._complete(frame, step.new)
        subject, current = frame.subject, frame.object
        if step.skip:
            incomplete = frame.incomplete
        else:
            subject = step.new if step.new is not None else frame.subject
            current = step.resource if step.resource is not None else subject
            if step.resource is not None and step.resource != step.new:
                lists = {}
                owns.append((step.resource, lists))
        self._frames.append(Frame(depth, names, language, subject, current, lists, owns, incomplete))

    def _place(self, step: Step, frame: Frame) -> None:
        """Step 5: no `rel`, no `rev`."""
        names, depth, attributes = step.names, step.depth, step.attributes
        has_property, is_typed = "property" in attributes, "typeof" in attributes
        about = self._about(names, attributes)
        if has_property and "content" not in attributes and "datatype" not in attributes:
            step.new = about
            if about is None:
                step.new = self._base if depth == 0 else frame.object
            if is_typed:
                step.typed = about if about is not None else self._base if depth == 0 else None
                if step.typed is None:
                    step.typed = self._target(names, attributes)
                    if step.typed is None:
                        step.typed = self._gathered.blank()
                    step.resource = step.typed
            return
        step.new = about if about is not None else self._target(names, attributes)
        if step.new is None:
            if depth == 0:
                step.new = self._base
            elif step.tag in _SECTIONS:
                step.new = frame.object
            elif is_typed:
                step.new = self._gathered.blank()
            else:
                step.new = frame.object
                step.skip = not has_property
        if is_typed:
            step.typed = step.new

    def _place_related(self, step: Step, frame: Frame) -> None:
        """Step 6: `rel` or `rev`."""
        about = self._about(step.names, step.attributes)
        is_typed = "typeof" in step.attributes
        step.new = about
        if about is None:
            step.new = self._base if step.depth == 0 else frame.object
        elif is_typed:
            step.typed = about
        step.resource = self._target(step.names, step.attributes)
        if is_typed and about is None:
            if step.resource is None:
                step.resource = self._gathered.blank()
            step.typed = step.resource

    def _relate(
        self, step: Step, frame: Frame, forward: list[str], backward: list[str], lists: Lists
    ) -> list[Incomplete]:
        """Steps 9 and 10: triples of `rel` and `rev`, or what waits for an object."""
        incomplete: list[Incomplete] = []
        if not forward and not backward:
            return incomplete
        subject = step.new if step.new is not None else frame.object
        for predicate in forward:
            items = lists.setdefault(predicate, []) if "inlist" in step.attributes else None
            if step.resource is None:
                incomplete.append((predicate, items, False))
            elif items is not None:
                self._append(items, (step.resource, "", ""))
            else:
                self._gathered.add(subject, predicate, step.resource)
        for predicate in backward:
            if step.resource is None:
                incomplete.append((predicate, None, True))
            else:
                self._gathered.add(step.resource, predicate, subject)
        if step.resource is None:
            step.resource = self._gathered.blank()
        return incomplete

    def _append(self, items: list[Value], item: Value) -> None:
        self._gathered.count_item()
        items.append(item)

    def _complete(self, frame: Frame, subject: str) -> None:
        for predicate, items, is_backward in frame.incomplete:
            if items is not None:
                self._append(items, (subject, "", ""))
            elif is_backward:
                self._gathered.add(subject, predicate, frame.subject)
            else:
                self._gathered.add(frame.subject, predicate, subject)

    def _say(self, step: Step, lists: Lists, *, is_related: bool) -> None:
        predicates = step.names.named(step.attributes["property"] or "", self._gathered)
        value = self._value(step, is_related=is_related) if predicates and step.new is not None else None
        if value is None or step.new is None:
            return
        for predicate in predicates:
            if "inlist" in step.attributes:
                self._append(lists.setdefault(predicate, []), value)
            else:
                self._gathered.add(step.new, predicate, *value)

    def _value(self, step: Step, *, is_related: bool) -> Value | None:
        """The current property value; none where it would be text that lies too deep in other such text."""
        names, depth, tag, attributes, content = step.names, step.depth, step.tag, step.attributes, step.content
        language = step.language
        given = self._given(tag, attributes)
        if "datatype" in attributes:
            [datatype] = names.named(attributes["datatype"] or "", self._gathered)[:1] or [""]
            if datatype in MARKUP:
                namespaces = {} if self._host is HostLanguage.HTML else {"": XHTML} | dict(names.declared)
                return self._within(depth, lambda: written(content, datatype, namespaces))
            text = given if given is not None else self._within(depth, content.text)
            return None if text is None else typed(text, datatype, language)
        if "content" in attributes:
            return typed(given or "", "", language)
        if given is not None:
            return typed(given, "", language) if tag == "data" else time(given, language)
        if not is_related:
            target = self._target(names, attributes)
            if target is not None:
                return target, "", ""
        if step.typed is not None and "about" not in attributes:
            return step.typed, "", ""
        text = self._within(depth, content.text)
        if text is None:
            return None
        is_time = tag == "time" and self._host is not HostLanguage.XHTML1
        return time(text, language) if is_time else typed(text, "", language)

    def _within(self, depth: int, read: Callable[[], _T]) -> _T | None:
        """The result of `read` on all that stands in the element."""
        if len(self._texts) >= MAX_NESTED_TEXTS:
            self._gathered.counts["too_many_nested_texts"] += 1
            return None
        self._texts.append(depth)
        return read()

    # -- the names in the attributes of one element (RDFa Core, sections 5, 7.4 and 7.5, and the language around it)

    def _names(self, names: Names, attributes: Attributes) -> Names:
        """The names that hold in the element: steps 2 and 3, default vocabulary and prefixes."""
        vocabulary = attributes.get("vocab")
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
            found = ((name[6:], value or "") for name, value in attributes.items() if name.startswith("xmlns:"))
            pairs = [(name, value) for name, value in found if name != "_"]
        prefix = attributes.get("prefix")
        if prefix:
            more, stray = declared(prefix)
            pairs += more
            for word in stray:
                self._gathered.warn("UnresolvedCURIE", f"prefix {word}")
        return names.declaring(pairs, self._gathered, PREFIXES) if pairs else names

    def _language(self, language: str, attributes: Attributes) -> str:
        """The language of text in the element, where `language` holds around it: step 4."""
        first, second = ("lang", "xml:lang") if self._host is HostLanguage.HTML else ("xml:lang", "lang")
        if first in attributes:
            return attributes[first] or ""
        return (attributes[second] or "") if second in attributes else language

    def _relations(self, attributes: Attributes, names: Names) -> tuple[list[str] | None, list[str] | None]:
        """The names in `rel` and `rev` that count: in HTML, terms beside `property` are for browsers, and so are link
        types that no vocabulary of the page has."""
        found = []
        for attribute in ("rel", "rev"):
            value = (attributes[attribute] or "") if attribute in attributes else None
            if value is not None and self._host is not HostLanguage.XHTML1:
                if "property" in attributes:
                    value = " ".join(word for word in value.split() if ":" in word) or None
                elif not names.vocabulary:
                    value = " ".join(word for word in value.split() if ":" in word or word.lower() in names.terms)
            found.append(None if value is None else names.named(value, self._gathered))
        return found[0], found[1]

    def _about(self, names: Names, attributes: Attributes) -> str | None:
        """The IRI or blank node that `about` names; None where it names none."""
        if "about" not in attributes:
            return None
        return names.resource(attributes["about"] or "", self._base, self._gathered)

    def _target(self, names: Names, attributes: Attributes) -> str | None:
        """The resource in `resource`, `href` or `src`, the first that counts."""
        if "resource" in attributes:
            found = names.resource(attributes["resource"] or "", self._base, self._gathered)
            if found is not None:
                return found
        for attribute in ("href", "src"):
            if attribute in attributes:
                return resolved(attributes[attribute] or "", self._base)
        return None

    def _given(self, tag: str, attributes: Attributes) -> str | None:
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
