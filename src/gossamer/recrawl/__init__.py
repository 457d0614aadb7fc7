"""Known pages and when they are visited again, in a space of the ledger.

Place in the flow: :mod:`ledger` stands before the agent's ledger and keeps the next visit with each visit; :mod:`schedule` holds
what is due, for the frontier; :mod:`policies` says when. `--recrawl` wires them (:mod:`gossamer.recrawl.wiring`).
"""
