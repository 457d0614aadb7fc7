"""Fetching: a task comes in, a visit with its response goes out, and the frontier hears that the host is free.

The component finds the protocol module of the URL's scheme. Modules do not know each other::

    http.py      http and https: the pool of handles, the clock's deadlines, from task to response
    transfer.py    one reused libcurl handle and what it receives
    head.py        may these header fields be believed? (pure)
    keeping.py     how much of a body is kept, and where
    coding.py      content codings, with stops against bombs (pure)
    endings.py     libcurl's error codes as outcomes (a table)
"""
