"""What can be set of the frontier."""

from typing import Annotated, Literal

from gossamer.flow.sheet import Sheet, setting
from gossamer.stages.frontier.lingering import USUAL


class FrontierSheet(Sheet, frozen=True):
    """How many at once, and when to stop."""

    concurrency: Annotated[
        int, setting("Requests in flight in all, from hand-out to commit.", unit="requests", ge=1)
    ] = 64
    max_pages: Annotated[int, setting("Stop after so many HTML pages; never one more.", unit="pages", ge=1)] | None = (
        None
    )
    page_share: (
        Annotated[
            int,
            setting(
                "Take so many of the HTML pages that the crawl may have, then wait for more: the part of one agent among several.",
                unit="pages",
                ge=0,
            ),
        ]
        | None
    ) = None
    max_time: Annotated[float, setting("Stop this run after this time.", unit="s", gt=0)] | None = None
    total_time: Annotated[float, setting("Stop after this time, over all runs.", unit="s", gt=0)] | None = None
    max_bytes: Annotated[int, setting("Stop after so many bytes of bodies.", unit="bytes", ge=1)] | None = None
    min_free_disk: (
        Annotated[int, setting("Stop when less is free where the crawl writes.", unit="bytes", ge=0)] | None
    ) = None
    directory: Annotated[str, setting("Whose free disk is watched.", restart="it is the crawl's directory")] = "."
    linger: (
        Annotated[
            float, setting("Wait so long for retries alone, or `forever`; what is left stays queued.", unit="s", ge=0)
        ]
        | Literal["forever"]
    ) = USUAL
    proxied: Annotated[bool, setting("A proxy looks names up: they are judged here, and no name server is asked.")] = (
        False
    )
    unresolved: Annotated[
        tuple[str, ...], setting("Look up no names in URLs of these schemes: they are those of no machine.")
    ] = ()
