"""The mailbox: what processes of a crawl owe each other, from the visit that found it to the commit of its recipient.

Place in the flow: a ledger in front of the agent's own puts tasks of others into a space that commits with the visit
(:mod:`staging`); senders take them from there (:mod:`mailbox`), or they leave in :mod:`exchange_files`, which are
:mod:`sealed_files`.

Promises: an entry leaves only when its recipient has committed it; receiving twice is harmless; a recipient that is away
holds up no other.

Open first: :mod:`contract`, then :mod:`staging`.
"""
