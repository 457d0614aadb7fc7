"""The history of a page that was visited before, and the word of another visit on it: changed or not, and by what.

Place in the flow: the stage `changes` compares each visit with what is known (:func:`compared`); the ledger of revisits keeps
what is known then (:func:`after`), beside the time of the next visit. Pure code over values.
"""

import msgspec
from xxhash import xxh3_64_hexdigest

from gossamer.values.change_rate import Evidence
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.visit import HTML_TYPES, Comparison, JudgedBy, Location, PageChange, Visit

#: Characters of ETag and Last-Modified that are kept; a longer one is no validator of ours (fault 78).
MAX_VALIDATOR = 512

#: Bits in which the fingerprints of two texts may differ that count as the same: three, as with near-duplicates. In a text of
#: 300 words that is about one word, as a date or a counter is.
SAME_TEXT_BITS = 3

#: Answers that say that there is nothing: the page is gone when two visits in a row bring one.
_NOT_THERE = frozenset((404, 410))


class KnownPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The state of a page between visits. New fields go to the end, with a default. Times are in seconds since the epoch."""

    due: float = 0.0
    """When it is to be visited again; 0 while it is queued for that."""
    visited_at: float = 0.0
    changed_at: float = 0.0
    """When a visit found it new or changed last."""
    visits: int = 1
    changes: int = 0
    """Visits that found it changed."""
    digest: str = ""
    simhash: int = 0
    etag: str = ""
    last_modified: str = ""
    target: str = ""
    """A hash of where it redirects to; empty where it does not."""
    missing: int = 0
    """Visits in a row that found nothing there."""

    is_page: bool = False
    """It counts as a page of the crawl already."""
    request: Requested | None = None
    """The request beside the URL, as label and data of a spider's request; None for a plain GET."""
    waits: float = 0.0
    """Seconds from its last visit to the next, as the policy said; 0 before it said anything."""
    evidence: Evidence = Evidence()
    """What its visits say of how often it changes."""
    kind: str = ""
    """Which pages of its host it is like: see :func:`gossamer.values.change_hints.kind_of`."""
    level: int = 0
    """At which level it waited when it was new, 0 the most urgent."""
    signalled: int = 0
    """How often it was said to have changed since its last visit."""
    signalled_at: float = 0.0
    """The latest time at which it was said to have changed."""
    brought: float = 0.0
    """How many new URLs a visit brought after the first, in the mean of the last ones."""
    body_at: Location | None = None
    """Where the archive keeps the bytes with this digest; None where it keeps none."""

    @property
    def is_gone(self) -> bool:
        """Whether two visits in a row found nothing there."""
        return self.missing >= 2


def compared(known: KnownPage | None, visit: Visit) -> Comparison | None:
    """Compare a visit with the one before; None where nothing is known of the page, or the fetch failed.

    A `304` to a request without validators says nothing.
    """
    if known is None or visit.task.is_marked or visit.is_robots:
        return None
    response, task = visit.response, visit.task
    if response.outcome is Outcome.NOT_MODIFIED:
        is_asked = bool(task.etag or task.last_modified)
        return Comparison(PageChange.UNCHANGED, JudgedBy.SERVER) if is_asked else None
    if response.status in _NOT_THERE:
        return Comparison(_absence(known), JudgedBy.STATUS)
    if response.outcome is Outcome.REDIRECT:
        is_same = known.target == _target(visit) and not known.is_gone
        return Comparison(PageChange.UNCHANGED if is_same else PageChange.REDIRECTED, JudgedBy.STATUS)
    if response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return None
    if known.is_gone:
        return Comparison(PageChange.BACK, JudgedBy.STATUS)
    if known.target:
        return Comparison(PageChange.CHANGED, JudgedBy.STATUS)
    return _content(known, visit)


def is_judged_by_text(known: KnownPage, visit: Visit) -> bool:
    """Whether a visit brings another document in the place of the known one, so that the texts of both decide."""
    is_document = visit.response.outcome in (Outcome.OK, Outcome.TRUNCATED) and visit.media_type in HTML_TYPES
    return is_document and not (known.is_gone or known.target) and visit.digest != known.digest


def _absence(known: KnownPage) -> PageChange:
    if known.is_gone:
        return PageChange.UNCHANGED
    return PageChange.GONE if known.missing else PageChange.MISSING


def _content(known: KnownPage, visit: Visit) -> Comparison:
    bits = (known.simhash ^ visit.simhash).bit_count() if known.simhash and visit.simhash else None
    if visit.digest == known.digest:
        return Comparison(PageChange.UNCHANGED, JudgedBy.DIGEST, bits)
    if bits is None:
        return Comparison(PageChange.CHANGED, JudgedBy.DIGEST)
    return Comparison(PageChange.UNCHANGED if bits <= SAME_TEXT_BITS else PageChange.CHANGED, JudgedBy.TEXT, bits)


def after(known: KnownPage | None, visit: Visit, now: float) -> KnownPage | None:
    """The state of a page after a visit; None where it is not to be visited again, since it never brought anything."""
    response = visit.response
    if known is None:
        if response.outcome not in (Outcome.OK, Outcome.TRUNCATED, Outcome.REDIRECT):
            return None
        return _found(KnownPage(visited_at=now, changed_at=now), visit)
    found = visit.compared or compared(known, visit)
    if found is None:
        # A server that answers so without being asked gets no validator next time: it would say so again.
        is_odd = response.outcome is Outcome.NOT_MODIFIED
        kept = msgspec.structs.replace(known, etag="", last_modified="") if is_odd else known
        return msgspec.structs.replace(kept, visited_at=now)
    is_changed = found.change not in (PageChange.UNCHANGED, PageChange.MISSING)
    counted = msgspec.structs.replace(
        known,
        visited_at=now,
        visits=known.visits + 1,
        changes=known.changes + is_changed,
        changed_at=now if is_changed else known.changed_at,
    )
    if response.outcome is Outcome.NOT_MODIFIED:
        return msgspec.structs.replace(counted, missing=0)
    if response.status in _NOT_THERE:
        return msgspec.structs.replace(counted, missing=min(known.missing + 1, 2), etag="", last_modified="")
    return _found(counted, visit)


def _found(known: KnownPage, visit: Visit) -> KnownPage:
    """The page with what this visit brought."""
    response = visit.response
    is_redirect = response.outcome is Outcome.REDIRECT
    etag, modified = response.header("etag"), response.header("last-modified")
    is_whole = response.outcome is Outcome.OK and not response.barred
    return msgspec.structs.replace(
        known,
        digest=visit.digest,
        simhash=visit.simhash or (known.simhash if visit.digest == known.digest else 0),
        etag=etag if is_whole and len(etag) <= MAX_VALIDATOR else "",
        last_modified=modified if is_whole and len(modified) <= MAX_VALIDATOR else "",
        target=_target(visit) if is_redirect else "",
        missing=0,
        is_page=known.is_page or visit.is_page,
        request=_again(visit.task.request),
    )


def _again(request: Requested | None) -> Requested | None:
    """The request of the next visit: it was not sent yet."""
    return msgspec.structs.replace(request, was_begun=False) if request is not None and request.was_begun else request


def _target(visit: Visit) -> str:
    return xxh3_64_hexdigest(visit.response.header("location").encode("utf-8", "surrogateescape"))
