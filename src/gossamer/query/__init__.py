"""Questions to what a crawl keeps: tables by SQL, documents by URL, and the forms in which both leave.

Agents write row logs and archive files (:mod:`gossamer.storage`). Here other processes read them, while the crawl runs and
after: :mod:`schema` says which columns there are, :mod:`convert` turns closed row logs into Parquet and into the index,
:mod:`database` answers SQL over tables and over rows that are not converted yet, :mod:`archive` finds documents,
:mod:`wacz` packs them for other tools. No agent imports this package: DuckDB would cost each of them 36 MB.
"""
