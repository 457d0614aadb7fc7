"""`triples`: what pages say in RDFa, JSON-LD and microdata, column by column in frames, as links are."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from gossamer.documents.document import Document
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.rdf.filtering import DROPPED
from gossamer.rdf.page import structured_data
from gossamer.storage.json_lines import MAX_LINE_BYTES
from gossamer.storage.tables.contract import RowSource, Table, column
from gossamer.values.visit import Item, Statements, Triple

# Triples and items of a page: its RDFa, JSON-LD and microdata, and what its `meta` elements say.
#
# Place in the flow: one of the processors that the process stage asks, where `--rdf` or the wiring names it. The work is done
# by :mod:`gossamer.rdf`.


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
        """Take the new rules."""
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


#: Characters of one frame, of which each may take six bytes as an escape; a reader takes no longer line.
_MAX_FRAME = MAX_LINE_BYTES // 8
#: Triples of one frame: pages have some tens.
_MAX_TRIPLES = 1_000


class TriplesRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Triples of one page. A column that is empty for all of them is left out."""

    graph: Annotated[str, column("The page's URL.")]
    subject: Annotated[
        list[str], column("An IRI, or `_:` and the name of a blank node, which holds in its graph alone.")
    ]
    predicate: Annotated[list[str], column("An IRI.")] = []
    object: Annotated[list[str], column("A resource, as `subject`, or the text of a literal.")] = []
    datatype: Annotated[list[str], column("The IRI of a literal's datatype; empty for a resource.", fill="")] = []
    language: Annotated[list[str], column("The language of a text, where it has one.", fill="")] = []
    visit: Annotated[str, column("The visit that found it, as in `pages`.")] = ""


def _rows(told: RowSource) -> Iterable[TriplesRow]:
    return [_frame(told, triples) for triples in _framed(told.visit.triples)]


def _framed(triples: Iterable[Triple]) -> Iterator[list[Triple]]:
    """The triples, as many at a time as one line can hold. One that no line can hold stands alone, and is mended."""
    frame: list[Triple] = []
    size = 0
    for triple in triples:
        length = sum(map(len, triple))
        if frame and (size + length > _MAX_FRAME or len(frame) >= _MAX_TRIPLES):
            yield frame
            frame, size = [], 0
        frame.append(triple)
        size += length
    if frame:
        yield frame


def _frame(told: RowSource, triples: list[Triple]) -> TriplesRow:
    subjects, predicates, objects, datatypes, languages = (list(each) for each in zip(*triples, strict=True))
    return TriplesRow(
        graph=told.task.url,
        subject=subjects,
        predicate=predicates,
        object=objects,
        datatype=datatypes if any(datatypes) else [],
        language=languages if any(languages) else [],
        visit=told.visit.id,
    )


TRIPLES = Table(
    "triples",
    TriplesRow,
    "Triples that pages state in RDFa, JSON-LD and microdata; kept with `--rdf`, or where `tables` of the log names it.",
    rows=_rows,
    page="graph",
    is_made=True,
)
