"""Scrapy and Crawlee doing the same work as our crawls: run by the Python of an environment of their own.

Started as a script: `CRAWLER LIVE SCOPE TAKES CA SEED...`. CRAWLER is `scrapy`, `parsel` or `soup` (of Crawlee's), LIVE the
requests in flight for a host. It follows the links whose URLs begin with SCOPE, or, where SCOPE is `hosts`, those to the
hosts of the seeds; TAKES is `digest`, for the digest of each body, or `item`, for title and number of links. CA is a file of
certificates to trust, or empty: then each page gets a connection of its own. It prints one line of JSON. Crawlee's queue is
the one in memory, the fastest that it has. It imports nothing of ours: the environment has only the crawler.
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

crawler, live, scope, takes, trusted, *seeds = sys.argv[1:]
per_host = int(live)
hosts = {urlsplit(seed).netloc for seed in seeds}
totals = {"pages": 0, "bytes": 0, "fetched": 0}


def follows(url: str) -> bool:
    """Whether a link is followed."""
    return urlsplit(url).netloc in hosts if scope == "hosts" else url.startswith(scope)


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
            allow=[] if scope == "hosts" else [re.escape(scope)],
            allow_domains=list(hosts) if scope == "hosts" else [],
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
                yield scrapy.Request(url, headers={"Connection": "close"} if trusted else {})

    process = CrawlerProcess(
        settings={
            "CONCURRENT_REQUESTS": max(16, per_host),
            "CONCURRENT_REQUESTS_PER_DOMAIN": per_host,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": bool(trusted),
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "AUTOTHROTTLE_ENABLED": False,
        }
    )
    process.crawl(SameWork)
    process.start()


def by_crawlee() -> None:
    from crawlee import ConcurrencySettings
    from crawlee.crawlers import BeautifulSoupCrawler, ParselCrawler
    from crawlee.http_clients import HttpxHttpClient
    from crawlee.storage_clients import MemoryStorageClient

    more: dict[str, Any] = {}
    if trusted:
        import ssl

        more["http_client"] = HttpxHttpClient(verify=ssl.create_default_context(cafile=trusted))
        more["additional_http_error_status_codes"] = ()
    kind = ParselCrawler if crawler == "parsel" else BeautifulSoupCrawler
    run = kind(
        concurrency_settings=ConcurrencySettings(desired_concurrency=per_host, max_concurrency=max(16, per_host)),
        storage_client=MemoryStorageClient(),
        max_request_retries=0,
        use_session_pool=False,
        retry_on_blocked=False,
        ignore_http_error_status_codes=range(400, 600),
        respect_robots_txt_file=bool(trusted),
        request_handler_timeout=timedelta(seconds=60),
        configure_logging=False,
        **more,
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
