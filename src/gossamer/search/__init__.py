"""Full text of a crawl: an index of its documents by tantivy, made from a feed of committed visits, and questions to
it.

Place in the flow: :mod:`index` follows a crawl with `--index`, or is made later, with texts of links, ranks and types
(:mod:`indexing`); :mod:`asking` answers words, phrases and filters. An agent never imports tantivy.

Open first: :mod:`index`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="search",
    title="Search",
    commands={
        "index": Command("gossamer.search.commands:index", "Make the documents of a crawl searchable.", "Ask a crawl"),
        "search": Command(
            "gossamer.search.commands:search", "Search the documents of a crawl for words and phrases.", "Ask a crawl"
        ),
    },
)
