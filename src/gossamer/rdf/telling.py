"""The structured data of a page by subject, as `gossamer inspect` shows it."""

import msgspec

from gossamer.rdf.meta import MetaItem
from gossamer.rdf.page import StructuredData
from gossamer.rdf.terms import TYPE


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
