"""What flows: frozen values that know the web but do no I/O, hold no clock and run no loop.

A crawl is the journey of one URL, and these are the forms that it takes on the way::

    Task ──► Response ──► Visit (enriched by every stage) ──► Committed ──► Task ...

Everything here can be encoded by msgspec, so that any arrow between two stages may cross a process.
"""
