"""Reading one document: its processors, one after the other, and what is known of a page apart from them.

Place in the flow: the process stage calls :func:`read` in its own process, or, for a page that may cost too much, a parser
process does (:mod:`gossamer.stages.process.parser`). So what comes out is one plain value that crosses a pipe.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from gossamer.contracts.processing import Processor
from gossamer.model.orders import Block, Delay, Order
from gossamer.model.visit import HTML_TYPES, Found, Item, Statements, Triple, Visit
from gossamer.reading.document import Document
from gossamer.reading.language import primary

#: How much is made of a page: `plain` title, base, charset, directives, canonical URL and the language that it says it is
#: in; `full` also the language that it is in, and its fingerprint, which need its text.
Details = Literal["plain", "full"]

#: Links and items of one page that are taken; far more than are kept, and few enough to hold (faults 39, 76).
MAX_FOUND = 50_000
MAX_ITEMS = 10_000

#: Orders of one page that are taken: a page that names more hosts has filled a processor's list by itself.
MAX_ORDERS = 100

_ARE_LINKS = frozenset((Found,))

#: Characters of an error's text that are kept.
_MAX_TROUBLE = 200


class Findings(msgspec.Struct, frozen=True):
    """What reading made of one document."""

    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    triples: tuple[Triple, ...] = ()
    orders: tuple[Order, ...] = ()
    title: str = ""
    base: str = ""
    charset: str = ""
    canonical: str = ""
    directives: tuple[str, ...] = ()
    language: str = ""
    simhash: int = 0
    trouble: str = ""
    counts: dict[str, int] = {}
    """What went wrong or was left out, as counters: `raised:ValueError`, `rdf:too_many_triples`."""


def read(document: Document, processors: Iterable[Processor], details: Details, *, language: bool = False) -> Findings:
    """Everything that processors and the page itself say.

    A processor that raises costs its own findings on this page, and nothing else (row S10).
    """
    found: list[Found] = []
    items: list[Item] = []
    triples: list[Triple] = []
    orders: list[Order] = []
    counts: dict[str, int] = {}
    trouble = ""
    for processor in processors:
        try:
            made = processor.process(document)
            if type(made) is list and len(made) + len(found) < MAX_FOUND and _ARE_LINKS.issuperset(map(type, made)):
                found += made
                continue
            for thing in made:
                if type(thing) is Found:
                    found.append(thing)
                elif type(thing) is Statements:
                    triples += thing.triples
                    for kind, count in thing.counts.items():
                        counts[f"rdf:{kind}"] = counts.get(f"rdf:{kind}", 0) + count
                elif isinstance(thing, (Block, Delay)):
                    orders.append(thing)
                else:
                    items.append(_as_item(thing))
                if len(found) >= MAX_FOUND or len(items) >= MAX_ITEMS or len(orders) >= MAX_ORDERS:
                    counts["cut"] = counts.get("cut", 0) + 1
                    break
        except Exception as error:
            raised = f"raised:{type(error).__name__}"
            counts[raised] = counts.get(raised, 0) + 1
            trouble = f"{type(error).__name__}: {error}"[:_MAX_TROUBLE]
    if document.mime not in HTML_TYPES:
        return Findings(
            tuple(found),
            tuple(items),
            tuple(triples),
            tuple(orders),
            base=document.url,
            directives=document.field_directives,
            trouble=trouble,
            counts=counts,
        )
    full = details == "full"
    return Findings(
        tuple(found),
        tuple(items),
        tuple(triples),
        tuple(orders),
        title=document.title,
        base=document.base,
        charset=document.charset,
        canonical=document.canonical,
        directives=document.directives,
        language=document.language if full or language else primary(document.declared_language),
        simhash=document.fingerprint if full else 0,
        trouble=trouble or document.trouble,
        counts=counts,
    )


def filled(visit: Visit, findings: Findings, before: Sequence[Found] = ()) -> Visit:
    """The visit with what was found; `before` are links that came before the document's own."""
    return msgspec.structs.replace(
        visit,
        title=findings.title,
        base=findings.base,
        charset=findings.charset,
        canonical=findings.canonical,
        directives=findings.directives,
        language=findings.language,
        simhash=findings.simhash,
        found=(*before, *findings.found) if before else findings.found,
        items=findings.items,
        triples=findings.triples,
        orders=findings.orders,
        trouble=findings.trouble,
    )


def _as_item(thing: object) -> Item:
    """What a processor yielded, if it is something that a processor may yield.

    Raises:
        TypeError: it is not; says what would be.
    """
    if not isinstance(thing, Item):
        raise TypeError(f"a processor yields gossamer.Found, Item, Block or Delay, not {type(thing).__name__}")
    return thing
