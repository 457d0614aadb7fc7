"""The Python API: crawls as iterators, and processors and spiders of your own. Its names are those of the package `gossamer`.

:mod:`crawls` runs a crawl and hands on what is asked for; :mod:`processors` keeps the functions that a program registers;
:mod:`spider` is :class:`gossamer.Spider`; :mod:`keywords` are the options of a crawl as typed keywords.
"""
