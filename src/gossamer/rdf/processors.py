"""Triples and items of a page: its RDFa, JSON-LD and microdata, and what its `meta` elements say.

Place in the flow: one of the processors that the process stage asks, where `--rdf` or the wiring names it. The work is done
by :mod:`gossamer.rdf`.
"""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from gossamer.documents.document import Document
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.rdf.filtering import DROPPED
from gossamer.rdf.page import structured_data
from gossamer.values.visit import Item, Statements


class StructuredDataSheet(Sheet, frozen=True):
    """Settings of :class:`StructuredDataProcessor`."""

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
    """Yields the triples of a page, and its items. Contract: `processing.Processor`."""

    divisible = True

    def __init__(self, sheet: StructuredDataSheet | None = None) -> None:
        super().__init__(sheet)
        self._rules = frozenset(self.sheet.drop)

    def changed(self, before: StructuredDataSheet) -> None:
        self._rules = frozenset(self.sheet.drop)

    def process(self, document: Document) -> Iterator[Statements | Item]:
        """What the page says; nothing of a page that says nothing."""
        data = structured_data(document, rules=self._rules, expanding=self.sheet.expand)
        counts = {kind: count for kind, count in data.counts.items() if count}
        if data.dropped:
            counts["dropped"] = data.dropped.total()
        if data.triples or counts:
            yield Statements(tuple(data.triples), counts)
        if self.sheet.items:
            for item in data.items:
                yield Item(item.kind, document.url, msgspec.to_builtins(item.values))
