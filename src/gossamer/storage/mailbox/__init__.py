"""URLs that agents owe each other: those of other agents' hosts, from the visit that found them to the commit of their agent.

Place in the flow: a ledger in front of the agent's own puts tasks of others into the :mod:`outbox`, a space that
commits with the visit; senders take them from there, over a network or as :mod:`exchange_files`, which are
:mod:`sealed_files`.

Promises: an owed URL leaves only when the other agent has committed it; receiving twice is harmless.

Open first: :mod:`contract`, then :mod:`outbox`.
"""
