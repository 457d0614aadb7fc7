"""The structured data of one page, and the processor graph of what its readers did not understand.

Place in the flow: :class:`StructuredData` is one of the processors that the process stage asks, where `--rdf` or the wiring names
it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated

import msgspec

from gossamer.documents import charset
from gossamer.documents.document import Document
from gossamer.documents.xhtml import NotXhtml, numbered
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.rdf.elements import Element, HostLanguage, NotXml, head_elements, html_elements, xml_elements
from gossamer.rdf.filtering import DROPPED, Sign, dropping, everything, sign_of
from gossamer.rdf.jsonld import read_json_ld
from gossamer.rdf.microdata import Items
from gossamer.rdf.names import MetaItem, meta_items
from gossamer.rdf.rdfa import Reader
from gossamer.rdf.terms import MAX_IRI, TYPE, VOCABULARIES, Full, Gathered, Warned, copy_patterns, expand
from gossamer.values.errors import ParseSkipped
from gossamer.values.media_type import XHTML
from gossamer.values.visit import Item, Statements, Triple

# The structured data of one page. The processor `structured-data`, `gossamer rdf` and `gossamer inspect` call
# :func:`structured_data` on a document. It asks the :mod:`~gossamer.rdf.filtering` what the page can hold, reads that, and
# nothing more.


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
    """The triples and items of a page.

    A page that would cost the parser too much is counted as `parse_skipped`; its JSON-LD is read all the same.

    Args:
        rules: what is dropped (:mod:`gossamer.rdf.filtering`).
        expanding: add what bundled vocabularies say of the names that the page uses.
        searching: look for a sign first; without, a page is read whatever it looks like, at the price of a tree.

    Raises:
        ReadApart: its JSON-LD may cost more than may be spent here, where everything else waits.
    """
    sign = sign_of(document) if searching else everything(document)
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
