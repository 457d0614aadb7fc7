"""`triples`: what pages say in RDFa, JSON-LD and microdata, column by column in frames, as links are."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from gossamer.storage.logs import MAX_LINE_BYTES
from gossamer.storage.tables.contract import RowSource, Table, column
from gossamer.values.visit import Triple

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
    rows=lambda told: [_frame(told, triples) for triples in _framed(told.visit.triples)],
    page="graph",
    is_made=True,
)
