"""Fetching: a task comes in, a visit with its response goes out, and the frontier hears that the host is free.

The component finds the protocol module of the URL's scheme. Modules do not know each other::

    http.py      http and https: the pool of handles, the clock's deadlines, from task to response
    transfer.py    one reused libcurl handle and what it receives
    request.py     what a request says of us: constant fields, credentials of one site, validators (pure)
    cookies.py     what servers set and get back, within bounds (pure)
    proxy.py       the proxy that a person configured
    head.py        may these header fields be believed? (pure)
    keeping.py     how much of a body is kept, and where
    coding.py      content codings, with stops against bombs (pure)
    endings.py     libcurl's error codes as outcomes (a table)
    plain.py     what ftp and gopher have in common: one stream of bytes, by libcurl
    ftp.py         directories are listings, replies are outcomes
    gopher.py      types are letters, selectors say nothing else
    file.py      files inside the seeds' directories
"""
