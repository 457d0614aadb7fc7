"""Mobile crawlers: a crawl as one value that can be judged, sent, and run where the data lies (docs/mobile.md).

Place in the flow: beside a crawl's graph, not in it. :mod:`gossamer.mobile.crawler` is the value, :mod:`gossamer.mobile.reading`
reads it from a file that a person writes, :mod:`gossamer.mobile.wire` makes bytes of it. :mod:`gossamer.mobile.running` runs it:
plain code that says which URL it wants next, and is given the answer. It reads and judges pages by the same functions as the
stages of a stationary crawl (decisions 80 and 81).
"""
