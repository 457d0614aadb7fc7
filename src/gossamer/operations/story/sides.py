"""The two sides of a URL whose agents exchange files: who found it, and who fetches it.

Place in the flow: :mod:`telling` asks here. The ring says both, so that neither has to be kept with a URL.
"""

from gossamer.flow.graph import Graph
from gossamer.model.url import host_of
from gossamer.services.designation.provider import RingDesignation, RingSheet
from gossamer.stores.exchange.files import FileOutboxSheet


def other_owner(url: str, graph: Graph) -> str:
    """The agent that fetches a URL, where it is another one than that of this crawl; empty otherwise."""
    sheets = [node.sheet for node in graph.providers.values()]
    own = next((sheet.agent for sheet in sheets if isinstance(sheet, FileOutboxSheet)), "")
    ring = next((sheet for sheet in sheets if isinstance(sheet, RingSheet)), None)
    if not own or ring is None:
        return ""
    owner = RingDesignation(ring).owner(host_of(url))
    return "" if owner == own else owner


def finder(source: str, graph: Graph) -> str:
    """The agent that found what is linked from a page, where it is another one than that of this crawl; empty otherwise."""
    return other_owner(source, graph) if source else ""
