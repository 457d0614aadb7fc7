"""What ships, by the names that a wiring uses. Parts of other packages come by entry points (:mod:`gossamer.flow.catalog`)."""

import importlib
from collections.abc import Callable
from typing import Any

from gossamer.flow.catalog import Catalog
from gossamer.flow.unit import Provider
from gossamer.services.aliases import HostAliases
from gossamer.services.cares import DnsResolver
from gossamer.services.dns import CachedResolver, SystemResolver
from gossamer.services.politeness.provider import HostPoliteness
from gossamer.services.traps.provider import LearntTraps
from gossamer.stages.application import Application
from gossamer.stages.commit.component import Commit
from gossamer.stages.content_seen import ContentSeen
from gossamer.stages.fetch.component import Fetch
from gossamer.stages.fetch.file import FileModule
from gossamer.stages.fetch.ftp import FtpModule
from gossamer.stages.fetch.gopher import GopherModule
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.frontier.component import Frontier
from gossamer.stages.frontier.prioritizers import WeightedPrioritizer
from gossamer.stages.frontier.traversals import BestFirst, BreadthFirst, DepthFirst, HostBreadthFirst, RandomWalk
from gossamer.stages.links.component import Links
from gossamer.stages.near_duplicates import NearDuplicates
from gossamer.stages.process.component import Process
from gossamer.stages.process.html import HtmlLinks
from gossamer.stages.process.listings import FtpListing, GopherMenu, UriList
from gossamer.stages.seeds import Seeds
from gossamer.stages.tally import Tally
from gossamer.stages.url_filter.component import Filtering
from gossamer.stages.url_filter.constraints import ConstraintFilter
from gossamer.stages.url_filter.expressions import ExpressionFilter
from gossamer.stages.url_filter.nofollow import NofollowFilter
from gossamer.stages.url_filter.noise import NoiseFilter
from gossamer.stages.url_filter.patterns import PatternFilter
from gossamer.stages.url_filter.scope import ScopeFilter
from gossamer.stages.url_filter.traps import TrapShapes
from gossamer.stages.url_seen import UrlSeen
from gossamer.stores.diverse import DiverseQueues
from gossamer.stores.flights import MemoryFlights
from gossamer.stores.memory import MemoryContents, MemorySeen, RecentlySeen
from gossamer.stores.rowlog import JsonLog
from gossamer.stores.tablelog import TableLog
from gossamer.stores.trie import TrieSeen
from gossamer.stores.warc import NoArchive, WarcArchive


def catalog() -> Catalog:
    """A fresh catalog of everything that ships."""
    return Catalog(
        components={
            "seeds": Seeds,
            "frontier": Frontier,
            "fetch": Fetch,
            "content-seen": ContentSeen,
            "process": Process,
            "near-duplicates": NearDuplicates,
            "links": Links,
            "filter": Filtering,
            "url-seen": UrlSeen,
            "commit": Commit,
            "tally": Tally,
            "application": Application,
        },
        providers={
            "dns": DnsResolver,
            "system-resolver": SystemResolver,
            "cached-resolver": CachedResolver,
            "http": HttpModule,
            "ftp": FtpModule,
            "gopher": GopherModule,
            "file": FileModule,
            "memory-contents": MemoryContents,
            "memory-seen": MemorySeen,
            "recently-seen": RecentlySeen,
            "url-trie": TrieSeen,
            "diverse-queues": DiverseQueues,
            "memory-flights": MemoryFlights,
            "breadth": BreadthFirst,
            "depth": DepthFirst,
            "host-breadth": HostBreadthFirst,
            "priority": BestFirst,
            "random-walk": RandomWalk,
            "weighted": WeightedPrioritizer,
            "politeness": HostPoliteness,
            "html-links": HtmlLinks,
            "ftp-listing": FtpListing,
            "gopher-menu": GopherMenu,
            "uri-list": UriList,
            "nofollow": NofollowFilter,
            "scope": ScopeFilter,
            "patterns": PatternFilter,
            "noise": NoiseFilter,
            "trap-shapes": TrapShapes,
            "traps": LearntTraps,
            "aliases": HostAliases,
            "constraints": ConstraintFilter,
            "expressions": ExpressionFilter,
            "warc": WarcArchive,
            "no-archive": NoArchive,
            "json-log": JsonLog,
            "tables": TableLog,
        },
        later={
            "css-links": _part("gossamer.stages.process.css", "CssLinks"),
            "feed-links": _part("gossamer.stages.process.feeds", "FeedLinks"),
            "sitemap-links": _part("gossamer.stages.process.sitemaps", "SitemapLinks"),
            "text-links": _part("gossamer.stages.process.text_links", "TextLinks"),
            "tag-counter": _part("gossamer.stages.process.tags", "TagCounter"),
            "image-statistics": _part("gossamer.stages.process.images", "ImageStatistics"),
            "memory-fingerprints": _part("gossamer.stores.fingerprints", "MemoryFingerprints"),
            "robots": _robots,
            "ignore-robots": _ignore_robots,
            "ledger": _ledger,
            "ledger-seen": _ledger_seen,
            "ledger-contents": _ledger_contents,
            "ledger-frontier": _ledger_frontier,
            "sieve": _sieve("providers", "LedgerSieve"),
            "sieve-hint": _sieve("front", "SieveHint"),
            "sieve-ledger": _sieve("front", "SieveLedger"),
            "sieve-queues": _sieve("front", "SieveQueues"),
            "sieve-seen": _sieve("providers", "SieveSeen"),
        },
    )


def _part(module: str, name: str) -> Callable[[], type[Provider[Any]]]:
    """A provider that is imported when a wiring names it."""

    def load() -> type[Provider[Any]]:
        found: type[Provider[Any]] = getattr(importlib.import_module(module), name)
        return found

    return load


def _robots() -> type[Provider[Any]]:
    from gossamer.services.robots.provider import Robots

    return Robots


def _ignore_robots() -> type[Provider[Any]]:
    from gossamer.services.robots.provider import IgnoreRobots

    return IgnoreRobots


def _ledger() -> type[Provider[Any]]:
    from gossamer.stores.ledger.ledger import Ledger

    return Ledger


def _ledger_seen() -> type[Provider[Any]]:
    from gossamer.stores.ledger.providers import LedgerSeen

    return LedgerSeen


def _ledger_contents() -> type[Provider[Any]]:
    from gossamer.stores.ledger.providers import LedgerContents

    return LedgerContents


def _ledger_frontier() -> type[Provider[Any]]:
    from gossamer.stores.ledger.providers import LedgerFrontier

    return LedgerFrontier


def _sieve(module: str, name: str) -> Callable[[], type[Provider[Any]]]:
    return _part(f"gossamer.stores.sieve.{module}", name)
