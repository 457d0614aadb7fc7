"""Parsing: what documents hold, as links, items and facts of the visit, and which of the links are followed.

Place in the flow: between fetch and commit. :mod:`duplicates` asks whether a document, or a link of it, was seen. Processors read
the document by its MIME type (:mod:`process_stage`, :mod:`findings`): :mod:`html`, :mod:`feeds`, :mod:`other_links`. Their links
become canonical URLs (:mod:`links`), and filters judge them (:mod:`filters`, :mod:`scope`). A document that could hang or crash
a parser is read in a process that can be killed (:mod:`isolation`).

Promises: a processor that raises is counted and costs its page only; a filter that raises rejects; links keep the order
of the document.

Open first: :mod:`contract`, then :mod:`process_stage`.
"""
