"""Tables: one declaration of each, from which row log, Parquet, `query`, `reprocess` and the reference are made.

Place in the flow: the commit appends rows (:mod:`log`); another process turns closed logs into
Parquet. :mod:`contract` finds tables that ship, that subjects bring and that packages offer; :mod:`places` knows where
files lie, :mod:`manifest` what was made of them.

Open first: :mod:`contract`, then :mod:`pages`.
"""
