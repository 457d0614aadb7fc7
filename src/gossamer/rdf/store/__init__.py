"""Triple stores: what pages say, where SPARQL can ask it. They follow a crawl; nothing in the crawl waits for them.

Place in the flow: :mod:`graphs` takes the rows of the tables `triples` and `pages` from their feeds, decides what becomes
of the graph of each page (:mod:`graphs`), and has it done by a store: the crawl's own (:mod:`store`), or one elsewhere
(:mod:`endpoint`). Others read copies of the crawl's own meanwhile.
:mod:`asking` has :mod:`questions` answered in a process that can be killed, :mod:`serving` does that for programs that
speak the SPARQL protocol (:mod:`serving`).

Open first: :mod:`graphs`, then :mod:`store`.
"""
