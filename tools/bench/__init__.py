"""Benchmarks of developers: `./gossamer bench NAME` in a checkout reaches them as it does those of the package.

Each is a function that returns a :class:`~gossamer.bench.harness.BenchReport`; :mod:`gossamer.bench.harness` has what they
share.
"""

#: Benchmark -> where it is, and what it measures.
BENCHES = {
    "flow": ("tools.bench.flow:run", "the data-flow layer: provider calls, connectors, filters, remote links"),
    "politeness": ("tools.bench.politeness:cost", "politeness: the time that schedule and gates take for each request"),
    "pace": (
        "tools.bench.politeness:pace",
        "servers that refuse: which pace a crawl finds, and how many refusals that costs; on a simulated clock",
    ),
    "exchange": (
        "tools.bench.exchange:run",
        "1 to 64 agents: URLs exchanged, pages covered, fetched twice and missed, by simulation; takes minutes",
    ),
    "spiders": (
        "tools.bench.spiders:run",
        "the Python API and handlers: their cost per page, beside the command line, Scrapy and Crawlee",
    ),
    "rendering": (
        "tools.bench.rendering:run",
        "a page in a browser: what a kept tab and a new one cost, without the crawl",
    ),
    "render-pool": (
        "tools.bench.rendering:pool",
        "memory of a browser and its agent over thousands of pages at four places; half an hour",
    ),
    "memory": ("tools.bench.hostile:memory", "memory of a crawl as it goes on: pages, queue and seen set"),
    "bodies": (
        "tools.bench.hostile:bodies",
        "bodies of a gigabyte, and ten thousand of a megabyte: memory, and the pace of other hosts; takes minutes",
    ),
    "hostile": (
        "tools.bench.hostile:hostile",
        "hostile servers: pace of healthy hosts beside them, and memory; takes minutes",
    ),
    "large": (
        "tools.bench.large:run",
        "10 B known URLs, 100 agents whose machines are lost each hour: balance, exchange, pages fetched again, by simulation",
    ),
    "agents": (
        "tools.bench.agents:agents",
        "two agents beside one and beside two crawls; a thousand slow hosts; five minutes",
    ),
    "sharing": (
        "tools.bench.agents:sharing",
        "crawls to depth 5 and 6 by one process, agents, and crawlers that share a queue, and by each kind of seen set; minutes",
    ),
    "dashboard": (
        "tools.bench.dashboard:run",
        "answers with a million hosts, 1,000 units, 100 agents and crawls; what watching costs a crawl; six minutes",
    ),
    "ledger": ("tools.bench.ledger:run", "the durable heart: queues, known URLs, opening again; takes minutes"),
    "structured-data": (
        "tools.bench.questions:about_structured_data",
        "structured data: CPU time of pages with it and without it; the triple store",
    ),
    "questions": (
        "tools.bench.questions:run",
        "SQL, reports and PageRank over a million pages and ten million links; some minutes",
    ),
    "mobile": (
        "tools.bench.mobile:run",
        "mobile crawlers: pages judged a second; bytes, requests and seconds beside a stationary crawl; some minutes",
    ),
    "focus": (
        "tools.bench.focus:run",
        "focused crawling: the share of fetched pages that are relevant, beside a breadth-first crawl",
    ),
    "freshness": (
        "tools.bench.freshness:run",
        "freshness of pages that change, beside the optimum and other rules; simulated months; minutes",
    ),
    "seen": (
        "tools.bench.seen:run",
        "which URLs are new: in memory, in a trie, by a filter, in the ledger, in bulk; ten minutes at 100 million",
    ),
}
