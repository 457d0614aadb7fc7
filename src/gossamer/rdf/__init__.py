"""Structured data: RDFa, JSON-LD, microdata and what `meta` and `link` elements say, as triples, and the stores that
hold them.

Place in the flow: pure code makes triples of one page (:mod:`page` puts the readers together) for the processor
`structured-data`, `gossamer rdf` and `gossamer inspect`. The table `triples` keeps them, and its
feed fills triple stores (:mod:`store`).

Promises: nothing here fetches, contexts and vocabularies are bundled; each reader is linear in the page; what passes a
limit is left out and counted; a page without structured data costs one search.

Open first: :mod:`page`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="rdf",
    title="Structured data",
    commands={
        "sparql": Command("gossamer.rdf.commands:sparql", "Ask the triples of a crawl in SPARQL.", "Ask a crawl"),
        "serve-sparql": Command(
            "gossamer.rdf.commands:serve_sparql", "Serve the triples of a crawl by the SPARQL protocol.", "Take out"
        ),
        "rdf": Command(
            "gossamer.rdf.commands:rdf", "Write the triples of one page: RDFa, JSON-LD and microdata.", "Try"
        ),
    },
    providers={"structured-data": "gossamer.rdf.page:StructuredDataProcessor"},
    tables={"triples": "gossamer.rdf.tables:TRIPLES"},
)
