"""Triple stores: what pages say, where SPARQL can ask it. They follow a crawl; nothing in the crawl waits for them.

Place in the flow: :mod:`consumers` takes the rows of the tables `triples` and `pages` from their feeds, decides what
becomes of the graph of each page, and has it done by a store: the crawl's own (:mod:`store`), or one elsewhere
(:mod:`endpoint`). :mod:`snapshots` lets others read the crawl's own store while it is fed, :mod:`asking` has questions
answered in a process that can be killed, :mod:`serving` does that for programs that speak the SPARQL protocol.
"""
