"""The crawler manager: sends crawlers to runtimes, takes in what they bring, and says what became of them (Agarwal and
others, 3.1).

:mod:`manager` is the component, :mod:`links` has the links to runtimes at home and elsewhere, and :mod:`lent` keeps in the
ledger the URLs and crawlers that are out. The decisions are plain code: :mod:`making` makes crawlers, and :mod:`away` says whether
one is worth its bytes, follows its life and judges its batches.

Open first: :mod:`manager`, then :mod:`away`.
"""
