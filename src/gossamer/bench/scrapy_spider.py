"""Scrapy doing the same work as our crawl, for `gossamer bench peers`: run by the Python of Scrapy's own environment.

Started as a script with a seed URL and a number of live requests; it follows every link of the seed's host, keeps the
bodies' digests, and prints one line of JSON. It imports nothing of ours: the environment has only Scrapy.
"""

import hashlib
import json
import re
import sys

import scrapy  # type: ignore[import-not-found]  # lives in an environment of its own
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]
from scrapy.linkextractors import LinkExtractor  # type: ignore[import-not-found]

seed, per_host = sys.argv[1], int(sys.argv[2])
pages: list[str] = []
totals = {"bytes": 0, "fetched": 0}


class Docs(scrapy.Spider):  # type: ignore[misc]  # Scrapy has no types here
    """Follows the links of one host."""

    name = "docs"
    start_urls = (seed,)
    links = LinkExtractor(
        allow=[re.escape(seed)], tags=("a", "area", "iframe", "frame"), attrs=("href", "src"), deny_extensions=[]
    )
    handle_httpstatus_all = True

    def parse(self, response):  # type: ignore[no-untyped-def]  # Scrapy's signature
        """Count the page as ours does, and go on."""
        totals["fetched"] += 1
        totals["bytes"] += len(response.body)
        hashlib.sha1(response.body, usedforsecurity=False).digest()
        if response.status != 200 or not isinstance(response, scrapy.http.HtmlResponse):
            return
        pages.append(response.url)
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


process = CrawlerProcess(
    settings={
        "CONCURRENT_REQUESTS": per_host,
        "CONCURRENT_REQUESTS_PER_DOMAIN": per_host,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "AUTOTHROTTLE_ENABLED": False,
    }
)
process.crawl(Docs)
process.start()
print(json.dumps({"pages": len(pages), **totals}))
