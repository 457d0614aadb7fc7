"""Settings of the frontier: how many requests at once, and when the crawl stops."""

from typing import Annotated, Literal

from gossamer.engine.sheet import Sheet, setting
from gossamer.frontier.limits import USUAL, CrawlLimits


class FrontierSheet(Sheet, frozen=True):
    """How many at once, and when to stop."""

    @property
    def limits(self) -> CrawlLimits:
        """The limits at which the crawl stops of itself."""
        return CrawlLimits(
            self.max_pages,
            self.max_time,
            self.total_time,
            max_bytes=self.max_bytes,
            min_free_disk=self.min_free_disk,
            page_share=self.page_share,
            byte_share=self.byte_share,
        )

    concurrency: Annotated[
        int,
        setting(
            "Allow at most this many requests in flight in all, counted from hand-out to commit.",
            unit="requests",
            ge=1,
            le=4096,
        ),
    ] = 64
    max_pages: (
        Annotated[int, setting("Stop after this many HTML pages, and never fetch one more.", unit="pages", ge=1)] | None
    ) = None
    page_share: (
        Annotated[
            int,
            setting(
                "Take this many of the crawl's HTML pages, then wait for more: the part of one agent among several.",
                unit="pages",
                ge=0,
            ),
        ]
        | None
    ) = None
    byte_share: (
        Annotated[
            int,
            setting(
                "Take this many of the crawl's bytes of bodies, then wait for more: the part of one agent among several.",
                unit="bytes",
                ge=0,
            ),
        ]
        | None
    ) = None
    max_agents: (
        Annotated[
            int,
            setting(
                "Let others join by themselves until this many agents work; default: as many as there are cores.",
                ge=1,
                le=64,
            ),
        ]
        | None
    ) = None
    silence: Annotated[
        float,
        setting(
            "With several agents, end an agent or master that has not answered for this time, and start it again. Also wait "
            "this long for the lost ledger of an agent before its part begins again.",
            unit="s",
            gt=0,
        ),
    ] = 60.0
    max_time: Annotated[float, setting("Stop this run after this time.", unit="s", gt=0)] | None = None
    total_time: Annotated[float, setting("Stop after this time, over all runs.", unit="s", gt=0)] | None = None
    max_bytes: Annotated[int, setting("Stop after this many bytes of bodies.", unit="bytes", ge=1)] | None = None
    min_free_disk: (
        Annotated[
            int, setting("Stop when less than this is free on the disk that the crawl writes to.", unit="bytes", ge=0)
        ]
        | None
    ) = None
    directory: Annotated[
        str, setting("Watch the free disk of this directory.", restart="it is the crawl's directory", names="a folder")
    ] = "."
    linger: (
        Annotated[
            float,
            setting(
                "When only retries are left, wait this long for them, or `forever`; the rest stays queued.",
                unit="s",
                ge=0,
            ),
        ]
        | Literal["forever"]
    ) = USUAL
    stay: (
        Annotated[
            float,
            setting(
                "When only known pages are left to visit again, wait this long for the next of them, or `forever`.",
                unit="s",
                ge=0,
            ),
        ]
        | Literal["forever"]
    ) = "forever"
    proxied: Annotated[bool, setting("Do not look up host names, because a proxy does.")] = False
    unresolved: Annotated[
        tuple[str, ...], setting("Do not look up hosts of URLs with these schemes, because they name no machine.")
    ] = ()
