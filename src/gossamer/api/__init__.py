"""The Python interface: crawls as iterators, spiders, processors. Its names are those of :mod:`gossamer`.

Place in the flow: above everything that crawls. :mod:`crawls` runs a crawl in the program's own event loop or thread;
:mod:`spider` is the interface for authors of spiders, whose handlers :mod:`gossamer.spiders` runs.

Open first: :mod:`crawls`.
"""
