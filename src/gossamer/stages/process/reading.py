"""Reading one document: its processors, one after the other, and what is known of a page apart from them.

Place in the flow: the process stage calls :func:`read` in its own process, or, for a page that may cost too much, a parser
process does (:mod:`gossamer.stages.process.parser`). So what comes out is one plain value that crosses a pipe.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from gossamer.contracts.processing import MAX_FOUND, MAX_ITEMS, MAX_ORDERS, Processor
from gossamer.model.document import Document
from gossamer.model.errors import ParseSkipped
from gossamer.model.items import as_item
from gossamer.model.language import primary
from gossamer.model.orders import Block, Delay, Order
from gossamer.model.raised import raised
from gossamer.model.request import Retry
from gossamer.model.visit import HTML_TYPES, Found, Item, Raised, Statements, Triple, Visit

#: How much is made of a page: `plain` title, base, charset, directives, canonical URL and the language that it says it is
#: in; `full` also the language that it is in, and its fingerprint, which need its text.
Details = Literal["plain", "full"]

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
    errors: tuple[Raised, ...] = ()
    """What user's code raised."""
    again: float | None = None
    """Seconds after which a handler wants the page once more."""
    counts: dict[str, int] = {}
    """What went wrong or was left out, as counters: `raised:ValueError`, `rdf:too_many_triples`."""


def read(document: Document, processors: Iterable[Processor], details: Details, *, language: bool = False) -> Findings:
    """Everything that processors and the page itself say.

    A processor that raises costs its own findings on this page, and nothing else (MISSION S10).
    """
    found: list[Found] = []
    items: list[Item] = []
    triples: list[Triple] = []
    orders: list[Order] = []
    counts: dict[str, int] = {}
    errors: list[Raised] = []
    again: float | None = None
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
                    items.append(as_item(thing, document.url))
                if len(found) >= MAX_FOUND or len(items) >= MAX_ITEMS or len(orders) >= MAX_ORDERS:
                    counts["cut"] = counts.get("cut", 0) + 1
                    break
        except Retry as error:
            again = error.after
        except Exception as error:
            counted = f"raised:{type(error).__name__}"
            counts[counted] = counts.get(counted, 0) + 1
            trouble = f"{type(error).__name__}: {error}"[:_MAX_TROUBLE]
            if not isinstance(error, ParseSkipped):  # the page's fault, and told as its trouble
                errors.append(raised(_named(processor), error, str(getattr(processor, "place", ""))))
    if document.mime not in HTML_TYPES:
        return Findings(
            tuple(found),
            tuple(items),
            tuple(triples),
            tuple(orders),
            base=document.url,
            directives=document.field_directives,
            trouble=trouble,
            errors=tuple(errors),
            again=again,
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
        errors=tuple(errors),
        again=again,
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
        errors=findings.errors,
        again=findings.again,
    )


def _named(processor: Processor) -> str:
    """A processor as a person knows it: by its name in the wiring, or its class."""
    return str(getattr(processor, "name", "") or type(processor).__name__)
