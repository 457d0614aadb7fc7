"""Benchmarks: each a function that returns a report, reached by `gossamer bench NAME`. Each prints tables and can write JSON.

Place in the flow: beside everything; the command imports one by its name. :mod:`harness` has what benchmarks share.

Absolute times mean little on another machine or in another hour: every table names machine and versions, and what is
compared stands in one run. These come with the package; a checkout has more, in `tools/bench`, reached the same way.
"""

#: Benchmark -> where it is, and what it measures.
BENCHES = {
    "peers": (
        "gossamer.bench.peers:run",
        "a crawl beside Scrapy, Crawlee and wget: same site and links in one run (needs nginx)",
    ),
    "today": (
        "gossamer.bench.today:run",
        "pages as they are today, over TLS with a handshake for each, beside the same peers; dollars a billion pages",
    ),
    "pages": ("gossamer.bench.pages:run", "a whole crawl by its parts: where each microsecond of a page goes"),
}
