"""The frontier: which URL is fetched next, and when.

Place in the flow: it takes seeds, answers and commits in any order and hands out tasks (:mod:`component`). Tasks wait
in the ledger's queues; the frontier keeps the hosts that take turns (:mod:`host_turns`), chooses what goes out
(:mod:`dispatch`), asks for names ahead of their hosts' turn (:mod:`lookups`), and knows when the crawl is at its end
(:mod:`termination`, :mod:`limits`). Whether a host may be asked now is decided in :mod:`politeness`, whether a URL may
be asked at all in :mod:`robots`, and what looks like a trap in :mod:`traps`. :mod:`order` has the orders of a crawl.

Promises: its inputs never block, so the ring cannot deadlock; a host has no more live requests than it is allowed;
everything that it decides is plain code, tested without network or clock.

Open first: :mod:`contract`, then :mod:`component`.
"""
