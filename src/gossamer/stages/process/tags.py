"""The tag counter: which elements a crawl's pages use, and how often. One of Mercator's first processing modules.

Place in the flow: a processor for HTML, wired by choice; it keeps state across pages, which the metrics show.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.visit import Item
from gossamer.reading.document import Document

_START = re.compile(rb"<([A-Za-z][A-Za-z0-9-]{0,31})(?=[\s/>])")


class TagCounterSheet(Sheet, frozen=True):
    """Settings of :class:`TagCounter`."""

    items: Annotated[bool, setting("Also make an item for each page, with its counts.")] = False
    names: Annotated[
        int,
        setting(
            "Count at most this many tag names separately, because pages can make up any number of names.",
            unit="names",
            ge=0,
        ),
    ] = 200


class TagCounter(Provider[TagCounterSheet]):
    """Counts start tags in the bytes of a document. Contract: `processing.Processor`. Keeps state."""

    def process(self, document: Document) -> Iterable[Item]:
        """Counts, in the metrics as `tag:NAME`; `tag:other` once there are too many names."""
        counts = Counter(name.lower().decode() for name in _START.findall(document.markup))
        counters = self.metrics.counters
        for name, count in counts.most_common(self.sheet.names):
            key = f"tag:{name}"
            counters[key if key in counters or len(counters) < self.sheet.names else "tag:other"] += count
        if self.sheet.items:
            yield Item("tags", document.url, dict(counts.most_common(self.sheet.names)))
