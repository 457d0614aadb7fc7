"""Crawls of dashboards elsewhere: how they stand, asked by this dashboard with the key that its list of sites keeps.

Place in the flow: :mod:`app` asks for all sites at once when a browser with the full token looks at them. An answer from there is
judged as any answer from a stranger: within a time and a size, as text and numbers, of no other host.
"""

import asyncio
import http.client
import time
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from gossamer.dashboard.sites import KeptSites, Site, read_kept

#: Seconds for one dashboard, and bytes of its answer: some thousand crawls.
PATIENCE, LARGEST = 5.0, 1 << 20

#: Crawls of one site that are shown.
SHOWN = 200

#: Bytes that are read at once.
_PIECE = 1 << 16

Words = Annotated[str, msgspec.Meta(max_length=4_000)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class StandingElsewhere(msgspec.Struct, frozen=True):
    """How a crawl stands."""

    state: Words
    pages: Count = 0
    queued: Count = 0


class CrawlElsewhere(msgspec.Struct, frozen=True):
    """One crawl, as that dashboard lists it."""

    directory: Words
    standing: StandingElsewhere | None = None
    trouble: Words = ""


class SiteElsewhere(msgspec.Struct, frozen=True):
    """A dashboard, and what it tells."""

    name: str
    crawls: list[CrawlElsewhere] = []
    trouble: str = ""
    """Why it tells nothing; empty where it does."""


async def look_elsewhere(path: Path) -> list[SiteElsewhere]:
    """How the crawls of all dashboards stand that the list of sites names.

    Raises:
        UsageError: the list cannot be read.
    """
    sites = [one for one in read_kept(path, KeptSites).sites if one.is_address]
    return list(await asyncio.gather(*(asyncio.to_thread(_look, site) for site in sites)))


def _look(site: Site) -> SiteElsewhere:
    try:
        crawls = msgspec.json.decode(_answer(site), type=list[CrawlElsewhere])
    except (OSError, http.client.HTTPException) as error:
        return SiteElsewhere(site.name, trouble=f"does not answer: {getattr(error, 'strerror', None) or error}")
    except (msgspec.MsgspecError, UnicodeError):
        return SiteElsewhere(site.name, trouble="does not answer as a dashboard does")
    return SiteElsewhere(site.name, crawls[:SHOWN])


def _answer(site: Site) -> bytes:
    """What `api/crawls` says there. Raises OSError, HTTPException."""
    parts, deadline = urlsplit(site.place), time.monotonic() + PATIENCE
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    line = kind(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {site.key}"} if site.key else {})}
        line.request("GET", f"{parts.path.rstrip('/')}/api/crawls", headers=headers)
        answer = line.getresponse()
        if answer.status in (401, 403):
            raise OSError("its token is not valid; put its address into the list again, as that dashboard prints it")
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        found = b""
        while piece := answer.read1(_PIECE):
            found += piece
            if len(found) > LARGEST or time.monotonic() > deadline:
                raise OSError("its answer is too long, or comes too slowly")
        return found
    finally:
        line.close()
