"""The crawler manager: sends crawlers to runtimes, takes in what they bring, and says what became of them (Agarwal and
others, 3.1).

:mod:`manager` is the component, :mod:`away` the life of one crawler that is on its way, :mod:`book` the outbox and
inbox in the ledger. What it decides is plain code: :mod:`making` makes crawlers, :mod:`sending` says where one is worth
it, :mod:`intake` judges batches.
"""
