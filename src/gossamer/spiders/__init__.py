"""Spiders: running what people write to take pages apart, and keeping their mistakes from the crawl.

:mod:`handlers` knows which handler gets which page; :mod:`gathering` sorts what handlers yield; :mod:`running` is the provider that
the process stage asks, with :mod:`threads` for handlers that block, :mod:`apart` for those that have a process of their own, and
:mod:`watch` for those that should not have blocked. :mod:`loading` finds the spider in a file.
"""
