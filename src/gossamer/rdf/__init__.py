"""Structured data of one page: RDFa, JSON-LD, microdata and what `meta` and `link` elements say, as triples.

Place in the flow: pure code between `model` and the stages. :func:`gossamer.rdf.page.structured_data` puts it together for the
processor `structured-data`, `gossamer rdf` and `gossamer inspect`. Nothing here fetches: contexts and vocabularies are bundled.
Everything read was written by a stranger: each reader is linear in the page, and what passes a limit is left out and counted.
"""
