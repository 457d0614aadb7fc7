"""Gossamer, a web crawler. The public names; nobody inside the package imports this module.

Names are loaded on first use, so that `import gossamer` costs nothing and the command line starts at once.
"""

from gossamer._version import __version__

TYPE_CHECKING = False  # as typing's: `python -m gossamer` comes here before the current folder is off the import path

if TYPE_CHECKING:
    from typing import Any

    from gossamer.api import crawl, crawl_sync, processor, reprocess
    from gossamer.model.orders import Block, Delay
    from gossamer.model.visit import Found, Item
    from gossamer.reading.page import Page

_HOMES = {
    "crawl": "gossamer.api",
    "crawl_sync": "gossamer.api",
    "processor": "gossamer.api",
    "reprocess": "gossamer.api",
    "Block": "gossamer.model.orders",
    "Delay": "gossamer.model.orders",
    "Page": "gossamer.reading.page",
    "Item": "gossamer.model.visit",
    "Found": "gossamer.model.visit",
}

__all__ = ["Block", "Delay", "Found", "Item", "Page", "__version__", "crawl", "crawl_sync", "processor", "reprocess"]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer' has no name {name!r}; public names: {', '.join(__all__)}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
