"""Questions to what a crawl keeps: tables by SQL, documents by URL, and the forms in which both leave.

Place in the flow: a process of its own turns closed row logs into Parquet and index (:mod:`convert`). :mod:`database`
asks these and the rows that are not converted yet, while the crawl runs and after. :mod:`archive` finds documents.
:mod:`feeds` gives the committed rows of a table once and in order to whatever follows a crawl (:mod:`following`).

Promises: an agent never imports DuckDB; a reader sees a whole table or its predecessor, never half of one.

Open first: :mod:`database`, then :mod:`feeds`.
"""
