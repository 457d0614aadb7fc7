"""The ledger: one store for each agent that holds all that a crawl must not forget (design promise 1, decision 6).

A group of visits becomes durable in :mod:`group`, which stages into one batch all that has to change: :mod:`seen` (URLs,
contents and fingerprints), :mod:`queues` (of :mod:`active_hosts`, whose tasks lie in chunks; other hosts, delayed
tasks and those that are set aside are :mod:`waiting`), hosts (:mod:`reader`), :mod:`depth` with links, and :mod:`spaces` of
other owners. :mod:`store` writes it. :mod:`layout` lays out keys and chunks, and :mod:`schema` knows their versions.
:mod:`opening` lets one process in, makes checkpoints and goes back to them. :mod:`moving` and :mod:`deleting` change a ledger
at rest, :mod:`parcels` take domains from one to another.

Open first: :mod:`contract`, then :mod:`ledger` with its settings and the part that only reads (:mod:`reader`), and the
:mod:`providers` that a wiring names.
"""
