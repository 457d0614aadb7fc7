"""What ships, by the names that a wiring uses. Parts of other packages come by entry points (:mod:`gossamer.flow.catalog`).

A class is imported when a wiring names it, so that nobody pays for what a crawl does not use. Import contracts see no edge in a
name; they need none here, since this package may import all that is named, and a test resolves every name.
"""

from gossamer.flow.catalog import Catalog

#: Name -> `module:Class`.
COMPONENTS = {
    "seeds": "gossamer.stages.seeds:Seeds",
    "requested-seeds": "gossamer.stages.seeds:RequestedSeeds",
    "frontier": "gossamer.stages.frontier.component:Frontier",
    "fetch": "gossamer.stages.fetch.component:Fetch",
    "content-seen": "gossamer.stages.content_seen:ContentSeen",
    "process": "gossamer.stages.process.component:Process",
    "handling-process": "gossamer.stages.process.handled:HandlingProcess",
    "near-duplicates": "gossamer.stages.near_duplicates:NearDuplicates",
    "links": "gossamer.stages.links.component:LinkResolver",
    "filter": "gossamer.stages.url_filter.component:Filtering",
    "url-seen": "gossamer.stages.url_seen:UrlSeen",
    "commit": "gossamer.stages.commit.component:Commit",
    "send-urls": "gossamer.stages.sending:SendUrls",
    "receive-urls": "gossamer.stages.commit.receiving:ReceiveUrls",
    "other-agent": "gossamer.stages.sending:OtherAgent",
    "copy-records": "gossamer.stages.copying:CopyRecords",
    "tally": "gossamer.stages.tally:Tally",
    "application": "gossamer.stages.application:Application",
}

#: Name -> `module:Class`.
PROVIDERS = {
    "dns": "gossamer.services.cares:DnsResolver",
    "system-resolver": "gossamer.services.dns:SystemResolver",
    "cached-resolver": "gossamer.services.dns:CachedResolver",
    "http": "gossamer.stages.fetch.http:HttpModule",
    "log-ins": "gossamer.stages.fetch.entering:EnteringModule",
    "ftp": "gossamer.stages.fetch.ftp:FtpModule",
    "gopher": "gossamer.stages.fetch.gopher:GopherModule",
    "file": "gossamer.stages.fetch.file:FileModule",
    "memory-contents": "gossamer.stores.memory:MemoryContents",
    "memory-seen": "gossamer.stores.memory:MemorySeen",
    "recently-seen": "gossamer.stores.memory:RecentlySeen",
    "url-trie": "gossamer.stores.trie:TrieSeen",
    "diverse-queues": "gossamer.stores.diverse:DiverseQueues",
    "memory-flights": "gossamer.stores.flights:MemoryFlights",
    "breadth": "gossamer.stages.frontier.traversals:BreadthFirst",
    "depth": "gossamer.stages.frontier.traversals:DepthFirst",
    "host-breadth": "gossamer.stages.frontier.traversals:HostBreadthFirst",
    "priority": "gossamer.stages.frontier.traversals:BestFirst",
    "random-walk": "gossamer.stages.frontier.traversals:RandomWalk",
    "weighted": "gossamer.stages.frontier.prioritizers:WeightedPrioritizer",
    "spider": "gossamer.spiders.running:AbsentSpider",
    "politeness": "gossamer.services.politeness.provider:HostPoliteness",
    "html-links": "gossamer.stages.process.html:HtmlLinks",
    "ftp-listing": "gossamer.stages.process.listings:FtpListing",
    "gopher-menu": "gossamer.stages.process.listings:GopherMenu",
    "uri-list": "gossamer.stages.process.listings:UriList",
    "nofollow": "gossamer.stages.url_filter.nofollow:NofollowFilter",
    "scope": "gossamer.stages.url_filter.scope:ScopeFilter",
    "patterns": "gossamer.stages.url_filter.patterns:PatternFilter",
    "noise": "gossamer.stages.url_filter.noise:NoiseFilter",
    "template": "gossamer.services.template:LearntTemplates",
    "traps": "gossamer.services.traps.provider:LearntTraps",
    "aliases": "gossamer.services.aliases:HostAliases",
    "constraints": "gossamer.stages.url_filter.constraints:ConstraintFilter",
    "expressions": "gossamer.stages.url_filter.expressions:ExpressionFilter",
    "warc": "gossamer.stores.warc:WarcArchive",
    "no-archive": "gossamer.stores.warc:NoArchive",
    "json-log": "gossamer.stores.rowlog:JsonLog",
    "outbox": "gossamer.stores.exchange.outbox:AgentOutbox",
    "processor-orders": "gossamer.services.orders:ProcessorOrders",
    "tables": "gossamer.stores.tablelog:TableLog",
    "css-links": "gossamer.stages.process.css:CssLinks",
    "structured-data": "gossamer.stages.process.structured:StructuredDataProcessor",
    "feed-links": "gossamer.stages.process.feeds:FeedLinks",
    "sitemap-links": "gossamer.stages.process.sitemaps:SitemapLinks",
    "text-links": "gossamer.stages.process.text_links:TextLinks",
    "tag-counter": "gossamer.stages.process.tags:TagCounter",
    "image-statistics": "gossamer.stages.process.images:ImageStatistics",
    "memory-fingerprints": "gossamer.stores.fingerprints:MemoryFingerprints",
    "ring": "gossamer.services.designation.provider:RingDesignation",
    "robots": "gossamer.services.robots.provider:ObeyRobots",
    "ignore-robots": "gossamer.services.robots.provider:IgnoreRobots",
    "divided-ledger": "gossamer.stores.exchange.ledger:DividedLedger",
    "ledger": "gossamer.stores.ledger.ledger:RocksLedger",
    "ledger-seen": "gossamer.stores.ledger.providers:LedgerSeen",
    "ledger-contents": "gossamer.stores.ledger.providers:LedgerContents",
    "ledger-fingerprints": "gossamer.stores.ledger.providers:LedgerFingerprints",
    "ledger-frontier": "gossamer.stores.ledger.providers:LedgerFrontier",
    "sieve": "gossamer.stores.sieve.providers:LedgerSieve",
    "sieve-hint": "gossamer.stores.sieve.front:SieveHint",
    "sieve-ledger": "gossamer.stores.sieve.front:SieveLedger",
    "sieve-queues": "gossamer.stores.sieve.front:SieveQueues",
    "sieve-seen": "gossamer.stores.sieve.providers:SieveSeen",
}


def catalog() -> Catalog:
    """A fresh catalog of everything that ships."""
    return Catalog(COMPONENTS, PROVIDERS)
