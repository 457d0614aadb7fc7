"""The values that flow through a crawl: frozen ones that know the web, do no I/O, hold no clock and run no event loop.

Place in the flow: every room above imports these, and they import nothing but each other and a few errors of the
engine. A URL is a plain string in one canonical form (:mod:`url`). A :mod:`task` is a URL that waits or is under way; a
:mod:`visit` is one fetch of one task with everything that it causes, and ends at the commit with an :mod:`outcome`. A
:mod:`body` is read from its first byte by any number of readers. :mod:`settings` are those that units and options share.

Open first: :mod:`task`, then :mod:`visit`.
"""
