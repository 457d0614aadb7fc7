"""The ledger: one store for each agent that holds all that a crawl must not forget (design promise 1, decision 6).

A group of visits becomes durable in :mod:`group`, which stages into one batch what has to change: :mod:`seen` (URLs and
their depths), :mod:`queues` (with :mod:`held`, :mod:`chunks`, :mod:`later`, and the :mod:`plan` of a commit),
:mod:`hosts`, :mod:`contents`, :mod:`links` and the rows of documents; :mod:`store` writes it. :mod:`keys` lays out the
keys, :mod:`schema` knows their versions and :mod:`lanes` is a migration, :mod:`lock` lets one process in,
:mod:`checkpoints` makes snapshots and goes back to them, :mod:`waiting` looks for one task. :mod:`ledger`, its
:mod:`sheet` and :mod:`providers` are what a wiring names.
"""
