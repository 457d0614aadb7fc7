"""The processor graph: what a reader of RDFa did not understand, as triples (RDFa Core 1.1, section 7.6)."""

from gossamer.model.visit import Triple
from gossamer.rdf.terms import RDFA, STRING, TYPE, Gathered

_DESCRIPTION = "http://purl.org/dc/terms/description"

#: Kinds of warnings that RDFa has classes for, and the class above each.
CLASSES = {
    "DocumentError": "Error",
    "PrefixRedefinition": "Warning",
    "UnresolvedCURIE": "Warning",
    "UnresolvedTerm": "Warning",
    "VocabReferenceError": "Warning",
}


def processor_graph(gathered: Gathered, page: str) -> list[Triple]:
    """The warnings of a page that were kept.

    Args:
        gathered: what the page gave.
        page: its URL.
    """
    triples: list[Triple] = []
    for number, warned in enumerate(gathered.warnings, 1):
        if warned.kind not in CLASSES:
            continue
        node = f"_:w{number}"
        triples += [
            (node, TYPE, f"{RDFA}{warned.kind}", "", ""),
            (node, TYPE, f"{RDFA}{CLASSES[warned.kind]}", "", ""),
            (node, _DESCRIPTION, warned.about, STRING, ""),
            (node, f"{RDFA}context", page, "", ""),
        ]
    return triples
