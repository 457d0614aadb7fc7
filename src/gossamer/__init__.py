"""Gossamer, a web crawler. The public names; nobody inside the package imports this module.

Names are loaded on first use, so that `import gossamer` costs nothing and the command line starts at once.
"""

from gossamer._version import __version__

TYPE_CHECKING = False  # as typing's: `python -m gossamer` comes here before the current folder is off the import path

if TYPE_CHECKING:
    from typing import Any

    from gossamer.api.crawls import CrawlFailed, CrawlRun, SyncCrawlRun, crawl, crawl_sync
    from gossamer.api.processors import processor, reprocess
    from gossamer.api.results import Result, Results
    from gossamer.api.spider import Spider, failed, page
    from gossamer.assembly.summary import Summary
    from gossamer.model.errors import GossamerError, UsageError
    from gossamer.model.orders import Block, Delay
    from gossamer.model.outcome import Outcome
    from gossamer.model.request import LoggedOut, Request, Retry
    from gossamer.model.visit import Found, Item
    from gossamer.reading.document import Document
    from gossamer.reading.forms import Form
    from gossamer.reading.page import Page
    from gossamer.spiders.logins import Session
    from gossamer.spiders.sessions import Sessions

_HOMES = {
    "crawl": "gossamer.api.crawls",
    "crawl_sync": "gossamer.api.crawls",
    "CrawlFailed": "gossamer.api.crawls",
    "CrawlRun": "gossamer.api.crawls",
    "SyncCrawlRun": "gossamer.api.crawls",
    "processor": "gossamer.api.processors",
    "reprocess": "gossamer.api.processors",
    "Spider": "gossamer.api.spider",
    "Result": "gossamer.api.results",
    "Results": "gossamer.api.results",
    "page": "gossamer.api.spider",
    "failed": "gossamer.api.spider",
    "Summary": "gossamer.assembly.summary",
    "Document": "gossamer.reading.document",
    "GossamerError": "gossamer.model.errors",
    "UsageError": "gossamer.model.errors",
    "Outcome": "gossamer.model.outcome",
    "Block": "gossamer.model.orders",
    "Delay": "gossamer.model.orders",
    "Page": "gossamer.reading.page",
    "Request": "gossamer.model.request",
    "Retry": "gossamer.model.request",
    "LoggedOut": "gossamer.model.request",
    "Form": "gossamer.reading.forms",
    "Session": "gossamer.spiders.logins",
    "Sessions": "gossamer.spiders.sessions",
    "Item": "gossamer.model.visit",
    "Found": "gossamer.model.visit",
}

__all__ = [
    "Block",
    "CrawlFailed",
    "CrawlRun",
    "Delay",
    "Document",
    "Form",
    "Found",
    "GossamerError",
    "Item",
    "LoggedOut",
    "Outcome",
    "Page",
    "Request",
    "Result",
    "Results",
    "Retry",
    "Session",
    "Sessions",
    "Spider",
    "Summary",
    "SyncCrawlRun",
    "UsageError",
    "__version__",
    "crawl",
    "crawl_sync",
    "failed",
    "page",
    "processor",
    "reprocess",
]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer' has no name {name!r}; public names: {', '.join(__all__)}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
