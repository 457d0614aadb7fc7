"""What rows of the table `triples` say of the graphs of pages, and how they are written as N-Quads. Pure code.

A graph is named by the URL of its page, and holds what the latest visit found. Blank nodes get names that no other visit gives, so
that equal names in two pages stay two nodes where the pages are written together.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from gossamer.model.identity import visit_order
from gossamer.model.visit import Triple
from gossamer.rdf.terms import STRING, clean_iri

#: What is taken of the table, in this order.
COLUMNS = ("graph", "subject", "predicate", "object", "datatype", "language", "visit")

# What ends an IRI or a line of N-Quads: a name that holds it is left to the slow way, which judges names one by one.
_BREAKS = re.compile('[\x00-\x20<>"{}|^`\\\\]')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_NO_LABEL = re.compile("[^A-Za-z0-9]")


class PageGraph(msgspec.Struct, frozen=True):
    """What one visit of a page found."""

    url: str
    """Of the page; :attr:`iri` is the name of the graph."""
    visit: str
    triples: list[Triple]

    @property
    def iri(self) -> str:
        """The URL in a form that RDF takes for an IRI."""
        return clean_iri(self.url)


def newest_graphs(rows: Sequence[tuple[Any, ...]]) -> dict[str, PageGraph]:
    """What the latest visit among these rows found, by the URL of its page.

    Args:
        rows: of :data:`COLUMNS`; those of one visit follow each other.
    """
    found: dict[str, PageGraph] = {}
    for (url, of_visit), group in groupby(rows, itemgetter(0, 6)):
        visit = of_visit or ""
        before = found.get(url)
        if before is not None and visit_order(before.visit) > visit_order(visit):
            continue
        label = f"_:v{_NO_LABEL.sub('x', visit)}"
        found[url] = PageGraph(url, visit, _named_apart(group, label))
    return found


def _named_apart(rows: Iterable[tuple[Any, ...]], label: str) -> list[Triple]:
    # A comparison of two characters costs a third of a call of `startswith`, and there are millions of them.
    return [
        (
            f"{label}x{subject[2:]}" if subject[:2] == "_:" else subject,
            predicate,
            f"{label}x{value[2:]}" if value[:2] == "_:" and not datatype else value,
            datatype or "",
            language or "",
        )
        for _, subject, predicate, value, datatype, language, _ in rows
    ]


class Unwritable(ValueError):
    """A name cannot stand in N-Quads."""


def lines(triples: Iterable[Triple], place: str = "") -> Iterator[str]:
    """Triples as lines of N-Triples, or of N-Quads.

    Args:
        triples: of one page.
        place: the graph, as it stands in the line: `<IRI>` and a space; nothing for N-Triples.

    Raises:
        Unwritable: a name holds what would end it. Whether it is an IRI otherwise, a parser judges.
    """
    names: dict[str, str] = {}
    known = names.get
    for subject, predicate, value, datatype, language in triples:
        first = known(subject) or _name(subject, names)
        second = known(predicate) or _name(predicate, names)
        if not datatype:
            yield f"{first} {second} {known(value) or _name(value, names)} {place}.\n"
            continue
        text = value.translate(_ESCAPES) if '"' in value or "\\" in value or "\n" in value or "\r" in value else value
        if language:
            kind = f"@{_tag(language)}"
        else:
            kind = "" if datatype == STRING else f"^^{known(datatype) or _name(datatype, names)}"
        yield f'{first} {second} "{text}"{kind} {place}.\n'


def _name(name: str, names: dict[str, str]) -> str:
    if _BREAKS.search(name) is not None:
        raise Unwritable(name)
    written = names[name] = name if name.startswith("_:") else f"<{name}>"
    return written


def _tag(language: str) -> str:
    if not language.replace("-", "").isalnum() or not language.isascii():
        raise Unwritable(language)
    return language
