"""Focused crawling (row C8): pages of one topic first. :mod:`words <gossamer.services.focus.words>` scores pages and links from
words and example pages, :mod:`surroundings <gossamer.services.focus.surroundings>` finds what stands around a link, and
:mod:`provider <gossamer.services.focus.provider>` makes an order of the scores, and a limit of them.
"""
