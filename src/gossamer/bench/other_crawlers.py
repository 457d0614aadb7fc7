"""Scrapy and Crawlee doing the same work as our crawls: run by the Python of an environment of their own.

Started as a script with one argument in JSON. `crawler` is `scrapy`, `parsel` or `soup` (of Crawlee's); `seeds` where it
begins; `scope` how the URLs begin that it follows, or else the hosts of the seeds; `takes` is `digest`, for the digest of
each body, or `item`, for title and number of links; `per_host` and `live` the requests in flight for a host and in all;
`pages` how many it fetches, 0 for all; `today` whether it asks for robots.txt and trusts any certificate. It prints one line
of JSON. Crawlee's queue is the one in memory, the fastest that it has. It imports nothing of ours: the environment has only
the crawler.
"""

import asyncio
import hashlib
import json
import logging
import re
import sys
from datetime import timedelta
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

job = json.loads(sys.argv[1])
crawler, seeds, scope, takes, today = (job[name] for name in ("crawler", "seeds", "scope", "takes", "today"))
per_host, live, pages = job["per_host"], job["live"], job["pages"]
hosts = {urlsplit(seed).netloc for seed in seeds}
totals = {"pages": 0, "bytes": 0, "fetched": 0}


def follows(url: str) -> bool:
    """Whether a link is followed."""
    return urlsplit(url).netloc in hosts if not scope else url.startswith(scope)


def count(body: bytes, *, is_page: bool) -> None:
    """Count an answer as ours does."""
    totals["fetched"] += 1
    totals["bytes"] += len(body)
    totals["pages"] += is_page
    if takes == "digest":
        hashlib.sha1(body, usedforsecurity=False).digest()


def by_scrapy() -> None:
    import scrapy  # type: ignore[import-not-found]  # lives in an environment of its own
    from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]
    from scrapy.linkextractors import LinkExtractor  # type: ignore[import-not-found]

    class SameWork(scrapy.Spider):  # type: ignore[misc]  # Scrapy has no types here
        name = "same-work"
        start_urls = seeds
        handle_httpstatus_all = True
        links = LinkExtractor(
            allow=[re.escape(scope)] if scope else [],
            allow_domains=[] if scope else list(hosts),
            tags=("a", "area", "iframe", "frame"),
            attrs=("href", "src"),
            deny_extensions=[],
        )

        def parse(self, response):  # type: ignore[no-untyped-def]  # Scrapy's signature
            is_page = response.status == 200 and isinstance(response, scrapy.http.HtmlResponse)
            count(response.body, is_page=is_page)
            if not is_page:
                return
            if takes == "item":
                found = response.css("a::attr(href), area::attr(href), iframe::attr(src), frame::attr(src)").getall()
                yield {"title": response.css("title::text").get("").strip(), "links": len(found)}
                urls = [url for link in found if follows(url := response.urljoin(link))]
            else:
                urls = [link.url for link in self.links.extract_links(response)]
            for url in urls:
                yield scrapy.Request(url)

    process = CrawlerProcess(
        settings={
            "CONCURRENT_REQUESTS": live,
            "CONCURRENT_REQUESTS_PER_DOMAIN": per_host,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": today,
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "CLOSESPIDER_PAGECOUNT": pages,
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "AUTOTHROTTLE_ENABLED": False,
        }
    )
    process.crawl(SameWork)
    process.start()


def by_crawlee() -> None:
    from crawlee import ConcurrencySettings, crawlers
    from crawlee.http_clients import ImpitHttpClient
    from crawlee.storage_clients import MemoryStorageClient

    # A name is imported when it is asked for, and not every environment has what the other one needs.
    run = getattr(crawlers, "ParselCrawler" if crawler == "parsel" else "BeautifulSoupCrawler")(
        concurrency_settings=ConcurrencySettings(desired_concurrency=live, max_concurrency=live),
        http_client=ImpitHttpClient(verify=not today),
        max_requests_per_crawl=pages or None,
        storage_client=MemoryStorageClient(),
        max_request_retries=0,
        use_session_pool=False,
        retry_on_blocked=False,
        ignore_http_error_status_codes=range(400, 600),
        respect_robots_txt_file=today,
        request_handler_timeout=timedelta(seconds=60),
        configure_logging=False,
    )
    logging.disable(logging.CRITICAL)

    def taken(context: Any) -> tuple[str, list[str]]:
        if crawler == "parsel":
            css = context.selector.css
            found = css("a::attr(href), area::attr(href), iframe::attr(src), frame::attr(src)").getall()
            return css("title::text").get("").strip(), found
        soup = context.soup
        found = [node.get("href") or node.get("src") for node in soup.find_all(("a", "area", "iframe", "frame"))]
        return soup.title.get_text().strip() if soup.title else "", [link for link in found if link]

    @run.router.default_handler
    async def handle(context):  # type: ignore[no-untyped-def]  # Crawlee's signature
        answer = context.http_response
        is_page = answer.status_code == 200 and "html" in answer.headers.get("content-type", "")
        count(await answer.read(), is_page=is_page)
        if not is_page:
            return
        here = context.request.loaded_url or context.request.url
        title, found = taken(context)
        if takes == "item":
            await context.push_data({"title": title, "links": len(found)})
        links = dict.fromkeys(urldefrag(urljoin(here, link.strip())).url for link in found)
        await context.add_requests([link for link in links if follows(link)])

    asyncio.run(run.run(seeds))


if crawler == "scrapy":
    by_scrapy()
else:
    by_crawlee()
print(json.dumps(totals))
