"""Storage: everything that a crawl keeps, and the commit that makes it durable.

Place in the flow: the last stage of the ring is :mod:`commit`. It writes groups of visits: the archive first
(:mod:`archive`), then the rows of the tables (:mod:`tables`), then one batch of the ledger with everything else
(:mod:`ledger`). :mod:`seen` answers whether a URL is known, :mod:`mailbox` keeps what other agents are owed. After a
kill, :mod:`recovery` cuts files back to their committed ends.

Promises: no URL is lost; archive, rows and ledger agree exactly; memory is bounded by settings, not by the crawl; parts
of others keep their own state in *spaces* that commit with the visits (:mod:`contract`).

Open first: :mod:`contract`, then :mod:`ledger.contract`.
"""
