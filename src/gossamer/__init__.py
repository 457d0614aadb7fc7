"""Gossamer, a web crawler. The public names; no module inside the package imports this one.

Names are loaded on first use, so that `import gossamer` costs nothing and the command line starts at once.
"""

import sys

from gossamer._version import __version__

TYPE_CHECKING = False  # as typing's: `python -m gossamer` comes here before the current folder is off the import path

if TYPE_CHECKING:
    from typing import Any

    from gossamer.api.crawls import CrawlFailed, CrawlRun, SyncCrawlRun, crawl, crawl_sync
    from gossamer.api.processors import Result, Results, processor, reprocess
    from gossamer.api.spider import Spider, failed, page
    from gossamer.crawls.summary import Summary
    from gossamer.documents.document import Document
    from gossamer.documents.forms import Form
    from gossamer.documents.page import Page
    from gossamer.spiders.logins import Session
    from gossamer.spiders.sessions import Sessions
    from gossamer.values.errors import GossamerError, UsageError
    from gossamer.values.outcome import Outcome
    from gossamer.values.request import LoggedOut, Request, Retry
    from gossamer.values.request_identity import Action
    from gossamer.values.visit import Block, Delay, Found, Item

#: Public name -> the module that it is loaded from.
_HOMES = {
    name: f"gossamer.{module}"
    for module, names in {
        "api.crawls": "crawl crawl_sync CrawlFailed CrawlRun SyncCrawlRun",
        "api.processors": "processor reprocess Result Results",
        "api.spider": "Spider page failed",
        "crawls.summary": "Summary",
        "documents.document": "Document",
        "documents.forms": "Form",
        "documents.page": "Page",
        "spiders.logins": "Session",
        "spiders.sessions": "Sessions",
        "values.errors": "GossamerError UsageError",
        "values.outcome": "Outcome",
        "values.request_identity": "Action",
        "values.request": "Request Retry LoggedOut",
        "values.visit": "Block Delay Item Found",
    }.items()
    for name in names.split()
}

__all__ = [
    "Action",
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


class _OldNames:
    """Finds modules by names of version 0.2.0; Python asks it last, so that names of today cost nothing."""

    @staticmethod
    def find_spec(fullname: str, path: object, target: object = None) -> "Any":
        """The specification of a module with an old name; None for any other name."""
        if not fullname.startswith("gossamer."):
            return None
        from gossamer._moved import specification

        return specification(fullname)


sys.meta_path.append(_OldNames)


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer' has no name {name!r}; public names: {', '.join(__all__)}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
