"""The crawler manager: sends crawlers to runtimes, takes in what they bring, and says what became of them (Agarwal and
others, 3.1).

:mod:`manager` is the component, :mod:`away` the life of one crawler that is on its way, :mod:`book` the outbox and
inbox in the ledger. Its decisions are plain code: :mod:`settling` makes crawlers, :mod:`away` estimates whether one is worth
its bytes, :mod:`intake` judges batches.
"""
