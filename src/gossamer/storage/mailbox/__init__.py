"""URLs of other agents: kept in the ledger from the visit that found them to the commit of their own agent.

:mod:`outbox` keeps what is owed, :mod:`ledger` tells it from what stays. Only crawls of several agents have these (decision 42).
"""
