"""Crawlers out of a crawl's own options: what all of them have in common, and what makes one of it. Pure.

Place in the flow: the manager has URLs that wait, and asks here for the crawler that is to go after them.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from gossamer.mobile.crawler import (
    MAX_SEEDS,
    BringRules,
    CrawlerFacts,
    MobileCrawler,
    MobileProgram,
    TravelLimits,
)
from gossamer.model.task import Task
from gossamer.model.url import host_of

CrawlScope = Literal["page", "prefix", "host", "domain", "any"]

#: URLs out of scope that one crawler brings home at most, where the crawl wants them.
MAX_EXTERNAL = 100_000


class CrawlerTemplate(msgspec.Struct, frozen=True):
    """What crawlers of one crawl have in common."""

    scope: CrawlScope = "host"
    seeds: tuple[str, ...] = ()
    """Of the crawl: its scope is around these."""
    follow: str = ""
    expand: str = ""
    store: str = ""
    traversal: Literal["breadth", "depth", "host-breadth"] = "breadth"
    depth: int | None = None
    urls: int | None = None
    """Different URLs of one host."""
    bring: BringRules = BringRules()
    seconds: float = 86_400.0
    brought: int = 10_000_000_000


def crawler_for(
    template: CrawlerTemplate, tasks: Sequence[Task], identity: str, pages: int | None = None
) -> MobileCrawler:
    """The crawler that goes after these tasks, of one runtime's hosts.

    Args:
        template: of the crawl.
        tasks: at most `MAX_SEEDS`; their hosts are those that it is granted.
        identity: of its journey.
        pages: how many it may visit; None where the crawl has no limit.
    """
    hosts = sorted({task.host for task in tasks})
    limits = TravelLimits(
        depth=template.depth,
        external=MAX_EXTERNAL if _leads_out(template, hosts) else 0,
        brought=template.brought,
        seconds=template.seconds,
    )
    if pages is not None:
        limits = msgspec.structs.replace(limits, pages=max(1, pages))
    if template.urls is not None:
        limits = msgspec.structs.replace(limits, urls=min(limits.urls, template.urls * len(hosts)))
    program = MobileProgram(
        tuple(task.url for task in tasks),
        name="gossamer",
        scope=template.scope if template.scope in ("page", "prefix") else "host",
        around=_around(template, hosts),
        traversal=template.traversal,
        follow=template.follow,
        expand=template.expand,
        store=template.store,
        limits=limits,
        bring=template.bring,
    )
    depths = tuple(task.depth for task in tasks)
    return MobileCrawler(program, CrawlerFacts(depths=depths if any(depths) else ()), identity)


def _around(template: CrawlerTemplate, hosts: Sequence[str]) -> tuple[str, ...]:
    """What the scope of the program is around: the seeds of its hosts, or its hosts where the crawl has no seed there."""
    if template.scope in ("page", "prefix"):
        own = frozenset(hosts)
        return tuple(seed for seed in template.seeds if host_of(seed) in own)[:MAX_SEEDS]
    return tuple(f"http://{host}/" for host in hosts)


def _leads_out(template: CrawlerTemplate, hosts: Iterable[str]) -> bool:
    """Whether the crawl may follow a link out of these hosts."""
    return template.scope in ("any", "domain") or not {host_of(seed) for seed in template.seeds} <= set(hosts)
