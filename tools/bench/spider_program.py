"""The programs that `gossamer bench spiders` measures: same site, same links, same item of each page, one way each.

Started as a script with a way, a seed URL, a number of live requests and a folder; it prints one line of JSON.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from gossamer.api.crawls import crawl, crawl_sync
from gossamer.api.processors import Result, processor
from gossamer.api.spider import Spider
from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.values.visit import Item

way, seed, per_host, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
options: dict[str, Any] = {
    "output": folder,
    "per_host": per_host,
    "delay": 0,
    "domain_delay": 0,
    "ip_delay": 0,
    "robots": "ignore",
    "no_warc": True,
}

#: Elements whose links are followed.
LINKS = "a, area, iframe, frame"


def item_of(title: str, links: int) -> dict[str, object]:
    """What every program takes out of a page."""
    return {"title": title, "links": links}


async def read(seed: str) -> Any:
    """Iterate over the pages, and do nothing with them."""
    run = crawl(seed, **options)
    async for _ in run:
        pass
    return run.summary


def read_in_turn(seed: str) -> Any:
    """The same without `async`, on the loop that the package chooses."""
    run = crawl_sync(seed, **options)
    for _ in run:
        pass
    return run.summary


def processed(seed: str) -> Any:
    """Default links, and a processor that takes the item out."""

    @processor("text/html")
    def take(document: Document) -> Iterator[Item]:
        title = document.css("title")
        text = " ".join(title[0].text().split()) if title else ""
        yield Item("item", document.url, item_of(text, len(document.css(LINKS))))

    return Spider(seed, **options).run()


def handled(seed: str, *, is_async: bool, label: str) -> Any:
    """A handler that follows the links and takes the item out."""
    spider = Spider(seed, **options)

    def things(page: Page) -> Iterator[Result]:
        links = page.css(LINKS)
        yield item_of(page.text("title"), len(links))
        yield page.follow_all(links, label=label)

    async def listing(page: Page) -> AsyncIterator[Result]:
        for thing in things(page):
            yield thing

    handler = listing if is_async else things
    spider.page()(handler)
    if label:
        spider.page(label)(handler)
    return spider.run()


WAYS = {
    "read": lambda: asyncio.run(read(seed)),
    "sync": lambda: read_in_turn(seed),
    "processor": lambda: processed(seed),
    "async": lambda: handled(seed, is_async=True, label=""),
    "labelled": lambda: handled(seed, is_async=True, label="page"),
    "thread": lambda: handled(seed, is_async=False, label=""),
}

summary = WAYS[way]()
sys.stdout.write(json.dumps({"pages": summary.pages, "bytes": summary.bytes}) + "\n")
