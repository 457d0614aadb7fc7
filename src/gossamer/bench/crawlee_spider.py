"""Crawlee doing the same work as our crawl, for `gossamer bench peers`: run by the Python of Crawlee's own environment.

Started as a script with a seed URL and a number of live requests; it follows every link of the seed's host, keeps the
bodies' digests, and prints one line of JSON. Its queue is the one in memory, the fastest that it has. It imports nothing of
ours: the environment has only Crawlee.
"""

import asyncio
import hashlib
import json
import logging
import sys
from datetime import timedelta
from urllib.parse import urldefrag, urljoin

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler
from crawlee.storage_clients import MemoryStorageClient

seed, per_host = sys.argv[1], int(sys.argv[2])
pages: list[str] = []
totals = {"bytes": 0, "fetched": 0}

crawler = ParselCrawler(
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


@crawler.router.default_handler
async def handle(context):  # type: ignore[no-untyped-def]  # Crawlee's signature
    """Count the page as ours does, and go on."""
    body = await context.http_response.read()
    totals["fetched"] += 1
    totals["bytes"] += len(body)
    hashlib.sha1(body, usedforsecurity=False).digest()
    if context.http_response.status_code != 200 or "html" not in context.http_response.headers.get("content-type", ""):
        return
    here = context.request.loaded_url or context.request.url
    pages.append(here)
    found = context.selector.css("a::attr(href), area::attr(href), iframe::attr(src), frame::attr(src)").getall()
    links = dict.fromkeys(urldefrag(urljoin(here, link.strip())).url for link in found)
    await context.add_requests([link for link in links if link.startswith(seed)])


asyncio.run(crawler.run([seed]))
print(json.dumps({"pages": len(pages), **totals}))
