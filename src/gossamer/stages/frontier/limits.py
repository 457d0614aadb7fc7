"""When a crawl stops of itself (row R10): pages, time, bytes, and a floor of free disk. Pure.

Place in the flow: the frontier asks before it hands out a task. The word that comes back names the setting, and is what
the summary of the crawl says.
"""

import msgspec


class CrawlLimits(msgspec.Struct, frozen=True):
    """What the user set; None is no limit."""

    max_pages: int | None = None
    """HTML pages; never one more."""
    max_time: float | None = None
    """Seconds, monotonic, of this run."""
    total_time: float | None = None
    """Seconds of all runs of the crawl together."""
    max_bytes: int | None = None
    """Bytes of bodies; reached by the first page that passes it."""
    min_free_disk: int | None = None
    """Bytes that stay free where the crawl writes."""
    page_share: int | None = None
    """HTML pages that are this agent's part of `max_pages`: who has used it up waits for more."""
    byte_share: int | None = None
    """Bytes of bodies that are its part of `max_bytes`, likewise; the page that passes it is the last one."""


class Progress(msgspec.Struct, frozen=True, gc=False):
    """What a crawl has come to. Committed visits only, but for `in_flight`."""

    pages: int = 0
    in_flight: int = 0
    """Requests that may each turn out to be a page."""
    elapsed: float = 0.0
    bytes: int = 0
    free_disk: int | None = None
    """None where it is not known."""
    total: float = 0.0
    """Seconds of all runs; `elapsed` is of this one."""


def reached(limits: CrawlLimits, progress: Progress) -> str:
    """The limit that ends the crawl, by its setting's name; empty while none does."""
    if limits.max_pages is not None and progress.pages >= limits.max_pages:
        return "max_pages"
    if limits.max_time is not None and progress.elapsed >= limits.max_time:
        return "max_time"
    if limits.total_time is not None and progress.total >= limits.total_time:
        return "total_time"
    if limits.max_bytes is not None and progress.bytes >= limits.max_bytes:
        return "max_bytes"
    if limits.min_free_disk is not None and progress.free_disk is not None:
        return "min_free_disk" if progress.free_disk < limits.min_free_disk else ""
    return ""


def may_hand_out(limits: CrawlLimits, progress: Progress) -> bool:
    """Whether one more request may begin. Each in flight reserves a page, so `max_pages` is never exceeded (design question 6)."""
    if reached(limits, progress):
        return False
    if limits.byte_share is not None and progress.bytes >= limits.byte_share:
        return False
    reserved = progress.pages + progress.in_flight
    bounds = (limits.max_pages, limits.page_share)
    return all(bound is None or reserved < bound for bound in bounds)
