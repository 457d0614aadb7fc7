"""The frontier: which URL is fetched next, and when.

Place in the flow: it takes seeds, answers and commits in any order and hands out tasks (:mod:`frontier`). Tasks wait
in the ledger's queues; the frontier chooses the tasks that go out (:mod:`dispatch`), keeps the hosts that take turns
and finds their addresses (:mod:`host_turns`), and knows when the crawl is at its end (:mod:`termination`, :mod:`limits`).

:mod:`politeness` decides whether a host may be asked now, :mod:`robots` whether a URL may be asked for at all, and
:mod:`traps` which parts of a host look like traps. :mod:`order` has the orders of a crawl.

Promises: its inputs never block, so the ring cannot deadlock; a host has no more live requests than it is allowed;
everything that it decides is plain code, tested without network or clock.

Open first: :mod:`contract`, then :mod:`frontier`.
"""
