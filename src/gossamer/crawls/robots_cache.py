"""A wiring whose crawl shares robots.txt with the other crawls of the same user (`--robots-cache`).

Place in the flow: the option is compiled here.
"""

import hashlib
from typing import Any

import msgspec

from gossamer.crawls.builder import Builder
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import ProviderPlan
from gossamer.values.errors import UsageError

#: Robots gates that read robots.txt, by their names in the catalog: the product token of a crawl is set in all of them.
READING_GATES = ("robots", "shared-robots")

#: What the store of the answers is called in the wiring.
ANSWERS = "robots-answers"


def share_robots(builder: Builder) -> None:
    """Put a gate that shares answers into the place of the one that obeys. Raises UsageError: robots.txt is not read at all;
    WiringError: the wiring has no gate that can share, or something bears a name that is needed here."""
    wiring, options = builder.wiring, builder.options
    if options.robots == "ignore":
        raise UsageError("--robots-cache shares robots.txt, and --robots ignore never reads it; leave one of them out")
    plan = wiring.providers.get("robots")
    if plan is None or plan.use not in READING_GATES:
        raise WiringError(f"--robots-cache: {wiring.source} has no provider 'robots' that uses 'robots'")
    if ANSWERS in wiring.providers and wiring.providers[ANSWERS].use != ANSWERS:
        raise WiringError(f"{wiring.source}: {ANSWERS}: --robots-cache needs this name; choose another one")
    # The rules are kept without the sitemaps that a file names, so who fetches these reads the file.
    reads = options.robots_cache == "shared" and not options.sitemaps
    terms: dict[str, Any] = {**plan.settings, "reads": reads, "view": view_of(options)}
    providers = {
        **wiring.providers,
        ANSWERS: wiring.providers.get(ANSWERS) or ProviderPlan(ANSWERS),
        "robots": ProviderPlan("shared-robots", {"answers": ANSWERS}, terms),
    }
    builder.wiring = msgspec.structs.replace(wiring, providers=providers)


def view_of(options: CrawlOptions) -> str:
    """A word for the web as this crawl sees it; empty for the web as everybody sees it. It tells no secret."""
    differing = {
        "resolve": sorted(options.resolve),
        "proxy": bool(options.proxy),
        "ca_file": options.ca_file,
        # A client that proves its identity may be told rules that others are not.
        "proves": bool(options.auth or options.header or options.cookie_file),
    }
    if not any(differing.values()):
        return ""
    return hashlib.sha256(msgspec.json.encode(differing, order="sorted")).hexdigest()[:16]
