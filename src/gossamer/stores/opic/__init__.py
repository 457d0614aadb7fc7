"""Importance while the crawl runs (Abiteboul, Preda, Cobena 2003, "Adaptive on-line page importance computation"; row S1).

Every page that is visited brings one unit of cash, and gives it, with what it was given before, to the pages that it links to. Of
the pages that wait, those with most cash come first. :mod:`accounts <gossamer.stores.opic.accounts>` has the sums,
:mod:`ledger <gossamer.stores.opic.ledger>` keeps them with the groups of the ledger, and :mod:`queues
<gossamer.stores.opic.queues>` passes over tasks that were queued again more urgently.
"""
