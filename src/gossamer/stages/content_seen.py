"""Content-seen: has a document with these very bytes been seen under another URL (row M3)? Before any processing.

A duplicate goes on: it is archived as `revisit`, and its links are followed against its own URL (design question 3).
"""

import msgspec

from gossamer.contracts.seen import ContentIndex
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import NoSettings
from gossamer.model.brought import PART_DIGEST
from gossamer.model.outcome import Outcome
from gossamer.model.visit import Visit, sha1_base32


class ContentSeen(Filter[NoSettings]):
    """Fills in `digest` and `duplicate_of`."""

    inbox: In[Visit]
    outbox: Out[Visit]
    contents: Uses[ContentIndex]

    #: What follows it may be fused to it and costs about a millisecond a page: small batches keep the event loop
    #: responsive, so that libcurl is served while pages are parsed.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Errors, redirects, empty bodies and answers to forms are nobody's duplicates; a cut body is not the whole document.

        Nor is a robots.txt, which goes on to the commit untouched. Parts that a mobile crawler brought have digests of their own
        kind.
        """
        response = visit.response
        if not visit.is_answered or visit.is_robots:
            return (visit,)
        if visit.digest:  # of a document that a mobile crawler did not bring again, since it is here already
            return (visit,)
        if visit.is_part:
            return (msgspec.structs.replace(visit, digest=PART_DIGEST + sha1_base32(response.body)),)
        digest = sha1_base32(response.body)
        duplicate_of = ""
        if response.outcome is Outcome.OK and response.body and not visit.task.is_marked:
            duplicate_of = self.contents.first(digest, visit.url)
            self.metrics.counters["duplicates"] += bool(duplicate_of)
        return (msgspec.structs.replace(visit, digest=digest, duplicate_of=duplicate_of),)
