"""Crawlee doing the same work as the spiders of `gossamer bench spiders`: run by the Python of Crawlee's own environment.

Started as a script with a seed URL, a number of live requests, and `parsel` or `soup` for one of Crawlee's crawlers. It follows
the links of the seed's host, takes the same item out of each page, and prints one line of JSON. Its storage is the one in memory,
the fastest that it has. It imports nothing of ours.
"""

import asyncio
import json
import logging
import sys
from datetime import timedelta
from typing import Any
from urllib.parse import urldefrag, urljoin

from crawlee import ConcurrencySettings
from crawlee.crawlers import BeautifulSoupCrawler, ParselCrawler
from crawlee.storage_clients import MemoryStorageClient

seed, per_host, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
totals = {"pages": 0, "bytes": 0}

crawler = {"parsel": ParselCrawler, "soup": BeautifulSoupCrawler}[kind](
    concurrency_settings=ConcurrencySettings(desired_concurrency=per_host, max_concurrency=per_host),
    storage_client=MemoryStorageClient(),
    max_request_retries=0,
    use_session_pool=False,
    retry_on_blocked=False,
    ignore_http_error_status_codes=range(400, 600),
    respect_robots_txt_file=False,
    request_handler_timeout=timedelta(seconds=60),
    configure_logging=False,
)
logging.disable(logging.CRITICAL)


def by_parsel(context):  # type: ignore[no-untyped-def]  # Crawlee's types, which are not installed here
    css = context.selector.css
    found = css("a::attr(href), area::attr(href), iframe::attr(src), frame::attr(src)").getall()
    return css("title::text").get("").strip(), found


def by_soup(context):  # type: ignore[no-untyped-def]  # as above
    soup = context.soup
    found = [node.get("href") or node.get("src") for node in soup.find_all(("a", "area", "iframe", "frame"))]
    return soup.title.get_text().strip() if soup.title else "", [link for link in found if link]


taken: Any = {"parsel": by_parsel, "soup": by_soup}[kind]


@crawler.router.default_handler
async def handle(context):  # type: ignore[no-untyped-def]  # Crawlee's signature
    """The item, then the links."""
    totals["bytes"] += len(await context.http_response.read())
    if context.http_response.status_code != 200 or "html" not in context.http_response.headers.get("content-type", ""):
        return
    totals["pages"] += 1
    here = context.request.loaded_url or context.request.url
    title, found = taken(context)
    await context.push_data({"title": title, "links": len(found)})
    links = dict.fromkeys(urldefrag(urljoin(here, link.strip())).url for link in found)
    await context.add_requests([link for link in links if link.startswith(seed)])


asyncio.run(crawler.run([seed]))
print(json.dumps(totals))
