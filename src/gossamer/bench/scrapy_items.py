"""Scrapy doing the same work as the spiders of `gossamer bench spiders`: run by the Python of Scrapy's own environment.

Started as a script with a seed URL and a number of live requests; it follows the links of the seed's host, takes the same item out
of each page, and prints one line of JSON.
"""

import json
import sys

import scrapy  # type: ignore[import-not-found]  # lives in an environment of its own
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]

seed, per_host = sys.argv[1], int(sys.argv[2])
totals = {"pages": 0, "bytes": 0}


class ItemSpider(scrapy.Spider):  # type: ignore[misc]  # Scrapy has no types here
    """Follows the links of one host, and yields an item of each page."""

    name = "items"
    start_urls = (seed,)

    def parse(self, response):  # type: ignore[no-untyped-def]  # Scrapy's signature
        """The item, then the links."""
        totals["bytes"] += len(response.body)
        if response.status != 200 or not isinstance(response, scrapy.http.HtmlResponse):
            return
        totals["pages"] += 1
        links = response.css("a::attr(href), area::attr(href), iframe::attr(src), frame::attr(src)").getall()
        yield {"title": response.css("title::text").get("").strip(), "links": len(links)}
        for link in links:
            url = response.urljoin(link)
            if url.startswith(seed):
                yield scrapy.Request(url)


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
process.crawl(ItemSpider)
process.start()
print(json.dumps(totals))
