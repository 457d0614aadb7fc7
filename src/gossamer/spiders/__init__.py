"""Spiders: running handlers that people write for pages, and keeping the mistakes of handlers away from the crawl.

:mod:`handlers` knows which handler gets which page; :mod:`gathering` sorts what handlers yield; :mod:`running` is the provider that
the process stage asks, with :mod:`threads` for handlers that block, :mod:`apart` for those that have a process of their own, and
:mod:`watch` for handlers that block although they must not. :mod:`loading` finds the spider in a file.
"""
