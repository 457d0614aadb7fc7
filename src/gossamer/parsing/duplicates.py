"""The stages that ask whether something was seen before: a document with these bytes, a page with nearly this text, or a URL.

Place in the flow: content-seen stands before any processing (row M3). A duplicate goes on: it is archived as `revisit`, and its
links are followed against its own URL (design question 3). Near-duplicates are looked for between process, which made
fingerprints, and links (row S12), and only where a crawl asks for it: without fingerprints there is nothing to compare. Exact
duplicates name their original already, and are left alone there. URL-seen stands behind the filter: it asks the seen set which
links of a page may be new, and puts tasks for them into the visit; the check-and-put of the commit decides.
"""

from operator import attrgetter
from typing import Annotated

import msgspec

from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.storage.seen.contract import ContentIndex, FingerprintIndex, SeenSet
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import keeps_depth, task_of
from gossamer.values.visit import PART_DIGEST, Visit


class ContentSeen(Filter[NoSettings]):
    """Fills in `digest` and `duplicate_of`."""

    inbox: In[Visit]
    outbox: Out[Visit]
    contents: Uses[ContentIndex]

    #: The next unit may be fused to it and costs about a millisecond a page: small batches keep the event loop
    #: responsive, so that libcurl is served while pages are parsed.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Errors, redirects, empty bodies and answers to forms are no duplicates; a cut body is not the whole document.

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
        duplicate_of, rendered = "", visit.rendered
        if response.outcome is Outcome.OK and response.body and not visit.task.is_marked:
            duplicate_of = self.contents.first(digest, visit.url)
            if rendered is not None and rendered.dom:
                rendered = msgspec.structs.replace(rendered, answer_of=duplicate_of)
                duplicate_of = self.contents.first(rendered.digest, visit.url)
            self.metrics.counters["duplicates"] += bool(duplicate_of)
        return (msgspec.structs.replace(visit, digest=digest, duplicate_of=duplicate_of, rendered=rendered),)


#: The rule that a near-duplicate is refused by.
RULE = "near-duplicate"


class NearDuplicatesSheet(Sheet, frozen=True):
    skip: Annotated[
        bool, setting("Drop near-duplicates: do not keep them, count them as pages, or follow their links.")
    ] = False


class NearDuplicates(Filter[NearDuplicatesSheet]):
    """Fills in `near_duplicate_of`, and `discarded` for near-duplicates that the crawl is to drop."""

    inbox: In[Visit]
    outbox: Out[Visit]
    index: Uses[FingerprintIndex]

    #: As content-seen, which may call this in place.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for a page that has a fingerprint and is no exact duplicate."""
        if not visit.simhash or visit.duplicate_of or visit.discarded or visit.task.is_marked:
            return (visit,)
        original = self.index.near(visit.simhash, visit.url)
        # A page that is fetched again, after a kill say, is no duplicate of itself.
        if original in ("", visit.url):
            return (visit,)
        self.metrics.counters["near_duplicates"] += 1
        visit = msgspec.structs.replace(visit, near_duplicate_of=original)
        if self.sheet.skip:
            barred = {**visit.barred, "store": RULE}
            visit = msgspec.structs.replace(visit, found=(), links=(), new=(), items=(), discarded=RULE, barred=barred)
        return (visit,)


class UrlSeenSheet(Sheet, frozen=True):
    again: Annotated[bool, setting("Make a task of every link, seen or not (for random walks).")] = False


class UrlSeen(Filter[UrlSeenSheet]):
    """Fills in `new`: a task for each link that may be new."""

    inbox: In[Visit]
    outbox: Out[Visit]
    seen: Uses[SeenSet]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for the whole page."""
        if not visit.links:
            return (visit,)
        links = {link.url if link.request is None else link.identity: link for link in visit.links}
        source = visit.task
        relations = set(map(attrgetter("relation"), visit.links))
        nearest = source.depth if any(map(keeps_depth, relations)) else source.depth + 1
        unseen = links if self.sheet.again else self.seen.unseen(list(links), nearest)
        new = [task_of(source, (link := links[one]).url, link.relation, link.request) for one in unseen]
        self.metrics.counters["looked_up"] += len(links)
        self.metrics.counters["new"] += len(new)
        return (msgspec.structs.replace(visit, new=tuple(new)),)
