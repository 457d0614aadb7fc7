"""The parts that ship, by their names in a wiring. Parts of other packages come by entry points (:mod:`gossamer.engine.planning`).

A class is imported when a wiring names it, so that a crawl pays for what it uses alone. Import contracts see no edge in a
name; they need none here, since this package may import all that is named, and a test resolves every name.
"""

from gossamer.engine.planning import Catalog
from gossamer.engine.subjects import shipped

#: Name -> `module:Class`.
COMPONENTS = {
    "seeds": "gossamer.frontier.frontier:Seeds",
    "requested-seeds": "gossamer.frontier.frontier:RequestedSeeds",
    "frontier": "gossamer.frontier.frontier:Frontier",
    "fetch": "gossamer.fetcher.fetch_stage:Fetch",
    "content-seen": "gossamer.parsing.duplicates:ContentSeen",
    "process": "gossamer.parsing.process_stage:Process",
    "near-duplicates": "gossamer.parsing.duplicates:NearDuplicates",
    "links": "gossamer.parsing.links:LinkResolver",
    "filter": "gossamer.parsing.filters:Filtering",
    "url-seen": "gossamer.parsing.duplicates:UrlSeen",
    "commit": "gossamer.storage.commit.commit_stage:Commit",
    "copy-records": "gossamer.storage.commit.commit_stage:CopyRecords",
    "tally": "gossamer.storage.commit.commit_stage:Tally",
    "lease-urls": "gossamer.crawls.leases:LeaseUrls",
    "take-leases": "gossamer.crawls.leases:TakeLeases",
    "application": "gossamer.storage.commit.commit_stage:Application",
}

#: Name -> `module:Class`.
PROVIDERS = {
    "dns": "gossamer.fetcher.cares:DnsResolver",
    "system-resolver": "gossamer.fetcher.dns:SystemResolver",
    "cached-resolver": "gossamer.fetcher.dns:CachedResolver",
    "http": "gossamer.fetcher.http:HttpModule",
    "ftp": "gossamer.fetcher.plain:FtpModule",
    "gopher": "gossamer.fetcher.plain:GopherModule",
    "file": "gossamer.fetcher.fetch_stage:FileModule",
    "memory-contents": "gossamer.storage.seen.memory:MemoryContents",
    "memory-seen": "gossamer.storage.seen.memory:MemorySeen",
    "recently-seen": "gossamer.storage.seen.memory:RecentlySeen",
    "memory-flights": "gossamer.storage.seen.memory:MemoryFlights",
    "breadth": "gossamer.frontier.order:BreadthFirst",
    "depth": "gossamer.frontier.order:DepthFirst",
    "host-breadth": "gossamer.frontier.order:HostBreadthFirst",
    "priority": "gossamer.frontier.order:BestFirst",
    "random-walk": "gossamer.frontier.order:RandomWalk",
    "weighted": "gossamer.frontier.order:WeightedPrioritizer",
    "politeness": "gossamer.frontier.politeness.provider:HostPoliteness",
    "html-links": "gossamer.parsing.html:HtmlLinks",
    "ftp-listing": "gossamer.parsing.other_links:FtpListing",
    "gopher-menu": "gossamer.parsing.other_links:GopherMenu",
    "uri-list": "gossamer.parsing.other_links:UriList",
    "nofollow": "gossamer.parsing.filters:NofollowFilter",
    "scope": "gossamer.parsing.scope:ScopeFilter",
    "patterns": "gossamer.parsing.filters:PatternFilter",
    "noise": "gossamer.parsing.scope:NoiseFilter",
    "template": "gossamer.frontier.traps.likeness:LearntTemplates",
    "traps": "gossamer.frontier.traps.watch:LearntTraps",
    "aliases": "gossamer.frontier.traps.likeness:HostAliases",
    "constraints": "gossamer.parsing.filters:ConstraintFilter",
    "expressions": "gossamer.parsing.filters:ExpressionFilter",
    "warc": "gossamer.storage.archive.warc:WarcArchive",
    "no-archive": "gossamer.storage.archive.warc:NoArchive",
    "json-log": "gossamer.storage.tables.log:JsonLog",
    "outbox": "gossamer.storage.mailbox.mailbox:Mailbox",
    "retaining-outbox": "gossamer.storage.mailbox.retaining:RetainingMailbox",
    "file-outbox": "gossamer.storage.mailbox.exchange_files:FileOutbox",
    "processor-orders": "gossamer.frontier.politeness.rules:ProcessorOrders",
    "tables": "gossamer.storage.tables.log:TableLog",
    "css-links": "gossamer.parsing.other_links:CssLinks",
    "feed-links": "gossamer.parsing.feeds:FeedLinks",
    "sitemap-links": "gossamer.parsing.feeds:SitemapLinks",
    "text-links": "gossamer.parsing.other_links:TextLinks",
    "tag-counter": "gossamer.parsing.statistics:TagCounter",
    "image-statistics": "gossamer.parsing.statistics:ImageStatistics",
    "memory-fingerprints": "gossamer.storage.seen.memory:MemoryFingerprints",
    "robots": "gossamer.frontier.robots.provider:ObeyRobots",
    "shared-robots": "gossamer.frontier.robots.sharing:SharingRobots",
    "robots-answers": "gossamer.frontier.robots.sharing:UserRobotsAnswers",
    "ignore-robots": "gossamer.frontier.robots.provider:IgnoreRobots",
    "divided-ledger": "gossamer.storage.mailbox.staging:DividedLedger",
    "ledger": "gossamer.storage.ledger.ledger:RocksLedger",
    "ledger-seen": "gossamer.storage.ledger.providers:LedgerSeen",
    "ledger-contents": "gossamer.storage.ledger.providers:LedgerContents",
    "ledger-fingerprints": "gossamer.storage.ledger.providers:LedgerFingerprints",
    "ledger-frontier": "gossamer.storage.ledger.providers:LedgerFrontier",
    "sieve": "gossamer.storage.seen.providers:LedgerSieve",
    "sieve-hint": "gossamer.storage.seen.providers:SieveHint",
    "sieve-ledger": "gossamer.storage.seen.providers:SieveLedger",
    "sieve-queues": "gossamer.storage.seen.providers:SieveQueues",
    "sieve-seen": "gossamer.storage.seen.providers:SieveSeen",
}


def catalog() -> Catalog:
    return Catalog(shipped_names("components"), shipped_names("providers"))


def shipped_names(table: str) -> dict[str, str]:
    """The `components` or `providers` that ship: name -> `module:Class`."""
    names = dict(COMPONENTS if table == "components" else PROVIDERS)
    for one in shipped():
        names |= getattr(one, table)
    return names
