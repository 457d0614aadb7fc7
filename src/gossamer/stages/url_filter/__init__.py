"""Filter: every link of a page is judged before anybody remembers it (row M5).

A filter is one class behind `contracts.filtering.UrlFilter`, asked once for each page. To add one, write the class,
name it in the wiring, and run `gossamer.testing.check_filter` over it.
"""
