"""The stages of a URL's journey, in data order. No stage imports another; the wiring joins them.

::

    seeds ─► frontier ─► fetch ─► content_seen ─► process ─► links ─► url_filter ─► url_seen ─► commit ─┐
               ▲  ▲        │ answers: the host is free                                      records ─► tally
               │  └────────┘                                                                           │
               └───────────────────────────────── committed: the slot is free, new tasks ──────────────┘
"""
