"""The ledger: one store for each agent that holds all that a crawl must not forget (DESIGN 4.1, decision 6).

A group of visits becomes durable in :mod:`group`, which stages into one batch what :mod:`seen`, :mod:`queues` and the
rows of documents and hosts have to change; :mod:`store` writes it. :mod:`keys` lays out the keys, :mod:`schema` knows
their versions, :mod:`lock` lets one process in, :mod:`checkpoints` makes snapshots and goes back to them.
:mod:`ledger` and :mod:`providers` are what a wiring names.
"""
